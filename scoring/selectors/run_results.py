"""Whether what a run made is still there, for its page. Nothing here imports torch."""

from __future__ import annotations

from django.db.models import Q

from annotation.models import ReferenceSet
from evalapp.accounts.models import Project
from evalapp.common.models import Run

from ..models import Evaluator
from .training import MAKING

#: Runs whose evaluator knows them. Its name may have been given to that of another run since.
OWN = ("train", "artefact")


def evaluator_gone(run: Run) -> str:
    """That the evaluator of a result was deleted, or nothing."""
    name = (run.result or {}).get("evaluator")
    rows = Evaluator.objects.filter(project=run.project_id, slug=name)
    if run.kind in OWN:
        rows = rows.filter(Q(run=run) | Q(run=None))
    if not name or rows.exists():
        return ""
    return f"The evaluator {name} was deleted since, and its scores with it."


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
