"""Flags of judging and writing campaigns: the list, and resolving one."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from annotation.models import Campaign
from annotation.selectors.campaigns import list_flags
from annotation.selectors.campaigns_watch import get_pseudonyms
from annotation.services.judging_acts import resolve_flag
from evalapp.accounts.selectors import rater_names
from evalapp.common.errors import NotThere
from evalapp.common.pages import page
from evalapp.common.pagination import keyset

from .campaign_pages import PAGE_SIZE, CampaignPages, may_write


@require_safe
def flag_list(request: HttpRequest, slug: str, pk: int, kind: CampaignPages) -> HttpResponse:
    """Flags by annotators, newest first; with `?resolved=1` the resolved ones."""
    project, campaign = kind.get_parts(request, slug, pk)
    resolved = request.GET.get("resolved") == "1"
    rows = list_flags(campaign, resolved=resolved)
    flags = keyset(rows, order=("-pk",), cursor=request.GET.get("cursor", ""), size=PAGE_SIZE)
    context = {
        "project": project,
        "campaign": campaign,
        "pseudonyms": get_pseudonyms(campaign) if isinstance(campaign, Campaign) else rater_names(project.pk),
        "resolved": resolved,
        "page": flags,
        "flags": flags.rows,
        "may_write": may_write(request, project),
    }
    return page(request, kind.get_template("flags"), context)


@require_POST
def flag_resolve(request: HttpRequest, slug: str, pk: int, flag: int, kind: CampaignPages) -> HttpResponse:
    campaign = kind.get_parts(request, slug, pk, "write")[1]
    row = campaign.flags.select_related("campaign__project").filter(pk=flag).first()
    if row is None:
        raise NotThere(_("There is no such flag in this campaign."))
    resolve_flag(user=request.user, flag=row)
    messages.success(request, _("The flag is resolved."))
    return redirect(f"annotation:{kind.name}-flags", slug, pk)
