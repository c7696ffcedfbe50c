"""An annotator's own answers and texts in a campaign, newest first, each with the page on which it is corrected."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from annotation.models import Assignment, WritingCampaign
from annotation.selectors.campaigns import get_own_campaign
from annotation.selectors.judging import list_own_assignments, wire_own
from annotation.selectors.judging_sheet import Sheet, make_sheet
from annotation.selectors.writing import list_own_written
from evalapp.common.pages import page
from evalapp.common.pagination import keyset

SHOWN = 20


def describe_answer(sheet: Sheet, value: Any) -> str:
    """A value of an answer in words."""
    if isinstance(value, list):
        joined = _(" to ") if sheet.kind == "likert" else _(" or ")
        return joined.join(describe_answer(sheet, one) for one in dict.fromkeys(value))
    verdicts = {row["value"]: row["label"] for row in sheet.shown_form()["verdicts"]}
    return verdicts.get(value, f"{value:g}" if isinstance(value, (int, float)) else str(value))


@never_cache
@require_safe
def own_answers(request: HttpRequest, pk: int) -> HttpResponse:
    """The annotator's answers; each leads to the page on which it can be corrected."""
    campaign = get_own_campaign(user=request.user, campaign_id=pk)
    sheet = make_sheet(campaign)
    rows = list_own_assignments(user=request.user, campaign=campaign, states=(Assignment.State.SUBMITTED.value,))
    listed = keyset(rows, order=("-order_number", "-pk"), cursor=request.GET.get("cursor", ""), size=SHOWN)
    answers = [_make_line(row, sheet) for row in listed.rows]
    return page(request, "annotation/my/answers.html", {"campaign": campaign, "answers": answers, "page": listed})


def _make_line(row: Assignment, sheet: Sheet) -> dict[str, Any]:
    wire = wire_own(row)
    answer = wire["answer"] or {}
    given = [
        (aspect.question or aspect.name, describe_answer(sheet, answer[aspect.name]))
        for aspect in sheet.form.aspects
        if aspect.name in answer
    ]
    return {**wire, "given": given}


@never_cache
@require_safe
def own_texts(request: HttpRequest, pk: int) -> HttpResponse:
    """The annotator's written texts; each leads to its item, where the last one can be taken back."""
    campaign = get_own_campaign(user=request.user, campaign_id=pk, model=WritingCampaign)
    listed = keyset(
        list_own_written(user=request.user, campaign=campaign), order=("-pk",), cursor=request.GET.get("cursor", ""),
        size=SHOWN,
    )  # fmt: skip
    return page(request, "annotation/my/texts.html", {"campaign": campaign, "texts": listed.rows, "page": listed})
