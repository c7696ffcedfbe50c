"""Probabilities to verdicts."""

from __future__ import annotations

import numpy as np

from scoring.ml.evaluators.comparative.batches import macro_f1
from scoring.ml.evaluators.comparative.verdicts import (
    count_points,
    decide_signs,
    expected_points,
    expected_scores,
    score_signs,
    softmax,
    swap_consistency,
    symmetrise,
)

FORWARD = np.array([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])
BACKWARD = np.array([[0.3, 0.3, 0.4], [0.1, 0.3, 0.6], [0.2, 0.6, 0.2]])


def test_outcomes_by_hand():
    signs = decide_signs(FORWARD)
    assert signs.tolist() == [1, -1, 0]
    assert (count_points(signs).tolist(), score_signs(signs).tolist()) == ([3, 0, 1], [1, 0, 0.5])
    np.testing.assert_allclose(expected_points(FORWARD), [2.3, 0.9, 1.4])
    np.testing.assert_allclose(expected_scores(FORWARD), [0.8, 0.35, 0.55])
    np.testing.assert_allclose(expected_scores(FORWARD[:, ::-1]), [0.2, 0.65, 0.45])
    # If one class is certain, both methods agree; a text against itself is half a win without rounding.
    certain = np.eye(3)
    np.testing.assert_array_equal(expected_points(certain), count_points(decide_signs(certain)))
    np.testing.assert_array_equal(expected_scores(certain), score_signs(decide_signs(certain)))
    odd = np.random.default_rng(1).dirichlet(np.ones(3), 500)
    assert (expected_scores(symmetrise(odd, odd)) == 0.5).all()


def test_merging_both_readings_by_hand():
    found = symmetrise(FORWARD, BACKWARD)
    np.testing.assert_allclose(found[0], [(0.1 + 0.4) / 2, 0.25, (0.7 + 0.3) / 2])
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(decide_signs(found), [1, -1, 0])
    np.testing.assert_array_equal(decide_signs(symmetrise(BACKWARD, FORWARD)), [-1, 1, 0])


def test_swap_consistency_is_the_share_of_reversed_verdicts():
    """1 and 1 (not reversed), -1 and 1 (reversed), 0 and 0 (reversed)."""
    assert swap_consistency(FORWARD, BACKWARD) == 2 / 3


def test_equally_likely_better_and_worse_is_a_tie():
    assert decide_signs(np.array([[0.4, 0.2, 0.4], [0.5, 0.0, 0.5]])).tolist() == [0, 0]


def test_points():
    assert count_points(np.array([1, 0, -1], dtype=np.int8)).tolist() == [3, 1, 0]


def test_softmax_handles_large_logits():
    np.testing.assert_allclose(softmax(np.array([[1000.0, 0.0, -1e4]])), [[1, 0, 0]])


def test_macro_f1_by_hand():
    """Class 0: 2 of 3 found, none wrong: f1 0.8; class 2: 1 of 1 found, one wrong: f1 2/3."""
    assert np.isclose(macro_f1(np.array([0, 0, 0, 2]), np.array([0, 0, 2, 2])), (0.8 + 2 / 3) / 2)
