"""Noise ceilings: extrapolation from halves to all raters by hand, Cronbach's alpha, plain loops, and undefined
cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.ceiling import (
    CUT,
    NO_SECOND_RATER,
    OutputRatings,
    _stepped,
    disattenuate,
    noise_ceiling,
)
from evalapp.stats.correlation.coefficients import spearman
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings
from evalapp.stats.resampling.bootstrap import Bootstrap


def rated(n=400, raters=4, noise=1.0, seed=0):
    """Ratings with true variance 1 and error variance noise^2."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    table = truth[:, None] + noise * rng.normal(size=(n, raters))
    output, rater = np.repeat(np.arange(n), raters), np.tile(np.arange(raters), n)
    return truth, table, (table.ravel(), output, rater)


def test_extrapolation_worked_by_hand():
    def step(a, b, whole, of):
        return _stepped(np.array([0.5]), a, b, whole, of)[0]

    assert step(1, 1, 2, "reliability") == pytest.approx(2 / 3)  # Spearman-Brown: 2 x .5 / 1.5
    assert step(1, 1, 2, "metric") == pytest.approx((2 / 3) ** 0.5)
    assert step(2, 2, 4, "reliability") == pytest.approx(2 / 3)
    # One against two: 2 rho^2 - .25 rho - .25 = 0, rho = .421535; three: 3 rho / (1 + 2 rho).
    assert step(1, 2, 3, "reliability") == pytest.approx(0.686141, abs=1e-6)


def test_two_raters_by_hand():
    # Both give 1, 2, 4 to three outputs: halves correlate perfectly in every split.
    found = noise_ceiling(OutputRatings([1, 1, 2, 2, 4, 4], [0, 0, 1, 1, 2, 2], ["a", "b"] * 3), of="halves", repeats=5)
    assert found.value == pytest.approx(1)
    assert found.n == 3


@pytest.mark.parametrize("raters", [2, 5])
def test_reliability_is_cronbachs_alpha_and_the_ceiling_is_reached_by_the_truth(raters):
    import pandas as pd
    import pingouin

    truth, table, columns = rated(raters=raters)
    alpha, _ = pingouin.cronbach_alpha(data=pd.DataFrame(table))
    reliability = noise_ceiling(
        OutputRatings(*columns), of="reliability", repeats=40, bootstrap=Bootstrap(resamples=0, seed=13)
    )
    assert reliability.value == pytest.approx(alpha, abs=0.015)
    ceiling = noise_ceiling(OutputRatings(*columns), repeats=20, bootstrap=Bootstrap(resamples=60, seed=13))
    reached = stats.pearsonr(truth, table.mean(axis=1))[0]
    assert ceiling.value == pytest.approx(reached, abs=0.03)
    assert ceiling.low < ceiling.value < ceiling.high
    whole = disattenuate(Estimate(reached, reached - 0.05, reached + 0.05, 400), ceiling)
    assert whole.value == pytest.approx(1, abs=0.04)
    # It is a correlation, so chance values above 1 are clipped.
    assert whole.low < whole.value <= whole.high <= 1


@pytest.mark.parametrize("coefficient", ["pearson", "spearman"])
def test_leave_one_out_equals_a_loop_over_raters(coefficient):
    _, table, (value, output, rater) = rated(n=40, raters=3)
    gone = np.arange(len(value)) % 7 == 0
    value = np.where(gone, np.nan, value)
    each, counts = [], []
    table = np.where(gone.reshape(40, 3), np.nan, table)
    measure = stats.pearsonr if coefficient == "pearson" else stats.spearmanr
    for r in range(3):
        others = np.delete(table, r, axis=1)
        ok = ~np.isnan(table[:, r]) & (~np.isnan(others)).any(axis=1)
        each.append(measure(table[ok, r], np.nanmean(others[ok], axis=1))[0])
        counts.append(ok.sum())
    found = noise_ceiling(
        OutputRatings(value, output, rater),
        kind="leave-one-out",
        settings=CorrelationSettings(coefficients=(coefficient,)),
        bootstrap=Bootstrap(resamples=60, seed=13),
    )
    assert found.value == pytest.approx(np.average(each, weights=counts), abs=1e-12)
    assert found.low < found.value < found.high


def test_order_of_rows_and_scale_do_not_matter_and_system_level_averages_more():
    _, _, (value, output, rater) = rated(n=120, raters=3, noise=2.0)
    item, system = output // 6, output % 6
    order = np.random.default_rng(1).permutation(len(value))
    options = {"repeats": 20, "bootstrap": Bootstrap(resamples=40, seed=13)}
    value = value + 0.8 * system
    one = noise_ceiling(OutputRatings(value, output, rater, item=item, system=system), **options)
    two = noise_ceiling(
        OutputRatings(3 * value[order] + 5, output[order], rater[order], item=item[order], system=system[order]),
        **options,
    )
    assert (two.value, two.low, two.high) == pytest.approx((one.value, one.low, one.high), abs=1e-9)
    renamed = np.array(["z", "a", "m"])[rater]
    assert noise_ceiling(
        OutputRatings(value, output, renamed, item=item, system=system), **options
    ).value == pytest.approx(one.value)
    above = noise_ceiling(
        OutputRatings(value, output, rater, item=item, system=system),
        settings=CorrelationSettings(level="system"),
        **options,
    )
    within = noise_ceiling(
        OutputRatings(value, output, rater, item=item, system=system),
        settings=CorrelationSettings(grouping="item"),
        **options,
    )
    assert within.value < above.value <= 1
    assert above.low < above.value < above.high
    assert noise_ceiling(
        OutputRatings(value, output, rater), settings=CorrelationSettings(coefficients=("spearman",)), **options
    ).value == pytest.approx(one.value, abs=0.15)


