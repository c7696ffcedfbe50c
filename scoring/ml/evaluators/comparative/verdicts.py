"""Verdicts on pairs from class probabilities in one or both reading directions. Plain arrays, no torch.

Explained in docs/explanation/evaluators/comparative.md#verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Signs: TypeAlias = npt.NDArray[np.int8]
Bools: TypeAlias = npt.NDArray[np.bool_]
#: The outcome of a comparison: the most likely class, or the expectation over the three classes.
Outcome: TypeAlias = Literal["verdict", "expected"]
OUTCOMES: tuple[Outcome, ...] = ("verdict", "expected")

#: Points of a comparison by its sign: lost, tied, won.
POINTS = (0.0, 1.0, 3.0)


@dataclass(frozen=True)
class Verdicts:
    """n comparisons. `signs` (n,): 1 the first text is better, -1 the second, 0 neither. `probabilities` (n, 3): worse,
    tie, better. `swap_consistency` is the share of pairs whose verdict is reversed when the texts swap places, None if
    each was read in one direction or none was read. `truncated` (n,): a text was truncated. `threshold` is that of
    `decide_signs`; None if verdicts are the most likely class."""

    signs: Signs
    probabilities: Floats
    swap_consistency: float | None
    truncated: Bools
    threshold: float | None = None

    def __len__(self) -> int:
        return len(self.signs)

    def __iter__(self) -> Iterator[int]:
        return iter(self.signs.tolist())


def softmax(logits: Floats) -> Floats:
    """Rows of logits as probabilities."""
    grown = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))


def symmetrise(forward: Floats, backward: Floats) -> Floats:
    """Return the mean of D(a, b) and the mirrored D(b, a): p(better) = (D_better(a, b) + D_worse(b, a)) / 2, and so on.

    `forward` and `backward` are (n, 3) probabilities of both reading directions.
    """
    return np.asarray((forward + backward[:, ::-1]) / 2)


def measure_lean(probabilities: Floats) -> Floats:
    """Return (n,) p(better) - p(worse) of `probabilities` (n, 3)."""
    return np.asarray(probabilities[:, 2] - probabilities[:, 0])


def decide_signs(probabilities: Floats, threshold: float | None = None) -> Signs:
    """Return (n,) the most likely class of `probabilities` (n, 3) as 1, 0 or -1; with a `threshold` the likelier of
    better and worse, 0 if they differ by at most the threshold.

    Exactly equal better and worse are a tie, so that swapping the texts always mirrors the verdict.
    """
    if threshold is not None:
        lean = measure_lean(probabilities)
        return np.where(np.abs(lean) > threshold, np.sign(lean), 0).astype(np.int8)
    worse, tie, better = probabilities.T
    won, lost = better > np.maximum(worse, tie), worse > np.maximum(better, tie)
    return won.astype(np.int8) - lost.astype(np.int8)


def average_thresholds(thresholds: Sequence[float | None]) -> float | None:
    """Return the mean of the `thresholds` of the models behind mean probabilities; None unless each model has one."""
    known = [value for value in thresholds if value is not None]
    return float(np.mean(known)) if known and len(known) == len(thresholds) else None


def swap_consistency(forward: Floats, backward: Floats) -> float:
    """Return the share of pairs with verdict(a, b) = - verdict(b, a), from `forward` and `backward` probabilities (n,
    3); nan without pairs."""
    if not len(forward):
        return float("nan")
    return float((decide_signs(forward) == -decide_signs(backward)).mean())


def count_points(signs: Signs) -> Floats:
    """Return the points of verdicts `signs` (n,): 3 for a win, 1 for a tie, 0 for a loss."""
    return np.asarray(POINTS)[signs.astype(np.int64) + 1]


def expected_points(probabilities: Floats) -> Floats:
    """Return the expected points of comparisons with `probabilities` (n, 3): 3 p(better) + p(tie)."""
    _, tie, better = probabilities.T
    return POINTS[1] * tie + POINTS[2] * better


def score_signs(signs: Signs) -> Floats:
    """Return the game score of the first text for verdicts `signs` (n,): 1, 0.5 or 0."""
    return (signs.astype(np.float64) + 1) / 2


def expected_scores(probabilities: Floats) -> Floats:
    """Return the expected game score of the first text, p(better) + p(tie) / 2, from `probabilities` (n, 3).

    Computed as (1 + p(better) - p(worse)) / 2: exactly .5 if better and worse are equally likely, and always within 0
    and 1.
    """
    worse, _, better = probabilities.T
    return (1 + (better - worse)) / 2
