"""The folder of a trained evaluator: written completely or not at all, checked when it is read; weights are
safetensors.

`evaluator.json` (name, settings, state), `config.json` and `model.safetensors` (the network), the tokenizer's files
where the encoder was trained with it, `card.md`, `train_log.jsonl`, `split.json` (the training data by names and
hashes) and `fixtures.jsonl` (ten inputs with their scores, checked when it is loaded).

A trained encoder is stored as transformers stores it: `config.json` is the encoder's own with the network's settings
under `evalapp`, and its weights have the prefix of its architecture. `AutoModel` and `AutoTokenizer` therefore read the
encoder from the folder, as from any model with a task head. Older folders name the encoder's weights `encoder.*`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalapp.versions import read_settings
from scoring.ml.base import ARTIFACT
from scoring.ml.encoders.source import EncoderSource, find_encoder
from scoring.ml.errors import ArtefactError, ScoringError
from scoring.ml.signature import VERSION, file_hash, text_hash
from scoring.ml.training.record import TrainingRecord
from scoring.ml.types import Record

if TYPE_CHECKING:
    from scoring.ml.network import Network

WEIGHTS, CONFIG, CARD, LOG, SPLIT, FIXTURES = (
    "model.safetensors",
    "config.json",
    "card.md",
    "train_log.jsonl",
    "split.json",
    "fixtures.jsonl",
)
REQUIRED = (ARTIFACT, CONFIG, WEIGHTS, CARD, LOG, SPLIT, FIXTURES)
TOKENIZER_CONFIG = "tokenizer_config.json"
#: The entry of config.json with the network's settings, next to those of its encoder; also the prefix of its heads.
OWN_CONFIG = "evalapp"
#: Files of the tokenizer. An uploaded folder may contain these and the required files only.
TOKENIZER_FILES = (
    "tokenizer.json",
    TOKENIZER_CONFIG,
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spm.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
ALLOWED = (*REQUIRED, *TOKENIZER_FILES)
#: The folder of a frozen encoder that an artefact brings along.
ENCODER_FOLDER = "encoder"
#: Size limits in bytes of the files of an artefact from elsewhere; files of weights have none of their own.
MAX_BYTES = {
    "tokenizer.json": 200_000_000,
    "vocab.json": 50_000_000,
    "merges.txt": 50_000_000,
    "vocab.txt": 50_000_000,
    SPLIT: 200_000_000,
}
MAX_TEXT = 20_000_000
BINARY = (".safetensors", ".model")
#: The fields of `evaluator.json` and of its encoder, and their types.
HEADER: Mapping[str, tuple[type, ...]] = {
    "evaluator": (str,),
    "profile": (str,),
    "seed": (int,),
    "aspects": (list,),
    "settings": (dict,),
    "state": (dict,),
    "encoder": (dict, type(None)),
    "weights": (str,),
    "record": (dict,),
}
ENCODER: Mapping[str, type] = {"name": str, "weights": str, "embedded": bool}
_WORDS = {str: "a text", int: "a whole number", list: "a list", dict: "an object", bool: "true or false"}
_AGAIN = "copy it again, or save the evaluator again"
_LOCAL: Mapping[str, Any] = {"local_files_only": True, "use_safetensors": True, "trust_remote_code": False}
N_FIXTURES = 10
FIXTURE_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Fixture:
    """An input with the score it had when the evaluator was saved; None is undefined."""

    record: Record
    score: float | None


@dataclass(frozen=True)
class Artefact:
    """The result of a training. `settings` are all its options; `state` holds plain JSON values that the evaluator
    needs for scoring (label order, thresholds, chosen references).

    `encoder` is the encoder that the network was built from. With `embedded` its weights were trained and are saved in
    the network; otherwise it is frozen and found again by name, and the hash of its weights must be the same.
    """

    evaluator: str
    profile: str
    seed: int
    aspects: tuple[str, ...]
    settings: Mapping[str, Any]
    state: Mapping[str, Any]
    record: TrainingRecord
    network: Network
    encoder: EncoderSource | None = None
    embedded: bool = True
    fixtures: tuple[Fixture, ...] = field(default=())

    def with_fixtures(self, fixtures: Sequence[Fixture]) -> Artefact:
        """The same with fixtures."""
        return replace(self, fixtures=tuple(fixtures))


def weights_hash(network: Network) -> str:
    """Return the sha256 of a `network`: names, shapes, number formats and bytes of all weights, in the order of their
    names."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        plain = tensor.detach().cpu().contiguous()
        digest.update(f"{name}:{tuple(plain.shape)}:{plain.dtype};".encode())
        digest.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def find_size_limit(file: str) -> int | None:
    """Return the most bytes that a file of an artefact from elsewhere may have; None for weights."""
    name = file.rpartition("/")[2]
    return None if name.endswith(BINARY) else MAX_BYTES.get(name, MAX_TEXT)


