"""Coefficients of two vectors: by hand, against SciPy, invariances, and reasons where undefined."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evalapp.stats.correlation.coefficients import (
    CONSTANT_HUMAN,
    CONSTANT_METRIC,
    TOO_FEW,
    critical_correlation,
    fisher_interval,
    kendall,
    kendall_c,
    midranks,
    pearson,
    spearman,
)

ALL = {"pearson": pearson, "spearman": spearman, "kendall": kendall, "kendall-c": kendall_c}
SCIPY = {
    "pearson": stats.pearsonr,
    "spearman": stats.spearmanr,
    "kendall": stats.kendalltau,
    "kendall-c": partial(stats.kendalltau, variant="c"),
}

# Few distinct integers give many ties; both sides must vary.
vectors = (
    st.integers(3, 40)
    .flatmap(lambda n: st.tuples(*[st.lists(st.integers(-5, 5), min_size=n, max_size=n) for _ in range(2)]))
    .filter(lambda pair: min(len(set(pair[0])), len(set(pair[1]))) > 1)
)


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        # Worked by hand. Deviations (-3 -1 1 3)/2 and (-3 1 -1 3)/2: 4 / 5; five pairs concordant, one discordant.
        ([1, 2, 3, 4], [1, 3, 2, 4], {"pearson": 4 / 5, "spearman": 4 / 5, "kendall": 4 / 6, "kendall-c": 4 / 6}),
        # Worked by hand. Squared deviations 2.75 and 2, products 2. Midranks (1.5 1.5 3 4), (1 2.5 2.5 4): 3.75 / 4.5.
        # C = 4, D = 0, one pair tied on each side: 4 / 5; three values on each side: 2 x 4 x 3 / (16 x 2) = 3 / 4.
        (
            [1, 1, 2, 3],
            [1, 2, 2, 3],
            {"pearson": 2 / 5.5**0.5, "spearman": 5 / 6, "kendall": 4 / 5, "kendall-c": 3 / 4},
        ),
    ],
)
def test_values_worked_by_hand(x, y, expected):
    for name, value in expected.items():
        estimate = ALL[name](x, y)
        assert estimate.value == pytest.approx(value, abs=1e-12)
        assert estimate.n == 4


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=60)
@given(pair=vectors)
def test_equal_to_scipy(name, pair):
    x, y = np.array(pair, dtype=float)
    assert ALL[name](x, y).value == pytest.approx(SCIPY[name](x, y)[0], abs=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_equal_to_scipy_on_long_vectors(name):
    rng = np.random.default_rng(1)
    x = rng.normal(size=5000)
    for y in (x + rng.normal(size=5000), np.round(x + rng.normal(size=5000))):
        assert ALL[name](x, y).value == pytest.approx(SCIPY[name](x, y)[0], abs=1e-12)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=40)
@given(pair=vectors, seed=st.integers(0, 1000), scale=st.sampled_from([0.5, 3.0, 1000.0]), shift=st.integers(-9, 9))
def test_order_of_rows_units_and_sign(name, pair, seed, scale, shift):
    x, y = np.array(pair, dtype=float)
    value = ALL[name](x, y).value
    order = np.random.default_rng(seed).permutation(len(x))
    assert ALL[name](x[order], y[order]).value == pytest.approx(value, abs=1e-12)
    assert ALL[name](scale * x + shift, y).value == pytest.approx(value, abs=1e-9)
    assert ALL[name](-x, y).value == pytest.approx(-value, abs=1e-12)
    assert ALL[name](y, x).value == pytest.approx(value, abs=1e-12)
    assert -1 <= value <= 1


@pytest.mark.parametrize("name", ["spearman", "kendall", "kendall-c"])
@settings(max_examples=40)
@given(pair=vectors)
def test_ranks_do_not_change_under_monotone_transforms(name, pair):
    x, y = np.array(pair, dtype=float)
    assert ALL[name](np.exp(x), y**3).value == pytest.approx(ALL[name](x, y).value, abs=1e-12)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("x", "y", "n", "reason"),
    [
        ([], [], 0, TOO_FEW),
        ([1, 2], [1, 2], 2, TOO_FEW),
        ([1, 2, math.nan, 4], [1, 2, 3, math.inf], 2, TOO_FEW),
        ([7, 7, 7], [1, 2, 3], 3, CONSTANT_METRIC),
        ([1, 2, 3], [7, 7, 7], 3, CONSTANT_HUMAN),
        ([0.1 + 0.2, 0.3, 0.3], [1, 2, 3], 3, CONSTANT_METRIC),
    ],
)
def test_undefined_with_a_reason(name, x, y, n, reason):
    estimate = ALL[name](x, y)
    assert not estimate.is_defined
    assert (estimate.n, estimate.note) == (n, reason)


def test_only_complete_pairs_count():
    estimate = pearson([1, 2, math.nan, 3, 9], [2, 4, 5, 6, math.nan])
    assert estimate.value == pytest.approx(1.0)
    assert estimate.n == 3


def test_huge_and_tiny_values_stay_finite():
    assert pearson([1e200, 2e200, 4e200], [1e-200, 2e-200, 4e-200]).value == pytest.approx(1.0)


@given(values=st.lists(st.integers(-4, 4), min_size=1, max_size=30))
@settings(max_examples=40)
def test_midranks_equal_scipy(values):
    assert midranks(np.array(values, dtype=float)).tolist() == stats.rankdata(values).tolist()


# docs/explanation/statistics/significance.md#worked-numbers; for plain Pearson.
@pytest.mark.parametrize(
    ("n", "expected"),
    [(4, 0.950), (5, 0.878), (6, 0.811), (8, 0.707), (10, 0.632), (14, 0.532), (20, 0.444), (28, 0.374)],
)
def test_critical_correlations(n, expected):
    assert critical_correlation(n) == pytest.approx(expected, abs=5e-4)
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(2, n))
    r, p = stats.pearsonr(x, y)
    assert (abs(r) > critical_correlation(n)) == (p < 0.05)


@pytest.mark.parametrize(("n", "low", "high"), [(6, -0.41, 0.95), (10, -0.05, 0.89), (28, 0.29, 0.80)])
def test_fisher_intervals(n, low, high):
    assert fisher_interval(0.6, n) == pytest.approx((low, high), abs=5e-3)
    x, y = np.random.default_rng(n).normal(size=(2, n))
    found = stats.pearsonr(x, y)
    assert fisher_interval(found[0], n) == pytest.approx(tuple(found.confidence_interval()), abs=1e-12)


def test_undefined_fisher_and_critical_values():
    assert fisher_interval(0.5, 3) == (-1.0, 1.0)
    assert fisher_interval(-1.0, 9) == (-1.0, -1.0)
    assert math.isnan(critical_correlation(2))
