"""The page of a writing campaign: a draft, or the progress of a campaign."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from annotation.models import WritingCampaign, WritingTask
from annotation.selectors.writing import list_written, make_writing_plan
from annotation.services.writing_plans import estimate_writing, list_opening_problems
from evalapp.accounts.selectors import rater_names
from evalapp.common.markdown import render_markdown

from .campaign_pages import WRITING
from .writing_forms import ARM_NAMES, CONSTRAINTS
from .writing_lists import make_written_lines
from .writing_watch import make_watch_context

LATEST_SHOWN = 8


@require_safe
def writing_show(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A draft with its estimate, or the progress of a campaign, which refreshes itself until the campaign is closed."""
    campaign = WRITING.find(request, slug, pk)
    if campaign.state == WritingCampaign.State.DRAFT:
        return WRITING.show(request, "draft", campaign, **_draft(campaign))
    latest = list(list_written(campaign=campaign)[:LATEST_SHOWN])
    skips = campaign.tasks.filter(state=WritingTask.State.SKIPPED).exclude(skip_reason="")
    return WRITING.show(
        request,
        "show",
        campaign,
        fragment="live",
        latest=make_written_lines(latest, rater_names(campaign.project_id)),
        skips=list(skips.select_related("unit__item").order_by("-closed_at")[:LATEST_SHOWN]),
        flags=campaign.flags.filter(resolved_at=None).count(),
        live=campaign.state in (WritingCampaign.State.OPEN, WritingCampaign.State.PAUSED),
        **make_watch_context(request.user, campaign),
    )


def _draft(campaign: WritingCampaign) -> dict[str, Any]:
    plan = make_writing_plan(campaign)
    options = plan["options"]
    return {
        "plan": plan,
        "options": options,
        "estimate": estimate_writing(campaign=campaign),
        "problems": list_opening_problems(campaign=campaign),
        "arms": [ARM_NAMES[arm] for arm in options["arms"]],
        "constraint": dict(CONSTRAINTS).get(options["constraint"], ""),
        "guidelines": render_markdown(campaign.guidelines) if campaign.guidelines else "",
    }
