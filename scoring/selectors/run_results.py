"""Links from runs to their results, and whether these still exist. Does not import torch."""

from urllib.parse import urlencode

from django.db.models import Q
from django.utils.translation import gettext as _

from annotation.models import ReferenceSet
from evalapp.accounts.models import Project
from evalapp.common.models import Run
from scoring.boards.base import Query

from ..models import Evaluator, ScoreSet
from .training import MAKING

#: Kinds of runs that the evaluator refers to. Another evaluator may have taken its name since.
OWN = ("train", "artefact")


def make_score_address(score_set: ScoreSet) -> str:
    """Return the address of the page of the scores."""
    return f"/projects/{score_set.project.slug}/evaluators/{score_set.evaluator.slug}/?set={score_set.pk}"


def make_board_address(project: Project, query: Query) -> str:
    """Return the address of the page of this table."""
    tail = urlencode(query.non_default_params)
    return f"/projects/{project.slug}/{query.page}" + (f"?{tail}" if tail else "")


def evaluator_gone(run: Run) -> str:
    """Return a message if the evaluator of a result was deleted, else ""."""
    name = (run.result or {}).get("evaluator")
    rows = Evaluator.objects.filter(project=run.project_id, slug=name)
    if run.kind in OWN:
        rows = rows.filter(Q(run=run) | Q(run=None))
    if not name or rows.exists():
        return ""
    return _("The evaluator %(name)s and its scores were deleted since.") % {"name": name}


def scores_gone(run: Run) -> str:
    """Return a message if the scores of a result were deleted, else ""."""
    number = (run.result or {}).get("score_set")
    if not number or ScoreSet.objects.filter(project=run.project_id, pk=number).exists():
        return ""
    return evaluator_gone(run) or _("These scores were deleted since.")


def references_gone(run: Run) -> str:
    """Return a message if the reference set of a result was deleted, else ""."""
    name = (run.result or {}).get("references")
    if not name or ReferenceSet.objects.filter(project=run.project_id, name=name).exists():
        return ""
    return _("The reference set %(name)s was deleted since.") % {"name": name}


def was_made(project: Project, slug: str) -> bool:
    """Return whether a run created an evaluator of this name, which may have been deleted since."""
    rows = Run.objects.filter(project=project, kind__in=MAKING, state=Run.State.SUCCEEDED)
    return rows.filter(result__evaluator=slug).exists()
