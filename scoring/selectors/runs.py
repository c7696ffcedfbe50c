"""Runs of a kind in a project: finished ones with their results, and those in progress."""

from django.db.models import QuerySet

from evalapp.accounts.models import Project
from evalapp.common.forms import read_number
from evalapp.common.models import Run


def list_finished_runs(project: Project, kind: str) -> QuerySet[Run]:
    """Return the runs with a result, newest first."""
    rows = Run.objects.filter(project=project, kind=kind, state=Run.State.SUCCEEDED, result__isnull=False)
    return rows.order_by("-pk")


def list_active_runs(project: Project, kind: str) -> QuerySet[Run]:
    """Return the runs in progress, oldest first."""
    return Run.objects.filter(project=project, kind=kind, state__in=Run.ACTIVE).order_by("pk")


def find_numbered_run(project: Project, kind: str, number: str) -> Run | None:
    """Return the run with the number that an address names, None if there is none of this kind."""
    wanted = read_number(number)
    rows = Run.objects.filter(project=project, kind=kind).select_related("project")
    return None if wanted is None else rows.filter(pk=wanted).first()
