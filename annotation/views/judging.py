"""The judging page: next text, one assignment (answer, review, correct), skip, flag, guidelines, and the annotator's
list of campaigns. Everything works with plain forms; static/js/judge.js makes it faster."""

from functools import lru_cache
from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.models import Assignment, Campaign, ItemFlag
from annotation.selectors.campaigns import get_own_campaign
from annotation.selectors.judging import (
    find_previous_assignment,
    get_own_assignment,
    list_my_campaigns,
    list_own_assignments,
    wire_own,
)
from annotation.selectors.judging_sheet import Sheet, make_sheet, read_form
from annotation.selectors.writing import list_my_writing
from annotation.services.bodies import read_answer
from annotation.services.judging import WHY_TEXT, NextAssignment, get_next_assignment, make_progress, submit_answer
from annotation.services.judging_acts import flag_assignment, skip_assignment
from evalapp.common.errors import BadInput, Conflict, EvalappError
from evalapp.common.forms import read_number
from evalapp.common.markdown import render_markdown
from evalapp.common.pages import page

from .annotator_pages import SKIP, TITLES, get_turn, show_flag_page, show_guidelines
from .own_answers import describe_answer
from .scripted import (
    answers_problems,
    make_problem_response,
    make_store_key,
    read_body,
    read_submission,
    signed_in,
    wants_json,
)

PAGE = "annotation/judging/page.html"
ASSIGNMENT = "annotation/judging/page/_assignment.html"


def make_questions(form: dict[str, Any], answer: dict[str, Any], errors: dict[str, list[str]]) -> list[dict[str, Any]]:
    """The questions with the chosen answers and error messages, for the template."""
    questions = []
    for aspect in form["aspects"]:
        value = answer.get(aspect["name"])
        row = {**aspect, "value": value, "errors": errors.get(aspect["name"], [])}
        if form["kind"] == "likert":
            row["points"] = [{**point, "chosen": str(point["value"]) == str(value)} for point in aspect["points"]]
        else:
            row["verdicts"] = [{**verdict, "chosen": verdict["value"] == value} for verdict in form["verdicts"]]
        questions.append(row)
    return questions


@lru_cache(maxsize=256)
def render_blank_questions(form_json: bytes, language: str | None) -> SafeString:
    """The questions without answers. Cached, because they are the same for all in a `language` and take half of the
    rendering time."""
    form = read_form(form_json)
    context = {"form": form, "questions": make_questions(form, {}, {})}
    return mark_safe(render_to_string("annotation/judging/page/_questions.html", context))


def make_card_context(
    request: HttpRequest,
    campaign: Campaign,
    sheet: Sheet,
    shown: Any,
    *,
    progress: Any,
    answer: dict[str, Any] | None = None,
    note: str = "",
    errors: dict[str, list[str]] | None = None,
    why: str = "",
    **more: Any,
) -> dict[str, Any]:
    """The template context of an assignment, or of the message that there is none."""
    form = sheet.shown_form()
    draft = (shown.get("draft") if isinstance(shown, dict) else shown.draft) if shown else None
    if answer is None and isinstance(draft, dict):
        answer, note = draft.get("answer") or {}, draft.get("note") or ""
    if answer or errors:
        questions: dict[str, Any] = {"questions": make_questions(form, answer or {}, errors or {})}
    else:
        questions = {"blank_questions": render_blank_questions(sheet.form_json, get_language())}
    return {
        "campaign": campaign,
        "sheet": sheet,
        "form": form,
        "shown": shown,
        "progress": progress,
        **questions,
        "note": note,
        "submission": uuid4(),
        "has_back": form["options"]["allow_revise"] and progress.done > 0,
        "state_words": {"why": why, "title": TITLES.get(why, ""), "text": WHY_TEXT.get(why, "")},
        "guidelines": render_markdown(campaign.guidelines) if campaign.guidelines else "",
        "store_key": make_store_key(request, "judging"),
        "reasons": ItemFlag.Reason.choices,
        **more,
    }


def turn_context(request: HttpRequest, campaign: Campaign, turn: NextAssignment) -> dict[str, Any]:
    return make_card_context(request, campaign, turn.sheet, turn.shown, progress=turn.progress, why=turn.why)


