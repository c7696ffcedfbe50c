"""Where the page of a run leads to, and whether what the run made is still there. Nothing here imports torch."""

from __future__ import annotations

from urllib.parse import urlencode

from django.db.models import Q

from annotation.models import ReferenceSet
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from scoring.boards.base import Query

from ..models import Evaluator, ScoreSet
from .training import MAKING

#: Runs whose evaluator knows them. Its name may have been given to that of another run since.
OWN = ("train", "artefact")


def make_score_address(score_set: ScoreSet) -> str:
    """Of the page that shows these scores."""
    return f"/projects/{score_set.project.slug}/evaluators/{score_set.evaluator.slug}/?set={score_set.pk}"


def make_board_address(project: Project, query: Query) -> str:
    """The address of the page that shows this table."""
    tail = urlencode(query.non_default_params)
    return f"/projects/{project.slug}/{query.page}" + (f"?{tail}" if tail else "")


def evaluator_gone(run: Run) -> str:
    """That the evaluator of a result was deleted, or nothing."""
    name = (run.result or {}).get("evaluator")
    rows = Evaluator.objects.filter(project=run.project_id, slug=name)
    if run.kind in OWN:
        rows = rows.filter(Q(run=run) | Q(run=None))
    if not name or rows.exists():
        return ""
    return f"The evaluator {name} was deleted since, and its scores with it."


def scores_gone(run: Run) -> str:
    """That the scores of a result were deleted, or nothing."""
    number = (run.result or {}).get("score_set")
    if not number or ScoreSet.objects.filter(project=run.project_id, pk=number).exists():
        return ""
    return evaluator_gone(run) or "These scores were deleted since."


def references_gone(run: Run) -> str:
    """That the reference set of a result was deleted, or nothing."""
    name = (run.result or {}).get("references")
    if not name or ReferenceSet.objects.filter(project=run.project_id, name=name).exists():
        return ""
    return f"The reference set {name} was deleted since."


def was_made(project: Project, slug: str) -> bool:
    """Whether any run made an evaluator of this name: where there is none, it was deleted."""
    rows = Run.objects.filter(project=project, kind__in=MAKING, state=Run.State.SUCCEEDED)
    return rows.filter(result__evaluator=slug).exists()
