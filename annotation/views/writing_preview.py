"""The writing page as annotators see it, with an item of the plan; nothing can be submitted."""

from types import SimpleNamespace

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from annotation.models import Item, Reference, WritingCampaign
from annotation.services.writing_plans import select_writing_items
from annotation.services.writing_view import CandidateView, ReferenceView, TaskView, select_originals
from evalapp.common.markdown import render_markdown

from .campaign_pages import WRITING
from .writing_context import make_item_context
from .writing_forms import ARM_NAMES


def _make_view(campaign: WritingCampaign, item: Item, arm: str) -> TaskView:
    rows = Reference.objects.filter(item=item, set=campaign.start_set_id).order_by("position")
    texts = tuple(rows.values_list("text", flat=True))
    under_constraint = campaign.kind == WritingCampaign.Kind.CONSTRAINT
    candidate = CandidateView("", _("The candidate of the round is shown here."), "", None, {})
    return TaskView(
        campaign=campaign,
        task=SimpleNamespace(  # type: ignore[arg-type]
            public="", arm=arm, shows_scores=arm == "scores" and bool(campaign.evaluator), shows_candidates=False
        ),
        state="write",
        context=tuple(item.context),
        source=item.source,
        originals=select_originals(campaign, texts),
        references=() if under_constraint else tuple(ReferenceView(text) for text in texts),
        candidate=candidate if campaign.in_rounds else None,
        attempts_left=int(campaign.options["max_attempts"]),
        rounds=int(campaign.options["candidates"]),
    )


@require_safe
def preview(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """`?item=` is the number of an item of the plan, `?arm=` one of its arms."""
    campaign = WRITING.find(request, slug, pk)
    raw = request.GET.get("item", "0")
    number = int(raw) if raw.isdecimal() and len(raw) < 7 else 0
    arms = campaign.options["arms"]
    arm = request.GET.get("arm", "") if request.GET.get("arm", "") in arms else arms[0]
    item = select_writing_items(campaign).order_by("order_key")[number : number + 1].first()
    context = {
        "number": number,
        "arm": arm,
        "arms": [(name, ARM_NAMES[name]) for name in arms],
        "guidelines": render_markdown(campaign.guidelines) if campaign.guidelines else "",
        "preview": True,
    }
    if item is not None:
        view = _make_view(campaign, item, arm)
        candidate = view.candidate.text if view.candidate else ""
        context |= {
            **make_item_context(view),
            "view": view,
            "state": "write",
            "rounds": campaign.in_rounds,
            "references": [{"row": row, "who": "", "gain": ""} for row in view.references],
            "written": len(view.references),
            "hand": {"text": candidate, "candidate": ""},
            "progress": {"number": number + 1},
            "now": None,
        }
    return WRITING.show(request, "preview", campaign, **context)
