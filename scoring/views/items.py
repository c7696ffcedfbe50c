"""Scores of the outputs of an item, a fragment of the item's page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from annotation.models import Item, Output
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import NotThere
from evalapp.common.pages import page

from ..selectors.score_sets import scores_of_outputs


@login_required
@require_GET
def item_scores(request: HttpRequest, slug: str, item: int) -> HttpResponse:
    project = get_project(user=request.user, slug=slug, need="read")
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
