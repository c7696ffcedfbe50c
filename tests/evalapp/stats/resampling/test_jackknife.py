"""Intervals over systems: equal to a plain jackknife; undefined ones have a reason; the difference of two
correlations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.correlation.paired import compare
from evalapp.stats.resampling.bootstrap import Bootstrap


def systems(n=9, seed=0, noise=0.6):
    rng = np.random.default_rng(seed)
    human = rng.normal(size=n)
    return human + noise * rng.normal(size=n), human, np.arange(n)


def plain(metric, human, value):
    """Ends by the formula: Fisher's z, delta method, Student's t (SciPy's quantile and coefficient)."""
    n = len(human)
    r = value(metric, human)[0]
    left = np.array([value(np.delete(metric, k), np.delete(human, k))[0] for k in range(n)])
    half = stats.t.ppf(0.975, n - 1) * math.sqrt((n - 1) / n * ((left - left.mean()) ** 2).sum()) / (1 - r**2)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half), left, r


WAYS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


@pytest.mark.parametrize("name", WAYS)
def test_equal_to_a_plain_jackknife(name):
    metric, human, system = systems()
    found = correlate(metric, human, np.zeros(9), system, settings=CorrelationSettings(level="system"))
    low, high, _, _ = plain(metric, human, WAYS[name])
    assert (found[name].low, found[name].high) == pytest.approx((low, high), abs=1e-12)
    assert "interval:jackknife-z" in found.signature
    assert "seed" not in found.signature
    assert found.population == "systems and items like these"
    assert correlate(metric, human, system, np.zeros(9)).population == "these systems, items like these"


def test_identical_order_has_no_interval():
    _, human, system = systems()
    found = correlate(2 * human, human, np.zeros(9), system, settings=CorrelationSettings(level="system"))["spearman"]
    assert found.value == pytest.approx(1)
    assert not found.has_interval
    assert "the order is the same" in found.note


def test_difference_combines_both_intervals():
    one, human, system = systems(12)
    two = np.random.default_rng(5).normal(size=12) + human
    found = compare(one, two, human, np.zeros(12), system, settings=CorrelationSettings(level="system"))
    l1, u1, left_one, r1 = plain(one, human, stats.pearsonr)
    l2, u2, left_two, r2 = plain(two, human, stats.pearsonr)
    c = np.corrcoef(left_one, left_two)[0, 1]
    low = r1 - r2 - math.sqrt((r1 - l1) ** 2 + (u2 - r2) ** 2 - 2 * c * (r1 - l1) * (u2 - r2))
    high = r1 - r2 + math.sqrt((u1 - r1) ** 2 + (r2 - l2) ** 2 - 2 * c * (u1 - r1) * (r2 - l2))
    assert (found.estimate.low, found.estimate.high) == pytest.approx((low, high), abs=1e-9)
    assert 0 < found.p <= 1
    few = compare(one[:5], two[:5], human[:5], np.zeros(5), system[:5], settings=CorrelationSettings(level="system"))
    assert few.p is None
    assert "at least 6" in few.note


def test_resampling_of_systems_can_still_be_requested():
    metric, human, system = systems(12)
    drawn = correlate(
        metric,
        human,
        np.arange(12),
        system,
        settings=CorrelationSettings(level="system", resampling_unit="both"),
        bootstrap=Bootstrap(resamples=50),
    )
    assert "boot:both|resamples:50" in drawn.signature
    with pytest.raises(ValueError, match="leaves out systems"):
        correlate(metric, human, np.arange(12), system, settings=CorrelationSettings(interval="jackknife"))
    assert not correlate(
        metric,
        human,
        np.arange(12),
        system,
        settings=CorrelationSettings(level="system"),
        bootstrap=Bootstrap(resamples=0),
    )["pearson"].has_interval
