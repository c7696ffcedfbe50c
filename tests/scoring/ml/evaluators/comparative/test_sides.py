"""The texts of a pair are distinguished in both forms and with every encoder, and pooled equally with and without
padding."""

from __future__ import annotations

import pytest
import torch

from scoring.ml.encoders.loading import load_model
from scoring.ml.encoders.source import find_encoder
from scoring.ml.engine import collate
from scoring.ml.errors import EncoderError
from scoring.ml.evaluators.comparative.inputs import PairReader
from scoring.ml.evaluators.comparative.network import ComparativeNetwork, number_sides, pool_sides, side_vectors
from scoring.ml.types import Record
from tests.scoring.ml.tiny import FAMILIES

A = Record("you like tea", context=("cat sat", "on mat"))
B = Record("no", context=("cat sat", "on mat"))
OTHER = Record("the dog", context=("ran",))
BLANK = Record("", context=("cat sat", "on mat"))
FIRSTS, SECONDS = [A, B, A, OTHER, BLANK], [B, A, OTHER, B, A]


def sides(ids: list[list[int]], between: int) -> list[list[int]]:
    found = torch.tensor(ids)
    return number_sides(found, found != 0, 9, between).tolist()


def test_sides_by_hand():
    # 1 is the start, 9 the end, 0 padding.
    assert sides([[1, 5, 9, 6, 7, 9, 8, 9, 0], [1, 5, 9, 6, 9, 0, 0, 0, 0]], 1) == [
        [2, 2, 2, 0, 0, 2, 1, 2, 2],
        [0, 0, 2, 1, 2, 2, 2, 2, 2],
    ]
    assert sides([[1, 5, 9, 9, 6, 9, 9, 8, 9], [1, 5, 9, 9, 6, 7, 9, 0, 0]], 2) == [
        [2, 2, 2, 2, 0, 2, 2, 1, 2],
        [0, 0, 2, 2, 1, 1, 2, 2, 2],
    ]


def test_pooled_by_hand():
    hidden = torch.tensor([[[9.0], [1.0], [3.0], [9.0], [4.0], [9.0]]])
    found = pool_sides(hidden, torch.tensor([[2, 0, 0, 2, 1, 2]]))
    assert found.tolist() == [[2.0, 4.0, 2.0, 8.0]]
    assert pool_sides(hidden, torch.tensor([[2, 2, 2, 2, 1, 2]])).tolist() == [[0.0, 4.0, 4.0, 0.0]]


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "chinese-bert"])  # it has no such word
@pytest.mark.parametrize("form", ["own", "shared"])
def test_texts_are_located_in_the_input(tiny_family, family, form):
    source = find_encoder(tiny_family(family))
    reader = PairReader(source, form=form)
    encodings = reader.pairs(FIRSTS, SECONDS).encodings
    batch = collate(encodings, reader.pad_id, "cpu")
    found = number_sides(batch.input_ids, batch.attention_mask, *reader.separator)

    def words(ids: list[int]) -> str:
        return " ".join(reader.tokenizer.tokenizer.decode(ids, skip_special_tokens=True).split())

    for row, (a, b) in enumerate(zip(FIRSTS, SECONDS, strict=True)):
        together = form == "shared" and a.context == b.context
        for side, record in enumerate((a, b)):
            whole = record.text if together else " ".join([*record.context, record.text]).strip()
            assert words(batch.input_ids[row][found[row] == side].tolist()) == whole


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_makes_no_difference(tiny_family, family):
    source = find_encoder(tiny_family(family))
    reader, model = PairReader(source), load_model(source)
    batch = collate(reader.pairs(FIRSTS, SECONDS).encodings, reader.pad_id, "cpu")
    with torch.inference_mode():
        hidden = model(**batch.inputs).last_hidden_state
        expected = pool_sides(hidden, number_sides(batch.input_ids, batch.attention_mask, *reader.separator))
        torch.testing.assert_close(side_vectors(model, batch, *reader.separator), expected, atol=1e-5, rtol=0)
        half = side_vectors(load_model(source, dtype="bf16"), batch, *reader.separator)
    assert half.dtype == torch.bfloat16


@pytest.mark.parametrize("family", FAMILIES)
def test_network_gives_the_same_in_training_and_inference(tiny_family, family):
    source = find_encoder(tiny_family(family))
    reader = PairReader(source)
    separator, between = reader.separator
    torch.manual_seed(1)
    network = ComparativeNetwork.from_source(
        source, {"pooling": "sides", "tie": True, "single": False, "separator": separator, "between": between}
    )
    torch.nn.init.normal_(network.classifier.weight)
    batch = collate(reader.pairs(FIRSTS, SECONDS).encodings, reader.pad_id, "cpu")
    inputs = batch.inputs
    targets = torch.tensor([[0.0, 0.0, 1.0]] * len(FIRSTS))
    network.eval()
    torch.testing.assert_close(network.infer(batch), network(**inputs)["logits"].detach(), atol=1e-5, rtol=0)
    network(**inputs, targets=targets)["loss"].backward()
    grown = [p for name, p in network.encoder.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0]
    assert len(grown) > 10
    assert network.classifier.weight.shape == (3, 4 * 32)


def test_tokenizer_that_ends_texts_differently_is_refused(tiny_family, monkeypatch):
    reader = PairReader(find_encoder(tiny_family("bert")))
    monkeypatch.setattr(reader.tokenizer, "segments", lambda a, b: reader.tokenizer.texts([""]))
    with pytest.raises(EncoderError, match=r"pooling=mean .*pooling=cls"):
        _ = reader.separator
