"""What boards of evaluators compare: the scores of what people judged, without what the evaluators learned from."""

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
    outside_of: Callable[[Sequence[Any]], BoolArray] | None = None,
    is_left: Callable[[BoolArray], bool] = lambda outside: bool(outside.any()),
) -> dict[str, Any]:
    """The arguments `scored`, `outside` and `learned` of a table of evaluators.

    `outside_of` says which judged units none of some evaluators learned from (by default: which outputs), `is_left`
    whether that leaves anything to compare. If not, `learned` tells how many units each evaluator learned from."""
    outside_of = outside_of or (lambda some: ~data.find_learned(some, outputs))
    outside = outside_of(score_sets)
    scored = [data.load_scored(one, outputs) for one in score_sets]
    learned: dict[str, int] = {}
    if not is_left(outside):
        trained = [(one, row) for one, row in zip(score_sets, scored, strict=True) if row.n_in_training]
        learned = {row.evaluator: int((~outside_of([one])).sum()) for one, row in trained}
    return {"scored": scored, "outside": outside, "learned": learned}
