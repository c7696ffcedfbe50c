"""Edits with shifts that turn a text into a reference, as TER counts them: insertions, deletions, substitutions, and
moves of a sequence of words. Finding the fewest is NP-hard; the greedy search of Snover et al. (2006) is followed with
the limits and the order of ties of sacrebleu, so that the numbers are equal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

#: Limits of the search: words of a shift, its distance, the width of the band of the edit distance, and shifts that
#: are tried for a pair of texts.
MAX_SIZE, MAX_DISTANCE, BEAM, MAX_TRIED = 10, 50, 25, 1000
_FAR = 1 << 40

Words = list[str]
#: Bits of the steps along the reference that cost one more (up) and one less (down), and the distance, after some words
#: of the text.
State = tuple[int, int, int]


class Shift(NamedTuple):
    """Moving `length` words from `start` to before `target`. The highest wins: by gain, then length."""

    gain: int
    length: int
    minus_start: int
    minus_target: int


class Distances:
    """Edit distances of texts to a reference by the bit-parallel algorithm of Myers (1999) in the form of Hyyrö (2003):
    a column of the matrix is two integers, with a bit per word of the reference."""

    def __init__(self, reference: Sequence[str]) -> None:
        self.reference = reference
        self.size = len(reference)
        self.mask = (1 << self.size) - 1
        self.top = 1 << self.size >> 1
        #: The places of each word in the reference, as bits.
        self.places: dict[str, int] = {}
        for place, word in enumerate(reference):
            self.places[word] = self.places.get(word, 0) | 1 << place
        self.counts = Counter(reference)
        #: By the number of words of a text: distances below are found in the band, too.
        self.limits: dict[int, int] = {}

    def begin(self) -> State:
        """The state before the first word."""
        return self.mask, 0, self.size

    def add(self, state: State, words: Sequence[str]) -> State:
        """The state after more words."""
        up, down, distance = state
        places, mask, top = self.places, self.mask, self.top
        for word in words:
            same = places.get(word, 0)
            diagonal = (((same & up) + up) ^ up) | same | down
            right, left = down | (mask & ~(diagonal | up)), diagonal & up
            if right & top:
                distance += 1
            elif left & top:
                distance -= 1
            right = right << 1 | 1
            up, down = mask & (left << 1 | ~(diagonal | right)), right & diagonal & mask
        return up, down, distance

    def list_states(self, words: Sequence[str]) -> list[State]:
        """The states before the first word and after each."""
        return list(accumulate(words, lambda state, word: self.add(state, (word,)), initial=self.begin()))

    def trace(self, words: Sequence[str], states: Sequence[State]) -> str:
        """The edits from the first to the last word: ` ` for a word that stays, `s` for a substituted, `d` for a
        deleted and `i` for an inserted one. Between equally good edits, this order decides, from the end."""
        edits = []
        i, j = len(words), self.size
        while i and j:
            up, down, _ = states[i - 1]
            same = self.places.get(words[i - 1], 0)
            diagonal = (((same & up) + up) ^ up) | same | down
            bit = 1 << (j - 1)
            if same & bit:
                edits.append(" ")
            elif not diagonal & bit:
                edits.append("s")
            else:
                edits.append("d" if (down | (self.mask & ~(diagonal | up))) & bit else "i")
            i -= edits[-1] != "i"
            j -= edits[-1] != "d"
        return "d" * i + "i" * j + "".join(reversed(edits))

    def is_exact(self, n: int, distance: int) -> bool:
        """Whether the search in the band gives this distance and its edits for a text of `n` words: every path
        beyond costs more."""
        if n not in self.limits:
            self.limits[n] = self._find_limit(n)
        return distance < self.limits[n]

    def _find_limit(self, n: int) -> int:
        """The least cost of a path outside the band."""
        m = self.size
        ratio = m / n
        width = get_width(ratio)
        limit = _FAR
        for i in range(1, n + 1):
            middle = int(i * ratio)
            beyond = [middle - width - 1] * (middle > width) + [middle + width] * (middle + width <= m and i < n)
            limit = min([limit, *(abs(j - i) + abs(m - n - j + i) for j in beyond)])
        return limit


def get_width(ratio: float) -> int:
    """The width of the band for texts whose lengths have this ratio."""
    return BEAM if ratio / 2 <= BEAM else math.ceil(ratio / 2 + BEAM)


def trace_in_band(words: Sequence[str], reference: Sequence[str]) -> tuple[int, str]:
    """(distance, edits) by a search in a band around the diagonal, which may miss the best edits."""
    n, m = len(words), len(reference)
    ratio = m / n
    width = get_width(ratio)
    rows = [list(range(m + 1))]
    for i, word in enumerate(words, 1):
        middle = int(i * ratio)
        above, row = rows[-1], [_FAR] * (m + 1)
        for j in range(max(0, middle - width), m + 1 if i == n else min(m + 1, middle + width)):
            best = above[j] + 1
            if j:
                best = min(best, above[j - 1] + (word != reference[j - 1]), row[j - 1] + 1)
            row[j] = min(best, _FAR)
        rows.append(row)
    edits = []
    i, j = n, m
    while i and j:
        here = rows[i][j]
        differs = words[i - 1] != reference[j - 1]
        if here == rows[i - 1][j - 1] + differs:
            edits.append("s" if differs else " ")
        else:
            edits.append("d" if here == rows[i - 1][j] + 1 else "i")
        i -= edits[-1] != "i"
        j -= edits[-1] != "d"
    return rows[n][m], "d" * i + "i" * j + "".join(reversed(edits))


def count_edits(words: Words, distances: Distances) -> int:
    """The edits from `words` to the reference of `distances`, with each shift as one edit."""
    if not distances.size or not words:
        return max(distances.size, len(words))
    shared = sum((distances.counts & Counter(words)).values())
    fewest = max(distances.size, len(words)) - shared
    shifts = tried = 0
    while True:
        states = distances.list_states(words)
        distance = states[-1][2]
        is_exact = distances.is_exact(len(words), distance)
        distance, edits = (
            (distance, distances.trace(words, states)) if is_exact else trace_in_band(words, distances.reference)
        )
        if distance == fewest:  # no shift can gain
            return shifts + distance
        best, tried = _find_shift(words, distances, states if is_exact else None, (distance, fewest, edits), tried)
        if best is None or best.gain <= 0 or tried >= MAX_TRIED:
            return shifts + distance
        words = _shift(words, best)
        shifts += 1


def _find_shift(
    words: Words, distances: Distances, states: list[State] | None, found: tuple[int, int, str], tried: int
) -> tuple[Shift | None, int]:
    """The best shift, and the number of tried shifts."""
    distance, fewest, edits = found
    best: Shift | None = None
    for start, length, targets in _list_candidates(words, distances.reference, edits):
        for target in targets:
            tried += 1
            most = Shift(distance - fewest, length, -start, -target)
            if best is None or most > best:
                shifted = _shift(words, most)
                gain = distance - _measure(shifted, min(start, target), distances, states)
                best = max(best or most._replace(gain=-_FAR), most._replace(gain=gain))
        if tried >= MAX_TRIED:
            break
    return best, tried


def _measure(words: Words, changed: int, distances: Distances, states: list[State] | None) -> int:
    """The distance of words that are the same as before up to `changed`, after which `states` do not hold."""
    state, rest = (states[changed], words[changed:]) if states is not None else (distances.begin(), words)
    distance = distances.add(state, rest)[2]
    if distances.is_exact(len(words), distance):
        return distance
    return trace_in_band(words, distances.reference)[0]


def _list_candidates(words: Words, reference: Sequence[str], edits: str) -> Iterator[tuple[int, int, list[int]]]:
    """(start, length, targets) of sequences of words that occur in the reference, where both sides have an error."""
    aligned, wrong_words, wrong_reference = _align(edits)
    n, m = len(words), len(reference)
    where: dict[str, list[int]] = {}
    for place, word in enumerate(reference):
        where.setdefault(word, []).append(place)
    for start in range(n):
        for place in where.get(words[start], ()):
            if abs(place - start) > MAX_DISTANCE:
                continue
            for length in range(1, min(MAX_SIZE, n - start, m - place) + 1):
                if words[start + length - 1] != reference[place + length - 1]:
                    break
                if (
                    wrong_words[start + length] > wrong_words[start]
                    and wrong_reference[place + length] > wrong_reference[place]
                    and not start <= aligned[place] < start + length
                ):
                    before = [0 if k < 0 else aligned[k] + 1 for k in range(place - 1, min(place + length, m))]
                    yield start, length, [one for k, one in enumerate(before) if not k or one != before[k - 1]]


def _align(edits: str) -> tuple[list[int], list[int], list[int]]:
    """The place in the text of each word of the reference (-1: before the first), and the numbers of errors before each
    word of the text, and of the reference."""
    aligned: list[int] = []
    wrong_words, wrong_reference = [0], [0]
    for edit in edits:
        if edit != "i":
            wrong_words.append(wrong_words[-1] + (edit != " "))
        if edit != "d":
            wrong_reference.append(wrong_reference[-1] + (edit != " "))
            aligned.append(len(wrong_words) - 2)
    return aligned, wrong_words, wrong_reference


def _shift(words: Words, shift: Shift) -> Words:
    """The words after a shift. A target inside the shifted words counts from behind them."""
    start, end, target = -shift.minus_start, shift.length - shift.minus_start, -shift.minus_target
    part = words[start:end]
    if target < start:
        return words[:target] + part + words[target:start] + words[end:]
    if target > end:
        return words[:start] + words[end:target] + part + words[target:]
    return words[:start] + words[end : shift.length + target] + part + words[shift.length + target :]
