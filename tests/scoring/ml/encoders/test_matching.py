"""Similarities of token vectors, by hand and against plain loops over pairs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scoring.ml.encoders.matching import (
    Side,
    cosines,
    extreme_vectors,
    greedy_match,
    mean_vectors,
    segment_max,
)


def make_side(lengths: list[int], seed: int, width: int = 8) -> Side:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(sum(lengths), width)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Side(torch.from_numpy(vectors), rng.random(sum(lengths)) + 0.1, np.array(lengths))


def list_texts(side: Side) -> list[tuple[np.ndarray, np.ndarray]]:
    ends = np.cumsum(side.lengths)
    vectors = side.vectors.numpy()
    return [(vectors[e - n : e], side.weights[e - n : e]) for e, n in zip(ends, side.lengths, strict=True)]


def test_greedy_match_equals_loops():
    hyps, refs = make_side([3, 1, 5], 1), make_side([2, 4, 1, 6], 2)
    precision, recall = greedy_match(hyps, refs)
    for row, (hyp, hyp_weights) in enumerate(list_texts(hyps)):
        for column, (ref, ref_weights) in enumerate(list_texts(refs)):
            similar = hyp @ ref.T
            assert precision[row, column] == pytest.approx(
                (similar.max(1) * hyp_weights).sum() / hyp_weights.sum(), abs=1e-6
            )
            assert recall[row, column] == pytest.approx(
                (similar.max(0) * ref_weights).sum() / ref_weights.sum(), abs=1e-6
            )


def test_greedy_match_by_hand():
    # Two unit tokens against one: cosines 1 and 0, so P = (1 + 0) / 2 and R = 1.
    hyps = Side(torch.tensor([[1.0, 0], [0, 1]]), np.ones(2), np.array([2]))
    refs = Side(torch.tensor([[1.0, 0]]), np.ones(1), np.array([1]))
    precision, recall = greedy_match(hyps, refs)
    assert (precision[0, 0], recall[0, 0]) == (0.5, 1.0)


def test_tokens_without_weight_may_be_matched_but_do_not_count():
    hyps = Side(torch.tensor([[1.0, 0], [0, 1]]), np.array([1.0, 0.0]), np.array([2]))
    refs = Side(torch.tensor([[1.0, 0], [0, 1]]), np.array([0.0, 1.0]), np.array([2]))
    precision, recall = greedy_match(hyps, refs)
    assert (precision[0, 0], recall[0, 0]) == (1.0, 1.0)


def test_text_without_weight_is_undefined():
    bare = Side(torch.tensor([[1.0, 0]]), np.zeros(1), np.array([1]))
    assert np.isnan(greedy_match(bare, make_side([2], 1, width=2))[0]).all()
    assert np.isnan(mean_vectors(bare)).all()
    assert np.isnan(extreme_vectors(bare)).all()


def test_segment_max_equals_reduceat():
    values = np.random.default_rng(3).normal(size=(10, 4)).astype(np.float32)
    lengths = np.array([1, 4, 5])
    expected = np.maximum.reduceat(values, [0, 1, 5], axis=0)
    np.testing.assert_array_equal(segment_max(torch.from_numpy(values), lengths).numpy(), expected)


def test_mean_and_extrema_by_hand():
    side = Side(
        torch.tensor([[1.0, -3.0], [2.0, 1.0], [9.0, 9.0], [5.0, -5.0]]), np.array([1.0, 1, 0, 1]), np.array([3, 1])
    )
    np.testing.assert_allclose(mean_vectors(side), [[1.5, -1.0], [5.0, -5.0]])
    np.testing.assert_allclose(extreme_vectors(side), [[2.0, -3.0], [5.0, -5.0]])


def test_extrema_prefers_the_positive_of_equal_magnitudes():
    side = Side(torch.tensor([[2.0], [-2.0]]), np.ones(2), np.array([2]))
    assert extreme_vectors(side)[0, 0] == 2.0


def test_cosines():
    found = cosines(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[4.0, 3.0], [-3.0, -4.0]]))
    np.testing.assert_allclose(found[0], [24 / 25, -1.0])
    assert np.isnan(found[1]).all()
