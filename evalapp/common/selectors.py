"""Read runs and their logs, with permission checks."""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.accounts.roles import Need
from evalapp.accounts.selectors import get_project

from .errors import NotThere
from .models import Run, RunLog


def find_run(*, user: Any, pk: int, need: Need = "read", slug: str | None = None) -> Run:
    """Return a run of a project for which the user has the permission `need`. With `slug`, it must be that project."""
    run = Run.objects.select_related("project", "created_by").filter(pk=pk).first()
    if run is None or (slug is not None and run.project.slug != slug):
        raise NotThere(_("Run not found."))
    try:
        run.project = get_project(user=user, slug=run.project.slug, need=need)
    except NotThere as error:
        raise NotThere(_("Run not found.")) from error
    return run


def list_runs(project: Project, *, state: str = "", kind: str = "") -> QuerySet[Run]:
    wanted = {name: value for name, value in (("state", state), ("kind", kind)) if value}
    return Run.objects.filter(project=project, **wanted).select_related("created_by")


def list_deletions(user: Any) -> QuerySet[Run]:
    """Return the unfinished deletions of projects that the user requested. Finished ones have no run."""
    return Run.objects.filter(created_by=user, kind="delete").order_by("pk")


def log_tail(run: Run, lines: int | None = 20) -> list[RunLog]:
    """Return the last lines of the log, or all (None), oldest first."""
    newest = RunLog.objects.filter(run=run).order_by("-id")
    return list(newest[:lines] if lines is not None else newest)[::-1]
