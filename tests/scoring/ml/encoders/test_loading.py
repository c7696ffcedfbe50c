"""Bare encoders for inference and training: local safetensors, attention by choice, fewer layers, refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import AlbertConfig, AutoModel, ElectraConfig, MPNetConfig

from scoring.ml import EncoderError
from scoring.ml.encoders.loading import load_model, load_tokenizer
from scoring.ml.encoders.source import find_encoder
from tests.scoring.ml.tiny import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_loads_with_either_attention_and_can_be_trained(tiny_family, family):
    source = find_encoder(tiny_family(family))
    ids = torch.tensor([[2, 7, 9, 3]])
    outputs = []
    for attention in ("eager", None):
        model = load_model(source, attention=attention)
        assert not model.training
        outputs.append(model(input_ids=ids).last_hidden_state)
    torch.testing.assert_close(*outputs, atol=1e-5, rtol=0)
    outputs[1][0, 0].sum().backward()
    assert all(p.grad is not None for n, p in model.named_parameters() if "layer" in n and "rel_embeddings" not in n)


def test_eager_attention_can_be_differentiated_twice(tiny_family):
    model = load_model(find_encoder(tiny_family("roberta")), attention="eager")
    torch.manual_seed(13)
    vectors = torch.randn(1, 5, 32, requires_grad=True)
    # Weighed: the plain sum after a layer's normalisation is 0 whatever comes in.
    weighed = model(inputs_embeds=vectors).last_hidden_state * torch.randn(32)
    (slope,) = torch.autograd.grad(weighed.sum(), vectors, create_graph=True)
    slope.pow(2).sum().backward()
    assert vectors.grad is not None
    assert vectors.grad.abs().sum() > 1e-3


def test_only_local_safetensors_without_foreign_code(tiny_family, monkeypatch):
    asked = {}
    original = AutoModel.from_pretrained

    def record(*args, **options):
        asked.update(options)
        return original(*args, **options)

    monkeypatch.setattr(AutoModel, "from_pretrained", record)
    load_model(find_encoder(tiny_family("bert")))
    assert (asked["local_files_only"], asked["trust_remote_code"], asked["use_safetensors"]) == (True, False, True)


def test_layers_above_are_dropped_and_bf16_is_kept(tiny_family):
    model = load_model(find_encoder(tiny_family("bert")), layer=1, dtype="bf16")
    assert len(model.encoder.layer) == 1
    assert model.dtype == torch.bfloat16


@pytest.mark.parametrize("kind", [AlbertConfig, MPNetConfig, ElectraConfig])
def test_a_layer_is_the_one_of_the_whole_encoder(tmp_path, kind):
    """ALBERT has one layer and goes through it again and again."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
    AutoModel.from_config(kind(**sizes, vocab_size=60)).save_pretrained(tmp_path)
    source = find_encoder(str(tmp_path))
    ids = torch.tensor([[2, 7, 9, 3]])
    with torch.inference_mode():
        whole = load_model(source)(input_ids=ids, output_hidden_states=True).hidden_states
        for layer in (1, 2, 3):
            found = load_model(source, layer=layer)(input_ids=ids).last_hidden_state
            torch.testing.assert_close(found, whole[layer], atol=1e-5, rtol=0)


def test_weights_that_are_none_and_unknown_kinds_are_refused(tiny_family, tmp_path):
    source = find_encoder(tiny_family("bert"))
    config = (source.folder / "config.json").read_text(encoding="utf-8")
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(EncoderError, match=r"cannot be loaded .*: copy the folder again, or take another encoder"):
        load_model(find_encoder(str(tmp_path)))
    (tmp_path / "config.json").write_text(config.replace('"bert"', '"bort"'), encoding="utf-8")
    with pytest.raises(EncoderError, match="cannot be loaded"):
        load_model(find_encoder(str(tmp_path)))


def test_a_folder_without_tokenizer_is_refused(tiny_family, tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).symlink_to(find_encoder(tiny_family("bert")).folder / name)
    with pytest.raises(EncoderError, match=r"holds no tokenizer: copy its tokenizer\.json"):
        load_tokenizer(find_encoder(str(tmp_path)))


def test_a_tokenizer_in_an_artefact_is_loaded_as_its_encoders(tiny_family, tmp_path, monkeypatch):
    """The config.json beside it is the evaluator's; read as an encoder's, transformers would warn of it."""
    source = find_encoder(tiny_family("bert"))
    for path in source.folder.glob("*token*"):
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "config.json").write_text('{"model_type": "evalapp"}', encoding="utf-8")
    warnings = []
    monkeypatch.setattr("transformers.configuration_utils.logger.warning", warnings.append)
    found, own = load_tokenizer(replace(source, folder=tmp_path)), load_tokenizer(source)
    assert warnings == []
    assert type(found) is type(own)
    assert found("the cat sat")["input_ids"] == own("the cat sat")["input_ids"]
