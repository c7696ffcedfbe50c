"""Draws of clusters, resampled sums, percentile intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evalapp.stats.core.estimate import Estimate
from evalapp.stats.resampling.bca import with_bca_interval
from evalapp.stats.resampling.bootstrap import (
    FEW_CLUSTERS,
    NO_WIDTH,
    ClusterDraws,
    chunk_sizes,
    percentile_interval,
    resampled_sums,
    with_interval,
)


def test_draws_depend_on_seed_and_stream_but_not_on_chunks():
    whole = ClusterDraws(7, seed=5).take(10)
    parts = ClusterDraws(7, seed=5)
    assert np.array_equal(whole, np.concatenate([parts.take(3), parts.take(6), parts.take(1)], axis=1))
    assert not np.array_equal(whole, ClusterDraws(7, seed=6).take(10))
    assert not np.array_equal(whole, ClusterDraws(7, seed=5, stream=1).take(10))


def test_every_resample_draws_the_number_of_clusters():
    counts = ClusterDraws(11, seed=0).take(200)
    assert counts.shape == (11, 200)
    assert (counts.sum(axis=0) == 11).all()
    assert abs(counts.mean() - 1) < 1e-12
    # A cluster is absent from a share of (1 - 1/11)^11 of the resamples.
    assert np.mean(counts == 0) == pytest.approx((10 / 11) ** 11, abs=0.03)


@pytest.mark.parametrize(("resamples", "rows"), [(1000, 10), (1000, 10**5), (3, 10**9), (0, 5)])
def test_chunks_add_up(resamples, rows):
    sizes = chunk_sizes(resamples, rows)
    assert sum(sizes) == resamples
    assert all(size > 0 for size in sizes)


def test_resampled_sums_equal_sums_over_copied_clusters():
    columns = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
    sums = resampled_sums(columns, np.array([0, 1, 1]), 2, resamples=20, seed=1)
    counts = ClusterDraws(2, seed=1).take(20)
    assert np.allclose(sums[:, 0], counts[0] * 1 + counts[1] * 6)
    assert np.allclose(sums[:, 1], 10 * sums[:, 0])


def test_percentiles_equal_numpy_and_skip_undefined_resamples():
    values = np.arange(101.0)
    assert percentile_interval(values, 0.9) == (5.0, 95.0)
    assert percentile_interval(np.append(values, math.nan), 0.9) == (5.0, 95.0)
    assert all(math.isnan(end) for end in percentile_interval(np.array([math.nan])))


def test_missing_interval_has_a_reason():
    point, values = Estimate.point(0.5, 9), np.linspace(0.4, 0.6, 10)
    assert with_interval(point, values, clusters={"items": 9}).has_interval
    assert with_interval(point, np.full(10, 0.5), clusters={"items": 9}).note == NO_WIDTH
    assert (
        "no interval: 4 items only, at least 5 are needed" in with_interval(point, values, clusters={"items": 4}).note
    )
    values[:6] = math.nan
    assert "only 40% of the resamples" in with_interval(point, values, clusters={"items": 9}).note
    assert with_interval(point, values[:0], clusters={"items": 1}) == point
    undefined = Estimate.undefined("because")
    assert with_interval(undefined, values, clusters={"items": 9}) is undefined


def test_interval_from_few_clusters_has_a_note():
    point, values = Estimate.point(0.5, 9), np.linspace(0.4, 0.6, 50)
    few = with_interval(point, values, clusters={"items": 60, "systems": FEW_CLUSTERS - 1})
    assert few.has_interval
    assert few.note == "the interval rests on 9 systems only"
    assert with_interval(point, values, clusters={"items": FEW_CLUSTERS}).note == ""
    one_by_one = [np.linspace(0.45, 0.55, 9)]
    assert (
        with_bca_interval(point, values, one_by_one, clusters={"items": 9}).note == "the interval rests on 9 items only"
    )

    def misses(n: int) -> float:
        """The probability that percentiles of resamples miss the mean of n normal values."""
        return 2 * stats.t.cdf(-stats.norm.ppf(0.975) * math.sqrt((n - 1) / n), n - 1)

    # The limit for few clusters: an interval errs twice as often as its level says.
    assert misses(FEW_CLUSTERS) < 2 * 0.05 < misses(FEW_CLUSTERS - 1)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_interval_without_a_finite_end_is_missing():
    """Sums of values near 1e308 overflow in some resamples; tables took the missing end for a number."""
    found = with_interval(Estimate.point(1.0, 20), np.array([1.0, np.inf] * 50), clusters={"items": 20})
    assert (found.has_interval, found.value) == (False, 1.0)
    assert found.note == "no interval: the values are too large to compute with"
