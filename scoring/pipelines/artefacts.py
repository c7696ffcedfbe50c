"""Check an uploaded evaluator before it is visible: names, sizes, configuration, safetensors, fixtures. The
stored folder is written from the loaded evaluator, so it contains nothing of the upload that was not parsed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from evalapp.common.errors import BadInput, Fault
from evalapp.common.runner import RunContext

from ..models import Evaluator
from ..services.artefacts import FOLD, incoming_folder, sweep_incoming
from .publishing import list_members, publish

#: The keys of config.json without an encoder, or in the form of older versions.
CONFIG_KEYS = frozenset(
    {
        "architectures", "attention", "dtype", "encoder", "model_type", "network", "torch_dtype",
        "transformers_version", "use_cache",
    }
)  # fmt: skip
#: Keys that would make a loader run code from the upload.
FOREIGN = ("auto_map", "custom_pipelines", "trust_remote_code")
#: Larger than any supported network; otherwise a small file could request all memory.
MAX_SIZE, MAX_WORDS, MAX_LAYERS = 20_000, 2_000_000, 200


def run(context: RunContext, *, incoming: str, slug: str) -> dict[str, Any]:
    """The job `artefact`."""
    from scoring.ml import ScoringError

    row = Evaluator.objects.filter(run=context.run, kind=Evaluator.Kind.TRAINED).first()
    folder = incoming_folder(incoming)
    if row is None:
        if not folder.is_dir():
            raise BadInput(_("The uploaded files have been removed. Upload them again."))
        sweep_incoming()
        context.progress(0, None, "files", "checking")
        try:
            check_folder(folder)
            context.progress(0, None, "texts", "scoring the fixtures")
            evaluator = _load(folder)
            context.make_sure()
            row = publish(context.run, slug, evaluator)
        except (ScoringError, BadInput) as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, BadInput):
                raise
            text = str(error).replace(f"{folder}/", "").replace(str(folder), _("The upload"))
            raise BadInput(text) from error
    shutil.rmtree(folder, ignore_errors=True)
    context.log(f"Signature: {row.signature}")
    url = f"/projects/{context.project.slug}/evaluators/{row.slug}/"
    return {"evaluator": row.slug, "signature": row.signature, "url": url}


def check_folder(folder: Path) -> None:
    """Check the files without building the network. Raises `BadInput` with all faults."""
    faults = list(_find_faults(folder))
    if faults:
        text = _("The evaluator was rejected. %(faults)s")
        raise BadInput(text % {"faults": " ".join(str(fault) for fault in faults[:3])}, faults=faults)


def _find_faults(folder: Path) -> Iterator[Fault]:
    from scoring.ml.artefact import ALLOWED, ARTIFACT, REQUIRED, find_size_limit

    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder).as_posix()
        inside = path.parent == folder or (path.parent.parent == folder and FOLD.fullmatch(path.parent.name))
        if path.is_symlink() or (path.is_file() and (path.name not in ALLOWED or not inside)):
            yield Fault(_("is not a file of an evaluator"), file=place)
        elif (limit := find_size_limit(path.name)) is not None and path.is_file() and path.stat().st_size > limit:
            yield Fault(_("is larger than %(n)d MB") % {"n": limit // 1_000_000}, file=place)
    header = _read_object(folder / ARTIFACT)
    if header is None:
        yield Fault(_("is missing or not a JSON object"), file=ARTIFACT)
        return
    folds = header.get("folds")
    if folds is None:
        yield from _model_faults(folder, "", REQUIRED)
        return
    folders = sorted(path.name for path in folder.iterdir() if path.is_dir())
    if not isinstance(folds, int) or folders != sorted(f"fold-{n}" for n in range(folds)):
        text = _("declares %(folds)s folds; the upload has: %(folders)s")
        yield Fault(text % {"folds": folds, "folders": ", ".join(folders) or _("none")}, file=ARTIFACT)
        return
    for name in folders:
        yield from _model_faults(folder / name, f"{name}/", REQUIRED)


def _model_faults(folder: Path, prefix: str, required: tuple[str, ...]) -> Iterator[Fault]:
    missing = [name for name in required if not (folder / name).is_file()]
    if missing:
        yield Fault(_("missing: %(names)s") % {"names": ", ".join(missing)}, file=prefix)
        return
    yield from _header_faults(_read_object(folder / "evaluator.json"), f"{prefix}evaluator.json")
    yield from _config_faults(_read_object(folder / "config.json"), f"{prefix}config.json")
    yield from _weight_faults(folder / "model.safetensors", f"{prefix}model.safetensors")


def _read_object(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _header_faults(header: Mapping[str, Any] | None, place: str) -> Iterator[Fault]:
    from scoring.ml import catalogue
    from scoring.ml.artefact import ENCODER, HEADER
    from scoring.ml.encoders.source import DEFAULT_ENCODER

    if header is None:
        yield Fault(_("is not a JSON object"), file=place)
        return
    for name, kinds in HEADER.items():
        if not isinstance(header.get(name), kinds):
            yield Fault(_("has no valid “%(name)s”") % {"name": name}, file=place, field=name)
            return
    learners = sorted(entry.name for entry in catalogue() if entry.learns)
    if header["evaluator"] not in learners:
        text = _("names the evaluator %(name)r; this installation has %(known)s")
        text %= {"name": header["evaluator"], "known": ", ".join(learners)}
        yield Fault(text, file=place, field="evaluator")
    encoder = header["encoder"]
    if encoder is None:
        return
    if any(not isinstance(encoder.get(name), kind) for name, kind in ENCODER.items()):
        yield Fault(_("has no valid name, weights or embedded in its encoder"), file=place, field="encoder")
    elif not encoder["embedded"] and encoder["name"] not in (DEFAULT_ENCODER, *settings.ENCODERS):
        known = ", ".join([DEFAULT_ENCODER, *settings.ENCODERS])
        text = _("uses the encoder %(name)r; this installation has %(known)s (setting ENCODERS)")
        text %= {"name": encoder["name"], "known": known}
        yield Fault(text, file=place, field="encoder")


def _config_faults(config: Mapping[str, Any] | None, place: str) -> Iterator[Fault]:
    from scoring.ml.artefact import OWN_CONFIG
    from scoring.ml.network import ARCHITECTURES

    if config is None:
        yield Fault(_("is not a JSON object"), file=place)
        return
    own = config.get(OWN_CONFIG)
    if isinstance(own, dict):
        # The encoder's own configuration with the network's in it; of the keys only foreign code is refused.
        encoder: Any = {key: value for key, value in config.items() if key != OWN_CONFIG}
        unknown = sorted(set(own) - {"network", "attention"})
    else:
        encoder, unknown = config.get("encoder"), sorted(set(config) - CONFIG_KEYS)
        if config.get("model_type") != "evalapp":
            yield Fault(_("has the model type %(type)r, not evalapp") % {"type": config.get("model_type")}, file=place)
    if unknown:
        yield Fault(_("has unknown entries: %(names)s") % {"names": ", ".join(unknown)[:200]}, file=place)
    for name, value in _list_numbers(config):
        limit = MAX_LAYERS if "layers" in name else MAX_WORDS if "vocab" in name or "position" in name else MAX_SIZE
        if abs(value) > limit and "seed" not in name:
            text = _("has %(name)s = %(value)s; the maximum is %(limit)s")
            text %= {"name": name, "value": f"{value:,}", "limit": f"{limit:,}"}
            yield Fault(text, file=place, field=name)
            return
    if encoder is None:
        return
    if not isinstance(encoder, dict) or encoder.get("model_type") not in ARCHITECTURES:
        kind = encoder.get("model_type") if isinstance(encoder, dict) else encoder
        text = _("has an encoder of the type %(type)r; allowed: %(types)s")
        yield Fault(text % {"type": kind, "types": ", ".join(ARCHITECTURES)}, file=place)
    elif foreign := [name for name in FOREIGN if name in encoder]:
        text = _("has the entry %(name)s in its encoder: code of an upload is never run")
        yield Fault(text % {"name": foreign[0]}, file=place)


def _list_numbers(value: Any, name: str = "") -> Iterator[tuple[str, int]]:
    """Yield every integer at any depth with its key."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _list_numbers(part, str(key))
    elif isinstance(value, list):
        for part in value:
            yield from _list_numbers(part, name)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield name, value


def _weight_faults(path: Path, place: str) -> Iterator[Fault]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            empty = not list(file.keys())
    except (SafetensorError, OSError, ValueError) as error:
        yield Fault(_("is not a safetensors file: %(error)s") % {"error": error}, file=place)
        return
    if empty:
        yield Fault(_("contains no weights"), file=place)


def _load(folder: Path) -> Any:
    """Load the evaluator, which scores its fixtures. Each model needs some, to prove that it scores as before."""
    from scoring.ml import ArtefactError, ScoringError, load

    try:
        evaluator: Any = load(folder)
        # Saving writes a model card, which fails if the record is incomplete.
        for member in list_members(evaluator):
            _ = member.card
    except ScoringError:
        raise
    except (TypeError, AttributeError, ValueError, LookupError, ArithmeticError, RuntimeError, AssertionError) as error:
        # Raised by whatever code first uses a configuration, settings or vocabulary that do not match.
        raise ArtefactError(str(folder), f"is damaged ({error!r}); save the evaluator again") from error
    if any(not member.artefact.fixtures for member in list_members(evaluator)):
        raise ArtefactError(str(folder), "fixtures.jsonl is empty; save the evaluator again")
    return evaluator
