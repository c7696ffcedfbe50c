"""BCa intervals: by hand, equal to SciPy's on its own resamples, and as an option of `correlate`."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.resampling.bca import MOST_BLOCKS, LeaveOneOut, bca_interval
from evalapp.stats.resampling.bootstrap import Bootstrap


def test_without_bias_and_skewness_it_is_the_percentile_interval():
    replicates = np.linspace(-1, 1, 2001)
    low, high = bca_interval(0.0, replicates, [np.array([-1.0, 0.0, 1.0])])
    assert (low, high) == pytest.approx(tuple(np.percentile(replicates, [2.5, 97.5])), abs=1e-9)


def test_bias_moves_both_ends_by_twice_z0():
    # Worked by hand: 84.1345 % of the replicates lie below, so z0 = 1; a = 0: Phi(2 - 1.95996) and Phi(3.95996).
    replicates = np.arange(1_000_000) / 1_000_000
    low, high = bca_interval(0.841344746, replicates, [np.array([-1.0, 0.0, 1.0])])
    assert low == pytest.approx(0.515968, abs=2e-6)
    assert high == pytest.approx(0.9999625, abs=2e-6)


def test_equal_to_scipy_on_its_own_resamples():
    rng = np.random.default_rng(0)
    x = rng.exponential(size=25)
    y = x + rng.exponential(size=25)

    def r(a, b):
        return stats.pearsonr(a, b)[0]

    found = stats.bootstrap(
        (x, y), r, paired=True, vectorized=False, n_resamples=600, method="BCa", rng=np.random.default_rng(1)
    )
    left_out = np.array([r(np.delete(x, i), np.delete(y, i)) for i in range(25)])
    ours = bca_interval(r(x, y), found.bootstrap_distribution, [left_out])
    assert ours == pytest.approx(tuple(found.confidence_interval), abs=1e-9)
    # The option leaves out the same rows, and draws its own resamples.
    drawn = correlate(
        x,
        y,
        np.arange(25),
        np.zeros(25),
        bootstrap=Bootstrap(resamples=3000, seed=1),
        settings=CorrelationSettings(interval="bca"),
    )["pearson"]
    assert (drawn.low, drawn.high) == pytest.approx(ours, abs=0.05)


@pytest.mark.parametrize(
    ("level", "grouping", "bootstrap"),
    [("segment", "none", "inputs"), ("segment", "item", "both"), ("segment", "system", "systems"),
     ("system", "none", "both")],
)  # fmt: skip
def test_units_left_out_one_by_one(monkeypatch, level, grouping, bootstrap):
    rng = np.random.default_rng(2)
    item, system = np.repeat(np.arange(9), 6), np.tile(np.arange(6), 9)
    human = rng.normal(size=54) + 0.4 * system
    metric = human + rng.normal(size=54)
    seen = []
    monkeypatch.setattr(
        "evalapp.stats.correlation.meta_evaluation.with_bca_interval",
        lambda point, replicates, left_out, **rest: seen.append(left_out) or point,
    )
    options = CorrelationSettings(level, grouping, ["spearman"], resampling_unit=bootstrap)
    correlate(
        metric,
        human,
        item,
        system,
        settings=replace(options, interval="bca"),
        bootstrap=Bootstrap(resamples=10),
    )
    units = [column for side, column in (("inputs", item), ("systems", system)) if bootstrap in (side, "both")]
    assert len(seen[0]) == len(units)
    for found, unit in zip(seen[0], units, strict=True):
        expected = [
            correlate(
                *(c[unit != u] for c in (metric, human, item, system)),
                settings=options,
                bootstrap=Bootstrap(resamples=0),
            )["spearman"].value
            for u in np.unique(unit)
        ]
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_many_clusters_are_left_out_in_blocks():
    draws = LeaveOneOut(2500)
    assert draws.n_blocks == MOST_BLOCKS
    counts = np.concatenate([draws.take(400), draws.take(600)], axis=1)
    assert (2500 - counts.sum(axis=0)).tolist() == [3] * 500 + [2] * 500
    np.testing.assert_array_equal((counts == 0).sum(axis=1), np.ones(2500))


def test_degenerate():
    spread = [np.array([-1.0, 0.0, 1.0])]
    for interval in (
        bca_interval(2.0, np.linspace(0, 1, 50), spread),  # all below
        bca_interval(0.5, np.full(3, np.nan), spread),
        bca_interval(0.5, np.linspace(0, 1, 50), [np.ones(4)]),
    ):
        assert all(math.isnan(end) for end in interval)
    found = correlate(
        [1, 2, 3, 4],
        [1, 2, 3, 4],
        range(4),
        [0] * 4,
        bootstrap=Bootstrap(resamples=50),
        settings=CorrelationSettings(interval="bca"),
    )["pearson"]
    assert found.value == 1
    assert "no interval" in found.note or found.has_interval
    with pytest.raises(ValueError, match="interval"):
        correlate([1, 2, 3], [1, 2, 3], range(3), [0] * 3, settings=CorrelationSettings(interval="normal"))
    signature = correlate(
        [1, 2, 3],
        [1, 3, 2],
        range(3),
        [0] * 3,
        bootstrap=Bootstrap(resamples=9),
        settings=CorrelationSettings(interval="bca"),
    ).signature
    assert signature.endswith("|interval:bca")
