"""Percent agreement, Fleiss' and Cohen's kappa: values by hand, comparison with statsmodels, undefined cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from statsmodels.stats import inter_rater

from evalapp.stats.agreement.kappa import cohen_kappa, fleiss_kappa, percent_agreement
from evalapp.stats.core.coding import ColumnError
from evalapp.stats.resampling.bootstrap import Bootstrap, percentile_interval

# Fleiss (1971), the worked example printed in many textbooks: ten subjects, fourteen raters, five categories.
FLEISS = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip


def long_form(counts):
    rows = [(unit, value) for unit, row in enumerate(counts) for value, count in enumerate(row) for _ in range(count)]
    unit, value = np.array(rows).T
    places = np.concatenate([np.arange(size) for size in np.bincount(unit)])
    return value, unit, places


def test_fleiss_textbook_example():
    columns = long_form(FLEISS)
    assert fleiss_kappa(*columns, bootstrap=Bootstrap(resamples=0)).value == pytest.approx(0.210, abs=5e-4)
    assert percent_agreement(*columns, bootstrap=Bootstrap(resamples=0)).value == pytest.approx(0.378, abs=5e-4)
    assert fleiss_kappa(*columns, bootstrap=Bootstrap(resamples=0)).value == pytest.approx(
        inter_rater.fleiss_kappa(np.array(FLEISS))
    )


def test_kappa_by_hand():
    # 2 x 2 table 20 5 / 10 15: P = .7, P_e = .5 * .6 + .5 * .4 = .5, kappa = .4.
    a = [1] * 25 + [0] * 25
    b = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    found = cohen_kappa(a, b)
    assert found.value == pytest.approx(0.4)
    assert found.low < 0.4 < found.high
    assert found.n == 50
    # With two categories, every weighting equals the plain one.
    for weights in ("linear", "quadratic"):
        assert cohen_kappa(a, b, weights=weights).value == pytest.approx(0.4)


pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=40)


@settings(max_examples=40)
@given(rows=pairs, weights=st.sampled_from([None, "linear", "quadratic"]))
def test_cohen_equals_statsmodels(rows, weights):
    a, b = np.array(rows).T
    assume(len(np.unique(np.concatenate([a, b]))) > 1)
    table = np.zeros((4, 4))
    np.add.at(table, (a, b), 1)
    found = cohen_kappa(a, b, weights=weights, bootstrap=Bootstrap(resamples=0))
    wt = {"linear": "linear", "quadratic": "quadratic", None: None}[weights]
    expected = inter_rater.cohens_kappa(table, wt=wt, return_results=False)
    assert found.value == pytest.approx(expected, abs=1e-12)
    # Exchanging the raters, reversing the scale, and other numbers at the same distances change nothing.
    for x, y in ((b, a), (-a, -b), (10 * a + 7, 10 * b + 7)):
        assert cohen_kappa(x, y, weights=weights, bootstrap=Bootstrap(resamples=0)).value == pytest.approx(found.value)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), units=st.integers(2, 15), raters=st.integers(2, 6))
def test_fleiss_equals_statsmodels_in_any_order(seed, units, raters):
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 3, (units, raters))
    assume(len(np.unique(data)) > 1)
    unit, rater = (grid.ravel() for grid in np.indices(data.shape))
    found = fleiss_kappa(data.ravel(), unit, rater, bootstrap=Bootstrap(resamples=20))
    table, _ = inter_rater.aggregate_raters(data)
    assert found.value == pytest.approx(inter_rater.fleiss_kappa(table), abs=1e-12)
    order = rng.permutation(data.size)
    names = np.array(["no", "maybe", "yes"])[data.ravel()[order]]
    other = fleiss_kappa(names, unit[order], rater[order] + 5, bootstrap=Bootstrap(resamples=20))
    assert (other.value, other.low, other.high) == pytest.approx((found.value, found.low, found.high), nan_ok=True)


def test_intervals_equal_a_loop_over_copied_rows():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 4, 60)
    b = np.clip(a + rng.integers(-1, 2, 60), 0, 3)
    cell = np.unique(a * 4 + b, return_inverse=True)[1]
    totals = np.bincount(cell)
    drawn = np.random.default_rng([9, 0]).multinomial(60, totals / 60, size=100)
    first = [np.flatnonzero(cell == place)[0] for place in range(len(totals))]
    values = []
    for counts in drawn:
        rows = np.repeat(first, counts)
        values.append(cohen_kappa(a[rows], b[rows], weights="linear", bootstrap=Bootstrap(resamples=0)).value)
    found = cohen_kappa(a, b, weights="linear", bootstrap=Bootstrap(resamples=100, seed=9))
    assert (found.low, found.high) == pytest.approx(percentile_interval(np.array(values)))
    grouped = cohen_kappa(a, b, weights="linear", bootstrap=Bootstrap(cluster=np.arange(60) // 2, seed=9))
    assert grouped.value == found.value
    assert grouped.low < grouped.value < grouped.high


def test_open_scales_with_thousands_of_values_need_little_memory():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=20_000)
    value, unit = np.concatenate([truth, np.where(truth > 1, truth, truth + 1)]), np.tile(np.arange(20_000), 2)
    found = fleiss_kappa(value, unit, np.repeat([0, 1], 20_000), bootstrap=Bootstrap(resamples=10))
    share = float((truth > 1).mean())
    assert found.value == pytest.approx(share, abs=1e-3)
    assert found.low <= found.value <= found.high


def test_percent_with_tolerance_and_missing():
    value = [1, 2, 5, 3, 3, math.nan, 4]
    unit = ["a", "a", "a", "b", "b", "b", "c"]
    rater = [0, 1, 2, 0, 1, 2, 0]
    # a: no equal pair among three, one within 1; b: a single pair; c: a single rating.
    assert percent_agreement(value, unit, rater, bootstrap=Bootstrap(resamples=0)).value == pytest.approx((0 + 1) / 2)
    assert percent_agreement(value, unit, rater, tolerance=1, bootstrap=Bootstrap(resamples=0)).value == pytest.approx(
        (1 / 3 + 1) / 2
    )
    assert percent_agreement(value, unit, rater).n == 2


def test_undefined_with_a_reason():
    for function in (fleiss_kappa, percent_agreement):
        assert function([], [], []).note == "no unit was rated twice"
        assert function([1, 2], [0, 1], [0, 0]).note == "no unit was rated twice"
    assert fleiss_kappa([1, 1], [0, 0], [0, 1]).note == "all ratings are equal"
    assert percent_agreement([1, 1], [0, 0], [0, 1], bootstrap=Bootstrap(resamples=0)).value == 1
    assert cohen_kappa([], []).note == "the two have no unit in common"
    assert cohen_kappa([1, 1], [1, 1]).note == "all ratings are equal"
    assert cohen_kappa([1, math.nan], [math.nan, 1]).note == "the two have no unit in common"
    assert cohen_kappa(["x", None], ["x", "y"]).note == "all ratings are equal"
    with pytest.raises(ValueError, match="weights"):
        cohen_kappa([1], [2], weights="cubic")
    with pytest.raises(ColumnError, match="more than once"):
        fleiss_kappa([1, 2], [0, 0], ["r", "r"])
