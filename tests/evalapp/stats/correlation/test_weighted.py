"""Coefficients under multiplicities equal those of vectors with the rows repeated as often as drawn."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import stats

from evalapp.stats.correlation.coefficients import ALL_COEFFICIENTS
from evalapp.stats.correlation.weighted import WeightedCoefficients, group_coefficients, kendall_inversions

SCIPY = {
    "pearson": stats.pearsonr,
    "spearman": stats.spearmanr,
    "kendall": stats.kendalltau,
    "kendall-c": partial(stats.kendalltau, variant="c"),
}


def draws(rng: np.random.Generator, n: int, b: int) -> np.ndarray:
    return np.stack([np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(b)], axis=1).astype(float)


# Kinds of metric and human scores: continuous, discrete and mixed take different paths for Kendall.
@pytest.mark.parametrize("levels", [(3, 3), (1000, 1000), (3, 1000), (1000, 3), (12, 9)])
@pytest.mark.parametrize("n", [5, 37, 150])
def test_equal_to_scipy_on_repeated_rows(n, levels):
    rng = np.random.default_rng([n, *levels])
    metric = rng.integers(0, levels[0], n).astype(float)
    human = rng.integers(0, levels[1], n).astype(float)
    metric[:2], human[:2] = (0, 1), (0, 1)
    weights = draws(rng, n, 6)
    flat = WeightedCoefficients(metric, human, ALL_COEFFICIENTS)(weights)
    grouped = group_coefficients(metric[None], human[None], weights[None], ALL_COEFFICIENTS)
    for k, column in enumerate(weights.T.astype(int)):
        x, y = np.repeat(metric, column), np.repeat(human, column)
        for name in ALL_COEFFICIENTS:
            constant = np.ptp(x) == 0 or np.ptp(y) == 0
            expected = np.nan if constant else SCIPY[name](x, y)[0]
            np.testing.assert_allclose(flat[name][k], expected, atol=1e-12)
            np.testing.assert_allclose(grouped[name][0, k], expected, atol=1e-12)


def test_constant_resample_is_nan_not_zero():
    metric, human = np.array([0.1, 0.2, 0.7]), np.array([1.0, 2.0, 3.0])
    weights = np.array([[3.0], [0.0], [0.0]])
    for values in WeightedCoefficients(metric, human, ALL_COEFFICIENTS)(weights).values():
        assert np.isnan(values).all()
    for values in group_coefficients(metric[None], human[None], weights[None], ALL_COEFFICIENTS).values():
        assert np.isnan(values).all()


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 100])
def test_inversions_counted_one_by_one(n):
    permutation = np.random.default_rng(n).permutation(n)
    slow = sum(permutation[i] > permutation[j] for i in range(n) for j in range(i + 1, n))
    assert kendall_inversions(permutation) == slow


def test_only_requested_coefficients_are_returned():
    rng = np.random.default_rng(0)
    kernel = WeightedCoefficients(rng.normal(size=9), rng.normal(size=9), ("kendall",))
    assert list(kernel(np.ones((9, 2)))) == ["kendall"]
