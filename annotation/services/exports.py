"""Requests, lists, downloads and deletes exports. A pipeline writes them."""

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.exporters.options import ExportOptions
from evalapp.accounts.models import Project, User
from evalapp.common import audit
from evalapp.common.errors import Conflict, NotThere
from evalapp.common.models import Run
from evalapp.common.params import read_params
from evalapp.common.queue import enqueue_run
from evalapp.common.selectors import list_runs

#: A temporary export whose program did not delete it is deleted after this time.
KEEP_TEMPORARY = timedelta(days=1)


def request_export(*, project: Project, user: User, **params: Any) -> Run:
    """Start a run that writes the project as an interchange folder. The same request joins a run in progress."""
    return start_export(project=project, user=user, options=read_params(ExportOptions, params))


def start_export(*, project: Project, user: User, options: ExportOptions) -> Run:
    """Start the run for options that have been read."""
    title = gettext_noop("Export of %(project)s as %(format)s") % {"project": project.slug, "format": options.format}
    run = enqueue_run(kind="export", project=project, user=user, params=options.as_dict(), title=title)
    audit.record(verb="export.requested", project=project, actor=user, object=f"run {run.pk}", **options.as_dict())
    return run


def list_exports(project: Project) -> QuerySet[Run]:
    """The exports of a project except deleted and temporary ones; order by `-pk`."""
    there = Q(result__isnull=True) | ~Q(result__has_key="deleted")
    return list_runs(project, kind="export").filter(there).exclude(params__temporary=True)


def sweep_temporary_exports() -> None:
    """Delete the files of temporary exports whose program did not."""
    old = Run.objects.filter(kind="export", params__temporary=True, finished_at__lt=timezone.now() - KEEP_TEMPORARY)
    for run in old.exclude(result__has_key="deleted"):
        shutil.rmtree(get_export_folder(run), ignore_errors=True)
        Run.objects.filter(pk=run.pk).update(
            result={**(run.result or {}), "files": [], "archive": None, "deleted": True}
        )


def delete_export(*, run: Run, user: User) -> None:
    """Delete the files of an export. Its run stays in the list of runs and is marked."""
    if run.is_active:
        raise Conflict(_("This export is still being written. Cancel it first."))
    with transaction.atomic():
        run.result = {**(run.result or {}), "files": [], "archive": None, "deleted": True}
        run.save(update_fields=["result"])
        audit.record(verb="export.deleted", project=run.project, actor=user, object=f"run {run.pk}")
        transaction.on_commit(lambda: shutil.rmtree(get_export_folder(run), ignore_errors=True))


def get_export_folder(run: Run) -> Path:
    return settings.EXPORTS_DIR / str(run.pk)


def get_draft_folder(run: Run) -> Path:
    """The folder that the worker of the current claim writes to; it becomes `get_export_folder` when complete."""
    return settings.EXPORTS_DIR / f"{run.pk}-{run.claim:x}"


def remove_drafts(pk: int) -> None:
    """Remove unfinished folders of run `pk`, of any claim."""
    for draft in settings.EXPORTS_DIR.glob(f"{pk}-*"):
        shutil.rmtree(draft, ignore_errors=True)


def give_up_export(run: Run) -> None:
    """Clean up after an export whose pipeline ended without reporting."""
    shutil.rmtree(get_export_folder(run), ignore_errors=True)
    remove_drafts(run.pk)


def get_exported_file(*, run: Run, name: str) -> Path:
    """A file of a finished export. `name` must be one that the run has written, so no path can be made up."""
    known = [file["name"] for file in (run.result or {}).get("files", [])] + [(run.result or {}).get("archive")]
    path = get_export_folder(run) / name
    if name not in known or not path.is_file():
        raise NotThere(_("This export has no such file. It may have been deleted; export again."))
    return path
