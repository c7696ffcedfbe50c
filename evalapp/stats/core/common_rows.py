"""Outputs on which several evaluators can be compared: rows scored by every evaluator, after excluding evaluators that
would leave too few.

Explained in docs/explanation/statistics/correlation.md#common-rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray, is_constant

NO_SCORE = "has no score"
CONSTANT = "gives the same score to all"


@dataclass(frozen=True, slots=True)
class CommonRows:
    """`rows` (n,): rows with a value in all columns of `used` (positions in order); `reasons`: by position, why the
    other columns are not used."""

    rows: BoolArray
    used: list[int]
    reasons: dict[int, str]


def find_common_rows(
    columns: Sequence[FloatArray],
    eligible: BoolArray,
    unit: IntArray | None = None,
    *,
    least: int,
    share: float = 0.0,
    what: str = "outputs",
    allow_constant: bool = False,
) -> CommonRows:
    """Return the rows among `eligible` with values in all usable (n,) columns (nan = missing).

    Columns without a score are excluded first, and those with a single value for all rows, which have no coefficient;
    `allow_constant` includes the latter, for shares of correct verdicts. Then, while the common rows cover fewer than
    `least` units (`unit`, called `what` in messages; default: the rows), or all if there are fewer, or less than
    `share` of the rows of the best-covered usable column, the column with the fewest scores is excluded (the last one
    on ties), so that one evaluator with few scores does not determine the rows of all."""
    defined = np.stack([eligible & np.isfinite(column) for column in columns], axis=1) if columns else None
    if defined is None:
        return CommonRows(eligible.copy(), [], {})
    reasons: dict[int, str] = {}
    for place, column in enumerate(columns):
        own = defined[:, place]
        if not own.any():
            reasons[place] = NO_SCORE
        elif not allow_constant and own.sum() > 1 and is_constant(column[own]):
            reasons[place] = CONSTANT
    used = [place for place in range(len(columns)) if place not in reasons]
    least = min(least, _count(np.asarray(defined[:, used].any(axis=1)), unit))
    while used:
        rows, some = np.asarray(defined[:, used].all(axis=1)), np.asarray(defined[:, used].any(axis=1))
        if len(used) == 1 or (_count(rows, unit) >= least and rows.sum() >= share * some.sum()):
            return CommonRows(rows, used, reasons)
        fewest = min(used, key=lambda place: (int(defined[:, place].sum()), -place))
        n = _count(defined[:, fewest], unit)
        reasons[fewest] = (
            f"scored {int(defined[:, fewest].sum()):,} of {int(some.sum()):,} outputs"
            + ("" if unit is None else f" ({n} {what})")
            + ", too few to be compared with the others"
        )
        used.remove(fewest)
    return CommonRows(eligible.copy(), [], reasons)


def _count(rows: BoolArray, unit: IntArray | None) -> int:
    return int(rows.sum()) if unit is None else len(np.unique(unit[rows]))
