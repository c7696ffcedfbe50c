"""Loads tokenizer and bare encoder of a source, to infer or to train: local safetensors, no foreign code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from evalapp.extras import explain_install
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.engine import Dtype
from scoring.ml.errors import EncoderError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Attention: TypeAlias = Literal["sdpa", "eager"]
AutoKind: TypeAlias = Literal[
    "AutoModel", "AutoModelForSequenceClassification", "AutoModelForCausalLM", "AutoModelForSeq2SeqLM"
]
_TOKENIZER_FILES = ("tokenizer.json", "vocab.*", "*.model")
#: Weights of a bare encoder that may be missing: only `shared_bert` uses them, and checks for them.
_UNUSED = "pooler."
_AGAIN = "copy the folder again, or take another encoder"


def load_tokenizer(source: EncoderSource) -> Any:
    """Return the tokenizer of an encoder's `source` from transformers.

    Raises `EncoderError` if there is none, if it cannot be read, or if transformers has no fast form of it.
    """
    from transformers import AutoTokenizer

    # Without any file transformers creates a tokenizer that knows no word.
    if not any(any(source.folder.glob(pattern)) for pattern in _TOKENIZER_FILES):
        raise EncoderError(source.name, f"{source.folder} holds no tokenizer: copy its tokenizer.json there")
    _check_sentencepiece(source)
    # With the encoder's configuration given, transformers does not read config.json in the folder, which in an artefact
    # belongs to the evaluator.
    config = _read_config(source)
    with foreign_files(source.name, f"the tokenizer in {source.folder} cannot be read", _AGAIN):
        tokenizer = AutoTokenizer.from_pretrained(
            str(source.folder), local_files_only=True, trust_remote_code=False, config=config
        )
    if not tokenizer.is_fast:
        raise EncoderError(source.name, "its tokenizer has no fast form: save one as tokenizer.json in its folder")
    return tokenizer


def _check_sentencepiece(source: EncoderSource) -> None:
    """Raises `EncoderError` if the tokenizer is only a SentencePiece model and the packages to read it are missing."""
    if (source.folder / "tokenizer.json").is_file() or not any(source.folder.glob("*.model")):
        return
    missing = [name for name in ("sentencepiece", "google.protobuf") if not _is_installed(name)]
    if missing:
        packages = " and ".join(name.removeprefix("google.") for name in missing)
        message = f"its tokenizer is a SentencePiece model, and {packages} is not installed."
        raise EncoderError(source.name, f"{message} {explain_install('torch')}")


def _is_installed(name: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


def _read_config(source: EncoderSource) -> Any:
    """The encoder's configuration; None if transformers does not know its kind."""
    from transformers import CONFIG_MAPPING, AutoConfig

    if source.model_type not in CONFIG_MAPPING:
        return None
    plain = {key: value for key, value in source.config.items() if key not in ("model_type", "auto_map")}
    with foreign_files(source.name, f"the config.json of {source.folder} cannot be used", _AGAIN):
        return AutoConfig.for_model(source.model_type, **plain)


def load_pretrained(
    source: EncoderSource, kind: AutoKind, *, dtype: Dtype = "fp32", attention: Attention | None = None
) -> PreTrainedModel:
    """Return a model of the class `kind` of transformers, on the CPU in evaluation mode, from the folder of `source`.

    `dtype` is its number format, `attention` its implementation (None selects what suits the architecture). Only local
    files and safetensors are read; no code from the folder is run. Raises `EncoderError` if transformers does not know
    the kind, cannot read the weights, or finds some missing or of another size.
    """
    import torch

    return read_model(
        source.name,
        source.folder,
        kind,
        attn_implementation=attention or source.attention,
        dtype=torch.bfloat16 if dtype == "bf16" else torch.float32,
    )


def check_encoder(source: EncoderSource) -> None:
    """Check that an encoder's `source` can be loaded, within hundredths of a second: only names and sizes of the
    weights are read.

    Raises the `EncoderError` that `load_tokenizer` or `load_model` would raise.
    """
    tokenizer = load_tokenizer(source)
    model = check_model(source.name, source.folder, "AutoModel", attn_implementation=source.attention)
    largest = max(tokenizer.get_vocab().values(), default=-1)
    words = getattr(model.get_input_embeddings(), "num_embeddings", None)
    if isinstance(words, int) and largest >= words:
        raise EncoderError(source.name, foreign_tokenizer(largest, words))


