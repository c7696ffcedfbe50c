"""Paginated lists of a judging campaign: judgements, and units with their answers."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from annotation.selectors.campaigns_watch import (
    get_pseudonyms,
    list_judgements,
    list_latest_judgements,
    list_unit_progress,
)
from evalapp.common.pagination import keyset

from .campaign_pages import JUDGING, PAGE_SIZE
from .campaign_tables import answer_lines, describe_unit


@require_safe
def judgement_list(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Judgements, newest first; all versions with `?versions=all`."""
    campaign = JUDGING.find(request, slug, pk)
    every = request.GET.get("versions") == "all"
    rows = list_judgements(campaign) if every else list_latest_judgements(campaign)
    rater = request.GET.get("rater", "")
    pseudonyms = get_pseudonyms(campaign)
    if rater:
        rows = rows.filter(annotator__in=[user for user, name in pseudonyms.items() if name == rater])
    judgements = keyset(rows, order=("-pk",), cursor=request.GET.get("cursor", ""), size=PAGE_SIZE)
    lines = answer_lines(judgements.rows, pseudonyms)
    return JUDGING.show(request, "judgements", campaign, page=judgements, lines=lines, every=every, rater=rater)


@require_safe
def unit_list(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Units with the number of their answers."""
    campaign = JUDGING.find(request, slug, pk)
    order, cursor = ("item__order_key", "pk"), request.GET.get("cursor", "")
    units = keyset(list_unit_progress(campaign), order=order, cursor=cursor, size=PAGE_SIZE)
    lines = [{"unit": unit, "names": describe_unit(unit)} for unit in units.rows]
    return JUDGING.show(request, "units", campaign, page=units, lines=lines)
