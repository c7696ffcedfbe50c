"""Robustness reports computed by runs, and the evaluators they are available for."""

from __future__ import annotations

from typing import Any

from evalapp.accounts.models import Project
from evalapp.common.models import Run

from .catalogue import entries
from .score_sets import current_sets
from .training import list_trained

KIND = "robustness"
#: Number of runs searched for the last report of each evaluator.
LATEST = 100


def latest_reports(project: Project) -> list[Run]:
    """Return the last report of every evaluator (by signature), newest first."""
    rows = Run.objects.filter(project=project, kind=KIND, state=Run.State.SUCCEEDED, result__isnull=False)
    result: dict[Any, Run] = {}
    for run in rows.order_by("-pk")[:LATEST]:
        result.setdefault(run.result["signature"], run)
    return list(result.values())


def reports_under_way(project: Project) -> list[Run]:
    return list(Run.objects.filter(project=project, kind=KIND, state__in=Run.ACTIVE).order_by("pk"))


def reportable(project: Project) -> list[str]:
    """Return the names of evaluators to report on: trained ones, then applied ones, then others of the catalogue."""
    trained = list(list_trained(project).order_by("slug").values_list("slug", flat=True))
    free = [entry.name for entry in entries() if not entry.learns]
    applied = [row.evaluator.name for row in current_sets(project) if row.evaluator.name in free]
    return list(dict.fromkeys([*trained, *applied, *free]))
