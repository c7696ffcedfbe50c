"""The writing page: next item, one item (write, add, discard, take back), finish, skip, flag, draft, and texts that
others added meanwhile. Everything works with plain forms; static/js/write.js makes it live. `writing_context` makes the
template context."""

from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.models import WritingCampaign
from annotation.selectors.campaigns import get_own_campaign
from annotation.selectors.writing import get_own_task
from annotation.services.writing_acts import finish_task, flag_task, save_draft, skip_task
from annotation.services.writing_attempts import drop_candidate, submit_attempt
from annotation.services.writing_back import take_back_last
from annotation.services.writing_handout import get_next_task
from annotation.services.writing_later import confirm_reference, get_next_confirmation
from annotation.services.writing_view import TaskView, get_task_view
from evalapp.common.errors import BadInput, Conflict, EvalappError
from evalapp.common.pages import page

from .annotator_pages import SKIP, get_turn, show_flag_page, show_guidelines
from .scripted import (
    answers_problems,
    make_problem_response,
    read_body,
    read_json,
    read_submission,
    signed_in,
    wants_json,
)
from .writing_context import describe_outcome, list_plain_candidates, make_context

PAGE = "annotation/writing/page.html"
TASK = "annotation/writing/page/_task.html"
FLAGS = {"yes": True, "no": False}
BACK = gettext_lazy("Taken back. The text is no longer a reference.")
CHOICES = (
    ("a", gettext_lazy("The first is better")),
    ("tie", gettext_lazy("Equally good")),
    ("b", gettext_lazy("The second is better")),
)


@never_cache
@require_GET
def write(request: HttpRequest, pk: int) -> HttpResponse:
    """The current item, or the reason why there is none. The guidelines come before the first item."""
    view = get_turn(get_next_task, request=request, pk=pk, model=WritingCampaign)
    if view is None:
        return redirect("annotation:write-guidelines", pk)
    return page(request, PAGE, make_context(request, view))


def _own(request: HttpRequest, pk: int, public: str) -> Any:
    """The user's task, which must belong to the campaign in the address."""
    task = get_own_task(user=request.user, public=public)
    if task.campaign_id != pk:
        raise BadInput(_("This item belongs to another campaign. Go back to your campaigns."))
    return task


def _body(request: HttpRequest) -> dict[str, Any]:
    """The members of the request, from a form or from JSON."""
    if wants_json(request):
        return read_json(request)
    form = request.POST
    return {
        "submission": form.get("submission", ""),
        "text": form.get("text", ""),
        "candidate": form.get("candidate") or None,
        "relevant": FLAGS.get(form.get("relevant", "")),
        "unscored": form.get("unscored") == "1",
        "reference": form.get("reference", ""),
        "reason": form.get("reason", ""),
    }


def _seconds(body: dict[str, Any]) -> float | None:
    seconds = body.get("seconds")
    return float(seconds) if isinstance(seconds, (int, float)) and abs(seconds) < 1e9 else None


@signed_in
@never_cache
@require_http_methods(["GET", "POST"])
@answers_problems
def write_one(request: HttpRequest, pk: int, public: str) -> HttpResponse:
    """An item: show it, or add a text. `?part=references` is its current state, for refreshing an open page."""
    _own(request, pk, public)
    if request.method == "POST":
        return _submit(request, pk, public)
    view = get_task_view(user=request.user, public=public)
    if request.GET.get("part") == "references":
        context = make_context(request, view)
        if request.GET.get("stamp") == context["stamp"]:
            return HttpResponse(status=204)
        return page(request, TASK, context)
    more = list_plain_candidates(request, view)
    return page(request, PAGE, make_context(request, view, **more))


def _submit(request: HttpRequest, pk: int, public: str) -> HttpResponse:
    body = _body(request)
    relevant = body.get("relevant")
    try:
        outcome = submit_attempt(
            user=request.user,
            public=public,
            submission=read_submission(body),
            text=str(body.get("text") or ""),
            relevant=relevant if isinstance(relevant, bool) else None,
            candidate=str(body["candidate"]) if body.get("candidate") else None,
            seconds=_seconds(body),
            unscored=bool(body.get("unscored")),
        )
    except EvalappError as error:
        view = get_task_view(user=request.user, public=public)
        if wants_json(request):
            return make_problem_response(error, _drawn(request, view))
        message = " ".join(fault.message for fault in error.faults) or error.detail
        context = make_context(request, view, typed=body, outcome={"level": "bad", "message": message})
        return page(request, PAGE, context, status=422)
    words = describe_outcome(outcome)
    if wants_json(request):
        return _answer(request, outcome.view, words)
    if words["finished"]:
        messages.success(request, words["message"])
        return redirect("annotation:write", pk)
    typed = body if outcome.decision in ("edit", "wait") else None
    return page(request, PAGE, make_context(request, outcome.view, typed=typed, outcome=words))


def _answer(request: HttpRequest, view: TaskView, words: dict[str, Any]) -> JsonResponse:
    """The outcome and the current state of the item."""
    return JsonResponse({**words, "html": "" if words["finished"] else _drawn(request, view)})


