"""The score set of an evaluator that a page or a call of the API is about."""

from __future__ import annotations

from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.common.errors import NotThere
from evalapp.common.forms import read_number

from ..models import Evaluator, ScoreSet
from .catalogue import entries
from .run_results import was_made
from .training import refuse_unfinished


def get_set(project: Project, evaluator: str, number: str) -> ScoreSet:
    """Return the score set of that number, or the newest complete one, or the newest."""
    rows = ScoreSet.objects.filter(project=project, evaluator__slug=evaluator).select_related("evaluator", "run")
    if number:
        wanted = read_number(number)
        result = rows.filter(pk=wanted).first() if wanted is not None else None
    else:
        result = rows.filter(scored_at__isnull=False).order_by("-scored_at").first() or rows.order_by("-pk").first()
    if result is None:
        refuse_unfinished(project, evaluator)
        raise NotThere(_explain_missing(project, evaluator) % {"name": evaluator})
    return result


def _explain_missing(project: Project, evaluator: str) -> str:
    """Return why there are no scores by that evaluator, and what can be done."""
    if Evaluator.objects.filter(project=project, slug=evaluator).exists() or any(
        entry.name == evaluator for entry in entries()
    ):
        return _("There are no scores by “%(name)s” here. Apply it under Evaluators.")
    if was_made(project, evaluator):
        return _("The evaluator “%(name)s” was deleted with its scores. See Evaluators for the others.")
    return _("There is no evaluator “%(name)s” here. See Evaluators.")
