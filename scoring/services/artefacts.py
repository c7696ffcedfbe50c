"""Taking in a trained evaluator that somebody brings: keep the files, queue their check. Only names are looked at here;
what is in the files is the worker's to judge, never the web process's."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault, TooLarge
from evalapp.common.models import Run
from evalapp.common.queue import enqueue_run
from evalapp.common.room import check_room

from ..models import Evaluator
from ..selectors.training import get_run_folder
from .training import MOST_FOLDS, free_slug, naming

KIND = "artefact"
ROOT = "files"
#: What was sent is kept so long after the end of its run, which may be tried again until then.
KEEP_INCOMING = timedelta(days=14)
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
    check_room()
    # Refused before anything is written; it is chosen when the files are there, which takes long.
    free_slug(project, "uploaded", name)
    wanted = list(_places(files))
    folder = incoming_folder(uuid.uuid4().hex)
    left = settings.MAX_UPLOAD_BYTES
    try:
        for place, file in wanted:
            target = folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            left -= _write(file, target, left)
        with naming(project):
            slug = free_slug(project, "uploaded", name)
            return enqueue_run(
                kind=KIND,
                project=project,
                user=user,
                params={"incoming": folder.name, "slug": slug},
                title=f"Take in {slug}",
            )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def give_up_evaluator(run: Run) -> None:
    """The run ended without an evaluator: what it may have written of one goes, and of a cancelled upload what was
    sent. After a failure that stays, so that the run can be tried again."""
    if not Evaluator.objects.filter(run=run, kind=Evaluator.Kind.TRAINED).exists():
        place = Path(settings.ARTEFACTS_DIR) / get_run_folder(run)
        # Beside it stands what a worker that was killed had begun to write.
        for left in (place, *place.parent.glob(f".{place.name}.*")):
            shutil.rmtree(left, ignore_errors=True)
    if run.state == Run.State.CANCELLED and (sent := run.params.get("incoming")):
        shutil.rmtree(incoming_folder(sent), ignore_errors=True)


def is_spent(run: Run) -> bool:
    """Whether what was sent is gone: refused, cancelled or long ago. It must be sent again."""
    sent = run.params.get("incoming")
    return not sent or not incoming_folder(sent).is_dir()


def sweep_incoming() -> None:
    """Remove what was sent long ago, unless a run has not ended with it or may still be tried again. What is just being
    sent has no run yet."""
    root = incoming_folder("")
    since = timezone.now() - KEEP_INCOMING
    old = {path.name: path for path in root.iterdir() if _changed(path) < since} if root.is_dir() else {}
    kept = Run.objects.filter(kind=KIND, params__incoming__in=list(old)).exclude(finished_at__lt=since)
    for name in set(old) - set(kept.values_list("params__incoming", flat=True)):
        shutil.rmtree(old[name], ignore_errors=True)


def _changed(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except FileNotFoundError:
        return timezone.now()  # somebody else has just removed it


def _places(files: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, Any]]:
    """The place of every file in the folder. Whatever has no place there, and whatever is not among them, is a fault:
    the check in the worker waits behind all trainings."""
    from scoring.ml.artefact import ALLOWED

    faults: list[Fault] = []
    seen: set[str] = set()
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
    faults += _missing(seen)
    if faults:
        raise BadInput("Nothing was taken in. " + " ".join(f.message for f in faults[:3]), faults=faults)
    if not seen:
        raise BadInput("The form has no file. Choose all files of the evaluator's folder.")


def _missing(seen: Collection[str]) -> Iterator[Fault]:
    """What every evaluator has and these files lack; nothing where there is no file of one at all."""
    from scoring.ml.artefact import REQUIRED
    from scoring.ml.base import ARTIFACT

    if not seen:
        return
    folds = [int(place.removeprefix("fold-").partition("/")[0]) for place in seen if "/" in place]
    if folds:
        wanted = {ROOT: [ARTIFACT], **{f"fold-{n}": list(REQUIRED) for n in range(max(2, *(n + 1 for n in folds)))}}
    else:
        wanted = {ROOT: list(REQUIRED)}
    for field, names in wanted.items():
        missing = [name for name in names if (name if field == ROOT else f"{field}/{name}") not in seen]
        if not missing:
            continue
        of = "" if field == ROOT else f" of {field}"
        named = ", ".join(missing) if missing != names or field == ROOT else "All files"
        text = f"{named}{of} {'is' if len(missing) == 1 else 'are'} missing."
        if set(seen) == {ARTIFACT}:
            text += " Of a cross-fitted evaluator the files of its folds belong to it, too: fold-0, fold-1, ..."
        yield Fault(text, field=field)


def _write(file: Any, target: Path, limit: int) -> int:
    size = 0
    with target.open("xb") as content:
        for chunk in file.chunks(CHUNK):
            size += len(chunk)
            if size > limit:
                raise TooLarge(too_large())
            content.write(chunk)
    return size
