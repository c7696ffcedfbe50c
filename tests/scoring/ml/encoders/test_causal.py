"""Log-probabilities of causal models compared with a plain forward pass, windows, and invalid folders."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.ml import EncoderError
from scoring.ml.encoders.causal import CausalModel, plan_windows
from scoring.ml.encoders.source import find_encoder
from tests.scoring.ml.causal import plain_log_likelihood, tiny_causal

TEXTS = ["the cat sat on the mat .", "tea", "i like the dog", "you like no tea . no", "zebra"]
CONTEXTS = ["the dog\n", "", "no tea\nyou sat on the mat\n", "i like tea\n", ""]


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_causal(request.param, tmp_path_factory.mktemp(request.param))


def test_equals_a_plain_forward_pass(folder):
    model = CausalModel(find_encoder(folder), device="cpu")
    sums, tokens = model.log_likelihoods(TEXTS)
    expected = [plain_log_likelihood(folder, text) for text in TEXTS]
    np.testing.assert_allclose(sums, [value for value, _ in expected], rtol=0, atol=1e-5)
    assert tokens.tolist() == [n for _, n in expected]
    sums, tokens = model.log_likelihoods(TEXTS, CONTEXTS)
    expected = [plain_log_likelihood(folder, text, before) for text, before in zip(TEXTS, CONTEXTS, strict=True)]
    np.testing.assert_allclose(sums, [value for value, _ in expected], rtol=0, atol=1e-5)
    assert tokens.tolist() == [n for _, n in expected]


def test_neither_batch_nor_order_matters(folder):
    model = CausalModel(find_encoder(folder), device="cpu")
    together, _ = model.log_likelihoods(TEXTS, CONTEXTS)
    single = [model.log_likelihoods([t], [c])[0][0] for t, c in zip(TEXTS, CONTEXTS, strict=True)]
    np.testing.assert_allclose(single, together, rtol=0, atol=1e-5)
    np.testing.assert_allclose(model.log_likelihoods(TEXTS[::-1], CONTEXTS[::-1])[0][::-1], together, rtol=0, atol=1e-5)
    small = CausalModel(find_encoder(folder), device="cpu", batch_tokens=9)
    np.testing.assert_allclose(small.log_likelihoods(TEXTS, CONTEXTS)[0], together, rtol=0, atol=1e-5)


def test_long_text_is_read_in_windows(folder):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    text = "the cat sat on the mat . i like tea . you like no dog . the dog sat"
    model = CausalModel(find_encoder(folder), device="cpu", max_length=8, stride=3)
    found, tokens = model.log_likelihoods([text])
    tokenizer, plain = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = [2, *tokenizer(text)["input_ids"]]
    expected = 0.0
    for place in range(1, len(ids)):
        # Windows end at 8, 11, 14, ...; a token is scored in the first window that reaches it.
        end = min(len(ids), 8 if place < 8 else 8 + 3 * ((place - 8) // 3 + 1))
        window = ids[max(0, end - 8) : end]
        with torch.no_grad():
            logits = plain(torch.tensor([window])).logits[0].double()
        inside = place - max(0, end - 8)
        expected += float(torch.log_softmax(logits[inside - 1], dim=-1)[ids[place]])
    assert tokens[0] == len(ids) - 1 == 19
    assert found[0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("longest", "stride"), [(8, 3), (8, 7), (8, 1), (2, 1), (64, 32)])
def test_windows_score_every_token_once_with_enough_context(longest, stride):
    for length, first in ((n, first) for n in range(2, 40) for first in range(1, n)):
        windows = plan_windows(length, first, longest, stride)
        scored = [place for begin, start, end in windows for place in range(start, end)]
        assert scored == list(range(first, length))
        for begin, start, end in windows:
            assert end - begin <= longest
            assert start - begin >= min(start, longest - stride)


def test_context_longer_than_the_window_is_truncated(folder):
    model = CausalModel(find_encoder(folder), device="cpu", max_length=8)
    found, tokens = model.log_likelihoods(["i like tea"], ["the cat sat on the mat . " * 5])
    assert np.isfinite(found[0])
    assert tokens[0] == 3


def test_window_is_the_models_unless_a_smaller_one_is_given(folder):
    assert CausalModel(find_encoder(folder)).max_length == 32
    assert CausalModel(find_encoder(folder), max_length=100).max_length == 32
    assert CausalModel(find_encoder(folder), max_length=9, stride=100).stride == 8


def test_encoder_is_not_a_causal_model(tiny_encoder):
    with pytest.raises(EncoderError, match=r"causal .*BertModel"):
        CausalModel(find_encoder(tiny_encoder()))


def test_lone_surrogate_is_read_as_a_replacement_character(folder):
    model = CausalModel(find_encoder(folder), device="cpu")
    broken, whole = model.log_likelihoods(["the \ud800 cat"]), model.log_likelihoods(["the \ufffd cat"])
    assert [part.tolist() for part in broken] == [part.tolist() for part in whole]
