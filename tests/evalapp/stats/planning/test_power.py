"""Closed forms of planning: printed numbers, comparison with statsmodels, simulation, refused input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import NormalIndPower

from evalapp.stats.correlation.paired import williams
from evalapp.stats.planning.power import EffectError, compute_power, design_effect, needed_judgements


# docs/explanation/statistics/planning.md#worked-numbers: power .8, alpha .05.
@pytest.mark.parametrize(
    ("test", "effect", "expected"),
    [
        ("preference", 0.52, 4904), ("preference", 0.55, 783), ("preference", 0.60, 194), ("preference", 0.65, 85),
        ("preference", 0.70, 47), ("preference", 0.30, 47),
        ("correlation", 0.1, 783), ("correlation", 0.2, 194), ("correlation", 0.3, 85), ("correlation", 0.4, 47),
        ("correlation", 0.5, 30), ("correlation", 0.7, 14), ("correlation", -0.7, 14),
        ("williams", (0.40, 0.30, 0.5), 521), ("williams", (0.50, 0.30, 0.5), 121),
        ("williams", (0.45, 0.40, 0.5), 1912), ("williams", (0.45, 0.40, 0.8), 790),
        ("williams", (0.35, 0.30, 0.3), 2966),
    ],
)  # fmt: skip
def test_printed_numbers(test, effect, expected):
    assert needed_judgements(test, effect) == expected
    assert compute_power(test, effect, expected) >= 0.8 > compute_power(test, effect, expected - 1)


def test_preference_by_hand_and_by_statsmodels():
    # n = ((1.95996 * .5 + .84162 * sqrt(.24)) / .1)^2 = 193.8.
    assert needed_judgements("preference", 0.6) == 194
    # A z-test of a single mean at distance d with unit variance: the same as Fisher's z of a correlation.
    expected = NormalIndPower(ddof=0).solve_power(effect_size=np.arctanh(0.3), power=0.8, alpha=0.05, ratio=0)
    assert needed_judgements("correlation", 0.3) == int(np.ceil(expected)) + 3


@settings(max_examples=40)
@given(share=st.floats(0.02, 0.98), n=st.integers(5, 3000), ties=st.floats(0, 0.8))
def test_properties(share, n, ties):
    if abs(share - 0.5) < 0.01:
        return
    power = compute_power("preference", share, n, ties=ties)
    assert power == pytest.approx(compute_power("preference", 1 - share, n, ties=ties))
    assert power <= compute_power("preference", share, 2 * n, ties=ties)
    assert power <= compute_power("preference", share, n, ties=0)
    needed = needed_judgements("preference", share, power=0.9, ties=ties)
    assert compute_power("preference", share, needed, ties=ties) >= 0.9
    assert needed_judgements("preference", share, power=0.9, two_sided=False, ties=ties) <= needed


def test_power_equals_the_share_of_significant_simulated_tests():
    rng = np.random.default_rng(0)
    wins = rng.binomial(194, 0.6, 20_000)
    found = np.abs(wins / 194 - 0.5) * 2 * np.sqrt(194) > stats.norm.ppf(0.975)
    assert found.mean() == pytest.approx(compute_power("preference", 0.6, 194), abs=0.02)

    covariance = np.array([[1, 0.5, 0.3], [0.5, 1, 0.5], [0.3, 0.5, 1]])
    data = rng.multivariate_normal(np.zeros(3), covariance, (1500, 121))
    data = (data - data.mean(axis=1, keepdims=True)) / data.std(axis=1, keepdims=True)
    r = np.einsum("sni,snj->sij", data, data) / 121
    p = [williams(row[0, 1], row[0, 2], row[1, 2], 121) for row in r]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(compute_power("williams", (0.5, 0.3, 0.5), 121), abs=0.03)
    # Which of two is better, as letters test it: twice the p of the better one.
    both = compute_power("williams", (0.5, 0.3, 0.5), 121, two_sided=True)
    assert np.mean(2 * np.array(p) < 0.05) == pytest.approx(both, abs=0.03)


def test_ties_and_design_effect():
    assert needed_judgements("preference", 0.6, ties=0.5) == pytest.approx(2 * 194, abs=2)
    assert needed_judgements("preference", 0.6, design_effect=3) == pytest.approx(3 * 194, abs=3)
    assert design_effect(3, 0.5) == 2
    assert design_effect(1, 0.9) == 1
    assert design_effect(2, -1) == 1
    with pytest.raises(EffectError):
        design_effect(0, 0.1)


@pytest.mark.parametrize(
    ("test", "effect", "settings_", "words"),
    [
        ("preference", 0.5, {}, "is not 1/2"),
        ("preference", 1.0, {}, "between 0 and 1"),
        ("correlation", 0.0, {}, "is not 0"),
        ("correlation", (0.1, 0.2, 0.3), {}, "one number"),
        ("williams", 0.3, {}, "three correlations"),
        ("williams", (0.3, 0.4, 0.5), {}, "the larger one"),
        ("williams", (0.9, 0.1, 0.9), {}, "cannot have"),
        ("anova", 0.3, {}, "preference, correlation, williams"),
        ("preference", 0.6, {"alpha": 0}, "alpha"),
        ("preference", 0.6, {"ties": 1}, "ties"),
        ("preference", 0.6, {"power": 1}, "power"),
        ("preference", 0.6, {"design_effect": 0}, "design effect"),
    ],
)
def test_invalid_input_is_refused_with_a_message(test, effect, settings_, words):
    with pytest.raises(EffectError, match=words):
        needed_judgements(test, effect, **settings_)


def test_two_sided_tests_reach_their_level_for_tiny_effects():
    assert compute_power("preference", 0.5001, 50) == pytest.approx(0.05, abs=1e-3)
    assert compute_power("correlation", 1e-4, 50, alpha=0.1) == pytest.approx(0.1, abs=1e-3)
    assert compute_power("correlation", 1e-4, 50, two_sided=False) == pytest.approx(0.05, abs=1e-3)


def test_tiny_samples_have_almost_no_power():
    assert compute_power("correlation", 0.3, 0) == pytest.approx(0.05)
    assert compute_power("williams", (0.5, 0.3, 0.5), 3) == 0
    assert compute_power("preference", 0.6, 0) == pytest.approx(0.0455, abs=1e-4)
    with pytest.raises(EffectError, match="too small"):
        needed_judgements("preference", 0.5 + 1e-9)