def foreign_tokenizer(largest: int, words: int) -> str:
    """Return the error message for a tokenizer whose `largest` token number exceeds the encoder's number of word
    vectors, `words`."""
    return (
        f"its tokenizer gives the token number {largest}, but it has {words} word vectors: copy the tokenizer that "
        "belongs to it"
    )


def check_model(name: str, folder: Path, kind: AutoKind, **options: Any) -> PreTrainedModel:
    """Return the model in `folder` without its weights; `name` is for messages, `kind` and `options` are as in
    `read_model`. Raises the errors of `read_model`."""
    with without_report():
        return read_model(name, folder, kind, device_map="meta", **options)


def read_model(name: str, folder: Path, kind: AutoKind, **options: Any) -> PreTrainedModel:
    """Return the model in `folder` in evaluation mode.

    `name` is for messages, `kind` the class of transformers, `options` further arguments of its `from_pretrained`.
    Raises `EncoderError`, also for a missing weight, which transformers would initialise at random with a log message.
    """
    import transformers

    with without_progress_bar(), foreign_files(name, f"{folder} cannot be loaded", _AGAIN):
        model, info = getattr(transformers, kind).from_pretrained(
            str(folder),
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # refused below, by name
            **options,
        )
    missing = sorted(key for key in info["missing_keys"] if not (kind == "AutoModel" and key.startswith(_UNUSED)))
    if missing:
        message = f"{folder} lacks {_some(missing)} of the weights of a {type(model).__name__}: {_AGAIN}"
        raise EncoderError(name, message)
    other = sorted(f"{key} {_size(there)} for {_size(wanted)}" for key, there, wanted in info["mismatched_keys"])
    if other:
        message = f"{folder} holds weights of other sizes than its config.json says, {_some(other)}: {_AGAIN}"
        raise EncoderError(name, message)
    return cast("PreTrainedModel", model.eval())


def weight_names(source: EncoderSource) -> frozenset[str]:
    """Return the names of an encoder's weights in the files of its `source`. Raises `EncoderError` for a damaged
    file."""
    from safetensors import safe_open

    names: set[str] = set()
    for path in sorted(source.folder.glob("model*.safetensors")):
        with (
            foreign_files(source.name, f"{path} cannot be read", _AGAIN),
            safe_open(str(path), framework="np") as file,
        ):
            names.update(file.keys())
    return frozenset(names)


@contextmanager
def foreign_files(name: str, what: str, way_out: str) -> Iterator[None]:
    """Turn any exception raised while foreign files are read into an `EncoderError`: transformers and its dependencies
    raise all kinds, including plain Exception.

    The message has the encoder's `name`, the problem (`what`), the original error and the `way_out`.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())
        raise EncoderError(name, f"{what} ({type(error).__name__}: {said}): {way_out}") from error


def _some(names: list[str]) -> str:
    """The first three of a list, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


def _size(shape: Any) -> str:
    return "x".join(map(str, shape))


def load_model(
    source: EncoderSource,
    *,
    dtype: Dtype = "fp32",
    attention: Attention | None = None,
    layer: int | None = None,
) -> PreTrainedModel:
    """Return the bare encoder of a `source` with its weights, on the CPU, in evaluation mode; call `train()` to train
    it.

    `dtype` is its number format. `attention` None selects what suits the architecture; "eager" is needed for second
    derivatives. `layer` drops all layers above it, counted from 1.
    """
    model = load_pretrained(source, "AutoModel", dtype=dtype, attention=attention)
    if layer is not None and layer != source.n_layers:
        _keep_layers(model, source, layer)
    return model.eval()


def _keep_layers(model: PreTrainedModel, source: EncoderSource, layer: int) -> None:
    """Drop the layers above `layer`, wherever the architecture has its list of layers."""
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
    """Hide the progress bar of transformers while weights are read."""
    from transformers.utils import logging

    enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()


@contextmanager
def without_report() -> Iterator[None]:
    """Hide the log of transformers about missing weights, which the caller checks."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)
