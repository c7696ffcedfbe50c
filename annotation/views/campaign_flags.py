"""Flags of judging and writing campaigns: the list, and resolving one."""

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
from evalapp.common.pagination import keyset

from .campaign_pages import PAGE_SIZE, CampaignPages


@require_safe
def flag_list(request: HttpRequest, slug: str, pk: int, kind: CampaignPages) -> HttpResponse:
    """Flags by annotators, newest first; with `?resolved=1` the resolved ones."""
    campaign = kind.find(request, slug, pk)
    resolved = request.GET.get("resolved") == "1"
    rows = list_flags(campaign, resolved=resolved)
    flags = keyset(rows, order=("-pk",), cursor=request.GET.get("cursor", ""), size=PAGE_SIZE)
    names = get_pseudonyms(campaign) if isinstance(campaign, Campaign) else rater_names(campaign.project_id)
    return kind.show(request, "flags", campaign, page=flags, flags=flags.rows, resolved=resolved, pseudonyms=names)


@require_POST
def flag_resolve(request: HttpRequest, slug: str, pk: int, flag: int, kind: CampaignPages) -> HttpResponse:
    campaign = kind.find(request, slug, pk, "write")
    row = campaign.flags.select_related("campaign__project").filter(pk=flag).first()
    if row is None:
        raise NotThere(_("There is no such flag in this campaign."))
    resolve_flag(user=request.user, flag=row)
    messages.success(request, _("The flag is resolved."))
    return redirect(f"annotation:{kind.name}-flags", slug, pk)
