"""No interval has zero width: data on which all resamples agree give an exact interval (shares) or none, with a
reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalapp.stats.agreement.coefficients import agreement_table
from evalapp.stats.agreement.icc import icc, iccs
from evalapp.stats.agreement.kappa import cohen_kappa, fleiss_kappa, percent_agreement
from evalapp.stats.agreement.krippendorff import SCALES, krippendorff_alpha
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.correlation.verdicts import share
from evalapp.stats.ranking.bias import side_bias
from evalapp.stats.ranking.comparisons import ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.judgements import PairwiseComparisons
from evalapp.stats.ranking.systems import rank_by_m1, rank_by_mean, rank_by_win_rate
from evalapp.stats.resampling.bootstrap import ALL_ALIKE, NO_WIDTH, Bootstrap

N = 12
ITEM = np.arange(N)
# Each rater gives all units the same value, so the units do not differ.
UNIT, RATER, VALUE = np.repeat(ITEM, 2), np.tile([0, 1], N), np.repeat(ITEM % 3 + 1.0, 2)
ONE_EACH = (np.tile(ITEM, 2), ["x"] * 2 * N, ["y"] * 2 * N, ["a"] * N + ["b"] * N)


def list_values(ranking) -> list[Estimate]:
    return [row.estimate for row in ranking.systems]


SAME: dict[str, Callable[[], list[Estimate]]] = {
    "alpha": lambda: [krippendorff_alpha(UNIT, VALUE)],
    "alpha, nominal": lambda: [krippendorff_alpha(UNIT, VALUE, scale="nominal")],
    "alpha, ordinal": lambda: [krippendorff_alpha(UNIT, VALUE, scale="ordinal")],
    "fleiss": lambda: [fleiss_kappa(VALUE, UNIT, RATER)],
    "cohen": lambda: [cohen_kappa(VALUE[::2], VALUE[1::2])],
    "icc": lambda: [icc(VALUE, UNIT, RATER, form=form) for form in ("1", "A,1", "C,k")],
    "means": lambda: list_values(rank_by_mean([5.0] * N, ITEM, ["x"] * N)),
    "win rate of ties": lambda: list_values(rank_by_win_rate(ITEM, ["x"] * N, ["y"] * N, ["tie"] * N)),
    "one win each": lambda: [
        estimate
        for method in ("bradley-terry", "davidson", "rao-kupper")
        for interval in ("sandwich", "bootstrap")
        for estimate in list_values(
            rank_by_comparisons(
                PairwiseComparisons(*ONE_EACH[1:], item=ONE_EACH[0]),
                model=ComparisonModel(method=method),
                interval=interval,
            )
        )
    ],
    "correlation": lambda: list(correlate(ITEM, ITEM, ITEM, ["x"] * N).estimates.values()),
}  # fmt: skip
ALIKE: dict[str, Callable[[], list[Estimate]]] = {
    "percent": lambda: [percent_agreement(VALUE, UNIT, RATER), percent_agreement(RATER, UNIT, RATER)],
    "win rate": lambda: list_values(rank_by_win_rate(ITEM, ["x"] * N, ["y"] * N, ["a"] * N)),
    "m1": lambda: list_values(rank_by_m1(ITEM, ["x"] * N, ["b"] * N)),
    "pairs": lambda: [share(np.ones(N), ITEM, Bootstrap(resamples=100))],
    "side": lambda: [side_bias(["x", "y"] * N, ["y", "x"] * N, ["a"] * 2 * N, cluster=np.tile(ITEM, 2)).raw],
}


@pytest.mark.parametrize("name", SAME)
def test_constant_data_have_no_interval_but_a_reason(name):
    for estimate in SAME[name]():
        assert estimate.is_defined
        assert not estimate.has_interval
        assert NO_WIDTH in estimate.note


@pytest.mark.parametrize("name", ALIKE)
def test_shares_of_0_and_1_have_the_exact_interval(name):
    """With 12 of 12 in agreement, the Clopper-Pearson interval is .025^(1/12) = .735 to 1."""
    for estimate in ALIKE[name]():
        assert estimate.value in (0, 1)
        low, high = (estimate.low, estimate.high) if estimate.value else (1 - estimate.high, 1 - estimate.low)
        assert (low, high) == pytest.approx((0.735, 1.0), abs=0.0005)
        assert ALL_ALIKE in estimate.note


def make_estimates(seed: int) -> Iterator[tuple[str, dict]]:
    """Estimates from small random data: reversed raters, perfect agreement, missing ratings, no wins, only ties."""
    rng = np.random.default_rng(seed)
    n, k, values = int(rng.integers(2, 14)), int(rng.integers(2, 5)), int(rng.integers(1, 5))
    table = rng.integers(0, values, size=(n, k)).astype(float)
    table[:, 1] = [table[:, 1], values - 1 - table[:, 0], table[:, 0]][seed % 3]
    table = np.repeat(table[:, :1], k, axis=1) if seed % 5 == 0 else table
    kept = np.append(True, rng.random(n * k - 1) < (1 if seed % 2 else 0.7))
    columns = [column.ravel()[kept] for column in (table, *np.indices((n, k)))]
    for scale in SCALES:
        found = agreement_table(*columns, scale=scale, bootstrap=Bootstrap(resamples=40))
        yield from ((f"{name} {scale}", one.as_dict()) for name, one in found.coefficients.items())
        yield from (("pair", one.as_dict()) for pair in found.pairs for one in (pair.percent, pair.kappa, pair.alpha))
    yield from ((f"icc {name}", one.as_dict()) for name, one in iccs(*columns, interval="exact").items())
    m, systems = int(rng.integers(1, 25)), int(rng.integers(2, 5))
    a, item = rng.integers(0, systems, m), rng.integers(0, max(2, m // 2), m)
    b = (a + rng.integers(1, systems, m)) % systems
    said = rng.choice(
        ["a", "b", "tie", "both_bad"], m, p=[[0.4, 0.4, 0.1, 0.1], [0.9, 0, 0.1, 0], [0, 0, 1, 0]][seed % 3]
    )
    yield from (
        ("win rate", one.as_dict())
        for one in list_values(rank_by_win_rate(item, a, b, said, bootstrap=Bootstrap(resamples=40)))
    )
    yield from (
        ("m1", one.as_dict()) for one in list_values(rank_by_m1(item, a, said, bootstrap=Bootstrap(resamples=40)))
    )
    yield "side", side_bias(a, b, said, cluster=item).raw.as_dict()
    for method, interval in product(("bradley-terry", "davidson", "rao-kupper"), ("sandwich", "bootstrap")):
        found = rank_by_comparisons(
            PairwiseComparisons(a, b, said, item=item),
            interval=interval,
            model=ComparisonModel(method=method),
            bootstrap=Bootstrap(resamples=20),
        )
        yield from ((f"rating {method}", one.as_dict()) for one in list_values(found))
        yield from ((f"rating {method} tie", found.extras[name]) for name in ("tie",) if name in found.extras)
    score, people = rng.integers(0, 3, (2, n * systems)).astype(float)
    where = np.repeat(np.arange(n), systems), np.tile(np.arange(systems), n)
    for level, grouping in (("segment", "none"), ("segment", "item"), ("segment", "system"), ("system", "none")):
        found = correlate(
            score,
            people if seed % 4 else score,
            *where,
            settings=CorrelationSettings(level=level, grouping=grouping),
            bootstrap=Bootstrap(resamples=40),
        )
        yield from ((f"{name} {level} {grouping}", one.as_dict()) for name, one in found.estimates.items())
    yield from (
        ("rating mean", one.as_dict())
        for one in list_values(rank_by_mean(people, *where, bootstrap=Bootstrap(resamples=40)))
    )


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_no_interval_has_zero_width_or_exceeds_the_possible_range(seed):
    for name, one in make_estimates(seed):
        assert one["value"] is not None or one["note"], name
        assert (one["low"] is None) == (one["high"] is None), (name, one)
        if one["low"] is not None:
            assert one["high"] > one["low"], (name, one)
        elif one["value"] is not None and not name.startswith("cohen"):  # the mean kappa never has one
            assert one["note"], (name, one)
        if not name.startswith("rating"):
            numbers = [one[key] for key in ("value", "low", "high") if one[key] is not None]
            assert all(-1 - 1e-9 <= number <= 1 + 1e-9 for number in numbers), (name, one)