def write_artefact(artefact: Artefact, folder: Path, *, signature: str, card: str, portable: bool = False) -> None:
    """Write the files of an `artefact`, with its `signature` and model `card`, into `folder`, which exists.

    With `portable` a frozen encoder that only this machine has is copied into it. The caller makes the folder appear
    complete or not at all (`training.store.write_folder`).
    """
    from scoring.ml.encoders.loading import without_progress_bar

    # The Trainer sets `use_cache` on every network; it means nothing here.
    artefact.network.config.__dict__.pop("use_cache", None)
    with without_progress_bar():
        artefact.network.save_pretrained(str(folder))
    if artefact.network.encoder is not None:
        _store_as_encoder(folder, artefact.network)
    source = artefact.encoder
    name = "" if source is None else _find_lasting_name(source, artefact.embedded)
    if source is not None and artefact.embedded:
        _copy_files(source.folder, folder, TOKENIZER_FILES)
    elif source is not None and portable and Path(name).is_absolute():
        (folder / ENCODER_FOLDER).mkdir()
        _copy_files(source.folder, folder / ENCODER_FOLDER, (CONFIG, "model*.safetensors*", *TOKENIZER_FILES))
        name = source.short_name
    content = {
        "evaluator": artefact.evaluator,
        "trained": True,
        "profile": artefact.profile,
        "seed": artefact.seed,
        "aspects": list(artefact.aspects),
        "settings": {key: strip_folder(value) if portable else value for key, value in artefact.settings.items()},
        "state": dict(artefact.state),
        "encoder": None
        if source is None
        else {
            "name": name,
            "weights": source.weights,
            "embedded": artefact.embedded,
            "max_length": source.max_length(),
            **({"tokenizer": _tokenizer_hash(folder)} if artefact.embedded else {}),
        },
        "weights": weights_hash(artefact.network),
        "record": artefact.record.as_dict(),
        "fixtures": len(artefact.fixtures),
        "signature": signature,
        "version": VERSION,
    }
    _write(folder / ARTIFACT, _dumped(content, indent=1) + "\n")
    _write(folder / CARD, card)
    _write(folder / LOG, "".join(_dumped(row) + "\n" for row in artefact.record.log))
    record = artefact.record
    split = {
        "train": list(record.groups),
        "dev": list(record.dev_groups),
        "items": list(record.items),
        "contents": list(record.contents),
    }
    _write(folder / SPLIT, _dumped(split, indent=1) + "\n")
    rows = [{"record": asdict(fixture.record), "score": fixture.score} for fixture in artefact.fixtures]
    _write(folder / FIXTURES, "".join(json.dumps(row) + "\n" for row in rows))
    # safetensors writes weights readable by the owner only; give them the mode of the other files.
    (folder / WEIGHTS).chmod((folder / ARTIFACT).stat().st_mode)


def strip_folder(value: Any) -> Any:
    """Return an option's `value`; of a path on this machine only the last part."""
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def _copy_files(source: Path, target: Path, patterns: Sequence[str]) -> None:
    for pattern in patterns:
        for path in source.glob(pattern):
            shutil.copyfile(path, target / path.name)


