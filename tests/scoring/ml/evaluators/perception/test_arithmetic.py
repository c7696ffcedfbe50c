"""The worked numbers of docs/explanation/evaluators/perception.md#worked-numbers."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.ml.evaluators.perception.arithmetic import (
    expected_calibration_error,
    hinted,
    mean_negative_log,
    model_certainty,
    probability_of_generation,
    system_weights,
)

REFERENCE, GENERATED = np.array([0.2, -0.5, 1.3]), np.array([-0.4, 0.1, 0.9])
C, VARIANCE = np.array([0.9, 0.5, 0.7]), np.array([0.01, 0.04, 0.0025])


def test_worked_arithmetic() -> None:
    p_gen = probability_of_generation(GENERATED, REFERENCE)
    np.testing.assert_allclose(p_gen, [0.354344, 0.645656, 0.401312], atol=5e-7)
    weights = system_weights(C, 1 - VARIANCE, 3)
    np.testing.assert_allclose(weights, [0.374443, 0.289252, 0.336305], atol=5e-7)
    assert weights @ p_gen == pytest.approx(0.454402, abs=5e-7)
    assert p_gen.mean() == pytest.approx(0.467104, abs=5e-7)
    p = hinted(1 - p_gen, C)
    np.testing.assert_allclose(p, [0.681091, 0.677172, 0.719081], atol=5e-7)
    assert mean_negative_log(p) == pytest.approx(0.367890, abs=5e-7)
    assert mean_negative_log(C) == pytest.approx(0.385061, abs=5e-7)


def test_extremes_stay_probabilities() -> None:
    found = probability_of_generation(np.array([1e4, -1e4, 0.0]), np.zeros(3))
    np.testing.assert_allclose(found, [1.0, 0.0, 0.5])
    assert mean_negative_log(np.zeros(1)) == pytest.approx(-np.log(1e-6))


def test_model_certainty_is_between_three_quarters_and_one() -> None:
    # Var of 0, 1 is 1/4; of equal passes 0.
    np.testing.assert_allclose(model_certainty(np.array([[0.0, 1.0], [0.3, 0.3]])), [0.75, 1.0])


def test_ablated_weights() -> None:
    np.testing.assert_allclose(system_weights(None, np.array([1.0, 3.0]), 2), [0.25, 0.75])
    np.testing.assert_allclose(system_weights(None, None, 4), [0.25] * 4)


def test_calibration_error_by_hand() -> None:
    # Confidences .9, .9, .9, .9 with 3 of 4 right: |.75 - .9|; a second bin of .6 with none right: |0 - .6|.
    p = np.array([0.9, 0.9, 0.9, 0.1, 0.4])
    assert expected_calibration_error(p) == pytest.approx((4 * abs(0.75 - 0.9) + abs(0 - 0.6)) / 5)