def test_ratio_interval_as_worked_by_hand():
    # (.4 -+ sqrt(.16 - .21 x .63)) / .63, see Donner and Zou 2012.
    found = disattenuate(Estimate(0.5, 0.3, 0.7, 60), Estimate(0.8, 0.7, 0.9, 60))
    assert (found.value, found.low, found.high) == pytest.approx((0.625, 0.370741, 0.899100), abs=1e-6)
    assert found.n == 60
    known = disattenuate(Estimate(0.5, 0.3, 0.7, 60), Estimate.point(0.8, 60))
    assert (known.low, known.high) == pytest.approx((0.375, 0.875))
    assert known.note == "the ceiling is taken as known"
    # An end at twice the ceiling: the lower end of the ratio is unknown.
    wide = disattenuate(Estimate(0.4, 0.2, 0.6, 60), Estimate(0.5, 0.1, 1.0, 60))
    assert (wide.value, wide.has_interval) == (0.8, False)
    assert wide.note == "no interval: that of the ceiling is too wide"


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), raters=st.integers(2, 4), reversed_=st.integers(0, 2))
def test_ceilings_and_corrected_coefficients_stay_within_minus_1_and_1(seed, raters, reversed_):
    """Small tables with up to two raters who reverse the scale."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    table = np.clip(rng.integers(1, 6, size=(n, 1)) + rng.integers(-1, 2, size=(n, raters)), 1, 5).astype(float)
    table[:, :reversed_] = 6 - table[:, :reversed_]
    output, rater = np.repeat(np.arange(n), raters), np.tile(np.arange(raters), n)
    found = [
        noise_ceiling(
            OutputRatings(table.ravel(), output, rater), of=of, repeats=5, bootstrap=Bootstrap(resamples=40, seed=13)
        )
        for of in ("metric", "reliability", "halves")
    ]
    found.append(disattenuate(Estimate(0.9, 0.7, 0.97, n), found[0]))
    found.append(disattenuate(Estimate(-0.9, -0.97, -0.7, n), found[0]))
    for one in found:
        assert one.is_defined or one.note
        assert all(np.isnan(end) or abs(end) <= 1 + 1e-12 for end in (one.value, one.low, one.high)), one


def test_degenerate():
    assert noise_ceiling(OutputRatings([1, 2, 3], [0, 1, 2], ["a"] * 3)).note == NO_SECOND_RATER
    assert "2 pairs" not in noise_ceiling(OutputRatings([1, 2] * 2, [0, 0, 1, 1], [0, 1] * 2)).note
    assert not noise_ceiling(OutputRatings([1, 2] * 2, [0, 0, 1, 1], [0, 1] * 2)).is_defined
    apart = noise_ceiling(OutputRatings([1, 5, 2, 4, 3, 3, 4, 2, 5, 1], np.repeat(range(5), 2), [0, 1] * 5), repeats=3)
    assert not apart.is_defined or apart.value < 1
    lone = noise_ceiling(OutputRatings([1, 2] * 2, [0, 0, 1, 1], [0, 1] * 2), kind="leave-one-out")
    assert lone.note.startswith("no rater has a defined coefficient")
    missing = Estimate.undefined("the metric is constant")
    assert disattenuate(missing, Estimate.point(0.5, 9)) == missing
    assert disattenuate(Estimate.point(0.5, 9), missing).note == "the metric is constant"
    assert disattenuate(spearman([1, 2, 3], [1, 3, 2]), Estimate.point(-0.5, 9)).note == "the ceiling is not positive"
    cut = disattenuate(Estimate(0.5, 0.3, 0.7, 60), Estimate(0.2, -0.1, 0.5, 9))
    # 0.5 / 0.2 = 2.5 is not a correlation.
    assert (cut.value, cut.note) == (1.0, f"no interval: the ceiling may be 0; {CUT}")

    def settings(**chosen):
        return {"settings": CorrelationSettings(**chosen)}

    for options in ({"kind": "half"}, {"of": "x"}, settings(coefficients=("x",)), settings(level="system"),
                    {"repeats": 0}, {"kind": "leave-one-out"} | settings(grouping="item")):  # fmt: skip
        with pytest.raises(ValueError):
            noise_ceiling(OutputRatings([1, 2] * 2, [0, 0, 1, 1], [0, 1] * 2), **options)
