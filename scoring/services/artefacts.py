"""Receive an uploaded evaluator: store the files and queue their check. Only file names are checked here; the worker
checks the content."""

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
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

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
#: Uploaded files are removed this long after the end of their run, which may be retried until then.
KEEP_INCOMING = timedelta(days=14)
FOLD = re.compile(r"fold-(0|[1-9][0-9]?)")
CHUNK = 1 << 20


def incoming_folder(name: str) -> Path:
    """Return the folder of an upload that waits for its check."""
    return Path(settings.ARTEFACTS_DIR) / "incoming" / name


def too_large() -> str:
    text = _("An evaluator may have at most %(n)s MB. An administrator can raise MAX_UPLOAD_MB.")
    return text % {"n": f"{settings.MAX_UPLOAD_BYTES // 1_000_000:,}"}


def receive_artefact(*, project: Project, user: Any, name: str, files: Mapping[str, Sequence[Any]]) -> Run:
    """Store the files by field (`files`: the folder itself, `fold-N`: the model of a fold) and queue their check."""
    check_room()
    # Checked before the slow upload; the name is chosen afterwards.
    free_slug(project, "uploaded", name)
    uploads = list(_locate_files(files))
    folder = incoming_folder(uuid.uuid4().hex)
    left = settings.MAX_UPLOAD_BYTES
    try:
        for place, file in uploads:
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
                title=gettext_noop("Check uploaded evaluator %(name)s") % {"name": slug},
            )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def give_up_evaluator(run: Run) -> None:
    """Clean up after a run without success: remove the folder of its evaluator, and the files of a cancelled upload.

    The files of a failed upload stay for a retry.
    """
    if not Evaluator.objects.filter(run=run, kind=Evaluator.Kind.TRAINED).exists():
        folder = Path(settings.ARTEFACTS_DIR) / get_run_folder(run)
        # A killed worker may have left a partial folder next to it.
        for path in (folder, *folder.parent.glob(f".{folder.name}.*")):
            shutil.rmtree(path, ignore_errors=True)
    if run.state == Run.State.CANCELLED and (name := run.params.get("incoming")):
        shutil.rmtree(incoming_folder(name), ignore_errors=True)


def is_spent(run: Run) -> bool:
    """Whether the uploaded files have been removed, so that the run cannot be retried."""
    name = run.params.get("incoming")
    return not name or not incoming_folder(name).is_dir()


def sweep_incoming() -> None:
    """Remove old uploads without a run that is active or may be retried. Recent uploads may not have a run yet."""
    root = incoming_folder("")
    since = timezone.now() - KEEP_INCOMING
    old = {path.name: path for path in root.iterdir() if _modified_at(path) < since} if root.is_dir() else {}
    needed = Run.objects.filter(kind=KIND, params__incoming__in=list(old)).exclude(finished_at__lt=since)
    for name in set(old) - set(needed.values_list("params__incoming", flat=True)):
        shutil.rmtree(old[name], ignore_errors=True)


def _modified_at(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except FileNotFoundError:
        return timezone.now()  # another process has removed it


def _locate_files(files: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the place in the folder of each file. Raises `BadInput` for misplaced and missing files.

    The worker would find them too, but only after all waiting trainings.
    """
    from scoring.ml.artefact import ALLOWED

    faults: list[Fault] = []
    seen: set[str] = set()
    for field, given in files.items():
        fold = FOLD.fullmatch(field)
        if field != ROOT and (fold is None or int(fold[1]) >= MOST_FOLDS):
            text = _("%(field)s is not a part of an evaluator: use %(root)s, or fold-0, fold-1, ...")
            faults.append(Fault(text % {"field": field, "root": ROOT}, field=field))
            continue
        for file in given:
            name = Path(file.name or "").name
            place = name if field == ROOT else f"{field}/{name}"
            if name not in ALLOWED:
                text = _("%(name)s is not a file of an evaluator. Allowed: %(names)s.")
                faults.append(Fault(text % {"name": name[:100], "names": ", ".join(ALLOWED)}, field=field))
            elif place in seen:
                faults.append(Fault(_("%(name)s was sent twice.") % {"name": place}, field=field))
            else:
                seen.add(place)
                yield place, file
    faults += _find_missing(seen)
    if faults:
        text = _("Nothing was stored. %(faults)s") % {"faults": " ".join(fault.message for fault in faults[:3])}
        raise BadInput(text, faults=faults)
    if not seen:
        raise BadInput(_("The form has no file. Choose all files of the evaluator's folder."))


def _find_missing(seen: Collection[str]) -> Iterator[Fault]:
    """Yield a fault for the required files that are missing in each folder, unless there are no files at all."""
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
        if field == ROOT:
            text = _("Missing: %(names)s.")
        elif missing == names:
            text = _("All files of %(field)s are missing.")
        else:
            text = _("Missing in %(field)s: %(names)s.")
        text %= {"names": ", ".join(missing), "field": field}
        if set(seen) == {ARTIFACT}:
            text += " " + _("A cross-fitted evaluator also has the files of its folds: fold-0, fold-1, ...")
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
