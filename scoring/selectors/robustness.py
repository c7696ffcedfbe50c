"""Robustness reports computed by runs, and the evaluators they are available for."""

from typing import Any

from evalapp.accounts.models import Project
from evalapp.common.models import Run

from .catalogue import entries
from .runs import list_finished_runs
from .score_sets import current_sets
from .training import list_trained

KIND = "robustness"
#: Number of runs searched for the last report of each evaluator.
LATEST = 100


def latest_reports(project: Project) -> list[Run]:
    """Return the last report of every evaluator (by signature), newest first."""
    result: dict[Any, Run] = {}
    for run in list_finished_runs(project, KIND)[:LATEST]:
        result.setdefault(run.result["signature"], run)
    return list(result.values())


def reportable(project: Project) -> list[str]:
    """Return the names of evaluators to report on: trained ones, then applied ones, then others of the catalogue."""
    trained = list(list_trained(project).order_by("slug").values_list("slug", flat=True))
    free = [entry.name for entry in entries() if not entry.learns]
    applied = [row.evaluator.name for row in current_sets(project) if row.evaluator.name in free]
    return list(dict.fromkeys([*trained, *applied, *free]))
