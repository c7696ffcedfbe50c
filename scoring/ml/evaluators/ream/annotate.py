"""Automatic annotation: which candidates to take into a reference set, first-fit or greedily, with its trace.

Explained in docs/explanation/evaluators/ream.md#choosing-references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

#: Gives the reliabilities of multiple sets of texts for a query.
Judge: TypeAlias = Callable[[Sequence[Sequence[str]]], Iterable[float]]
#: Prepares texts for the judge, several at a time.
Read: TypeAlias = Callable[[Sequence[str]], object]


@dataclass(frozen=True, slots=True)
class Step:
    """A candidate with the reliability before and after adding it, and whether it was accepted."""

    candidate: str
    before: float
    after: float
    accepted: bool


@dataclass(frozen=True, slots=True)
class Annotation:
    """The references of an item after selection, initial ones first, and every step in order."""

    item: str
    references: tuple[str, ...]
    start: tuple[str, ...]
    reliability: float
    trace: tuple[Step, ...]

    @property
    def added(self) -> tuple[str, ...]:
        """The references that were added."""
        return self.references[len(self.start) :]


@dataclass(frozen=True)
class Search:
    """The rule by which references are selected: at most `most`, each for a gain above `min_gain`, first-fit or
    greedy."""

    most: int = 10
    min_gain: float = 0.0
    greedy: bool = False


def choose_references(
    item: str,
    start: Sequence[str],
    candidates: Sequence[str],
    judge: Judge,
    search: Search,
    *,
    rng: np.random.Generator,
    read: Read | None = None,
) -> Annotation:
    """Select references of an `item`. First-fit: visit the `candidates` once in random order and add r if s(R + r) >
    s(R) + min_gain, until there are `most`.

    Greedy: judge all candidates and add the best, repeatedly, while the gain exceeds min_gain. `search` has the rule,
    `judge` returns reliabilities s, `rng` draws the order. Blank candidates and members of the set are skipped. If the
    set `start` is empty, the best candidate alone (greedy) or the first one visited begins the set, with -1 as the
    reliability before it.

    `read` receives texts before they are judged: all for greedy; for first-fit the next candidates, at first as
    many as there are free places, then twice as many each time, so that a set that fills early does not pay for the
    rest.
    """
    most, min_gain, greedy = search.most, search.min_gain, search.greedy
    present = [text for text in dict.fromkeys(start) if text.strip()]
    known = set(present)
    left = [text for text in dict.fromkeys(candidates) if text.strip() and text not in known]
    if greedy and read is not None:
        read([*present, *left])
    left = [left[int(place)] for place in rng.permutation(len(left))]
    ahead = _Ahead(None if greedy else read, present, left, most - len(present))
    score = _first(judge([present])) if present else -1.0
    chosen, trace = list(present), list[Step]()
    while left and len(chosen) < most:
        if greedy:
            after = [float(value) for value in judge([[*chosen, text] for text in left])]
            best = int(np.argmax(after))
            taken = not chosen or after[best] > score + min_gain
            trace.append(Step(left[best], score, after[best], taken))
            if not taken:
                break
            score = after[best]
            chosen.append(left.pop(best))
            continue
        ahead.before_next(left)
        text = left.pop(0)
        value = _first(judge([[*chosen, text]]))
        taken = not chosen or value > score + min_gain
        trace.append(Step(text, score, value, taken))
        if taken:
            score = value
            chosen.append(text)
    return Annotation(item, tuple(chosen), tuple(present), score, tuple(trace))


class _Ahead:
    """Reads texts in chunks, each twice as long as the previous one."""

    def __init__(self, read: Read | None, present: Sequence[str], left: Sequence[str], free: int) -> None:
        self.read = read
        self.chunk = self.ready = max(free, 0)
        if read is not None:
            read([*present, *left[: self.chunk]])

    def before_next(self, left: Sequence[str]) -> None:
        """Called before the first of `left` is judged."""
        if self.ready == 0:
            self.chunk *= 2
            self.ready = self.chunk
            if self.read is not None:
                self.read(left[: self.chunk])
        self.ready -= 1


def mix(one: Sequence[Annotation], two: Sequence[Annotation]) -> list[Annotation]:
    """Return the union of the selections of two models, `one` and `two`, for each item, in the first model's order.

    Initial references of either model do not count as added; the reliability is the first model's for its own
    selection. Raises ValueError if the annotations are not of the same items in the same order.
    """
    if [a.item for a in one] != [b.item for b in two]:
        raise ValueError("the two annotations are not of the same items")
    result = []
    for a, b in zip(one, two, strict=True):
        union = tuple(dict.fromkeys([*a.references, *b.references]))
        start = tuple(dict.fromkeys([*a.start, *b.start]))
        result.append(Annotation(a.item, union, start, a.reliability, (*a.trace, *b.trace)))
    return result


def _first(values: Iterable[float]) -> float:
    return float(next(iter(values)))
