"""The long lists of a campaign, page by page: judgements, units with their answers, flags."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from annotation.models import ItemFlag
from annotation.selectors.campaigns_watch import (
    latest_judgements,
    list_flags,
    list_judgements,
    list_unit_progress,
    pseudonyms_of,
)
from annotation.services.judging_acts import resolve_flag
from evalapp.common.errors import NotThere
from evalapp.common.pages import page
from evalapp.common.pagination import keyset

from .campaign_tables import answer_lines, unit_words
from .campaigns import PAGE_SIZE, get_parts, may_write


@login_required
@require_safe
def judgement_list(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Newest first; every version with `?versions=all`."""
    project, campaign = get_parts(request, slug, pk)
    every = request.GET.get("versions") == "all"
    rows = list_judgements(campaign) if every else latest_judgements(campaign)
    rater = request.GET.get("rater", "")
    pseudonyms = pseudonyms_of(campaign)
    if rater:
        rows = rows.filter(annotator__in=[user for user, name in pseudonyms.items() if name == rater])
    found = keyset(rows, order=("-pk",), cursor=request.GET.get("cursor", ""), size=PAGE_SIZE)
    context = {
        "project": project,
        "campaign": campaign,
        "page": found,
        "lines": answer_lines(found.rows, pseudonyms),
        "every": every,
        "may_write": may_write(request, project),
        "rater": rater,
    }
    return page(request, "annotation/campaigns/judgements.html", context)


@login_required
@require_safe
def unit_list(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """What is judged, with how many answers it has."""
    project, campaign = get_parts(request, slug, pk)
    order, cursor = ("item__order_key", "pk"), request.GET.get("cursor", "")
    found = keyset(list_unit_progress(campaign), order=order, cursor=cursor, size=PAGE_SIZE)
    lines = [{"unit": unit, "names": unit_words(unit)} for unit in found.rows]
    context = {"project": project, "campaign": campaign, "page": found, "lines": lines}
    context["may_write"] = may_write(request, project)
    return page(request, "annotation/campaigns/units.html", context)


@login_required
@require_safe
def flag_list(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """What annotators remarked; those already dealt with under `?resolved=1`."""
    project, campaign = get_parts(request, slug, pk)
    resolved = request.GET.get("resolved") == "1"
    context = {"project": project, "campaign": campaign, "pseudonyms": pseudonyms_of(campaign), "resolved": resolved}
    return show_flags(request, "annotation/campaigns/flags.html", list_flags(campaign, resolved=resolved), context)


def show_flags(request: HttpRequest, template: str, rows: QuerySet[Any], context: dict[str, Any]) -> HttpResponse:
    """A page of flags, of judging or of writing, the newest first."""
    found = keyset(rows, order=("-pk",), cursor=request.GET.get("cursor", ""), size=PAGE_SIZE)
    more = {"page": found, "flags": found.rows, "may_write": may_write(request, context["project"])}
    return page(request, template, {**context, **more})


@login_required
@require_POST
def flag_resolve(request: HttpRequest, slug: str, pk: int, flag: int) -> HttpResponse:
    _, campaign = get_parts(request, slug, pk, "write")
    row = ItemFlag.objects.select_related("campaign__project").filter(campaign=campaign, pk=flag).first()
    if row is None:
        raise NotThere("There is no such flag in this campaign.")
    resolve_flag(user=request.user, flag=row)
    messages.success(request, "Marked as dealt with.")
    return redirect("annotation:campaign-flags", slug, pk)
