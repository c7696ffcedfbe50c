"""Intervals and ranks of systems that have one value for all their texts."""

from __future__ import annotations

import numpy as np
import pytest

from evalapp.stats.ranking.own_values import bootstrap_sums, places_by_ends
from evalapp.stats.ranking.systems import rank_by_mean
from evalapp.stats.resampling.bootstrap import Bootstrap


def divide_sums(sums):
    return sums[..., 0] / sums[..., 1]


def test_plain_mean_has_the_interval_of_means():
    """The same draws and percentiles as `rank_by_mean`, whose intervals are checked against simulations."""
    rng = np.random.default_rng(5)
    values, items = rng.normal(size=60), np.arange(60) // 2
    found = bootstrap_sums(values.mean(), np.column_stack([values, np.ones(60)]), items, divide_sums)
    (row,) = rank_by_mean(values, np.arange(60), np.zeros(60, dtype=int), bootstrap=Bootstrap(cluster=items)).systems
    assert (found.value, found.low, found.high) == pytest.approx(
        (row.estimate.value, row.estimate.low, row.estimate.high)
    )
    assert found.n == 60
    assert found.note == ""


def test_interval_of_a_ratio_by_hand():
    """Five groups, one with sum 6/1 and four with 1/1: a resample that draws the first k times gives 1 + k. P(k = 0) =
    .33, P(k > 3) = .0067, P(k > 2) = .058, so the ends are 1 and 4."""
    found = bootstrap_sums(2.0, np.array([[6.0, 1.0]] + [[1.0, 1.0]] * 4), list("abcde"), divide_sums)
    assert (found.low, found.high) == (1.0, 4.0)
    assert found.note == "the interval rests on 5 groups only"


def test_missing_interval_has_a_reason():
    one = bootstrap_sums(2.0, np.array([[1.0, 1.0], [3.0, 1.0]]), ["a", "a"], divide_sums)
    assert not one.has_interval
    assert "no interval: 1 groups only" in one.note
    none = bootstrap_sums(float("nan"), np.zeros((0, 2)), [], divide_sums)
    assert not none.is_defined
    assert none.note


def test_coverage_is_nominal():
    """200 samples of 80 groups of a ratio of means, E(x) / E(y) = 2: about 95 of 100 intervals cover it."""
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(200):
        below = rng.uniform(0.5, 1.5, 80)
        rows = np.column_stack([2 * below + rng.normal(0, 0.4, 80), below])
        found = bootstrap_sums(rows[:, 0].sum() / rows[:, 1].sum(), rows, np.arange(80), divide_sums)
        hits += found.low <= 2 <= found.high
    assert 180 <= hits <= 199


def test_ranks_from_the_ends_of_intervals():
    """By hand: a (3 to 4) is above c (0 to 1) and not significantly different from b (.5 to 3.5); d has no interval, so
    any rank."""
    low, high = np.array([3.0, 0.5, 0.0, np.nan]), np.array([4.0, 3.5, 1.0, np.nan])
    best, worst = places_by_ends(low, high)
    assert best.tolist() == [1, 1, 2, 1]
    assert worst.tolist() == [3, 4, 4, 4]
    # Intervals that touch show no difference.
    assert places_by_ends(np.array([1.0, 0.0]), np.array([2.0, 1.0]))[0].tolist() == [1, 1]
    assert places_by_ends(np.zeros(0), np.zeros(0))[0].tolist() == []
