"""Pages for annotators that judging and writing share: flagging a unit, and guidelines."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Campaign, WritingCampaign
from annotation.models.shared import BaseFlag
from annotation.selectors.campaigns import get_own_campaign
from annotation.selectors.own_campaigns import NotBegun, is_beginning
from evalapp.common.errors import BadInput
from evalapp.common.markdown import render_markdown
from evalapp.common.pages import page

from .scripted import read_body, wants_json

T = TypeVar("T")
FLAG, SKIP = "annotation/my/flag.html", "annotation/my/skip.html"
#: Titles of the page if there is nothing to do, by reason.
TITLES = {
    "empty": gettext_lazy("All done"),
    "limit": gettext_lazy("All done"),
    "draft": gettext_lazy("Not open yet"),
    "paused": gettext_lazy("Paused"),
    "closed": gettext_lazy("Closed"),
    "ended": gettext_lazy("All done"),
    "full": gettext_lazy("All places are taken"),
}


def show_flag_page(
    request: HttpRequest, context: dict[str, Any], flag: Callable[..., BaseFlag], public: str, back: HttpResponse
) -> HttpResponse:  # fmt: skip
    """The form for flagging a unit, or `back` after the service `flag` has stored the flag."""
    context = {**context, "reasons": BaseFlag.Reason.choices}
    if request.method == "GET":
        return page(request, FLAG, context)
    body = read_body(request)
    given = {name: str(body.get(name) or "") for name in ("reason", "text")}
    try:
        flag(user=request.user, public=public, **given)
    except BadInput as error:
        if wants_json(request):
            raise
        return page(request, FLAG, {**context, "error": error.detail, **given}, status=422)
    if wants_json(request):
        return JsonResponse({})
    messages.success(request, _("Thank you. The researcher will see your report."))
    return back


def get_turn(
    hand_out: Callable[..., T], *, request: HttpRequest, pk: int, model: type[Campaign | WritingCampaign]
) -> T | None:
    """What `hand_out` gives the annotator to do; None if the guidelines come first."""
    try:
        return hand_out(user=request.user, campaign_id=pk, joins=False)
    except NotBegun:
        campaign = get_own_campaign(user=request.user, campaign_id=pk, model=model)
        if campaign.guidelines and campaign.state == campaign.State.OPEN:
            return None
        return hand_out(user=request.user, campaign_id=pk)


def show_guidelines(request: HttpRequest, campaign: Campaign | WritingCampaign, home: str) -> HttpResponse:
    """The guidelines with a way to the page `home`: for new annotators a button that begins, for others a link."""
    context = {
        "campaign": campaign,
        "guidelines": render_markdown(campaign.guidelines),
        "comes_first": is_beginning(user=request.user, campaign=campaign),
        "home": reverse(home, args=[campaign.pk]),
    }
    return page(request, "annotation/my/guidelines.html", context)
