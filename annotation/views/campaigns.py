"""Pages of judging campaigns: the list of all campaigns, a campaign as a draft or with its progress, and the preview.
Also lists of judgements and of units. Planning is in `campaign_plans`, practice and control items in
`campaign_checks`."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from annotation.models import Campaign, Unit
from annotation.selectors.campaigns import list_campaigns, make_campaign_plan
from annotation.selectors.campaigns_watch import (
    CampaignProgress,
    get_pseudonyms,
    list_judgements,
    list_latest_judgements,
    list_unit_progress,
    watch_campaign,
)
from annotation.selectors.judging_sheet import make_sheet
from annotation.selectors.presence import has_outputs
from annotation.selectors.writing import list_writing
from annotation.services.campaigns_preview import preview_assignment
from annotation.services.campaigns_units import estimate_units
from annotation.services.judging import Progress
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.forms import read_number
from evalapp.common.markdown import render_markdown
from evalapp.common.pages import page, project_page
from evalapp.common.pagination import keyset

from .campaign_forms import USUAL_SECONDS, describe_work
from .campaign_pages import JUDGING, PAGE_SIZE, may_write
from .campaign_tables import answer_lines, compute_coverage, describe_unit
from .judging import make_questions

LATEST_SHOWN = 8
#: The number of writing campaigns on the first page of the list (the newest).
WRITING_SHOWN = 100
#: Above this number of planned judgements, agreement and coverage are loaded separately from the watch page.
FIGURES_AT_ONCE = 5_000
#: The longest time per judgement in the estimate of a draft, `?seconds=`.
MOST_SECONDS = 3600
#: The highest number of a text in the preview.
MOST_NUMBER = 999_999


@project_page(GET="read")
def campaign_list(request: HttpRequest, project: Project) -> HttpResponse:
    campaigns = keyset(
        list_campaigns(project=project), order=("-pk",), cursor=request.GET.get("cursor", ""), size=PAGE_SIZE
    )
    context = {
        "project": project,
        "page": campaigns,
        "campaigns": campaigns.rows,
        "may_write": may_write(request, project),
        "has_outputs": has_outputs(project),
    }
    if "cursor" not in request.GET:
        context["writing"] = list(list_writing(project=project)[:WRITING_SHOWN])
    return page(request, "annotation/campaigns/list.html", context)


@require_safe
def campaign_show(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A draft with its estimate, or the progress of a campaign, which refreshes itself until the campaign is closed."""
    campaign = JUDGING.find(request, slug, pk)
    if campaign.state == Campaign.State.DRAFT:
        return JUDGING.show(request, "draft", campaign, fragment="opening", **_draft(request, campaign))
    if request.GET.get("part") == "figures":
        figures = _figures(watch_campaign(campaign)) | {"refresh": campaign.state == Campaign.State.OPEN}
        return JUDGING.show(request, "figures", campaign, fragment="figures", **figures)
    # Only owners see the names behind pseudonyms, as on the members page.
    names = can(user=request.user, project=campaign.project, need="manage")
    return JUDGING.show(request, "show", campaign, fragment="live", names=names, **_watch(campaign))


def _draft(request: HttpRequest, campaign: Campaign) -> dict[str, Any]:
    units = estimate_units(campaign).units
    seconds = read_number(request.GET.get("seconds", ""))
    seconds = USUAL_SECONDS if seconds is None else min(MOST_SECONDS, max(1, seconds))
    kinds = list(campaign.units.exclude(kind=Unit.Kind.NORMAL).values_list("kind", flat=True))
    return {
        "plan": make_campaign_plan(campaign),
        "guidelines": render_markdown(campaign.guidelines) if campaign.guidelines else "",
        "opening": campaign.opening if campaign.opening_id else None,
        "estimate": {
            **describe_work(campaign, units, seconds),
            "practice": kinds.count(Unit.Kind.PRACTICE),
            "controls": kinds.count(Unit.Kind.CONTROL),
        },
    }


def _figures(progress: CampaignProgress) -> dict[str, Any]:
    sided = progress.campaign.kind != Campaign.Kind.LIKERT
    return {"progress": progress, "coverage": compute_coverage(progress), "sided": sided, "with_figures": True}


def _watch(campaign: Campaign) -> dict[str, Any]:
    """The part that refreshes every few seconds. In a large campaign, agreement and coverage are loaded separately."""
    small = campaign.unit_count * campaign.overlap <= FIGURES_AT_ONCE
    progress = watch_campaign(campaign, with_figures=small)
    latest = list(list_latest_judgements(campaign).order_by("-pk")[:LATEST_SHOWN])
    left = max(0, progress.slots - progress.done)
    return {
        **_figures(progress),
        "with_figures": small,
        "latest": answer_lines(latest, {row.user_id: row.pseudonym for row in progress.annotators}),
        "seconds_left": left * progress.median_seconds if progress.median_seconds else None,
        "live": campaign.state in (Campaign.State.OPEN, Campaign.State.PAUSED),
    }


@require_safe
def campaign_preview(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The judging page as annotators see it, with a text of the plan; nothing can be submitted."""
    campaign = JUDGING.find(request, slug, pk)
    sheet = make_sheet(campaign)
    form = sheet.shown_form()
    number = min(read_number(request.GET.get("text", "")) or 0, MOST_NUMBER)
    return JUDGING.show(
        request,
        "preview",
        campaign,
        sheet=sheet,
        form=form,
        shown=preview_assignment(campaign, number),
        number=number,
        questions=make_questions(form, {}, {}),
        progress=Progress(0, sheet.goal, 0, 0.0, 0, sheet.practice_count),
        guidelines=render_markdown(campaign.guidelines) if campaign.guidelines else "",
        preview=True,
    )


# ---- lists -----------------------------------------------------------------------------------------------


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
