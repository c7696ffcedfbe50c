"""Token vectors of five architectures: batch and order invariance, layers, truncation, no foreign code."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from transformers import AutoModel

from scoring.ml import EncoderError
from scoring.ml.encoders.frozen import TextEncoder
from scoring.ml.encoders.source import find_encoder

ARCHITECTURES = ("bert", "roberta", "distilbert", "deberta-v2", "modernbert")
WORDS = ["the", "cat", "sat", "on", "a", "mat", ",", "you", "like", "tea", "!", "no", "yes", "dog", "ran"]


def make_texts(n: int = 12, seed: int = 5) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 18))) for _ in range(n)]


def encode_all(encoder: TextEncoder, texts: list[str]) -> list[np.ndarray]:
    found = encoder.encode(encoder.tokenize(texts).encodings)
    return [found.vectors[s : s + n].numpy() for s, n in zip(found.starts, found.lengths, strict=True)]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_batched_equals_single_and_order_does_not_matter(tiny_encoder, architecture):
    source, texts = find_encoder(tiny_encoder(architecture)), make_texts()
    single = encode_all(TextEncoder(source, device="cpu", batch_tokens=1), texts)
    batched = encode_all(TextEncoder(source, device="cpu", batch_tokens=10_000), texts)
    reverse = encode_all(TextEncoder(source, device="cpu", batch_tokens=64), texts[::-1])[::-1]
    for one, two, three in zip(single, batched, reverse, strict=True):
        np.testing.assert_allclose(two, one, rtol=0, atol=1e-5)
        np.testing.assert_allclose(three, one, rtol=0, atol=1e-5)
    assert np.abs(single[0][1] - single[0][2]).max() > 1e-3


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("layer", [0, 2, 4])
def test_layer_is_the_hidden_state_of_that_layer(tiny_encoder, architecture, layer):
    folder = tiny_encoder(architecture)
    encoder = TextEncoder(find_encoder(folder), layer=layer, device="cpu")
    encodings = encoder.tokenize(["the cat sat on a mat"]).encodings
    full = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        states = full(torch.tensor([encodings[0].ids]), output_hidden_states=True)
        expected = states.hidden_states[layer][0]
        if architecture == "modernbert" and 0 < layer < 4:  # its final norm follows the last layer kept
            expected = full.final_norm(expected)
    np.testing.assert_allclose(encoder.encode(encodings).vectors.numpy(), expected.numpy(), rtol=0, atol=1e-4)


def test_long_text_is_truncated_at_the_end_and_counted(tiny_encoder):
    encoder = TextEncoder(find_encoder(tiny_encoder()), device="cpu", max_length=6)
    found = encoder.tokenize(["the cat sat on a mat", "the cat sat on", ""])
    assert found.truncated.tolist() == [True, False, False]
    assert [len(e.ids) for e in found.encodings] == [6, 6, 2]
    assert found.encodings[0].ids == found.encodings[1].ids


def test_tokenizer_limit_is_respected(tiny_encoder):
    encoder = TextEncoder(find_encoder(tiny_encoder("roberta")), device="cpu")
    found = encoder.tokenize([" ".join(["cat"] * 100)])
    assert len(found.encodings[0].ids) == 30
    assert encoder.encode(found.encodings).vectors.shape == (30, 32)


def test_bf16_is_close(tiny_encoder):
    source, texts = find_encoder(tiny_encoder()), make_texts(4)
    exact = encode_all(TextEncoder(source, device="cpu"), texts)
    for one, two in zip(exact, encode_all(TextEncoder(source, device="cpu", dtype="bf16"), texts), strict=True):
        assert two.dtype == np.float32
        cosine = (one * two).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(two, axis=1)
        assert cosine.min() > 0.98


def test_unknown_layer_is_refused(tiny_encoder):
    with pytest.raises(EncoderError, match=r"0 to 4, .*9"):
        TextEncoder(find_encoder(tiny_encoder()), layer=9)


def test_nothing_is_loaded_before_use(tiny_encoder, monkeypatch):
    monkeypatch.setattr(AutoModel, "from_pretrained", lambda *a, **k: pytest.fail("loaded"))
    encoder = TextEncoder(find_encoder(tiny_encoder()), device="cpu")
    assert encoder.max_length == 30
    assert len(encoder.tokenize([]).encodings) == 0


def test_only_local_safetensors_without_foreign_code(tiny_encoder, monkeypatch):
    asked = {}
    original = AutoModel.from_pretrained

    def record(*args, **options):
        asked.update(options)
        return original(*args, **options)

    monkeypatch.setattr(AutoModel, "from_pretrained", record)
    assert TextEncoder(find_encoder(tiny_encoder()), device="cpu").model.training is False
    assert (asked["local_files_only"], asked["trust_remote_code"], asked["use_safetensors"]) == (True, False, True)