def _store_as_encoder(folder: Path, network: Network) -> None:
    """Give the saved files of a `network` the form that `AutoModel` reads its encoder from."""
    from safetensors.torch import load_file, save_file

    prefix = str(network.encoder.base_model_prefix)  # type: ignore[union-attr]
    weights = {_stored_name(name, prefix): tensor for name, tensor in load_file(folder / WEIGHTS).items()}
    draft = folder / f"{WEIGHTS}.renamed"
    save_file(weights, draft, metadata={"format": "pt"})
    draft.replace(folder / WEIGHTS)
    saved = _json_object(folder / CONFIG)
    foreign = ("auto_map", "torch_dtype", "transformers_version")
    config = {key: value for key, value in (network.config.encoder or {}).items() if key not in foreign}
    own = {"network": network.config.network, "attention": network.config.attention}
    _write(folder / CONFIG, _dumped({**config, "dtype": saved["dtype"], OWN_CONFIG: own}, indent=2) + "\n")


def _stored_name(name: str, prefix: str) -> str:
    """The name of a network's weight in the file: of the encoder as transformers names it, of everything else under
    `evalapp`."""
    own = name.removeprefix("encoder.")
    return f"{OWN_CONFIG}.{name}" if own == name else f"{prefix}.{own}"


def _network_name(name: str) -> str:
    """The reverse of `_stored_name`."""
    prefix, _, rest = name.partition(".")
    return rest if prefix == OWN_CONFIG else f"encoder.{rest}"


def read_artefact(folder: Path, network_class: type[Network], encoder: str | None = None) -> Artefact:
    """Return the artefact in `folder`, whose network is a `network_class`.

    `encoder` is the location of its frozen encoder if that has moved. Raises `ArtefactError` naming the file that is
    missing or does not fit.
    """
    content = read_header(folder)
    missing = [name for name in REQUIRED if not (folder / name).is_file()]
    if missing:
        raise ArtefactError(str(folder), f"{', '.join(missing)} missing; save the evaluator again")
    with _damaged(folder, SPLIT):
        split = json.loads((folder / SPLIT).read_text(encoding="utf-8"))
        seen = [split["train"], split["dev"], split.get("items", ()), split.get("contents", ())]
        groups, dev_groups, items, contents = (tuple(map(str, names)) for names in seen)
    with _damaged(folder, LOG):
        log = tuple(_read_lines(folder / LOG))
    with _damaged(folder, ARTIFACT):
        record = TrainingRecord(
            **content["record"], log=log, groups=groups, dev_groups=dev_groups, items=items, contents=contents
        )
    fixtures = _read_fixtures(folder, content.get("fixtures"))
    network = _read_network(folder, network_class)
    if weights_hash(network) != content["weights"]:
        raise ArtefactError(str(folder), f"{WEIGHTS} is not the file that was saved; copy it again")
    return Artefact(
        evaluator=content["evaluator"],
        profile=content["profile"],
        seed=content["seed"],
        aspects=tuple(content["aspects"]),
        settings=read_settings(content["settings"], content.get("version")),
        state=content["state"],
        record=record,
        network=network,
        encoder=_find(folder, content["encoder"], network.config.encoder, encoder),
        embedded=bool((content["encoder"] or {}).get("embedded", True)),
        fixtures=fixtures,
    )


