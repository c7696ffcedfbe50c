"""The page of a writing campaign: a draft, or its progress with plots by round and a comparison of arms."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from annotation.models import WritingCampaign, WritingTask
from annotation.selectors.writing import list_written, make_writing_plan
from annotation.selectors.writing_watch import watch
from annotation.services.writing_plans import estimate_writing, list_opening_problems
from evalapp.accounts.models import User
from evalapp.accounts.selectors import rater_names
from evalapp.common.figures import send_figure
from evalapp.common.markdown import render_markdown

from .campaign_pages import WRITING
from .writing_forms import ARM_NAMES, CONSTRAINTS
from .writing_lists import make_written_lines
from .writing_plots import list_figures, plot

LATEST_SHOWN = 8


@require_safe
def writing_show(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A draft with its estimate, or the progress of a campaign, which refreshes itself until the campaign is closed."""
    campaign = WRITING.find(request, slug, pk)
    if campaign.state == WritingCampaign.State.DRAFT:
        return WRITING.show(request, "draft", campaign, **_draft(campaign))
    context = make_watch_context(request.user, campaign)
    if drawn := send_figure(request, list_figures(context["plots"])):
        return drawn
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
        **context,
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


def make_watch_context(user: User, campaign: WritingCampaign) -> dict[str, Any]:
    progress = watch(user=user, campaign=campaign)
    across = _("candidates finished") if campaign.in_rounds else _("references written")
    plots = [
        plot(progress.by_arm, ARM_NAMES, title=_("By arm"), across=across),
        plot(progress.by_person, {}, title=_("By annotator"), across=across),
    ]
    return {
        "figures": progress.figures,
        "arms": [{"row": row, "name": ARM_NAMES.get(row.name, row.name)} for row in progress.arms],
        "people": [{"row": row, "arm": ARM_NAMES.get(row.arm, row.arm)} for row in progress.people],
        "plots": [one for one in plots if one is not None],
        "across": across,
        "comparisons": [
            {"a": ARM_NAMES.get(row.a, row.a), "b": ARM_NAMES.get(row.b, row.b), "row": row}
            for row in progress.comparisons
        ],
    }
