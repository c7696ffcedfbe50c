"""Embedding average, extrema and greedy matching against plain loops over the encoder's hidden states."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from scoring.ml import Record, load

NAMES = ("embedding-average", "embedding-extrema", "embedding-greedy")
TEXTS = ["the cat sat on a mat", "you like tea !", "no , the dog ran", "yes"]


def content_vectors(folder: str, text: str) -> np.ndarray:
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        return model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 1:-1].double().numpy()


def cosine(one: np.ndarray, two: np.ndarray) -> float:
    return float(one @ two / np.linalg.norm(one) / np.linalg.norm(two))


def extrema(vectors: np.ndarray) -> np.ndarray:
    return vectors[np.abs(vectors).argmax(0), np.arange(vectors.shape[1])]


def greedy(one: np.ndarray, two: np.ndarray) -> float:
    similar = np.array([[cosine(a, b) for b in two] for a in one])
    return float((similar.max(1).mean() + similar.max(0).mean()) / 2)


PLAIN = {
    "embedding-average": lambda one, two: cosine(one.mean(0), two.mean(0)),
    "embedding-extrema": lambda one, two: cosine(extrema(one), extrema(two)),
    "embedding-greedy": greedy,
}


@pytest.mark.parametrize("name", NAMES)
def test_all_pairs_equal_plain_loops(tiny_encoder, name):
    folder = tiny_encoder()
    vectors = [content_vectors(folder, text) for text in TEXTS]
    expected = [[PLAIN[name](one, two) for two in vectors[1:]] for one in vectors]
    found = load(name, encoder=folder, device="cpu").all_pairs([(TEXTS, TEXTS[1:])])[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_best_reference_identity_and_order(tiny_encoder, name):
    evaluator = load(name, encoder=tiny_encoder(), device="cpu")
    rows = [Record(text, tuple(TEXTS[:2])) for text in TEXTS]
    values = evaluator.score(rows)
    np.testing.assert_allclose(values[:2], 1, atol=1e-6)
    assert (values[2:] < 1).all()
    np.testing.assert_allclose(evaluator.score(rows[::-1])[::-1], values, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_empty_is_worst_and_no_reference_undefined(tiny_encoder, name):
    found = load(name, encoder=tiny_encoder(), device="cpu").evaluate([Record("", ("a",)), Record("a")])
    np.testing.assert_array_equal(found.values, [-1.0, np.nan])
    assert found.reasons == ("", "no references")


def test_default_layer_is_the_last(tiny_encoder):
    assert load("embedding-average", encoder=tiny_encoder()).layer == 4
    assert "layer:6" in load("embedding-greedy").signature
