"""Paginated lists of a judging campaign: judgements, and units with their answers."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from annotation.selectors.campaigns_watch import (
    get_pseudonyms,
    list_judgements,
    list_latest_judgements,
    list_unit_progress,
)
from evalapp.common.pages import page
from evalapp.common.pagination import keyset

from .campaign_pages import JUDGING, PAGE_SIZE, may_write
from .campaign_tables import answer_lines, describe_unit


@require_safe
def judgement_list(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Judgements, newest first; all versions with `?versions=all`."""
    project, campaign = JUDGING.get_parts(request, slug, pk)
    every = request.GET.get("versions") == "all"
    rows = list_judgements(campaign) if every else list_latest_judgements(campaign)
    rater = request.GET.get("rater", "")
    pseudonyms = get_pseudonyms(campaign)
    if rater:
        rows = rows.filter(annotator__in=[user for user, name in pseudonyms.items() if name == rater])
    judgements = keyset(rows, order=("-pk",), cursor=request.GET.get("cursor", ""), size=PAGE_SIZE)
    context = {
        "project": project,
        "campaign": campaign,
        "page": judgements,
        "lines": answer_lines(judgements.rows, pseudonyms),
        "every": every,
        "may_write": may_write(request, project),
        "rater": rater,
    }
    return page(request, "annotation/campaigns/judgements.html", context)


@require_safe
def unit_list(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Units with the number of their answers."""
    project, campaign = JUDGING.get_parts(request, slug, pk)
    order, cursor = ("item__order_key", "pk"), request.GET.get("cursor", "")
    units = keyset(list_unit_progress(campaign), order=order, cursor=cursor, size=PAGE_SIZE)
    lines = [{"unit": unit, "names": describe_unit(unit)} for unit in units.rows]
    context = {"project": project, "campaign": campaign, "page": units, "lines": lines}
    context["may_write"] = may_write(request, project)
    return page(request, "annotation/campaigns/units.html", context)
