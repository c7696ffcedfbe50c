"""Reading runs: one with its permission, a project's list, and what a page or program is told about one."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.accounts.roles import Need
from evalapp.accounts.selectors import get_project

from .errors import NotThere
from .models import Run, RunLog


def find_run(*, user: Any, pk: int, need: Need = "read", slug: str | None = None) -> Run:
    """The run if the user may `need` its project, and if it belongs to `slug` where one is given."""
    run = Run.objects.select_related("project", "created_by").filter(pk=pk).first()
    if run is None or (slug is not None and run.project.slug != slug):
        raise NotThere(_("Run not found."))
    try:
        run.project = get_project(user=user, slug=run.project.slug, need=need)
    except NotThere as error:
        raise NotThere(_("Run not found.")) from error
    return run


def runs_of(project: Project, *, state: str = "", kind: str = "") -> QuerySet[Run]:
    found = Run.objects.filter(project=project).select_related("created_by")
    if state:
        found = found.filter(state=state)
    if kind:
        found = found.filter(kind=kind)
    return found


def deletions_of(user: Any) -> QuerySet[Run]:
    """Deletions of projects that this person asked for, under way or given up; one that is through has left no run.
    Nobody sees the projects themselves any more."""
    return Run.objects.filter(created_by=user, kind="delete").order_by("pk")


def log_tail(run: Run, lines: int | None = 20) -> list[RunLog]:
    """The last lines, oldest first; all of them for None."""
    newest = RunLog.objects.filter(run=run).order_by("-id")
    return list(newest[:lines] if lines is not None else newest)[::-1]
