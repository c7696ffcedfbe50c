"""No figure is shown with an interval without width: data on which no resample differs give an exact interval (shares)
or none, with the reason."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evalapp.stats import (
    Estimate,
    cohen_kappa,
    correlate,
    fleiss_kappa,
    icc,
    krippendorff_alpha,
    percent_agreement,
    rank_by_comparisons,
    rank_by_m1,
    rank_by_mean,
    rank_by_win_rate,
)
from evalapp.stats.bias import side_bias
from evalapp.stats.resampling import ALL_ALIKE, NO_WIDTH
from evalapp.stats.verdicts import share

N = 12
ITEM = np.arange(N)
# Both raters give the same two values to every unit's ratings: nothing differs from unit to unit.
UNIT, RATER, VALUE = np.repeat(ITEM, 2), np.tile([0, 1], N), np.repeat(ITEM % 3 + 1.0, 2)
ONE_EACH = (np.tile(ITEM, 2), ["x"] * 2 * N, ["y"] * 2 * N, ["a"] * N + ["b"] * N)


def values_of(ranking) -> list[Estimate]:
    return [row.estimate for row in ranking.systems]


SAME: dict[str, Callable[[], list[Estimate]]] = {
    "alpha": lambda: [krippendorff_alpha(UNIT, VALUE)],
    "alpha, nominal": lambda: [krippendorff_alpha(UNIT, VALUE, scale="nominal")],
    "alpha, ordinal": lambda: [krippendorff_alpha(UNIT, VALUE, scale="ordinal")],
    "fleiss": lambda: [fleiss_kappa(VALUE, UNIT, RATER)],
    "cohen": lambda: [cohen_kappa(VALUE[::2], VALUE[1::2])],
    "icc": lambda: [icc(VALUE, UNIT, RATER, form=form) for form in ("1", "A,1", "C,k")],
    "means": lambda: values_of(rank_by_mean([5.0] * N, ITEM, ["x"] * N)),
    "win rate of ties": lambda: values_of(rank_by_win_rate(ITEM, ["x"] * N, ["y"] * N, ["tie"] * N)),
    "one win each": lambda: [
        estimate
        for method in ("bradley-terry", "davidson", "rao-kupper")
        for interval in ("sandwich", "bootstrap")
        for estimate in values_of(
            rank_by_comparisons(*ONE_EACH[1:], item=ONE_EACH[0], method=method, interval=interval)
        )
    ],
    "correlation": lambda: list(correlate(ITEM, ITEM, ITEM, ["x"] * N, grouping="none").estimates.values()),
}  # fmt: skip
ALIKE: dict[str, Callable[[], list[Estimate]]] = {
    "percent": lambda: [percent_agreement(VALUE, UNIT, RATER), percent_agreement(RATER, UNIT, RATER)],
    "win rate": lambda: values_of(rank_by_win_rate(ITEM, ["x"] * N, ["y"] * N, ["a"] * N)),
    "m1": lambda: values_of(rank_by_m1(ITEM, ["x"] * N, ["b"] * N)),
    "pairs": lambda: [share(np.ones(N), ITEM, (100, 0, 0.95))],
    "side": lambda: [side_bias(["x", "y"] * N, ["y", "x"] * N, ["a"] * 2 * N, cluster=np.tile(ITEM, 2)).raw],
}


@pytest.mark.parametrize("name", SAME)
def test_what_cannot_vary_has_no_interval_and_says_why(name):
    for estimate in SAME[name]():
        assert estimate.is_defined
        assert not estimate.has_interval
        assert NO_WIDTH in estimate.note


@pytest.mark.parametrize("name", ALIKE)
def test_shares_of_0_and_1_have_the_exact_interval(name):
    """Of 12 that agree the Clopper-Pearson interval is .025^(1/12) = .735 to 1."""
    for estimate in ALIKE[name]():
        assert estimate.value in (0, 1)
        low, high = (estimate.low, estimate.high) if estimate.value else (1 - estimate.high, 1 - estimate.low)
        assert (low, high) == pytest.approx((0.735, 1.0), abs=0.0005)
        assert ALL_ALIKE in estimate.note
