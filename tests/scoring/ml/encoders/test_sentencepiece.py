"""Encoders with only a SentencePiece model as tokenizer, like the published DeBERTa-v3 folders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import transformers

from scoring.ml import EncoderError, Record, fit, load, read_dataset
from scoring.ml.artefact import BINARY, TOKENIZER_FILES
from scoring.ml.encoders import loading
from scoring.ml.encoders.loading import check_encoder, load_tokenizer
from scoring.ml.encoders.source import find_encoder
from tests.scoring.ml.everything import SMALLEST, write_everything
from tests.scoring.ml.tiny import WORDS, save_model


@pytest.fixture(scope="module")
def deberta(tmp_path_factory) -> Path:
    """config.json, model.safetensors, spm.model and tokenizer_config.json, with the pieces of microsoft/deberta-v3."""
    import sentencepiece

    folder = tmp_path_factory.mktemp("deberta-v3")
    rng = np.random.default_rng(3)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(rng.choice(WORDS, 6)) for _ in range(200)]),
        model_prefix=str(folder / "spm"), vocab_size=70, hard_vocab_limit=False, minloglevel=2,
        pad_id=0, pad_piece="[PAD]", bos_id=1, bos_piece="[CLS]", eos_id=2, eos_piece="[SEP]", unk_id=3,
        unk_piece="[UNK]",
    )  # fmt: skip
    (folder / "spm.vocab").unlink()
    save_model("deberta-v2", folder, 128, layers=2, positions=64)
    said = {"do_lower_case": False, "vocab_type": "spm"}
    (folder / "tokenizer_config.json").write_text(json.dumps(said), encoding="utf-8")
    return folder


def test_folder_is_read_and_tokenised_like_sentencepiece(deberta):
    import sentencepiece

    assert not (deberta / "tokenizer.json").exists()
    source = find_encoder(str(deberta))
    check_encoder(source)
    tokenizer = load_tokenizer(source)
    assert isinstance(tokenizer, transformers.PreTrainedTokenizerFast)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(deberta / "spm.model"))
    for text in ("the cat sat on the mat", "you like tea"):
        assert tokenizer(text)["input_ids"] == [1, *theirs.encode(text), 2]


def test_metric_and_trained_evaluator_work_with_it(deberta, tmp_path):
    found = load("bertscore", encoder=str(deberta)).evaluate(
        [Record("the cat sat", ("the cat sat",)), Record("you like tea", ("the cat sat",)), Record("वाह", ("the cat",))]
    )
    assert found.values[0] == pytest.approx(1, abs=1e-6)
    assert found.values[1] < 0.99
    assert "knows no word of it" in found.reasons[2]
    (tmp_path / "data").mkdir()
    data = read_dataset(write_everything(tmp_path / "data"))
    encoder = shutil.copytree(deberta, tmp_path / "encoder")
    evaluator = fit("shared-bert", data, encoder=str(encoder), **SMALLEST["shared-bert"])
    records = data.outputs_with_context()[:8]
    expected = evaluator.score(records)
    evaluator.save_pretrained(tmp_path / "out")
    shutil.rmtree(encoder)  # the artefact contains the tokenizer
    np.testing.assert_allclose(load(tmp_path / "out").score(records), expected, atol=1e-6)


def test_missing_package_is_named(deberta, monkeypatch):
    monkeypatch.setattr(loading, "_is_installed", lambda name: name != "sentencepiece")
    with pytest.raises(EncoderError, match=r"sentencepiece .*evalapp\[torch\]"):
        load_tokenizer(find_encoder(str(deberta)))


def test_every_sentencepiece_model_is_copied_into_an_artefact():
    """Its file is spiece.model in ALBERT and XLNet, tokenizer.model in Llama, sentencepiece.bpe.model in XLM-R."""
    models = {name for name in TOKENIZER_FILES if name.endswith(".model")}
    assert {"spm.model", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model"} == models
    assert all(name.endswith(BINARY) for name in models)
