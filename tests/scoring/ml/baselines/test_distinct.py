"""distinct-n per text, per system, and adjusted for length."""

from __future__ import annotations

import math

import numpy as np
import pytest

from scoring.ml import Record, load
from scoring.ml.baselines.distinct import expected_distinct

ROWS = [Record("a b a b"), Record("a c"), Record("d")]


def test_per_text_and_per_system_by_hand():
    np.testing.assert_allclose(load("distinct-1").score(ROWS), [0.5, 1.0, 1.0])
    np.testing.assert_allclose(load("distinct-2").score(ROWS), [2 / 3, 1.0, 0.0])
    assert load("distinct-1").system_score(ROWS) == pytest.approx(4 / 7)
    assert load("distinct-2").system_score(ROWS) == pytest.approx(3 / 4)


def test_expectation_adjusted_by_hand():
    # U = 4 of C = 7 tokens, V = 10: 4 / (10 (1 - .9^7)).
    expected = 4 / (10 * (1 - 0.9**7))
    assert load("distinct-1", expected=True, vocabulary=10).system_score(ROWS) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["distinct-1", "distinct-2"])
def test_scale_has_no_upper_limit(name: str):
    """It was documented as 0..1; seven different ones with C = 7 and V = 2 give 7 / (2 (1 - .5^7)) = 3.53."""
    assert load(name).entry.scale == (0, None)
    row = Record(" ".join("abcdefg" if name == "distinct-1" else "abcdefgh"))
    assert load(name, expected=True, vocabulary=2).score([row])[0] == pytest.approx(7 / (2 * (1 - 0.5**7)))


def test_expected_distinct_against_simulation():
    rng = np.random.default_rng(0)
    mean = np.mean([len(set(rng.integers(0, 50, 120))) for _ in range(2000)])
    assert expected_distinct(np.array([120.0]), 50)[0] == pytest.approx(mean, rel=0.01)


def test_adjustment_removes_the_length_bias():
    rng = np.random.default_rng(1)
    words = [f"w{n}" for n in rng.integers(0, 30522, 4000)]
    short, long = Record(" ".join(words[:200])), Record(" ".join(words))
    plain, adjusted = load("distinct-1"), load("distinct-1", expected=True)
    assert plain.score([short])[0] > plain.score([long])[0] + 0.03
    assert adjusted.score([short])[0] == pytest.approx(adjusted.score([long])[0], abs=0.02)


def test_system_without_text_is_undefined():
    assert math.isnan(load("distinct-2").system_score([Record("one"), Record("")]))
