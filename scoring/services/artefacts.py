"""Taking in a trained evaluator that somebody brings: keep the files, queue their check. Only names are looked at here;
what is in the files is the worker's to judge, never the web process's."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings

from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault, TooLarge
from evalapp.common.models import Run
from evalapp.common.queue import enqueue_run

from .training import MOST_FOLDS, free_slug

ROOT = "files"
FOLD = re.compile(r"fold-(0|[1-9][0-9]?)")
CHUNK = 1 << 20


def incoming_folder(name: str) -> Path:
    """Where the files of an upload wait for their check."""
    return Path(settings.ARTEFACTS_DIR) / "incoming" / name


def too_large() -> str:
    return (
        f"An evaluator may have at most {settings.MAX_UPLOAD_BYTES // 1_000_000:,} MB. Whoever runs this installation "
        "can raise MAX_UPLOAD_MB."
    )


def receive_artefact(*, project: Project, user: Any, name: str, files: Mapping[str, Sequence[Any]]) -> Run:
    """Keep the files by field: `files` for the folder itself, `fold-N` for the model of a fold. Queue their check."""
    slug = free_slug(project, "uploaded", name)
    wanted = list(_places(files))
    folder = incoming_folder(uuid.uuid4().hex)
    left = settings.MAX_UPLOAD_BYTES
    try:
        for place, file in wanted:
            target = folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            left -= _write(file, target, left)
        return enqueue_run(
            kind="artefact",
            project=project,
            user=user,
            params={"incoming": folder.name, "slug": slug},
            title=f"Take in {slug}",
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _places(files: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, Any]]:
    """The place of every file in the folder. Whatever has no place there is a fault."""
    from scoring.ml.artefact import ALLOWED

    faults, seen = [], set()
    for field, given in files.items():
        fold = FOLD.fullmatch(field)
        if field != ROOT and (fold is None or int(fold[1]) >= MOST_FOLDS):
            faults.append(Fault(f"{field} is no part of an evaluator: use {ROOT}, or fold-0, fold-1, ...", field=field))
            continue
        for file in given:
            name = Path(file.name or "").name
            place = name if field == ROOT else f"{field}/{name}"
            if name not in ALLOWED:
                known = ", ".join(ALLOWED)
                faults.append(Fault(f"{name[:100]} is no file of an evaluator. There are: {known}.", field=field))
            elif place in seen:
                faults.append(Fault(f"{place} was sent twice.", field=field))
            else:
                seen.add(place)
                yield place, file
    if faults:
        raise BadInput("Nothing was taken in. " + " ".join(f.message for f in faults[:3]), faults=faults)
    if not seen:
        raise BadInput("The form has no file. Choose all files of the evaluator's folder.")


def _write(file: Any, target: Path, limit: int) -> int:
    size = 0
    with target.open("xb") as content:
        for chunk in file.chunks(CHUNK):
            size += len(chunk)
            if size > limit:
                raise TooLarge(too_large())
            content.write(chunk)
    return size