def read_header(folder: Path) -> dict[str, Any]:
    """Return `evaluator.json` of a `folder`, checked for the fields that every artefact has. Raises `ArtefactError`."""
    try:
        content = json.loads((folder / ARTIFACT).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ArtefactError(str(folder), f"{ARTIFACT} cannot be read: {error}") from error
    absent = [name for name in HEADER if not isinstance(content, dict) or name not in content]
    if absent:
        raise ArtefactError(str(folder), f"{ARTIFACT} lacks {', '.join(absent)}; save the evaluator again")
    for name, kinds in HEADER.items():
        _expect(folder, name, content[name], *kinds)
    for aspect in content["aspects"]:
        _expect(folder, "aspects", aspect, str)
    for name, kind in ENCODER.items() if content["encoder"] is not None else ():
        _expect(folder, f"encoder.{name}", content["encoder"].get(name), kind)
    return dict(content)


def _expect(folder: Path, name: str, value: Any, *kinds: type) -> None:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = _WORDS[kinds[0]]
        raise ArtefactError(str(folder), f"{ARTIFACT} says {name}: {value!r}, which is not {wanted}; {_AGAIN}")


@contextmanager
def _damaged(folder: Path, name: str) -> Iterator[None]:
    """Turn errors raised by a file's content into an `ArtefactError`."""
    try:
        yield
    except ScoringError:
        raise
    except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
        raise ArtefactError(str(folder), f"{name} is damaged ({type(error).__name__}: {error}); {_AGAIN}") from error


def _read_fixtures(folder: Path, saved: object) -> tuple[Fixture, ...]:
    """The fixtures; `saved` is their number when they were saved, if it was noted."""
    with _damaged(folder, FIXTURES):
        fixtures = tuple(
            Fixture(_record(row["record"]), None if row["score"] is None else float(row["score"]))
            for row in _read_lines(folder / FIXTURES)
        )
    # Without fixtures a changed score would go unnoticed.
    if isinstance(saved, int) and len(fixtures) != saved:
        result = "is empty" if not fixtures else f"holds {len(fixtures)}"
        raise ArtefactError(str(folder), f"{FIXTURES} {result}, but {saved} fixtures were saved; {_AGAIN}")
    return fixtures


def _read_network(folder: Path, network_class: type[Network]) -> Network:
    from safetensors import SafetensorError

    from scoring.ml.encoders.loading import without_progress_bar, without_report

    try:
        # An invalid configuration fails in whichever part of the network reads it first.
        with without_progress_bar(), without_report(), _damaged(folder, CONFIG):
            given = _read_stored(folder)
            _check_weights(folder, network_class, given)
            network: Network = network_class.from_pretrained(**given, **_LOCAL)
    except (SafetensorError, RuntimeError) as error:
        raise ArtefactError(str(folder), f"its network cannot be read: {error}") from error
    return network.eval()


def _read_stored(folder: Path) -> dict[str, Any]:
    """The arguments of `from_pretrained` that read the network in a `folder`."""
    config = _json_object(folder / CONFIG)
    if OWN_CONFIG not in config:  # of an older version, or without an encoder
        return {"pretrained_model_name_or_path": str(folder)}
    from safetensors.torch import load_file

    from scoring.ml.network import NetworkConfig

    own = config.pop(OWN_CONFIG)
    network = NetworkConfig(encoder=config, network=own["network"], attention=own["attention"], dtype=config["dtype"])
    weights = {_network_name(name): tensor for name, tensor in load_file(folder / WEIGHTS).items()}
    return {"pretrained_model_name_or_path": None, "config": network, "state_dict": weights}


def _check_weights(folder: Path, network_class: type[Network], given: Mapping[str, Any]) -> None:
    """Compare names and sizes of the weights with the configuration before memory is allocated for them: missing
    weights would be initialised at random, and a few bytes of configuration could request all memory."""
    read: Any = network_class.from_pretrained(
        **given, device_map="meta", output_loading_info=True, ignore_mismatched_sizes=True, **_LOCAL
    )
    network, result = read

    def say(names: Iterable[str], what: str) -> list[str]:
        if "state_dict" in given:
            names = (_stored_name(name, network.encoder.base_model_prefix) for name in names)
        return [f"{name} {what}" for name in sorted(names)]

    wrong = [
        *say(result["missing_keys"], "is missing"),
        *say(result["unexpected_keys"], "is not known"),
        *say((name for name, *_ in result["mismatched_keys"]), "has another size"),
    ]
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise ArtefactError(str(folder), f"{WEIGHTS} does not fit {CONFIG}: {', '.join(wrong[:3])}{more}; {_AGAIN}")


def _find(
    folder: Path, said: Mapping[str, Any] | None, config: Any, elsewhere: str | None = None
) -> EncoderSource | None:
    if said is None:
        return None
    if said["embedded"]:
        if not isinstance(config, dict):
            raise ArtefactError(str(folder), f"{CONFIG} says nothing of the encoder that was trained; {_AGAIN}")
        path = folder / TOKENIZER_CONFIG
        with _damaged(folder, TOKENIZER_CONFIG):
            tokenizer = _json_object(path) if path.is_file() else {}
        if said.get("tokenizer", _tokenizer_hash(folder)) != _tokenizer_hash(folder):
            raise ArtefactError(str(folder), "its tokenizer's files are not those that were saved; copy them again")
        source = EncoderSource(str(said["name"]), folder, str(said["weights"]), config, tokenizer)
    else:
        brought = next((path for path in _brought_along(folder) if (path / CONFIG).is_file()), None)
        if brought is not None and elsewhere is None:
            source = replace(find_encoder(str(brought)), name=str(said["name"]))
        else:
            source = _named(folder, elsewhere or str(said["name"]))
        if source.weights != said["weights"]:
            raise ArtefactError(
                str(folder),
                f"was trained on the encoder {said['name']} with weights {said['weights'][:8]}, but here they are "
                f"{source.weights[:8]}: put that version back or train again",
            )
    # Another maximum length would truncate texts silently. Older artefacts do not note it.
    length = said.get("max_length")
    if length is not None and source.max_length() != length:
        raise ArtefactError(
            str(folder),
            f"its encoder read {length} tokens when it was saved, but {source.max_length()} by {source.folder}: "
            f"its {TOKENIZER_CONFIG} is missing or another one; copy it again",
        )
    return source


def _brought_along(folder: Path) -> tuple[Path, ...]:
    """Where the frozen encoder of an artefact may lie: in it, or next to it if it is a fold."""
    inside = folder / ENCODER_FOLDER
    return (inside, folder.parent / ENCODER_FOLDER) if folder.name.startswith("fold-") else (inside,)


def _named(folder: Path, name: str) -> EncoderSource:
    """Find a frozen encoder by its saved name; only the artefact may have been copied to another machine."""
    if Path(name).is_absolute() and not Path(name).is_dir():
        raise ArtefactError(
            str(folder),
            f"needs the encoder in {name}, which does not exist: restore that folder, or name its location: "
            'load(folder, encoder="PATH")',
        )
    return find_encoder(name)


def _tokenizer_hash(folder: Path) -> str:
    """The hash of the names and bytes of all tokenizer files."""
    there = [folder / name for name in TOKENIZER_FILES if (folder / name).is_file()]
    return text_hash(part for path in there for part in (path.name, file_hash(path)))


def _json_object(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise TypeError(f"it holds {content!r:.20}, not an object")
    return content


def _find_lasting_name(source: EncoderSource, embedded: bool) -> str:
    """The name to save for an encoder: its name if that finds it on any machine, else its folder. An embedded one is
    never looked for, so its folder is not saved."""
    if embedded:
        return source.short_name if Path(source.name).is_absolute() else source.name
    try:
        # A relative folder is found from the current directory only.
        here = Path(source.name).is_dir() and not Path(source.name).is_absolute()
        if not here and find_encoder(source.name).weights == source.weights:
            return source.name
    except ValueError:
        pass
    return str(source.folder.resolve())


def _record(row: Mapping[str, Any]) -> Record:
    lists = {name: tuple(row[name]) for name in ("references", "context") if isinstance(row[name], list)}
    texts = [row["text"], *lists["references"], *lists["context"], "" if row["source"] is None else row["source"]]
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{text!r:.40} is not a text")
    return Record(**{**row, **lists})


def _read_lines(path: Path) -> list[dict[str, Any]]:
    # `splitlines` would also split at U+2028, which JSON leaves unescaped.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _dumped(value: object, indent: int | None = None) -> str:
    """JSON as readable text; escaped if a text holds half of a surrogate pair, which is not valid UTF-8."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="replace")