def _drawn(request: HttpRequest, view: TaskView) -> str:
    return render_to_string(TASK, make_context(request, view), request=request)


@signed_in
@require_POST
def write_draft(request: HttpRequest, pk: int, public: str) -> HttpResponse:
    """Save a draft. JSON only, because pages without script have no drafts."""
    try:
        _own(request, pk, public)
        body = _body(request)
        draft, version = body.get("draft"), body.get("version")
        if not isinstance(draft, dict) or not isinstance(version, int):
            raise BadInput(_("A draft is an object, and its version is an integer."))
        saved = save_draft(user=request.user, public=public, draft=draft, version=version)
    except EvalappError as error:
        return make_problem_response(error)
    return JsonResponse({"draft_version": saved.version})


@signed_in
@require_POST
@answers_problems
def write_drop(request: HttpRequest, pk: int, public: str) -> HttpResponse:
    """Discard the candidate; the next one follows."""
    _own(request, pk, public)
    body = _body(request)
    if not body.get("candidate"):
        raise BadInput(_("There is no candidate to discard."))
    outcome = drop_candidate(
        user=request.user, public=public, submission=read_submission(body), candidate=str(body["candidate"]),
        seconds=_seconds(body),
    )  # fmt: skip
    words = {**describe_outcome(outcome), "message": _("Discarded.")}
    if wants_json(request):
        return _answer(request, outcome.view, words)
    return redirect("annotation:write", pk) if words["finished"] else redirect("annotation:write-one", pk, public)


@signed_in
@require_POST
@answers_problems
def write_back(request: HttpRequest, pk: int, public: str) -> HttpResponse:
    """Take back the annotator's last text; it returns to the editor."""
    try:
        _own(request, pk, public)
        view = take_back_last(user=request.user, public=public, reference=str(_body(request).get("reference", ""))[:40])
    except (BadInput, Conflict) as error:
        if wants_json(request):
            raise
        messages.error(request, error.detail)
        return redirect("annotation:write", pk)
    if wants_json(request):
        return JsonResponse({"message": str(BACK), "html": _drawn(request, view)})
    messages.success(request, BACK)
    return redirect("annotation:write-one", pk, public)


@require_POST
def write_done(request: HttpRequest, pk: int, public: str) -> HttpResponse:
    """Finish the item with any number of references."""
    _own(request, pk, public)
    finish_task(user=request.user, public=public, submission=read_submission(_body(request)))
    return redirect("annotation:write", pk)


@signed_in
@require_http_methods(["GET", "POST"])
@answers_problems
def write_skip(request: HttpRequest, pk: int, public: str) -> HttpResponse:
    """Skip the item, with an optional reason; the annotator is not shown it again."""
    _own(request, pk, public)
    if request.method == "POST":
        skip_task(user=request.user, public=public, reason=str(read_body(request).get("reason") or "")[:300])
        if wants_json(request):
            return JsonResponse({})
        messages.info(request, _("Skipped. You will not see that item again."))
        return redirect("annotation:write", pk)
    return page(request, SKIP, {"back": reverse("annotation:write-one", args=[pk, public]), "is_item": True})


@signed_in
@require_http_methods(["GET", "POST"])
@answers_problems
def write_flag(request: HttpRequest, pk: int, public: str) -> HttpResponse:
    """Report a problem with an item; it can still be worked on."""
    _own(request, pk, public)
    back = reverse("annotation:write-one", args=[pk, public])
    return show_flag_page(request, {"back": back, "is_item": True}, flag_task, public, redirect(back))


@never_cache
@require_http_methods(["GET", "POST"])
def write_confirm(request: HttpRequest, pk: int) -> HttpResponse:
    """Blind comparison of another annotator's text with the original."""
    get_own_campaign(user=request.user, campaign_id=pk, model=WritingCampaign)
    if request.method == "POST":
        try:
            confirm_reference(
                user=request.user,
                public=request.POST.get("text", "")[:40],
                submission=read_submission(_body(request)),
                better=request.POST.get("better", ""),
            )
        except (BadInput, Conflict) as error:
            messages.error(request, error.detail)
        return redirect("annotation:write-confirm", pk)
    pair = get_next_confirmation(user=request.user, campaign_id=pk)
    if not pair.public:
        messages.info(request, _("There are no texts left to compare."))
        return redirect("annotation:write", pk)
    context = {"campaign": pair.campaign, "pair": pair, "submission": uuid4(), "answers": CHOICES}
    return page(request, "annotation/writing/confirm.html", context)


@require_http_methods(["GET", "POST"])
def write_guidelines(request: HttpRequest, pk: int) -> HttpResponse:
    """The guidelines of a campaign. POST: the annotator has read them and begins."""
    if request.method == "POST":
        get_next_task(user=request.user, campaign_id=pk)
        return redirect("annotation:write", pk)
    campaign = get_own_campaign(user=request.user, campaign_id=pk, model=WritingCampaign)
    return show_guidelines(request, campaign, "annotation:write")