@require_GET
def my_work(request: HttpRequest) -> HttpResponse:
    """The annotator's campaigns with their progress."""
    context = {
        "campaigns": list_my_campaigns(user=request.user),
        "writing": list_my_writing(user=request.user),
        "judging_key": make_store_key(request, "judging"),
        "writing_key": make_store_key(request, "writing"),
    }
    return page(request, "annotation/my/work.html", context, fragment="campaigns")


@never_cache
@require_GET
def judge(request: HttpRequest, pk: int) -> HttpResponse:
    """The judging page with the current text. The guidelines come before the first one."""
    campaign = get_own_campaign(user=request.user, campaign_id=pk)
    turn = get_turn(get_next_assignment, request=request, pk=pk, model=Campaign)
    if turn is None:
        return redirect("annotation:my-guidelines", pk)
    if request.user.is_participant and turn.shown is None and turn.why != "paused":
        return redirect("annotation:my-participation")
    return page(request, PAGE, turn_context(request, campaign, turn))


@never_cache
@require_GET
def judge_next(request: HttpRequest, pk: int) -> HttpResponse:
    """The text after the current one, prefetched while that is judged; 204 if there is none."""
    turn = get_next_assignment(user=request.user, campaign_id=pk, ahead=True)
    if turn.shown is None or turn.shown.public == request.GET.get("after"):
        return HttpResponse(status=204)
    return page(request, ASSIGNMENT, _ahead(request, turn))


def _ahead(request: HttpRequest, turn: NextAssignment) -> dict[str, Any]:
    """The context of a text that follows an answer, so there is one to go back to."""
    # Rendered for every answer: the fragment needs only the id of the campaign, and rights have been checked.
    context = turn_context(request, Campaign(pk=turn.sheet.campaign_id), turn)
    context["has_back"] = context["form"]["options"]["allow_revise"]
    return context


def _own(request: HttpRequest, pk: int, public: str) -> tuple[Campaign, Assignment, Sheet]:
    row = get_own_assignment(user=request.user, public=public)
    campaign = get_own_campaign(user=request.user, campaign_id=pk)
    if row.campaign_id != campaign.pk:
        raise BadInput(_("This text belongs to another campaign. Go back to your campaigns."))
    return campaign, row, make_sheet(campaign)


def _own_context(
    request: HttpRequest, campaign: Campaign, row: Assignment, sheet: Sheet, **more: Any
) -> dict[str, Any]:
    """The context of an assignment with the stored answer, or with the one that was just submitted."""
    full = list_own_assignments(user=request.user, campaign=campaign).get(pk=row.pk)
    shown = wire_own(full)
    shown |= {
        "public": shown["id"],
        "texts": [text["text"] for text in shown["texts"]],
        "is_practice": shown["practice"],
    }
    progress = make_progress(campaign.members.get(annotator=request.user), sheet)
    answered = shown["answer"] is not None
    can_revise = campaign.state != Campaign.State.CLOSED and sheet.options["allow_revise"]
    given = more.pop("answer", shown["answer"])
    note = more.pop("note", shown["note"])
    return make_card_context(
        request,
        campaign,
        sheet,
        shown,
        progress=progress,
        answer=given,
        note=note,
        revising=answered and not shown["practice"],
        can_revise=can_revise,
        answered_at=shown["saved_at"],
        feedback=_feedback(sheet, shown),
        **more,
    )


def _feedback(sheet: Sheet, shown: dict[str, Any]) -> dict[str, Any] | None:
    """The expected and given answers of a practice unit, as text."""
    if not shown["feedback"]:
        return None
    expected, answer = shown["feedback"]["expected"], shown["answer"] or {}
    rows = [
        {
            "question": aspect.question or aspect.name,
            "expected": describe_answer(sheet, expected[aspect.name]),
            "given": describe_answer(sheet, answer[aspect.name]) if aspect.name in answer else None,
        }
        for aspect in sheet.form.aspects
        if aspect.name in expected
    ]
    return {**shown["feedback"], "rows": rows}


