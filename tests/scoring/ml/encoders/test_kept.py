"""Vectors cached in files: pairs are distinguished by their sides, a second file reuses those of the first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scoring.ml.encoders.kept import cached_vectors
from scoring.ml.encoders.source import find_encoder
from scoring.ml.encodings import Encodings
from scoring.ml.evaluators.ream.vectors import PairEncoder, Reading
from scoring.ml.types import Record
from tests.scoring.ml.tiny import tiny_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> PairEncoder:
    source = find_encoder(tiny_encoder("bert", tmp_path_factory.mktemp("frozen")))
    return PairEncoder(source, Reading(2, max_length=32), device="cpu")


def pairs(encoder: PairEncoder, *texts: str) -> Encodings:
    return encoder.tokenize([Record(text, context=("where do you row",)) for text in texts]).encodings


def test_vectors_of_another_fold_are_reused(
    encoder: PairEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    batches = PairEncoder.batches

    def counted(self: PairEncoder, encodings: Encodings):
        asked.append(len(encodings))
        return batches(self, encodings)

    monkeypatch.setattr(PairEncoder, "batches", counted)
    first = cached_vectors(encoder, pairs(encoder, "cat", "sat", "i like tea"), tmp_path, "fp32", lambda done, n: None)
    second = cached_vectors(encoder, pairs(encoder, "sat", "you row", "cat"), tmp_path, "fp32", lambda done, n: None)
    assert asked == [3, 1]
    np.testing.assert_array_equal(second[[0, 2]], first[[1, 0]])
    alone, _ = encoder.vectors([Record("you row", context=("where do you row",))])
    np.testing.assert_allclose(second[1], alone[0], atol=1e-6)


def test_same_tokens_on_other_sides_are_another_pair(encoder: PairEncoder, tmp_path: Path) -> None:
    ids, lengths = np.array([2, 7, 3, 8, 3], dtype=np.int32), np.array([5])
    sides = [np.array(row, dtype=np.int8) for row in ([0, 0, 0, 1, 1], [0, 0, 0, 0, 0])]
    one, two = (
        cached_vectors(encoder, Encodings(ids, lengths, row), tmp_path, "fp32", lambda done, n: None) for row in sides
    )
    assert np.abs(one - two).max() > 1e-4
