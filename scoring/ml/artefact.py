"""The folder of a trained evaluator: written whole, read with every check, weights as safetensors only.

`evaluator.json` (who it is), `config.json` and `model.safetensors` (the network), the tokenizer's files where the
encoder was trained with it, `card.md`, `train_log.jsonl`, `split.json` (the groups it learned from) and
`fixtures.jsonl` (ten inputs with their scores, checked when it is loaded).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scoring.ml.base import ARTIFACT
from scoring.ml.encoders.source import EncoderSource, find_encoder
from scoring.ml.errors import ArtefactError
from scoring.ml.signature import VERSION
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
#: Every name a folder may hold; anything else is refused when one is uploaded.
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spm.model",
    "sentencepiece.bpe.model",
)
ALLOWED = (*REQUIRED, *TOKENIZER_FILES)
N_FIXTURES = 10
FIXTURE_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Fixture:
    """An input with the score it had when the evaluator was saved; None is undefined."""

    record: Record
    score: float | None


@dataclass(frozen=True)
class Artefact:
    """What a training made. `settings` are all its options; `state` is what the evaluator itself needs to keep
    (label order, thresholds, chosen references), plain JSON values.

    `encoder` is the encoder that the network was built from; `embedded` says that its weights were trained and stand
    in the network; otherwise it is frozen and found by name again, its weights' hash must then be the same.
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
    """sha256 over names, shapes, number formats and bytes of all weights, in the order of their names."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        plain = tensor.detach().cpu().contiguous()
        digest.update(f"{name}:{tuple(plain.shape)}:{plain.dtype};".encode())
        digest.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def write_artefact(artefact: Artefact, folder: Path, *, signature: str, card: str) -> None:
    """Fill `folder`, which exists; the caller sees to it that a folder is whole or absent."""
    from scoring.ml.encoders.loading import without_progress_bar

    with without_progress_bar():
        artefact.network.save_pretrained(str(folder))
    source = artefact.encoder
    if source is not None and artefact.embedded:
        for name in TOKENIZER_FILES:
            if (source.folder / name).is_file():
                (folder / name).write_bytes((source.folder / name).read_bytes())
    content = {
        "evaluator": artefact.evaluator,
        "trained": True,
        "profile": artefact.profile,
        "seed": artefact.seed,
        "aspects": list(artefact.aspects),
        "settings": dict(artefact.settings),
        "state": dict(artefact.state),
        "encoder": None
        if source is None
        else {"name": _portable(source), "weights": source.weights, "embedded": artefact.embedded},
        "weights": weights_hash(artefact.network),
        "record": artefact.record.as_dict(),
        "signature": signature,
        "version": VERSION,
    }
    _write(folder / ARTIFACT, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    _write(folder / CARD, card)
    _write(folder / LOG, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in artefact.record.log))
    record = artefact.record
    split = {"train": list(record.groups), "dev": list(record.dev_groups), "items": list(record.items)}
    _write(folder / SPLIT, json.dumps(split, indent=1, ensure_ascii=False) + "\n")
    rows = [{"record": asdict(fixture.record), "score": fixture.score} for fixture in artefact.fixtures]
    # Escaped, for a text may hold half a surrogate pair, which is no UTF-8.
    _write(folder / FIXTURES, "".join(json.dumps(row) + "\n" for row in rows))


def read_artefact(folder: Path, network_class: type[Network]) -> Artefact:
    """The artefact in a folder. Raises `ArtefactError` naming the file that is missing or does not fit."""
    content = read_header(folder)
    missing = [name for name in REQUIRED if not (folder / name).is_file()]
    if missing:
        raise ArtefactError(str(folder), f"{', '.join(missing)} missing; save the evaluator again")
    try:
        split = json.loads((folder / SPLIT).read_text(encoding="utf-8"))
        log = tuple(_read_lines(folder / LOG))
        fixtures = tuple(
            Fixture(_record(row["record"]), None if row["score"] is None else float(row["score"]))
            for row in _read_lines(folder / FIXTURES)
        )
        record = TrainingRecord(
            **content["record"], log=log, groups=tuple(split["train"]), dev_groups=tuple(split["dev"]),
            items=tuple(split.get("items", ())),
        )  # fmt: skip
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise ArtefactError(str(folder), f"is damaged ({error!r}); save the evaluator again") from error
    network = _read_network(folder, network_class)
    if weights_hash(network) != content["weights"]:
        raise ArtefactError(str(folder), f"{WEIGHTS} is not the file that was saved; copy it again")
    return Artefact(
        evaluator=str(content["evaluator"]),
        profile=str(content["profile"]),
        seed=int(content["seed"]),
        aspects=tuple(content["aspects"]),
        settings=dict(content["settings"]),
        state=dict(content["state"]),
        record=record,
        network=network,
        encoder=_find(folder, content["encoder"], dict(network.config.encoder or {})),
        embedded=bool((content["encoder"] or {}).get("embedded", True)),
        fixtures=fixtures,
    )


def read_header(folder: Path) -> dict[str, Any]:
    """`evaluator.json`, checked for the fields that every artefact has."""
    try:
        content = json.loads((folder / ARTIFACT).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ArtefactError(str(folder), f"{ARTIFACT} cannot be read: {error}") from error
    fields = ("evaluator", "profile", "seed", "aspects", "settings", "state", "encoder", "weights", "record")
    absent = [name for name in fields if not isinstance(content, dict) or name not in content]
    if absent:
        raise ArtefactError(str(folder), f"{ARTIFACT} lacks {', '.join(absent)}; save the evaluator again")
    return dict(content)


def _read_network(folder: Path, network_class: type[Network]) -> Network:
    from safetensors import SafetensorError

    from scoring.ml.encoders.loading import without_progress_bar

    try:
        with without_progress_bar():
            network: Network = network_class.from_pretrained(
                str(folder), local_files_only=True, use_safetensors=True, trust_remote_code=False
            )
    except (OSError, SafetensorError, RuntimeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ArtefactError(str(folder), f"its network cannot be read: {error}") from error
    return network.eval()


def _find(folder: Path, said: Mapping[str, Any] | None, config: dict[str, Any]) -> EncoderSource | None:
    if said is None:
        return None
    if said["embedded"]:
        path = folder / "tokenizer_config.json"
        tokenizer = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return EncoderSource(str(said["name"]), folder, str(said["weights"]), config, tokenizer)
    source = find_encoder(str(said["name"]))
    if source.weights != said["weights"]:
        raise ArtefactError(
            str(folder),
            f"was trained on the encoder {said['name']} with weights {said['weights'][:8]}, but here they are "
            f"{source.weights[:8]}: put that version back or train again",
        )
    return source


def _portable(source: EncoderSource) -> str:
    """How an encoder is found again: by its name where it has one that is known everywhere, else by its folder."""
    try:
        if find_encoder(source.name).weights == source.weights:
            return source.name
    except ValueError:
        pass
    return str(source.folder)


def _record(row: Mapping[str, Any]) -> Record:
    return Record(**{**row, "references": tuple(row["references"]), "context": tuple(row["context"])})


def _read_lines(path: Path) -> list[dict[str, Any]]:
    # Not splitlines: a text may hold other ends of lines, as U+2028, which JSON leaves as they are.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
