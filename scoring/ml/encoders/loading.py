"""Loads tokenizer and bare encoder of a source, to infer or to train: local safetensors, no foreign code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from scoring.ml.encoders.source import EncoderSource
from scoring.ml.engine import Dtype
from scoring.ml.errors import EncoderError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Attention: TypeAlias = Literal["sdpa", "eager"]
AutoKind: TypeAlias = Literal["AutoModel", "AutoModelForSequenceClassification", "AutoModelForCausalLM"]
_TOKENIZER_FILES = ("tokenizer.json", "vocab.*", "*.model")


def load_tokenizer(source: EncoderSource) -> Any:
    """The encoder's own tokenizer of transformers.

    Raises `EncoderError` where there is none, or none that transformers has in its fast form.
    """
    from transformers import AutoTokenizer

    missing = f"{source.folder} holds no tokenizer: copy its tokenizer.json there"
    # Without any file transformers makes one that knows no word.
    if not any(any(source.folder.glob(pattern)) for pattern in _TOKENIZER_FILES):
        raise EncoderError(source.name, missing)
    # Told of the encoder, transformers need not take the config.json beside it, in an artefact the evaluator's own.
    config = _config_of(source)
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            str(source.folder), local_files_only=True, trust_remote_code=False, config=config
        )
    except (OSError, ValueError) as error:
        raise EncoderError(source.name, missing) from error
    if not tokenizer.is_fast:
        raise EncoderError(source.name, "its tokenizer has no fast form: save one as tokenizer.json beside the weights")
    return tokenizer


def _config_of(source: EncoderSource) -> Any:
    """The encoder's configuration, none where transformers does not know its kind."""
    from transformers import CONFIG_MAPPING, AutoConfig

    if source.model_type not in CONFIG_MAPPING:
        return None
    plain = {key: value for key, value in source.config.items() if key not in ("model_type", "auto_map")}
    return AutoConfig.for_model(source.model_type, **plain)


def load_pretrained(
    source: EncoderSource, kind: AutoKind, *, dtype: Dtype = "fp32", attention: Attention | None = None
) -> PreTrainedModel:
    """A model of transformers, on the CPU, in evaluation mode: the one place where weights of others are read.

    Local files, safetensors and no code from the folder, whatever the head. Raises `EncoderError` where transformers
    does not know its kind or cannot read its weights.
    """
    import torch
    import transformers
    from safetensors import SafetensorError

    with without_progress_bar():
        try:
            model: PreTrainedModel = getattr(transformers, kind).from_pretrained(
                str(source.folder),
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                attn_implementation=attention or source.attention,
                dtype=torch.bfloat16 if dtype == "bf16" else torch.float32,
            )
        except (OSError, ValueError, SafetensorError) as error:
            message = f"{source.folder} cannot be loaded ({error}): copy the folder again, or take another encoder"
            raise EncoderError(source.name, message) from error
    return model.eval()


def load_model(
    source: EncoderSource,
    *,
    dtype: Dtype = "fp32",
    attention: Attention | None = None,
    layer: int | None = None,
) -> PreTrainedModel:
    """The bare encoder with its weights, on the CPU, in evaluation mode; call `train()` to train it.

    `attention` None is what suits the architecture; "eager" is needed where a gradient is differentiated again.
    `layer` drops all layers above it, counted from 1.
    """
    model = load_pretrained(source, "AutoModel", dtype=dtype, attention=attention)
    if layer is not None and layer != source.n_layers:
        _keep_layers(model, source, layer)
    return model.eval()


def _keep_layers(model: PreTrainedModel, source: EncoderSource, layer: int) -> None:
    """Drop the layers above `layer`, wherever the architecture keeps its list of them."""
    import torch

    if source.model_type == "albert" and getattr(model.config, "num_hidden_groups", 1) == 1:
        model.config.num_hidden_layers = layer  # one layer, gone through as often as this says
        return
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == source.n_layers:
            owner, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(owner), attribute, module[:layer])
            return
    raise EncoderError(source.name, f"its layers were not found ({source.model_type}); leave out `layer`")


@contextmanager
def without_progress_bar() -> Iterator[None]:
    """transformers draws a bar when it reads weights; a library should not."""
    from transformers.utils import logging

    enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()
