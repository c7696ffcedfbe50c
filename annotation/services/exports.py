"""Exports as people handle them: asked for, found again, downloaded. Writing them is a pipeline."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from annotation.exporters.wishes import Wishes
from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import Conflict, NotThere
from evalapp.common.models import Run
from evalapp.common.params import read_params
from evalapp.common.queue import enqueue_run
from evalapp.common.selectors import runs_of


def request_export(*, project: Project, user: Any, **params: Any) -> Run:
    """A run that writes the project as an interchange folder; the same request joins the one under way."""
    return start_export(project=project, user=user, wishes=read_params(Wishes, params))


def start_export(*, project: Project, user: Any, wishes: Wishes) -> Run:
    """The same as a program asks for it."""
    title = f"Export of {project.slug} as {wishes.format}"
    run = enqueue_run(kind="export", project=project, user=user, params=wishes.as_dict(), title=title)
    audit.record(verb="export.requested", project=project, actor=user, object=f"run {run.pk}", **wishes.as_dict())
    return run


def list_exports(project: Project) -> QuerySet[Run]:
    """The exports of a project but for deleted ones; order by `-pk`."""
    there = Q(result__isnull=True) | ~Q(result__has_key="deleted")
    return runs_of(project, kind="export").filter(there)


def delete_export(*, run: Run, user: Any) -> None:
    """The files go; the run stays among the runs and says so."""
    if run.is_active:
        raise Conflict("This export is still being written. Cancel it first.")
    with transaction.atomic():
        run.result = {**(run.result or {}), "files": [], "archive": None, "deleted": True}
        run.save(update_fields=["result"])
        audit.record(verb="export.deleted", project=run.project, actor=user, object=f"run {run.pk}")
        transaction.on_commit(lambda: shutil.rmtree(folder_of(run), ignore_errors=True))


def folder_of(run: Run) -> Path:
    return settings.EXPORTS_DIR / str(run.pk)


def draft_of(run: Run) -> Path:
    """Where the worker that has claimed the run writes; `folder_of` is what it leaves when all is there."""
    return settings.EXPORTS_DIR / f"{run.pk}-{run.claim:x}"


def remove_drafts(pk: int) -> None:
    """Of run `pk`, whoever began them."""
    for draft in settings.EXPORTS_DIR.glob(f"{pk}-*"):
        shutil.rmtree(draft, ignore_errors=True)


def give_up_export(run: Run) -> None:
    """The export ended without a word from its pipeline: what it had written is half of it."""
    shutil.rmtree(folder_of(run), ignore_errors=True)
    remove_drafts(run.pk)


def exported_file(*, run: Run, name: str) -> Path:
    """A file of a finished export. `name` must be one the run itself wrote, so no path can be made up."""
    known = [file["name"] for file in (run.result or {}).get("files", [])] + [(run.result or {}).get("archive")]
    path = folder_of(run) / name
    if name not in known or not path.is_file():
        raise NotThere("This export has no such file (any more). Export again.")
    return path
