"""Robustness reports that runs have computed, and what can be asked about. Computing is in the pipeline."""

from __future__ import annotations

from typing import Any

from evalapp.accounts.models import Project
from evalapp.common.models import Run

from .catalogue import entries
from .score_sets import current_sets
from .training import list_trained

KIND = "robustness"
#: Runs that are looked through for the last one of every evaluator.
LATEST = 100


def latest_reports(project: Project) -> list[Run]:
    """The last report of every evaluator (under its signature), the newest first."""
    rows = Run.objects.filter(project=project, kind=KIND, state=Run.State.SUCCEEDED, result__isnull=False)
    found: dict[Any, Run] = {}
    for run in rows.order_by("-pk")[:LATEST]:
        found.setdefault(run.result["signature"], run)
    return list(found.values())


def reports_under_way(project: Project) -> list[Run]:
    return list(Run.objects.filter(project=project, kind=KIND, state__in=Run.ACTIVE).order_by("pk"))


def reportable(project: Project) -> list[str]:
    """Evaluators that a report can be asked for by name: trained here, then applied here, then the catalogue's."""
    trained = list(list_trained(project).order_by("slug").values_list("slug", flat=True))
    free = [entry.name for entry in entries() if not entry.learns]
    applied = [row.evaluator.name for row in current_sets(project) if row.evaluator.name in free]
    return list(dict.fromkeys([*trained, *applied, *free]))