@never_cache
@require_http_methods(["GET", "POST"])
def judge_one(request: HttpRequest, pk: int, public: str) -> HttpResponse:
    """An assignment: review, answer, or correct the answer."""
    campaign, row, sheet = _own(request, pk, public)
    if request.method == "GET":
        return page(request, PAGE, _own_context(request, campaign, row, sheet))
    answer = {
        aspect.name: request.POST[f"answer.{aspect.name}"]
        for aspect in sheet.form.aspects
        if request.POST.get(f"answer.{aspect.name}")
    }
    note = request.POST.get("note", "")
    replaces = request.POST.get("replaces", "")
    try:
        done = submit_answer(
            user=request.user,
            public=public,
            submission=read_submission(request.POST),
            answer=answer,
            note=note,
            replaces=read_number(replaces),
        )
    except BadInput as error:
        errors: dict[str, list[str]] = {}
        for fault in error.faults:
            errors.setdefault(fault.field.removeprefix("answer."), []).append(fault.message)
        context = _own_context(request, campaign, row, sheet, answer=answer, note=note, errors=errors)
        return page(request, PAGE, context, status=422)
    except Conflict as error:
        messages.error(request, _("%(reason)s Your answer was not saved.") % {"reason": error.detail})
        return redirect("annotation:judge-one", pk, public)
    if done.feedback is not None:
        return redirect("annotation:judge-one", pk, public)
    if replaces:
        _confirm_correction(request, read_number(replaces), done.version)
    return redirect("annotation:judge", pk)


def _confirm_correction(request: HttpRequest, replaced: int | None, version: int) -> None:
    """Add a message to the page after a correction."""
    if version == replaced:
        messages.info(request, _("Nothing was changed."))
    else:
        messages.success(request, _("The correction is saved."))


@signed_in
@never_cache
@require_POST
def judge_submit(request: HttpRequest, pk: int, public: str) -> HttpResponse:
    """An answer from the page's script. With `next`, the response contains the text after the current one, which saves
    a request per text. With `confirm`, the page after a correction shows the same message as without script."""
    try:
        body = read_body(request)
        done = submit_answer(user=request.user, public=public, campaign_id=pk, **read_answer(body))
    except EvalappError as error:
        return make_problem_response(error)
    if body.get("confirm"):
        _confirm_correction(request, body.get("replaces"), done.version)
    sent: dict[str, Any] = {"version": done.version, "saved_at": done.created_at}
    if body.get("next"):
        turn = NextAssignment(done.sheet, done.progress, done.next, done.why)
        sent["html"] = "" if done.next is None else render_to_string(ASSIGNMENT, _ahead(request, turn), request=request)
    return JsonResponse(sent)


@require_GET
def judge_back(request: HttpRequest, pk: int) -> HttpResponse:
    """Go to the last answer before the current text."""
    campaign = get_own_campaign(user=request.user, campaign_id=pk)
    before = None
    if public := request.GET.get("from"):
        before = get_own_assignment(user=request.user, public=public).order_number
    row = find_previous_assignment(user=request.user, campaign=campaign, before=before)
    if row is None:
        messages.info(request, _("There is no earlier answer."))
        return redirect("annotation:judge", pk)
    return redirect("annotation:judge-one", pk, row.public)


@signed_in
@require_http_methods(["GET", "POST"])
@answers_problems
def judge_skip(request: HttpRequest, pk: int, public: str) -> HttpResponse:
    """Skip a text, with an optional reason; the annotator is not shown it again."""
    _own(request, pk, public)
    if request.method == "POST":
        skip_assignment(user=request.user, public=public, reason=str(read_body(request).get("reason") or ""))
        if wants_json(request):
            return JsonResponse({})
        messages.info(request, _("Skipped. You will not see that text again."))
        return redirect("annotation:judge", pk)
    return page(request, SKIP, {"back": reverse("annotation:judge", args=[pk])})


@signed_in
@require_http_methods(["GET", "POST"])
@answers_problems
def judge_flag(request: HttpRequest, pk: int, public: str) -> HttpResponse:
    """Report a problem with a text; it can still be judged."""
    _, row, _ = _own(request, pk, public)
    is_answered = row.state == Assignment.State.SUBMITTED
    back = redirect("annotation:judge-one", pk, public) if is_answered else redirect("annotation:judge", pk)
    context = {"back": reverse("annotation:judge", args=[pk])}
    return show_flag_page(request, context, flag_assignment, public, back)


@require_http_methods(["GET", "POST"])
def guidelines(request: HttpRequest, pk: int) -> HttpResponse:
    """The guidelines of a campaign. POST: the annotator has read them and begins."""
    if request.method == "POST":
        get_next_assignment(user=request.user, campaign_id=pk)
        return redirect("annotation:judge", pk)
    campaign = get_own_campaign(user=request.user, campaign_id=pk)
    return show_guidelines(request, campaign, "annotation:judge")
