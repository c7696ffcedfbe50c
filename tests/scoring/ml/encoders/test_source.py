"""Finding encoders: the installed one, folders, the local cache; refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scoring.ml import EncoderError
from scoring.ml.encoders import source as module
from scoring.ml.encoders.source import find_encoder


def make(folder: Path, config: dict, tokenizer: dict | None = None) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer or {}))
    (folder / "model.safetensors").write_bytes(b"weights")
    return str(folder)


def test_default_encoder_is_installed_with_the_published_weights():
    found = find_encoder()
    assert found.name == "all-MiniLM-L6-v2"
    assert found.weights.startswith("53aa5117")
    assert (found.model_type, found.n_layers, found.max_length(), found.attention) == ("bert", 6, 512, "sdpa")
    assert find_encoder("sentence-transformers/all-MiniLM-L6-v2").folder == found.folder


def test_other_weights_of_the_default_encoder_are_refused(monkeypatch):
    monkeypatch.setattr(module, "_DEFAULT_WEIGHTS", "0" * 64)
    with pytest.raises(EncoderError, match="not the published ones"):
        find_encoder()


def test_folder(tmp_path):
    found = find_encoder(make(tmp_path / "mine", {"model_type": "bert", "num_hidden_layers": 3}))
    assert (found.name, found.n_layers) == ("mine", 3)


def test_folder_with_an_unreadable_configuration_is_invalid(tmp_path):
    name = make(tmp_path / "mine", {"model_type": "bert", "num_hidden_layers": 3})
    (tmp_path / "mine" / "config.json").write_text('{"model_type": "be', encoding="utf-8")
    with pytest.raises(EncoderError, match=r"config\.json .*: copy"):
        find_encoder(name)


@pytest.mark.parametrize("content", ["[1]", "null", '"bert"'])
@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_configuration_that_is_not_an_object_is_invalid(tmp_path, file, content):
    name = make(tmp_path / "mine", {"model_type": "bert", "num_hidden_layers": 3})
    (tmp_path / "mine" / file).write_text(content, encoding="utf-8")
    with pytest.raises(EncoderError, match=r"\.json .*JSON object"):
        find_encoder(name)


@pytest.mark.parametrize("wrong", ["32", [32], 1.5, True, float("inf")])
def test_non_integer_sizes_are_named(tmp_path, wrong):
    source = find_encoder(make(tmp_path / "mine", {"hidden_size": wrong, "type_vocab_size": wrong}))
    with pytest.raises(EncoderError, match="hidden_size: "):
        _ = source.width
    with pytest.raises(EncoderError, match="says type_vocab_size: "):
        _ = source.type_vocabulary


def test_changed_weights_change_the_hash(tmp_path):
    name = make(tmp_path / "mine", {"model_type": "bert", "num_hidden_layers": 3})
    before = find_encoder(name).weights
    (tmp_path / "mine" / "model.safetensors").write_bytes(b"other weights")
    assert find_encoder(name).weights != before


def test_sharded_weights_are_all_hashed(tmp_path):
    name = make(tmp_path / "mine", {"model_type": "bert"})
    one = find_encoder(name).weights
    (tmp_path / "mine" / "model-00002-of-00002.safetensors").write_bytes(b"more")
    assert find_encoder(name).weights != one


@pytest.mark.parametrize(
    ("config", "tokenizer", "asked", "expected"),
    [
        ({"model_type": "bert", "max_position_embeddings": 512}, {"model_max_length": 256}, None, 256),
        ({"model_type": "bert", "max_position_embeddings": 512}, {"model_max_length": int(1e30)}, None, 512),
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, {}, None, 512),
        ({"model_type": "modernbert", "max_position_embeddings": 8192}, {"model_max_length": 8192}, 1000, 1000),
        ({"model_type": "bert", "max_position_embeddings": 512}, {}, 4000, 512),
        ({"model_type": "t5"}, {"model_max_length": 1e30}, None, 512),
    ],
)
def test_longest_input(tmp_path, config, tokenizer, asked, expected):
    assert find_encoder(make(tmp_path / "m", config, tokenizer)).max_length(asked) == expected


def test_refusals_suggest_a_remedy(tmp_path):
    with pytest.raises(EncoderError, match="hf download no-such/encoder"):
        find_encoder("no-such/encoder")
    with pytest.raises(EncoderError, match="neither a folder nor in the local cache"):
        find_encoder("not a name at all!")
    with pytest.raises(EncoderError, match=r"holds no config\.json"):
        find_encoder(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(EncoderError, match=r"holds no model\.safetensors"):
        find_encoder(str(tmp_path))


@pytest.mark.parametrize("kind", ["deberta-v2", "mpnet"])
def test_some_families_have_no_sdpa(tmp_path, kind):
    assert find_encoder(make(tmp_path / "m", {"model_type": kind})).attention == "eager"
