"""Scores of judged outputs, without outputs in the training data of the compared evaluators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evalapp.stats.core.coding import BoolArray, IntArray
from scoring.boards.base import Data


def load_compared(
    data: Data,
    score_sets: Sequence[Any],
    outputs: IntArray,
    *,
    find_outside: Callable[[Sequence[Any]], BoolArray] | None = None,
    is_left: Callable[[BoolArray], bool] = lambda outside: bool(outside.any()),
) -> dict[str, Any]:
    """Return the arguments `scored`, `outside` and `learned` of a table of evaluators.

    `find_outside` says which judged units are in no training data of some evaluators (default: which outputs),
    `is_left` whether any of them can be compared. If not, `learned` counts the units in each evaluator's training data.
    """
    find_outside = find_outside or (lambda some: ~data.find_learned(some, outputs))
    outside = find_outside(score_sets)
    scored = [data.load_scored(one, outputs) for one in score_sets]
    learned: dict[str, int] = {}
    if not is_left(outside):
        trained = [(one, row) for one, row in zip(score_sets, scored, strict=True) if row.n_in_training]
        learned = {row.evaluator: int((~find_outside([one])).sum()) for one, row in trained}
    return {"scored": scored, "outside": outside, "learned": learned}
