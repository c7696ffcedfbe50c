"""BLEURT with a tiny random regression checkpoint, compared with a plain forward pass of transformers.

The published values (BLEURT-20 gives .999050 and .793022 for its two example pairs) need weights that no test may
download.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from scoring.ml import EncoderError, InvalidOption, Query, Record, load
from tests.scoring.ml.tiny import save_tokenizer, tiny_encoder

FAMILIES = ("bert", "roberta", "deberta-v2")
RECORDS = [
    Record("the cat sat on the mat", ("the cat ran", "a dog sat on the mat , yes")),
    Record("i like tea", ("i like tea",)),
    Record("tea tea tea", ("no", "yes", "the mat")),
    Record("you", ("the cat sat on the mat and the dog ran and i like tea",)),
]


def save_regression(folder: Path, family: str, labels: int = 1) -> str:
    import torch
    import transformers as t

    size = save_tokenizer(family, folder, 64)
    common = {"vocab_size": size, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
              "intermediate_size": 48, "num_labels": labels}  # fmt: skip
    config = {
        "bert": lambda: t.BertConfig(**common, max_position_embeddings=64),
        "roberta": lambda: t.RobertaConfig(**common, max_position_embeddings=66, pad_token_id=1, type_vocab_size=1),
        "deberta-v2": lambda: t.DebertaV2Config(**common, max_position_embeddings=64, type_vocab_size=0),
    }[family]()
    torch.manual_seed(3)
    model = t.AutoModelForSequenceClassification.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.mul_(8 if "embed" in name or "classifier" in name else 4)
    model.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_regression(tmp_path_factory.mktemp("bleurt"), "bert")


@pytest.mark.parametrize("family", FAMILIES)
def test_equals_a_plain_forward_pass_of_each_pair(family, tmp_path):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = save_regression(tmp_path, family)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder)
    model.eval()
    expected = []
    with torch.no_grad():
        for record in RECORDS:
            inputs = [tokenizer(ref, record.text, return_tensors="pt") for ref in record.references]
            expected.append(max(float(model(**found).logits[0, 0]) for found in inputs))
    found = load("bleurt", encoder=folder, device="cpu").score(RECORDS)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    assert np.ptp(found) > 0.01


def test_neither_batch_nor_order_matters(checkpoint):
    evaluator = load("bleurt", encoder=checkpoint, device="cpu")
    together = evaluator.score(RECORDS)
    np.testing.assert_allclose([evaluator.score([r])[0] for r in RECORDS], together, rtol=0, atol=1e-5)
    np.testing.assert_allclose(evaluator.score(RECORDS[::-1])[::-1], together, rtol=0, atol=1e-5)
    small = load("bleurt", encoder=checkpoint, device="cpu", batch_tokens=20)
    np.testing.assert_allclose(small.score(RECORDS), together, rtol=0, atol=1e-5)


def test_all_pairs_blank_texts_and_missing_references(checkpoint):
    evaluator = load("bleurt", encoder=checkpoint, device="cpu")
    query = Query(["i like tea", " "], ["no", "", "i like tea"])
    matrix = evaluator.all_pairs([query, query])[1]
    assert matrix.shape == (2, 3)
    assert matrix[0, 2] == pytest.approx(evaluator.score([RECORDS[1]])[0], abs=1e-5)
    np.testing.assert_array_equal(matrix[1], -2.0)
    assert matrix[0, 1] == -2.0
    found = evaluator.evaluate([Record("", ("a",)), Record("a"), RECORDS[1], RECORDS[1]])
    assert found.values[0] == -2.0
    assert np.isnan(found.values[1])
    assert (found.n_empty, found.n_duplicate, found.reasons[1]) == (1, 1, "no references")


def test_long_pairs_are_truncated_and_counted(checkpoint):
    evaluator = load("bleurt", encoder=checkpoint, device="cpu", max_length=12)
    found = evaluator.evaluate([Record("i like tea", ("the cat " * 9,)), Record("i like tea", ("no",))])
    assert found.n_truncated == 1
    # 12 tokens minus 3 special ones: the text keeps its 3, the reference its first 6.
    shorter = evaluator.score([Record("i like tea", ("the cat the cat the cat",))])
    assert found.values[0] == pytest.approx(shorter[0], abs=1e-5)


def test_missing_checkpoint_is_explained(tmp_path, tiny_encoder):
    with pytest.raises(InvalidOption, match="BLEURT"):
        load("bleurt")
    with pytest.raises(EncoderError, match=r"regression .*BertModel"):
        load("bleurt", encoder=tiny_encoder())
    with pytest.raises(EncoderError, match="has 2 labels"):
        load("bleurt", encoder=save_regression(tmp_path, "bert", labels=2))


def test_signature_and_saving(checkpoint, tmp_path):
    evaluator = load("bleurt", encoder=checkpoint, device="cpu")
    name = Path(checkpoint).name
    assert evaluator.signature == (
        f"bleurt|nrefs:var|enc:{name}@{evaluator.source.weights[:8]}|ml:64|trunc:reference-right|dt:fp32|attn:sdpa|v:1"
    )
    evaluator.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "evaluator.json").read_text())["options"]["encoder"] == checkpoint
    np.testing.assert_array_equal(load(tmp_path).score(RECORDS), evaluator.score(RECORDS))


def test_encoder_without_a_regression_head_is_refused(tmp_path):
    """Its head would be initialised at random on every load."""
    folder = tiny_encoder("bert", tmp_path)
    path = tmp_path / "config.json"
    said = {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "LABEL_0"},
        "label2id": {"LABEL_0": 0},
    }
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **said}), encoding="utf-8")
    with pytest.raises(EncoderError, match=r"lacks classifier\.bias, classifier\.weight"):
        load("bleurt", encoder=folder, device="cpu").score(RECORDS)
