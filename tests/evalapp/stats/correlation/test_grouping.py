"""Coefficients inside groups: small groups in arrays and large ones one by one equal SciPy group by group."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evalapp.stats.correlation.coefficients import COEFFICIENTS, CONSTANT_HUMAN, CONSTANT_METRIC, TOO_FEW
from evalapp.stats.correlation.grouping import GroupedCoefficients

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def test_groups_of_all_sizes_equal_scipy():
    rng = np.random.default_rng(3)
    sizes = [3, 4, 5, 8, 9, 30, 64, 65, 120]
    group = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    metric, human = rng.integers(0, 50, len(group)).astype(float), rng.integers(0, 50, len(group)).astype(float)
    grouped = GroupedCoefficients(metric, human, group, len(sizes), COEFFICIENTS)
    values = grouped(np.ones((len(group), 1)))
    assert grouped.undefined_counts() == {}
    for g in range(len(sizes)):
        rows = group == g
        for name in COEFFICIENTS:
            expected = SCIPY[name](metric[rows], human[rows])[0]
            assert values[name][g, 0] == pytest.approx(expected, abs=1e-12)


def test_undefined_groups_are_counted_by_reason():
    group = np.repeat(np.arange(5), [2, 3, 3, 3, 3])
    metric = np.array([1, 2, 5, 5, 5, 1, 2, 3, 4, 4, 4, 1, 2, 4.0])
    human = np.array([1, 2, 1, 2, 3, 7, 7, 7, 6, 6, 6, 1, 2, 4.0])
    grouped = GroupedCoefficients(metric, human, group, 6, COEFFICIENTS)
    # The empty sixth group also has too few pairs; a group constant on both sides counts under its metric.
    assert grouped.undefined_counts() == {TOO_FEW: 2, CONSTANT_METRIC: 2, CONSTANT_HUMAN: 1}
    values = grouped(np.ones((len(group), 1)))["pearson"][:, 0]
    assert np.isnan(values).tolist() == [True, True, True, True, False, True]
    assert grouped.eligible.tolist() == [False, True, True, True, True, False]
