"""Checking an uploaded evaluator before anybody sees it: names, sizes, configuration, safetensors, fixtures. What is
stored is written anew from what was read, so that no byte of the upload stays that was not understood."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from evalapp.common.errors import BadInput, Fault
from evalapp.common.runner import RunContext

from ..models import Evaluator
from ..services.artefacts import FOLD, incoming_folder, sweep_incoming
from .publishing import members_of, publish

#: Text files are small; only weights and tokenizers are large.
MOST_BYTES = {
    "tokenizer.json": 200_000_000,
    "vocab.json": 50_000_000,
    "merges.txt": 50_000_000,
    "vocab.txt": 50_000_000,
    "split.json": 200_000_000,
}
MOST_TEXT = 20_000_000
BINARY = ("model.safetensors", "spm.model", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
#: What `save_pretrained` of transformers and ours write into config.json.
CONFIG_KEYS = frozenset(
    {
        "architectures", "attention", "dtype", "encoder", "model_type", "network", "torch_dtype",
        "transformers_version", "use_cache",
    }
)  # fmt: skip
#: Names that would make a loader run foreign code.
FOREIGN = ("auto_map", "custom_pipelines", "trust_remote_code")
#: Larger than any network here or any encoder of its kind; a small file must not ask for all the memory there is.
MOST_SIZE, MOST_WORDS, MOST_LAYERS = 20_000, 2_000_000, 200
SHAPES: dict[str, tuple[type, ...]] = {
    "evaluator": (str,), "profile": (str,), "seed": (int,), "aspects": (list,), "settings": (dict,), "state": (dict,),
    "encoder": (dict, type(None)), "weights": (str,), "record": (dict,),
}  # fmt: skip


def run(context: RunContext, *, incoming: str, slug: str) -> dict[str, Any]:
    """The job `artefact`."""
    from scoring.ml import ScoringError

    done = Evaluator.objects.filter(run=context.run, kind=Evaluator.Kind.TRAINED).first()
    folder = incoming_folder(incoming)
    if done is None:
        if not folder.is_dir():
            raise BadInput("The files are gone. Upload them again.")
        sweep_incoming()
        context.progress(0, None, "files", "checking")
        try:
            check_folder(folder)
            context.progress(0, None, "texts", "scoring the fixtures")
            evaluator = _load(folder)
            context.make_sure()
            done = publish(context.run, slug, evaluator)
        except ScoringError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise BadInput(str(error).replace(f"{folder}/", "").replace(str(folder), "The upload")) from error
        except BadInput:
            # A refused upload is of no more use; whoever sent it sends it again.
            shutil.rmtree(folder, ignore_errors=True)
            raise
    shutil.rmtree(folder, ignore_errors=True)
    context.log(f"Signature: {done.signature}")
    url = f"/projects/{context.project.slug}/evaluators/{done.slug}/"
    return {"evaluator": done.slug, "signature": done.signature, "url": url}


def check_folder(folder: Path) -> None:
    """Everything that can be told without building a network. Raises BadInput with all faults found."""
    faults = list(_faults(folder))
    if faults:
        raise BadInput("The evaluator was refused. " + " ".join(str(fault) for fault in faults[:3]), faults=faults)


def _faults(folder: Path) -> Iterator[Fault]:
    from scoring.ml.artefact import ALLOWED, ARTIFACT, REQUIRED

    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder).as_posix()
        inside = path.parent == folder or (path.parent.parent == folder and FOLD.fullmatch(path.parent.name))
        if path.is_symlink() or (path.is_file() and (path.name not in ALLOWED or not inside)):
            yield Fault("is no file of an evaluator", file=place)
        elif path.is_file() and path.name not in BINARY:
            limit = MOST_BYTES.get(path.name, MOST_TEXT)
            if path.stat().st_size > limit:
                yield Fault(f"is larger than {limit // 1_000_000} MB", file=place)
    header = _json(folder / ARTIFACT)
    if header is None:
        yield Fault("is missing or no JSON object", file=ARTIFACT)
        return
    folds = header.get("folds")
    if folds is None:
        yield from _model_faults(folder, "", REQUIRED)
        return
    there = sorted(path.name for path in folder.iterdir() if path.is_dir())
    if not isinstance(folds, int) or there != sorted(f"fold-{n}" for n in range(folds)):
        yield Fault(f"speaks of {folds} folds; there are: {', '.join(there) or 'none'}", file=ARTIFACT)
        return
    for name in there:
        yield from _model_faults(folder / name, f"{name}/", REQUIRED)


def _model_faults(folder: Path, prefix: str, required: tuple[str, ...]) -> Iterator[Fault]:
    missing = [name for name in required if not (folder / name).is_file()]
    if missing:
        yield Fault(f"missing: {', '.join(missing)}", file=prefix)
        return
    yield from _header_faults(_json(folder / "evaluator.json"), f"{prefix}evaluator.json")
    yield from _config_faults(_json(folder / "config.json"), f"{prefix}config.json")
    yield from _weight_faults(folder / "model.safetensors", f"{prefix}model.safetensors")


def _json(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _header_faults(header: Mapping[str, Any] | None, place: str) -> Iterator[Fault]:
    from scoring.ml import catalogue
    from scoring.ml.encoders.source import DEFAULT_ENCODER

    if header is None:
        yield Fault("is no JSON object", file=place)
        return
    for name, kinds in SHAPES.items():
        if not isinstance(header.get(name), kinds):
            yield Fault(f"lacks a fitting “{name}”", file=place, field=name)
            return
    learners = sorted(entry.name for entry in catalogue() if entry.learns)
    if header["evaluator"] not in learners:
        text = f"names the evaluator {header['evaluator']!r}; this installation has {', '.join(learners)}"
        yield Fault(text, file=place, field="evaluator")
    encoder = header["encoder"]
    if encoder is None:
        return
    shapes = {"name": str, "weights": str, "embedded": bool}
    if any(not isinstance(encoder.get(name), kind) for name, kind in shapes.items()):
        yield Fault("lacks name, weights or embedded of its encoder", file=place, field="encoder")
    elif not encoder["embedded"] and encoder["name"] not in (DEFAULT_ENCODER, *settings.ENCODERS):
        known = ", ".join([DEFAULT_ENCODER, *settings.ENCODERS])
        text = f"works on the encoder {encoder['name']!r}; this installation has {known} (setting ENCODERS)"
        yield Fault(text, file=place, field="encoder")


def _config_faults(config: Mapping[str, Any] | None, place: str) -> Iterator[Fault]:
    from scoring.ml.network import ARCHITECTURES

    if config is None:
        yield Fault("is no JSON object", file=place)
        return
    unknown = sorted(set(config) - CONFIG_KEYS)
    if unknown:
        yield Fault(f"has the entries {', '.join(unknown)[:200]}, which no evaluator has", file=place)
    if config.get("model_type") != "evalapp":
        yield Fault(f"is of the kind {config.get('model_type')!r}, not evalapp", file=place)
    for name, value in _numbers(config):
        most = MOST_LAYERS if "layers" in name else MOST_WORDS if "vocab" in name or "position" in name else MOST_SIZE
        if abs(value) > most and "seed" not in name:
            yield Fault(f"says {name} = {value:,}; no evaluator has more than {most:,}", file=place, field=name)
            return
    encoder = config.get("encoder")
    if encoder is None:
        return
    if not isinstance(encoder, dict) or encoder.get("model_type") not in ARCHITECTURES:
        kind = encoder.get("model_type") if isinstance(encoder, dict) else encoder
        yield Fault(f"has an encoder of the kind {kind!r}; allowed are {', '.join(ARCHITECTURES)}", file=place)
    elif foreign := [name for name in FOREIGN if name in encoder]:
        yield Fault(f"has the entry {foreign[0]} in its encoder: foreign code is never run", file=place)


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, int]]:
    """Every whole number at any depth, with the name under which it stands."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _numbers(part, str(key))
    elif isinstance(value, list):
        for part in value:
            yield from _numbers(part, name)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield name, value


def _weight_faults(path: Path, place: str) -> Iterator[Fault]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            empty = not list(file.keys())
    except (SafetensorError, OSError, ValueError) as error:
        yield Fault(f"is no safetensors file: {error}", file=place)
        return
    if empty:
        yield Fault("holds no weights", file=place)


def _load(folder: Path) -> Any:
    """The evaluator, its fixtures scored anew. Each model must have some, else nothing says that it scores as it
    did."""
    from scoring.ml import ArtefactError, ScoringError, load

    try:
        found: Any = load(folder)
        # It is written anew when it is saved: a record that does not hold what a card says is refused before.
        for member in members_of(found):
            _ = member.card
    except ScoringError:
        raise
    except (TypeError, AttributeError, ValueError, LookupError, ArithmeticError, RuntimeError, AssertionError) as error:
        # Of a configuration, settings or vocabulary that do not go together, whoever stumbles over them first.
        raise ArtefactError(str(folder), f"is damaged ({error!r}); save the evaluator again") from error
    if any(not member.artefact.fixtures for member in members_of(found)):
        raise ArtefactError(str(folder), "fixtures.jsonl is empty; save the evaluator again")
    return found
