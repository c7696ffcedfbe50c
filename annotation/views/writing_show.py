"""The page of a writing campaign: a draft, or the progress of a campaign."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from annotation.models import WritingCampaign, WritingTask
from annotation.selectors.writing import list_written, make_writing_plan
from annotation.services.writing_plans import estimate_writing, list_opening_problems
from evalapp.accounts.selectors import rater_names
from evalapp.common.markdown import render_markdown
from evalapp.common.pages import page

from .campaign_pages import WRITING, may_write
from .writing_forms import ARM_NAMES, CONSTRAINTS
from .writing_lists import make_written_lines
from .writing_watch import make_watch_context

LATEST_SHOWN = 8


@require_safe
def writing_show(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A draft with its estimate, or the progress of a campaign, which refreshes itself until the campaign is closed."""
    project, campaign = WRITING.get_parts(request, slug, pk)
    context: dict[str, Any] = {"project": project, "campaign": campaign, "may_write": may_write(request, project)}
    if campaign.state == WritingCampaign.State.DRAFT:
        return page(request, "annotation/writing/draft.html", context | _draft(campaign))
    latest = list(list_written(campaign=campaign)[:LATEST_SHOWN])
    context |= make_watch_context(request.user, campaign)
    skips = campaign.tasks.filter(state=WritingTask.State.SKIPPED).exclude(skip_reason="")
    context |= {
        "latest": make_written_lines(latest, rater_names(project.pk)),
        "skips": list(skips.select_related("unit__item").order_by("-closed_at")[:LATEST_SHOWN]),
        "flags": campaign.flags.filter(resolved_at=None).count(),
        "live": campaign.state in (WritingCampaign.State.OPEN, WritingCampaign.State.PAUSED),
    }
    return page(request, "annotation/writing/show.html", context, fragment="live")


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
