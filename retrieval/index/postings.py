"""Search in one file of postings: the best token sets by exact Jaccard, and those that contain given tokens.

Rows with the same token set form one *set*. Sets are numbered by ascending size, so every posting list is ordered by
size, and a bound on the size is a slice. A token in more than 1 of 32 sets is stored as a bitmap, which is then
smaller than its list and much faster to count; other tokens have ascending lists of set numbers.
docs/explanation/retrieval.md explains why the result equals that of an exact scan."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
RowScores = tuple[Ints, Floats]

BLOCK = 1 << 18
NONE: RowScores = (np.empty(0, np.int64), np.empty(0, np.float64))
#: The arrays of a file of postings; "query" and "pair" each have all arrays.
PARTS = ("sizes", "row_starts", "rows", "starts", "lists", "dense", "bitmaps")


def load(path: Path) -> npt.NDArray[Any]:
    """Return an array of a file: memory-mapped if large, because small and empty ones do not profit or cannot be
    mapped."""
    if path.stat().st_size < 1 << 16:
        return np.asarray(np.load(path, allow_pickle=False))
    return np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)


class Postings:
    """Sets of `folder`: `sizes[l]` is the number of the first set of size l or more, the last entry the number of
    sets."""

    def __init__(self, folder: Path, kind: str) -> None:
        arrays = [load(folder / f"{kind}.{part}.npy") for part in PARTS]
        self._sizes, self._row_starts, self._rows, self._starts, self._lists, dense, self._bitmaps = arrays
        self._sizes = self._sizes.astype(np.int64)
        self._dense = {token: place for place, token in enumerate(dense.tolist())}

    def best(self, tokens: Sequence[int], size: int, k: int, floor: float = 0.0) -> RowScores:
        """Return the best k rows in order, for a text of `size` tokens of which `tokens` are known; none below
        `floor`."""
        sizes = self._sizes
        sets, known = int(sizes[-1]), len(tokens)
        if not known or not sets or k <= 0:
            return NONE
        # upper[l]: a set of l tokens shares at most min(l, known) of them.
        at_most = np.minimum(np.arange(len(sizes) - 1), known)
        upper = at_most / (size + np.arange(len(sizes) - 1) - at_most)
        blocks = []
        for start in range(0, sets, BLOCK):
            end = min(start + BLOCK, sets)
            first, last = np.searchsorted(sizes, [start, end - 1], side="right") - 1
            blocks.append((float(upper[min(max(known, first), last)]), start, end))
        blocks.sort(key=lambda block: -block[0])

        pool_sets, pool, threshold = *NONE, floor
        for bound, start, end in blocks:
            if bound < threshold:
                break
            block_sets, values = self._score_block(tokens, size, k, threshold, upper, start, end)
            pool_sets, pool = np.concatenate((pool_sets, block_sets)), np.concatenate((pool, values))
            if len(pool) > k:
                threshold = max(threshold, float(np.partition(pool, len(pool) - k)[len(pool) - k]))
                kept = pool >= threshold
                pool_sets, pool = pool_sets[kept], pool[kept]
        return self._read_rows(pool_sets, pool, k)

    def containing(self, tokens: Sequence[int], k: int) -> RowScores:
        """Return the first k rows whose sets contain all of `tokens`, smallest sets first, then ascending rows."""
        if not tokens or k <= 0:
            return NONE
        lists = sorted((self._list(token) for token in tokens if token not in self._dense), key=len)
        maps = [self._bitmaps[self._dense[token]] for token in tokens if token in self._dense]
        if lists:
            result = lists[0].astype(np.int64)
            for other in lists[1:]:
                place = np.minimum(np.searchsorted(other, result.astype(np.uint32)), max(len(other) - 1, 0))
                result = result[other[place] == result] if len(other) else result[:0]
            for bits in maps:
                result = result[(bits[result >> 3] >> (7 - (result & 7)).astype(np.uint8)) & 1 == 1]
        else:
            common = maps[0].copy()
            for bits in maps[1:]:
                common &= bits
            result = np.flatnonzero(np.unpackbits(common, count=int(self._sizes[-1])))
        sizes = np.searchsorted(self._sizes, result, side="right") - 1
        return self._read_rows(result, len(tokens) / sizes, k)

    def _list(self, token: int) -> npt.NDArray[np.uint32]:
        return self._lists[int(self._starts[token]) : int(self._starts[token + 1])]

    def _score_block(
        self, tokens: Sequence[int], size: int, k: int, threshold: float, upper: Floats, start: int, end: int
    ) -> RowScores:
        """Return the sets of a block whose Jaccard index reaches `threshold` and the k-th best of the block."""
        sizes, known = self._sizes, len(tokens)
        first = int(np.searchsorted(sizes, start, side="right")) - 1
        last = int(np.searchsorted(sizes, end - 1, side="right")) - 1
        # upper increases up to l = known and decreases from there, so the sizes that can reach the threshold are
        # contiguous.
        open_sizes = np.flatnonzero(upper[first : last + 1] >= threshold) + first
        if not len(open_sizes):
            return NONE
        first, last = int(open_sizes[0]), int(open_sizes[-1])
        start, end = max(start, int(sizes[first])), min(end, int(sizes[last + 1]))
        counts = self._count(tokens, start, end)

        lengths = np.arange(first, last + 1)
        each = np.clip(sizes[first + 1 : last + 2], start, end) - np.clip(sizes[first : last + 1], start, end)
        needed = _needed(size, known, lengths, threshold)
        if not threshold:
            # The k-th best of the sets with the largest overlaps is a first threshold.
            overlap = int(counts.max())
            while overlap > 1 and np.count_nonzero(counts >= overlap) < k:
                overlap -= 1
            result = np.flatnonzero(counts >= max(overlap, 1))
            if len(result) >= k:
                values = _jaccard(counts[result], size, np.repeat(lengths, each)[result])
                threshold = float(np.partition(values, len(values) - k)[len(values) - k])
                needed = _needed(size, known, lengths, threshold)
        result = np.flatnonzero(counts >= np.repeat(needed.astype(counts.dtype), each))
        values = _jaccard(counts[result], size, lengths[np.searchsorted(np.cumsum(each), result, side="right")])
        return result + start, values

    def _count(self, tokens: Sequence[int], start: int, end: int) -> npt.NDArray[Any]:
        """Return the number of the tokens in each set from start to end."""
        # One larger than any overlap must fit as well: `needed` uses it for "cannot be reached".
        kind = np.uint8 if len(tokens) < 255 else np.uint16 if len(tokens) < 65535 else np.uint32
        skipped = start & 7  # whole bytes of the bitmaps are read
        start -= skipped
        counts: npt.NDArray[Any] = np.zeros(end - start, kind)
        one, edges = kind(1), np.array((start, end), np.uint32)
        for token in tokens:
            place = self._dense.get(token)
            if place is not None:
                bits = self._bitmaps[place, start >> 3 : (end + 7) >> 3]
                counts += np.unpackbits(bits, count=end - start)
                continue
            listed = self._list(token)
            low, high = np.searchsorted(listed, edges)
            if high > low:
                np.add.at(counts, listed[low:high].astype(np.intp) - start, one)
        return counts[skipped:]

    def _read_rows(self, sets: Ints, values: Floats, k: int) -> RowScores:
        """Return the best k rows of sets with these values: highest value first, ties by ascending row."""
        if not len(sets):
            return NONE
        order = np.argsort(-values, kind="stable")
        sets, values = sets[order], values[order]
        starts = self._row_starts[sets].astype(np.int64)
        each = self._row_starts[sets + 1].astype(np.int64) - starts
        together = np.cumsum(each)
        cut = values[min(int(np.searchsorted(together, k)), len(values) - 1)]
        kept = int(np.searchsorted(-values, -cut, side="right"))
        # Rows of a set ascend, so only the first k of each set can be in the result.
        starts, each, values = starts[:kept], np.minimum(each[:kept], k), values[:kept]
        shift = np.cumsum(each) - each
        rows = self._rows[np.repeat(starts - shift, each) + np.arange(int(each.sum()))].astype(np.int64)
        values = np.repeat(values, each)
        above = int(np.searchsorted(-values, -cut))
        if len(rows) > k and k > above:
            tied = above + np.argpartition(rows[above:], k - above - 1)[: k - above]
            rows, values = np.concatenate((rows[:above], rows[tied])), np.concatenate((values[:above], values[tied]))
        order = np.lexsort((rows, -values))[:k]
        return rows[order], values[order]


def _jaccard(common: npt.NDArray[Any], one: int, other: npt.NDArray[Any]) -> Floats:
    """`hits.jaccard` of arrays: the same division of the same integers, hence the same floats."""
    common = common.astype(np.int64)
    return np.asarray(common / (one + other - common), np.float64)


def _needed(size: int, known: int, lengths: Ints, threshold: float) -> Ints:
    """Return the smallest overlap, at least 1, with which sets of the given lengths reach the threshold; `known` + 1 if
    none."""
    guess = np.clip(np.ceil(threshold * (size + lengths) / (1 + threshold)) - 1, 1, known + 1).astype(np.int64)
    # The guess is rounded and at most one too low; the comparison that counts is that of the Jaccard indices.
    for _ in range(3):
        reached = np.zeros(len(guess), bool)
        possible = guess <= np.minimum(known, lengths)
        reached[possible] = _jaccard(guess[possible], size, lengths[possible]) >= threshold
        guess = np.where(reached, guess, np.minimum(guess + 1, known + 1))
    return guess
