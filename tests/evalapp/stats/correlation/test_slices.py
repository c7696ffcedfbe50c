"""Slices shrunken towards the whole: by hand, the variance between slices against statsmodels, and limits."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from statsmodels.stats.meta_analysis import combine_effects

from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.correlation.slices import _between, _shrunken, slice_estimates
from evalapp.stats.resampling.bootstrap import Bootstrap


def sliced(strength, n=60, seed=0):
    """One slice per signal strength, n items each."""
    rng = np.random.default_rng(seed)
    domain = np.repeat([f"d{k}" for k in range(len(strength))], n)
    human = rng.normal(size=len(domain))
    metric = np.repeat(strength, n) * human + rng.normal(size=len(domain))
    return metric, human, np.arange(len(domain)), np.zeros(len(domain)), domain


def test_worked_by_hand():
    # z = atanh(.8) = 1.098612, whole z = 0, s^2 = t^2 = .04: weight 1/2, z = .549306, half width 1.959964 sqrt(.02).
    from evalapp.stats.core.estimate import Estimate

    found = _shrunken("a", Estimate(0.8, 0.7, 0.9, 30), 0.04, 30, 0.0, 0.04, 0.95)
    assert found.weight == 0.5
    assert found.shrunken.value == pytest.approx(0.5)
    ends = (math.tanh(0.549306 - 0.277181), math.tanh(0.549306 + 0.277181))
    assert (found.shrunken.low, found.shrunken.high) == pytest.approx(ends, abs=1e-6)


def test_variance_between_slices_equals_statsmodels():
    z, variance = np.array([0.1, 0.9, 0.4, -0.3]), np.array([0.02, 0.05, 0.01, 0.04])
    found = combine_effects(z, variance, method_re="iterated", row_names=list("abcd"))
    centre = float(found.mean_effect_re)
    assert _between(z - centre, variance) == pytest.approx(float(found.tau2), abs=1e-5)
    assert _between(np.array([0.01, -0.01]), np.array([0.2, 0.2])) == 0.0
    assert _between(np.array([0.5]), np.array([0.1])) == 0.0


def test_slices_are_between_their_own_and_the_overall_value():
    columns = sliced([0.0, 0.5, 2.0])
    found = slice_estimates(*columns, bootstrap=Bootstrap(resamples=200))
    assert [s.name for s in found.slices] == ["d0", "d1", "d2"]
    for part in found.slices:
        rows = columns[4] == part.name
        own = correlate(*(column[rows] for column in columns[:4]), bootstrap=Bootstrap(resamples=0))["pearson"].value
        assert part.raw.value == pytest.approx(own, abs=1e-12)
        assert part.n_pairs == 60
        low, high = sorted((own, found.whole.value))
        assert low <= part.shrunken.value <= high
        assert 0.5 < part.weight < 1
        assert part.shrunken.high - part.shrunken.low < part.raw.high - part.raw.low + 0.02
    assert found.spread > 0.2
    json.dumps(found.as_dict(), allow_nan=False)


def test_equal_slices_take_the_overall_value_and_small_ones_shrink_more():
    # Four copies of the same rows are identical.
    metric, human, item, system, _ = sliced([0.5])
    copies = [np.tile(column, 4) for column in (metric, human)]
    found = slice_estimates(
        *copies, np.arange(240), np.zeros(240), np.repeat(list("abcd"), 60), bootstrap=Bootstrap(resamples=100)
    )
    assert found.spread == 0
    assert all(s.shrunken.value == pytest.approx(found.whole.value) and s.weight == 0 for s in found.slices)
    columns = sliced([0.0, 0.5, 2.0])
    few = np.ones(180, dtype=bool)
    few[10:60] = False
    small, large = (
        slice_estimates(*(c[rows] for c in columns), bootstrap=Bootstrap(resamples=200)) for rows in (few, slice(None))
    )
    assert small.slices[0].weight < large.slices[0].weight


def test_undefined_slices_take_the_overall_value_with_a_note():
    metric, human, item, system, domain = sliced([0.5, 1.0])
    domain = domain.astype("U6")
    domain[:2] = "tiny"
    found = slice_estimates(
        metric,
        human,
        item,
        system,
        domain,
        settings=CorrelationSettings(coefficients=("kendall",)),
        bootstrap=Bootstrap(resamples=50),
    )
    tiny = found.slices[-1]
    assert tiny.name == "tiny"
    assert not tiny.raw.is_defined
    assert tiny.shrunken.value == pytest.approx(found.whole.value)
    assert tiny.shrunken.note == "the value of the whole: fewer than 3 pairs"
    flat = slice_estimates(np.ones(120), human, item, system, domain, bootstrap=Bootstrap(resamples=20))
    assert {s.shrunken.note for s in flat.slices} == {"the metric is constant"}
    with pytest.raises(ValueError, match="resamples"):
        slice_estimates(metric, human, item, system, domain, bootstrap=Bootstrap(resamples=0))


def test_order_of_rows_does_not_matter():
    columns = sliced([0.2, 1.0])
    order = np.random.default_rng(0).permutation(120)
    one, two = (
        slice_estimates(*(c[o] for c in columns), bootstrap=Bootstrap(resamples=60)) for o in (slice(None), order)
    )
    for a, b in zip(one.slices, two.slices, strict=True):
        assert (b.shrunken.value, b.shrunken.low) == pytest.approx((a.shrunken.value, a.shrunken.low), abs=1e-9)
