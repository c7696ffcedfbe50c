"""Bare encoders for inference and training: local safetensors, choice of attention, fewer layers, refusals."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AlbertConfig, AutoModel, ElectraConfig, MPNetConfig

from scoring.ml import EncoderError
from scoring.ml.encoders.loading import (
    check_encoder,
    load_model,
    load_pretrained,
    load_tokenizer,
    weight_names,
)
from scoring.ml.encoders.source import EncoderSource, find_encoder
from tests.scoring.ml.causal import tiny_causal
from tests.scoring.ml.tiny import FAMILIES


@pytest.fixture
def copied(tiny_family, tmp_path) -> Path:
    """A BERT whose files may be damaged."""
    return Path(shutil.copytree(tiny_family("bert"), tmp_path / "copied"))


def renamed(folder: Path, name) -> EncoderSource:
    """The folder with its weights renamed, without those that get no name."""
    weights = {name(key): value for key, value in load_file(folder / "model.safetensors").items() if name(key)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return find_encoder(str(folder))


def changed(folder: Path, **entries: object) -> EncoderSource:
    """The folder with changed entries in its config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **entries}), encoding="utf-8")
    return find_encoder(str(folder))


def refused(source: EncoderSource, message: str) -> None:
    """Refused both by the check and by loading itself."""
    with pytest.raises(EncoderError, match=message):
        check_encoder(source)
    with pytest.raises(EncoderError, match=message):
        load_model(source)


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
    # Weighted: the plain sum after a layer's normalisation is always 0.
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


def test_upper_layers_are_dropped_and_bf16_is_preserved(tiny_family):
    model = load_model(find_encoder(tiny_family("bert")), layer=1, dtype="bf16")
    assert len(model.encoder.layer) == 1
    assert model.dtype == torch.bfloat16


@pytest.mark.parametrize("kind", [AlbertConfig, MPNetConfig, ElectraConfig])
def test_layer_equals_that_of_the_whole_encoder(tmp_path, kind):
    """ALBERT has one layer and applies it repeatedly."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
    AutoModel.from_config(kind(**sizes, vocab_size=60)).save_pretrained(tmp_path)
    source = find_encoder(str(tmp_path))
    ids = torch.tensor([[2, 7, 9, 3]])
    with torch.inference_mode():
        whole = load_model(source)(input_ids=ids, output_hidden_states=True).hidden_states
        for layer in (1, 2, 3):
            found = load_model(source, layer=layer)(input_ids=ids).last_hidden_state
            torch.testing.assert_close(found, whole[layer], atol=1e-5, rtol=0)


def test_invalid_weights_and_unknown_kinds_are_refused(tiny_family, tmp_path):
    source = find_encoder(tiny_family("bert"))
    config = (source.folder / "config.json").read_text(encoding="utf-8")
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(EncoderError, match=r"cannot be loaded .*: copy the folder again, or take another encoder"):
        load_model(find_encoder(str(tmp_path)))
    (tmp_path / "config.json").write_text(config.replace('"bert"', '"bort"'), encoding="utf-8")
    with pytest.raises(EncoderError, match="cannot be loaded"):
        load_model(find_encoder(str(tmp_path)))


def test_folder_without_tokenizer_is_refused(tiny_family, tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).symlink_to(find_encoder(tiny_family("bert")).folder / name)
    with pytest.raises(EncoderError, match=r"tokenizer\.json"):
        load_tokenizer(find_encoder(str(tmp_path)))


def test_tokenizer_in_an_artefact_loads_like_its_encoders(tiny_family, tmp_path, monkeypatch):
    """The config.json next to it is the evaluator's; read as an encoder's, transformers would warn about it."""
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


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_passes_the_check_without_reading_weights(tiny_family, family):
    check_encoder(find_encoder(tiny_family(family)))


def test_the_installed_encoder_passes_the_check():
    check_encoder(find_encoder())


def test_weights_with_other_names_are_refused_and_not_randomised(copied):
    message = r"lacks embeddings\.LayerNorm\.bias, .* and 34 more of the weights of a BertModel: copy the folder again"
    refused(renamed(copied, lambda name: f"other.{name}"), message)


def test_missing_layer_is_named(copied):
    refused(
        renamed(copied, lambda name: "" if ".layer.1." in name else name), r"lacks encoder\.layer\.1\.\S+, .*13 more"
    )


def test_folder_of_a_mislabelled_kind_is_refused(copied):
    refused(changed(copied, model_type="gpt2"), "of the weights of a GPT2Model")


def test_sizes_that_do_not_fit_the_weights_are_named(copied):
    refused(changed(copied, hidden_size=64), r"other sizes than its config\.json says, .*LayerNorm\.bias 32 for 64")
    refused(changed(copied, hidden_size=32, vocab_size=10), r"word_embeddings\.weight \d+x32 for 10x32")


def test_invalid_configuration_is_refused(copied):
    refused(changed(copied, num_attention_heads=5), "cannot be loaded .*multiple of the number of attention heads")
    source = changed(copied, num_attention_heads=4, num_hidden_layers="2")
    refused(source, "config.json of .* cannot be used .*expected int|cannot be loaded .*expected int")


@pytest.mark.parametrize("content", [b"garbage" * 100, b"", None], ids=["garbage", "empty", "cut off"])
def test_damaged_weights_are_refused(copied, content):
    path = copied / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-50] if content is None else content)
    source = find_encoder(str(copied))
    refused(source, r"cannot be loaded \(SafetensorError: .*copy the folder again")
    with pytest.raises(EncoderError, match=r"model\.safetensors .*\(SafetensorError"):
        weight_names(source)


@pytest.mark.parametrize(
    "kind", ["BertForMaskedLM", "RobertaForMaskedLM", "DistilBertForMaskedLM", "AlbertForMaskedLM", "MPNetForMaskedLM"]
)
def test_encoder_of_a_masked_language_model_loads_without_its_pooler(kind, tmp_path):
    """Its weights have another prefix, and the pooler, which is never used, has none."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    made = getattr(transformers, kind)
    saved = made(made.config_class(**sizes, vocab_size=60))
    saved.save_pretrained(tmp_path)
    found = load_model(find_encoder(str(tmp_path)))
    for name, weight in saved.base_model.named_parameters():
        torch.testing.assert_close(found.get_parameter(name), weight, rtol=0, atol=0)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_tied_weights_are_not_missing(family, tmp_path):
    load_pretrained(find_encoder(tiny_causal(family, tmp_path)), "AutoModelForCausalLM")


def test_missing_head_is_refused(tiny_family):
    source = find_encoder(tiny_family("bert"))
    with pytest.raises(EncoderError, match=r"classifier\.bias, classifier\.weight .*Bert"):
        load_pretrained(source, "AutoModelForSequenceClassification")
    with pytest.raises(EncoderError, match=r"cls\.predictions\.bias, .*BertLMHeadModel"):
        load_pretrained(source, "AutoModelForCausalLM")


@pytest.mark.parametrize("content", ["{", "{}", "[]", "null", ""])
def test_broken_tokenizer_is_not_reported_as_missing(copied, content):
    (copied / "tokenizer.json").write_text(content, encoding="utf-8")
    with pytest.raises(EncoderError, match=r"tokenizer in \S+ "):
        load_tokenizer(find_encoder(str(copied)))


def test_tokenizer_of_another_encoder_is_detected(copied, tiny_family):
    shutil.copy(Path(tiny_family("roberta")) / "tokenizer.json", copied)
    with pytest.raises(EncoderError, match=r"token number \d+.* \d+ word vectors"):
        check_encoder(find_encoder(str(copied)))
