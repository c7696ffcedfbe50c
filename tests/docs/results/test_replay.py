"""Evaluators that learn anew in each draw of the replay see the judged part only."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import torch

from scoring.ml.encoders import frozen
from scoring.ml.encoders.forward import pooled_vectors
from scoring.ml.engine import Batch
from scoring.ml.evaluators.shared_bert import network

RNG = np.random.default_rng(3)
N = 80
GROUP = np.repeat(np.arange(N // 4), 4)
FEATURES = RNG.normal(size=(N, 5))
HUMAN = FEATURES @ RNG.normal(size=5) + RNG.normal(size=N) / 5
IS_JUDGED = np.tile([True, True, False, False], N // 4)


@pytest.fixture(scope="module")
def replay(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("experiments.replay")


def test_ridge_learns_from_judged_outputs_of_other_groups(replay: ModuleType) -> None:
    scores = replay.learn_ratings(FEATURES, HUMAN, GROUP)(IS_JUDGED, 1)
    assert np.corrcoef(scores, HUMAN)[0, 1] > 0.9
    unknown = replay.learn_ratings(FEATURES, np.where(IS_JUDGED, HUMAN, np.nan), GROUP)(IS_JUDGED, 1)
    np.testing.assert_array_equal(scores, unknown)
    # The own ratings of a judged output's group have no effect on its score.
    changed = np.where(GROUP == 2, 100.0, HUMAN)
    again = replay.learn_ratings(FEATURES, changed, GROUP)(IS_JUDGED, 1)
    own = IS_JUDGED & (GROUP == 2)
    np.testing.assert_array_equal(scores[own], again[own])
    assert not np.array_equal(scores[~own], again[~own])


def test_ridge_learns_from_judged_comparisons(replay: ModuleType) -> None:
    first, second = np.arange(0, N, 2), np.arange(1, N, 2)
    verdict = np.where(HUMAN[first] > HUMAN[second], "a", "b")
    scores = replay.learn_comparisons(FEATURES, first, second, verdict, GROUP)(IS_JUDGED, 1)
    assert ((scores[first] > scores[second]) == (verdict == "a")).mean() > 0.8
    other = np.where(IS_JUDGED[first], verdict, "tie")
    again = replay.learn_comparisons(FEATURES, first, second, other, GROUP)(IS_JUDGED, 1)
    np.testing.assert_array_equal(scores, again)


def test_texts_are_read_once(replay: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def count(model: None, batch: Batch, how: str) -> torch.Tensor:
        read.append(len(batch.lengths))
        return batch.input_ids.sum(dim=1, keepdim=True).float()

    def make(*texts: list[int]) -> Batch:
        ids = torch.tensor([[*text, *[0] * (4 - len(text))] for text in texts])
        return Batch(ids, (ids > 0).long(), None, np.array([len(text) for text in texts]))

    monkeypatch.setattr(frozen, "pooled_vectors", count)
    with replay.keep_vectors():
        # In training vectors are read by the source's encoder, in scoring by the network.
        assert frozen.pooled_vectors(None, make([1, 2], [5]), "mean").tolist() == [[3.0], [5.0]]
        # Padding does not count, nor does the order.
        assert network.pooled_vectors(None, make([5], [1, 2], [5]), "mean").tolist() == [[5.0], [3.0], [5.0]]
        assert network.pooled_vectors(None, make([1, 2, 4], [5]), "mean").tolist() == [[7.0], [5.0]]
    assert read == [2, 2]
    assert frozen.pooled_vectors is count
    assert network.pooled_vectors is pooled_vectors
