"""Pages for annotators that judging and writing share: flagging a unit, and guidelines."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Campaign, WritingCampaign
from annotation.models.shared import BaseFlag
from evalapp.common.errors import BadInput
from evalapp.common.markdown import render_markdown
from evalapp.common.pages import page

#: Titles of the page if there is nothing to do, by reason.
TITLES = {
    "empty": gettext_lazy("All done"),
    "limit": gettext_lazy("All done"),
    "draft": gettext_lazy("Not open yet"),
    "paused": gettext_lazy("Paused"),
    "closed": gettext_lazy("Closed"),
}


def show_flag_page(
    request: HttpRequest, template: str, context: dict[str, Any], flag: Callable[..., BaseFlag], public: str,
    back: HttpResponse,
) -> HttpResponse:  # fmt: skip
    """The form for flagging a unit, or `back` after the service `flag` has stored the flag."""
    context = {**context, "reasons": BaseFlag.Reason.choices}
    if request.method == "GET":
        return page(request, template, context)
    given = {name: request.POST.get(name, "") for name in ("reason", "text")}
    try:
        flag(user=request.user, public=public, **given)
    except BadInput as error:
        return page(request, template, {**context, "error": error.detail, **given}, status=422)
    messages.success(request, _("Thank you. The researcher will see your report."))
    return back


def show_guidelines(request: HttpRequest, template: str, campaign: Campaign | WritingCampaign) -> HttpResponse:
    return page(request, template, {"campaign": campaign, "guidelines": render_markdown(campaign.guidelines)})
