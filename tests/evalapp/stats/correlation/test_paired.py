"""Differences of correlations: a published figure, and what must hold by construction."""

from __future__ import annotations

import numpy as np
import pytest

from evalapp.stats.core.multiple_tests import holm
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.correlation.paired import compare, compare_replicates, compare_shares, williams
from evalapp.stats.resampling.bootstrap import NO_WIDTH, Bootstrap


def rows(n_items: int = 60, n_systems: int = 5, seed: int = 2) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    n = n_items * n_systems
    human = rng.normal(size=n)
    good, bad = human + rng.normal(size=n), human + 4 * rng.normal(size=n)
    return human, good, bad, np.repeat(np.arange(n_items), n_systems), np.tile(np.arange(n_systems), n_items)


def test_williams_worked_by_hand() -> None:
    # docs/explanation/statistics/significance.md#worked-numbers
    assert williams(0.4, 0.3, 0.5, 300) == pytest.approx(0.030275, abs=5e-7)
    assert williams(0.3, 0.3, 0.5, 300) == pytest.approx(0.5)
    assert np.isnan(williams(0.4, 0.3, 0.5, 3))


@pytest.mark.parametrize("grouping", ["none", "item", "system"])
def test_better_metric_is_found_with_the_difference_of_correlations(grouping) -> None:
    human, good, bad, item, system = rows()
    found = compare(
        good,
        bad,
        human,
        item,
        system,
        settings=CorrelationSettings(grouping=grouping),
        bootstrap=Bootstrap(resamples=300),
    )
    values = [
        correlate(
            m, human, item, system, settings=CorrelationSettings(grouping=grouping), bootstrap=Bootstrap(resamples=0)
        )["pearson"].value
        for m in (good, bad)
    ]
    assert found.estimate.value == pytest.approx(values[0] - values[1])
    assert 0 < found.estimate.low < found.estimate.value < found.estimate.high
    assert found.p is not None
    assert found.p < 0.05
    assert (found.williams is not None) == (grouping == "none")


def test_metric_does_not_differ_from_itself() -> None:
    human, good, _, item, system = rows(20)
    found = compare(good, good, human, item, system, bootstrap=Bootstrap(resamples=200))
    assert found.estimate.value == 0
    # All resamples give 0, so the interval would have zero width.
    assert not found.estimate.has_interval
    assert found.estimate.note == NO_WIDTH
    assert found.p == 1
    assert found.williams == 1


def test_only_complete_rows_count_and_constants_have_a_reason() -> None:
    human, good, bad, item, system = rows(20)
    bad = bad.copy()
    bad[:10] = np.nan
    assert compare(good, bad, human, item, system, bootstrap=Bootstrap(resamples=50)).estimate.n == 90
    flat = compare(good, np.ones(100), human, item, system, bootstrap=Bootstrap(resamples=50))
    assert flat.p is None
    assert "constant" in flat.estimate.note
    assert flat.as_dict()["value"] is None


def test_holm_worked_by_hand() -> None:
    # sorted .01 .03 .04: times 3, 2, 1, never decreasing
    assert holm([0.04, None, 0.01, 0.03]) == [pytest.approx(0.06), None, pytest.approx(0.03), pytest.approx(0.06)]


def test_replicates_differ_from_a_rival_by_the_mean_of_their_differences() -> None:
    human, good, bad, item, system = rows(30)
    other = human - good
    drawn = Bootstrap(resamples=300, seed=4)
    found = compare_replicates([good, other], bad, human, item, system, bootstrap=drawn)
    singles = [compare(one, bad, human, item, system, bootstrap=drawn) for one in (good, other)]
    assert found.estimate.value == pytest.approx(sum(one.estimate.value for one in singles) / 2)
    # A single replicate is the paired comparison itself.
    alone = compare_replicates([good], bad, human, item, system, bootstrap=drawn)
    assert (alone.estimate, alone.p) == (singles[0].estimate, singles[0].p)
    with pytest.raises(ValueError, match="over segments"):
        compare_replicates([good], bad, human, item, system, settings=CorrelationSettings(level="system"))


def test_replicates_of_a_constant_score_have_no_difference() -> None:
    human, good, bad, item, system = rows(10)
    found = compare_replicates([good, np.zeros(len(good))], bad, human, item, system)
    assert not found.estimate.is_defined
    assert found.p is None


def test_difference_of_shares_by_hand() -> None:
    # Right on 4 and on 1.5 of five pairs; the last pair has no second value.
    a, b = [1, 1, 1, 1, 0, 1], [0, 0.5, 0, 1, 0, np.nan]
    found = compare_shares(a, b, bootstrap=Bootstrap(resamples=2000))
    assert found.estimate.value == pytest.approx((4 - 1.5) / 5)
    assert found.estimate.n == 5
    # Differences 1, .5, 1, 0, 0: a resample has no positive one with probability (2/5)^5 = .01024, twice that is p.
    assert found.p == pytest.approx(2 * 0.01024, abs=0.01)
    assert found.estimate.low == pytest.approx(0, abs=0.15)
    assert not compare_shares([np.nan], [1.0]).estimate.is_defined
    # Equal on every pair: nothing can be concluded, and p is 1.
    assert compare_shares(a, a).p == 1
