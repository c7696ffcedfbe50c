"""Side and length bias: binomial test, statsmodels, what systems explain, what cannot be told."""

from __future__ import annotations

import json

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from evalapp.stats import length_bias, side_bias
from tests.evalapp.stats.comparison_data import draw


def test_two_equal_systems_by_hand():
    # Each stands first 10 times and wins 7 of them: odds of the side 7 to 3.
    a, b = ["x"] * 10 + ["y"] * 10, ["y"] * 10 + ["x"] * 10
    found = side_bias(a, b, (["a"] * 7 + ["b"] * 3) * 2)
    assert found.estimate.value == pytest.approx(0.7)
    assert found.log_odds.value == pytest.approx(np.log(7 / 3))
    assert found.raw.value == pytest.approx(0.7)
    assert found.raw_p == pytest.approx(binomtest(14, 20).pvalue)
    assert found.sentence.startswith("Between equal systems the first side wins 70.0 % of the decided comparisons (")


def test_effect_and_p_are_those_of_a_logit_with_robust_errors():
    a, b, _, _, length = draw([0.5, 0, -0.5], 500, seed=2)
    rng = np.random.default_rng(3)
    theta = np.array([0.5, 0, -0.5])
    won = rng.random(500) < 1 / (1 + np.exp(-(theta[a] - theta[b] + 0.4 * length)))
    found = length_bias(a, b, np.where(won, "a", "b"), length)
    signs = np.zeros((500, 3))
    signs[np.arange(500), a], signs[np.arange(500), b] = 1, -1
    scale = np.sqrt(np.mean(length**2))
    theirs = sm.Logit(won, np.column_stack([signs[:, 1:], length / scale])).fit(disp=0, cov_type="HC0", tol=1e-12)
    assert found.log_odds.value == pytest.approx(theirs.params[2], abs=1e-6)
    assert found.p == pytest.approx(theirs.pvalues[2], rel=1e-4)


def test_a_better_system_that_stands_first_is_no_side_bias():
    rng = np.random.default_rng(5)
    first = rng.random(800) < 0.8
    a, b = np.where(first, "good", "bad"), np.where(first, "bad", "good")
    won = rng.random(800) < np.where(first, 0.75, 0.25)
    found = side_bias(a, b, np.where(won, "a", "b"), item=np.arange(800) % 200)
    assert found.raw.value > 0.6
    assert found.raw_p < 0.001
    assert found.p > 0.05
    assert found.estimate.low < 0.5 < found.estimate.high


@settings(max_examples=10)
@given(seed=st.integers(0, 9999))
def test_swapping_sides_mirrors_the_side_and_keeps_the_length(seed):
    a, b, verdict, item, length = draw([0.5, 0, -0.5], 150, seed=seed, side=0.3, slope=0.2)
    swapped = np.array([{"a": "b", "b": "a", "tie": "tie"}[v] for v in verdict])
    order = np.random.default_rng(seed).permutation(150)
    one, two = side_bias(a, b, verdict, item=item), side_bias(b[order], a[order], swapped[order], item=item[order])
    assert one.estimate.value == pytest.approx(1 - two.estimate.value, abs=1e-7)
    assert one.p == pytest.approx(two.p, abs=1e-7)
    assert one.raw.value == pytest.approx(1 - two.raw.value)
    one, two = length_bias(a, b, verdict, length), length_bias(b[order], a[order], swapped[order], -length[order] * 7)
    assert one.estimate.value == pytest.approx(two.estimate.value, abs=1e-7)
    assert one.raw.value == pytest.approx(two.raw.value)


def test_what_cannot_be_told():
    fixed = side_bias(["x"] * 9, ["y"] * 9, ["a"] * 6 + ["b"] * 3)
    assert "cannot be told" in fixed.sentence
    assert fixed.raw.value == pytest.approx(2 / 3)
    assert not side_bias([], [], []).raw.is_defined
    equal = length_bias(["x", "y"], ["y", "x"], ["a", "a"], [0, 0])
    assert "equally long" in equal.estimate.note
    assert json.loads(json.dumps(equal.as_dict()))["raw"]["value"] is None
    one = side_bias(["x", "y"], ["y", "x"], ["a", "a"], item=[0, 0])
    assert "fewer than 2 clusters" in one.raw.note
