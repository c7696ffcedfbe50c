"""Read runs and their logs, with permission checks."""

from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.accounts.roles import Need
from evalapp.accounts.selectors import get_project

from .errors import NotThere
from .models import Run, RunLog

#: As a state in lists of runs: failed because of what was asked or uploaded.
STOPPED = "stopped"


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
    """Return runs by the state that people read (`Run.state_label`) and by kind; empty for all."""
    runs = Run.objects.filter(project=project, **({"kind": kind} if kind else {})).select_related("created_by")
    stopped = Q(state=Run.State.FAILED, cause=Run.Cause.INPUT)
    if state == STOPPED:
        return runs.filter(stopped)
    return runs.filter(~stopped, state=state) if state else runs


def list_deletions(user: Any) -> QuerySet[Run]:
    """Return the unfinished deletions of projects that the user requested. Finished ones have no run."""
    return Run.objects.filter(created_by=user, kind="delete").order_by("pk")


def log_tail(run: Run, lines: int | None = 20) -> list[RunLog]:
    """Return the last lines of the log, or all (None), oldest first."""
    newest = RunLog.objects.filter(run=run).order_by("-id")
    return list(newest[:lines] if lines is not None else newest)[::-1]
