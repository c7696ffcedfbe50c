"""Replicates: mean and spread, analysis of variance, paired differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evalapp.stats.core.replicates import blocked_anova, estimate_mean, one_way_anova, paired_difference

#: Five values with mean 0 and standard deviation 1 (n - 1).
FIVE = np.array([-2, -1, 0, 1, 2]) / math.sqrt(2.5)


def test_mean_has_students_interval():
    estimate, sd = estimate_mean([2, 4, 6])
    # SD 2; t(.975, 2) = 4.3027; reach 4.3027 * 2 / sqrt(3).
    assert (estimate.value, sd, estimate.n) == (4, 2, 3)
    assert estimate.low == pytest.approx(4 - 4.968, abs=1e-3)
    one, sd = estimate_mean([2, math.nan])
    assert (one.value, one.n, one.has_interval, math.isnan(sd)) == (2, 1, False, True)
    assert not estimate_mean([])[0].is_defined


@pytest.mark.parametrize(
    ("one", "other", "f", "p"),
    [  # Reddy 2022, table 4 (mean and SD of five seeds): F and p recomputed from them.
        ((76.19, 1.00), (77.98, 1.99), 3.23, 0.110),
        ((86.48, 2.31), (89.04, 0.79), 5.50, 0.047),
    ],
)
def test_one_way_anova_of_published_means(one, other, f, p):
    found = one_way_anova([mean + sd * FIVE for mean, sd in (one, other)])
    assert (found.f, found.p) == (pytest.approx(f, abs=0.01), pytest.approx(p, abs=0.001))
    assert (found.df_between, found.df_within) == (1, 8)


def test_one_way_anova_by_hand_and_as_scipy():
    # Means 2, 3, 7 of 3; grand mean 4; SS between 3 * (4 + 1 + 9) = 42, within 2 + 2 + 2 = 6; F = 21 / 1.
    groups = [[1, 2, 3], [2, 3, 4], [6, 7, 8]]
    found = one_way_anova(groups)
    assert (found.f, found.df_between, found.df_within) == (pytest.approx(21), 2, 6)
    uneven = [[1.0, 5, 2], [2, 3], [9, 4, 4, 1, math.nan]]
    other = stats.f_oneway([1, 5, 2], [2, 3], [9, 4, 4, 1])
    assert one_way_anova(uneven).p == pytest.approx(other.pvalue)


def test_blocked_anova_by_hand_and_as_the_paired_t_test():
    # Girden 1992 in small: rows (1 2 6), (2 3 7), (3 7 8). Grand mean 13/3; columns 2, 4, 7; rows 3, 4, 6.
    table = np.array([[1, 2, 6], [2, 3, 7], [3, 7, 8]], dtype=float)
    # SS columns 38, rows 14, all 56: error 4 with 4 degrees of freedom; F = 19 / 1.
    found = blocked_anova(table)
    assert (found.f, found.df_between, found.df_within) == (pytest.approx(19), 2, 4)
    t = stats.ttest_rel(table[:, 1], table[:, 0])
    two = blocked_anova(table[:, :2])
    assert (two.f, two.p) == (pytest.approx(t.statistic**2), pytest.approx(t.pvalue))


def test_degenerate_input():
    assert one_way_anova([[1, 2]]).note
    assert math.isnan(one_way_anova([[1], [2]]).f)
    same, differ = one_way_anova([[1, 1], [1, 1]]), one_way_anova([[1, 1], [2, 2]])
    assert ((same.f, same.p), (differ.f, differ.p)) == ((0, 1), (math.inf, 0))
    assert differ.as_dict()["f"] is None
    assert blocked_anova([[1, 2]]).note


def test_paired_difference_as_scipy():
    estimate, p = paired_difference([1, 2, 4], [2, 4, 5])
    other = stats.ttest_rel([2, 4, 5], [1, 2, 4])
    assert (estimate.value, p) == (pytest.approx(4 / 3), pytest.approx(other.pvalue))
    assert paired_difference([1, 2], [1, 2])[1] == 1
    assert paired_difference([1, 2], [2, 3])[1] == 0
    with pytest.raises(ValueError, match="not paired: 1 and 2"):
        paired_difference([1], [1, 2])
