"""Texts that the encoder reads each alone: features, the same result as together for single texts, training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from scoring.ml import fit, load
from scoring.ml.encoders.loading import load_model
from scoring.ml.encoders.separate import TextRows, find_nearest, join_vectors, read_columns, read_last_turns
from scoring.ml.encoders.source import find_encoder
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.evaluators.adversarial.texts import collect_texts
from scoring.ml.training import finetune as frame
from scoring.ml.training.head import LEAST_SPREAD, HeadData, HeadFit, fit_head
from scoring.ml.types import Dataset, Record
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.ml.training.test_head import QUICK, assert_same, rated

NAMES = ["shared-bert", "adversarial", "perception", "comparative"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), dropout=0.1)


def test_features_by_hand() -> None:
    """a = (1, -2), b = (3, 1), their contexts c = (2, 2) and d = (-1, 4); a missing text makes its products 0."""
    vectors = torch.tensor([[1.0, -2.0], [3.0, 1.0], [2.0, 2.0], [-1.0, 4.0]])
    pair = join_vectors(vectors, torch.tensor([[0, 1], [0, -1]]))
    assert pair.tolist() == [[1, -2, 3, 1, 2, 3, 3, -2], [1, -2, 0, 0, 0, 0, 0, 0]]
    three = join_vectors(vectors, torch.tensor([[0, 1, 2], [1, 0, -1]]))
    assert three.tolist() == [
        [1, -2, 3, 1, 2, 3, 3, -2, 2, 2, 1, 4, 2, -4], [3, 1, 1, -2, 2, 3, 3, -2, 0, 0, 0, 0, 0, 0],
    ]  # fmt: skip
    four = join_vectors(vectors, torch.tensor([[0, 1, 2, 3], [1, 0, -1, 2]]))
    assert four.tolist() == [[1, -2, 3, 1, 2, 3, 3, -2, 2, -4, -3, 4], [3, 1, 1, -2, 2, 3, 3, -2, 0, 0, 2, -4]]
    assert torch.equal(join_vectors(vectors, torch.tensor([[1], [0]])), vectors[[1, 0]])


def test_nearest_text_has_the_largest_cosine() -> None:
    """Cosines with (1, 0): .98, -.16 and 1; with (0, 2): .2, .99 and 0. Lengths do not count; the first of equal rows
    wins."""
    vectors = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 0.2], [-0.5, 3.0], [9.0, 0.0]])
    places = np.array([[0, 2], [0, 3], [0, 4], [1, 2], [1, 3], [1, 4], [1, 3]])
    assert find_nearest(vectors, places, np.array([0, 0, 0, 1, 1, 1, 1])).tolist() == [2, 4]
    # Rows of an output need not be neighbours, nor in order.
    assert find_nearest(vectors, places[[3, 0, 4, 1, 5, 2]], np.array([1, 0, 1, 0, 1, 0])).tolist() == [5, 2]


def test_distinct_texts_are_read_once(encoder: str) -> None:
    tokenizer = PairTokenizer(find_encoder(encoder))
    cuts: list[Any] = ["right"] * 3
    rows = read_columns(tokenizer, [(["cat", "dog", "cat"], cuts), (["sat on", "", "dog"], cuts)]).encodings
    assert isinstance(rows, TextRows)
    assert rows.places.tolist() == [[0, 2], [1, -1], [0, 1]]
    assert rows.lengths.tolist() == [3 + 4, 3, 3 + 3]
    part = rows.take(np.array([2]))
    assert part.places.tolist() == [[0, 1]]
    assert part.encodings == rows.encodings[:2]
    inputs = rows.make_inputs(0)
    assert len(inputs["input_ids"]) == 3
    assert inputs["places"].tolist() == rows.places.tolist()


def test_last_three_turns_and_the_source_are_the_context() -> None:
    record = Record("t", context=("a", "b", " ", "c", "d"), source="facts")
    assert read_last_turns(record) == ("facts b c d", "left")
    assert read_last_turns(replace(record, context=())) == ("facts", "right")
    assert read_last_turns(replace(record, context=(), source=None))[0] == ""


def without_contexts(data: Dataset) -> Dataset:
    return replace(data, items=tuple(replace(item, context=()) for item in data.items))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("shared-bert", {"inputs": "text"}), ("adversarial", {}), ("adversarial", {"inputs": "text"}),
        ("comparative", {"comparison": False}), ("perception", {}), ("perception", {"inputs": "text"}),
    ],
)  # fmt: skip
def test_separate_equals_joint_where_texts_are_single(encoder: str, name: str, given: dict[str, Any]) -> None:
    """With nothing to be read apart from, weights and scores are bit-equal."""
    data = without_contexts(rated(12)) if "inputs" not in given else rated(12)
    options: dict[str, Any] = {"encoder": encoder, "seed": 3, **QUICK, **given}
    joint, separate = (fit(name, data, features=form, **options) for form in ("joint", "separate"))
    assert_same(joint, separate)
    records = data.outputs_with_context()
    np.testing.assert_array_equal(joint.score(records), separate.score(records))
    assert "features" not in joint.signature
    assert "features:separate" in separate.signature


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stages", ["head", "both"])
def test_trained_on_separate_texts(encoder: str, tmp_path: Path, name: str, stages: str) -> None:
    """Scores do not depend on the other texts of a call, and a saved evaluator gives them again."""
    found = fit(name, rated(12), encoder=encoder, features="separate", stages=stages, seed=3, **QUICK)
    records = rated(4, first=20).outputs_with_context()
    scores = found.score(records)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose([found.score([record])[0] for record in records], scores, atol=1e-5)
    found.save_pretrained(tmp_path)
    np.testing.assert_allclose(load(tmp_path).score(records), scores, atol=1e-6)
    assert "features:separate" in found.signature
    assert "separate" in found.card


def test_head_on_separate_texts_reaches_the_optimum_of_its_loss(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """scikit-learn's logistic regression on [y, c, |y - c|, y * c] of the frozen encoder, of mean 0 and spread 1."""
    found: list[tuple[Any, HeadData, HeadFit]] = []

    def fit_noted(network: Any, data: HeadData, *given: Any, **more: Any) -> HeadFit:
        found.append((network, data, fit_head(network, data, *given, **more)))
        return found[-1][2]

    monkeypatch.setattr(frame, "fit_head", fit_noted)
    data = rated(16)
    options: dict[str, Any] = {"encoder": encoder, "features": "separate", "balance": "weight", "stages": "head"}
    # Too few groups for a held-out part, so that all texts are learned from.
    data = replace(data, items=tuple(replace(item, group=f"g{n % 4}") for n, item in enumerate(data.items)))
    fit("adversarial", data, seed=3, **options, **QUICK)
    ((network, head_data, fitted),) = found
    texts = collect_texts(data)
    source = find_encoder(encoder)
    tokenizer, model = PairTokenizer(source), load_model(source).eval()

    def read(text: str) -> np.ndarray:
        ids = torch.tensor([tokenizer.texts([text]).encodings[0].ids])
        with torch.no_grad():
            vectors: np.ndarray = model(input_ids=ids).last_hidden_state[0].mean(dim=0).double().numpy()
        return vectors

    y = np.array([read(record.text) for record in texts.records])
    c = np.array([read(" ".join(record.context)) for record in texts.records])
    features = np.concatenate([y, c, np.abs(y - c), y * c], axis=1)
    np.testing.assert_allclose(head_data.features.numpy(), features, atol=1e-5)
    features = head_data.features.double().numpy()
    mean, spread = features.mean(axis=0), features.std(axis=0)
    spread = np.maximum(spread, LEAST_SPREAD * np.median(spread))
    peer = LogisticRegression(C=1 / (fitted.penalty * features.shape[1]), tol=1e-12, max_iter=10_000)
    peer.fit((features - mean) / spread, texts.labels, sample_weight=head_data.values["weights"].numpy())
    weights = network.head_layer.weight.detach().numpy()[0] * spread
    np.testing.assert_allclose(weights, peer.coef_[0], atol=1e-4)
