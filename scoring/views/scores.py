"""Scores of the outputs of an item, a fragment of its page, and deleting a score set. The page of a score set is in
`evaluators`."""

from django.contrib import messages
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from annotation.models import Item, Output
from evalapp.accounts.models import Project
from evalapp.common.errors import Conflict, NotThere
from evalapp.common.pages import page, project_page

from ..models import ScoreSet
from ..selectors.chosen_sets import get_set
from ..selectors.score_sets import scores_of_outputs
from ..services.scores import delete_scores


@project_page(GET="write", POST="write")
def delete(request: HttpRequest, project: Project, evaluator: str) -> HttpResponse:
    """Delete a score set."""
    score_set = get_set(project, evaluator, request.GET.get("set", ""))
    if request.method == "POST":
        try:
            is_gone = delete_scores(score_set=score_set, user=request.user)
        except Conflict as error:
            messages.error(request, error.detail)
        else:
            messages.success(request, _("Scores of %(name)s deleted.") % {"name": evaluator})
            if is_gone:
                return redirect("scoring:evaluator-list", project.slug)
            return redirect("scoring:evaluator", project.slug, evaluator)
    others = ScoreSet.objects.filter(evaluator=score_set.evaluator).exclude(pk=score_set.pk)
    context = {
        "project": project,
        "evaluator": score_set.evaluator,
        "score_set": score_set,
        "goes": not score_set.evaluator.is_trained and not others.exists(),
    }
    return page(request, "scoring/evaluators/delete_scores.html", context)


@project_page(GET="read")
def item_scores(request: HttpRequest, project: Project, item: int) -> HttpResponse:
    """Scores of the outputs of an item, a fragment of its page."""
    row = Item.objects.filter(project=project, pk=item).first()
    if row is None:
        raise NotThere(_("There is no item %(item)d in %(project)s.") % {"item": item, "project": project.slug})
    rows = Output.objects.filter(item=row).select_related("system")
    outputs = list(rows.order_by("system__order_key", F("step").asc(nulls_first=True)))
    scores = scores_of_outputs(project, [output.pk for output in outputs])
    sets = {score.score_set_id: score.score_set for score in scores}
    of_output = {(score.output_id, score.score_set_id): score for score in scores}
    table = [(output, [of_output.get((output.pk, number)) for number in sets]) for output in outputs]
    seen = any(score.in_training for score in scores)
    context = {"project": project, "item": row, "sets": list(sets.values()), "table": table, "in_training": seen}
    return page(request, "scoring/items/scores.html", context, fragment="table")
