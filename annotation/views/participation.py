"""Pages for hired participants: the link with consent and questions, and their own page with the completion code."""

import secrets
from dataclasses import replace
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotation.allocation.recruitment import ANSWER_LENGTH, META_LENGTH, Question, RecruitmentPlan, read_participant_id
from annotation.allocation.texts import is_storable
from annotation.models import Campaign, Participant, Recruitment
from annotation.selectors.participants import find_obstacle, find_recruitment, get_code, get_own_participation
from annotation.services.participant_answers import withdraw_participant
from annotation.services.participants import (
    OBSTACLES,
    REMARK_LENGTH,
    Applicant,
    CannotJoin,
    ConsentChanged,
    Entry,
    OtherBrowser,
    count_refusal,
    find_participant,
    is_own_browser,
    join_study,
    save_remark,
)
from evalapp.accounts import limits
from evalapp.accounts.forms import add_faults
from evalapp.common.errors import BadInput, NotThere
from evalapp.common.markdown import render_markdown
from evalapp.common.pages import page

from .languages import use_language

State = Participant.State
#: Field with the consent to the export; not a possible name of a question.
MAY_EXPORT = "May-export"
#: Holds the key of a browser, which is what binds a participant to it.
COOKIE, COOKIE_AGE = "participant", 60 * 60 * 24 * 90
OUTCOME = "annotation/participation/outcome.html"
TITLES = {
    "working": gettext_lazy("You have not finished yet"),
    "left": gettext_lazy("You have not finished yet"),
    "passed": gettext_lazy("You have finished. Thank you!"),
    "failed": gettext_lazy("You have finished. Thank you!"),
    "screened": gettext_lazy("Thank you for your interest"),
    "banned": gettext_lazy("You cannot take part in this study"),
    "full": gettext_lazy("All places are taken"),
    "refused": gettext_lazy("You have not agreed to take part"),
    "closed": gettext_lazy("This study has ended"),
}
TEXTS = {
    "working": gettext_lazy("Your answers so far are stored. Continue to get your completion code."),
    "left": gettext_lazy(
        "You were away for a while, so your place was released. Continue to get one again, if one is still free."
    ),
    "passed": gettext_lazy("All your answers are stored."),
    "failed": gettext_lazy("Your answers are stored, but they do not meet the requirements of this study."),
    "screened": gettext_lazy(
        "Your answers to the practice texts differ too often from the expected ones, so the study ends here for you."
    ),
    "banned": gettext_lazy("If you think this is a mistake, contact the researchers."),
    "full": gettext_lazy(
        "Other participants have taken all places in the meantime. Answers that you gave are stored; the researchers "
        "see how many there are."
    ),
    "refused": gettext_lazy("Nothing about you is stored. You can close this page, or return to where you came from."),
    "closed": gettext_lazy("Answers that you gave are stored; the researchers see how many there are."),
}


def make_question_field(question: Question) -> forms.Field:
    """The form field of a question before the first text."""
    texts: dict[str, Any] = {"label": question.question, "required": question.required}
    if question.kind == "choice":
        choices = [(choice, choice) for choice in question.choices]
        return forms.ChoiceField(choices=choices, widget=forms.RadioSelect, **texts)
    if question.kind == "number":
        return forms.FloatField(min_value=question.low, max_value=question.high, **texts)
    return forms.CharField(max_length=ANSWER_LENGTH, widget=forms.Textarea(attrs={"rows": 2}), **texts)


class QuestionForm(forms.Form):
    """The questions of a link, each under its name; and the consent to their export."""

    def __init__(self, plan: RecruitmentPlan, data: Any = None) -> None:
        super().__init__(data, prefix="q")
        for question in plan.questions:
            self.fields[question.name] = make_question_field(question)
        if plan.questions and plan.ask_export:
            self.fields[MAY_EXPORT] = forms.BooleanField(
                required=False,
                label=_("My answers to these questions may be published with the data, without my participant id."),
            )

    def read_entry(self) -> Entry:
        version = self.data.get("consent_version", "")
        return Entry(
            consent_version=int(version) if version.isdecimal() and len(version) < 9 else 0,
            answers={name: self.data.get(self.add_prefix(name), "") for name in self.fields},
            may_export=bool(self.cleaned_data.get(MAY_EXPORT)),
        )


# ---- the link ---------------------------------------------------------------------------------------------


@login_not_required
@never_cache
@require_http_methods(["GET", "POST"])
def study(request: HttpRequest, secret: str) -> HttpResponse:
    """The link of a study: consent and questions, then the first text. The same browser and participant id again
    continues."""
    try:
        recruitment = find_recruitment(secret=secret)
    except NotThere:
        limits.spend(limits.LINK_FAILURES, limits.client_ip(request))
        raise
    use_language(request, recruitment.campaign)
    plan = recruitment.plan
    if not request.GET.get(plan.id_parameter, "").strip():
        context = {"recruitment": recruitment, "plan": plan, "meta": read_meta(request, plan)}
        return page(request, "annotation/participation/enter_id.html", context)
    applicant = read_applicant(request, plan)
    known = _find_known(request, recruitment, applicant)
    if known is not None:
        return _continue(request, recruitment, applicant, known)
    if obstacle := find_obstacle(recruitment, applicant.external_id):
        return show_obstacle(request, recruitment, applicant, obstacle)
    if request.POST.get("do") == "refuse":
        count_refusal(recruitment=recruitment)
        return show_obstacle(request, recruitment, applicant, "refused")
    if request.method == "POST":
        return _join(request, recruitment, applicant)
    return _show_consent(request, recruitment, QuestionForm(plan))


def _find_known(request: HttpRequest, recruitment: Recruitment, applicant: Applicant) -> Participant | None:
    """The participant with this id, if any. Attempts from other browsers than their own are limited."""
    try:
        known = find_participant(recruitment, applicant)
    except OtherBrowser:
        limits.spend(limits.OTHER_BROWSERS, limits.client_ip(request))
        raise
    if known is not None and not is_own_browser(known, applicant):
        limits.spend(limits.OTHER_BROWSERS, limits.client_ip(request))
    return known


def read_applicant(request: HttpRequest, plan: RecruitmentPlan) -> Applicant:
    """The participant's id, further parameters and browser, as a link sends them."""
    external_id, message = read_participant_id(request.GET.get(plan.id_parameter, ""))
    if message:
        raise BadInput(message)
    return Applicant(external_id, read_meta(request, plan), request.COOKIES.get(COOKIE, "")[:100])


def read_meta(request: HttpRequest, plan: RecruitmentPlan) -> dict[str, str]:
    """The further parameters of the address that the study stores."""
    meta = {name: request.GET[name][:META_LENGTH] for name in plan.meta_parameters if request.GET.get(name)}
    if not is_storable(meta):
        raise BadInput(_("The address contains characters that cannot be stored. Use the link as you received it."))
    return meta


def _continue(
    request: HttpRequest, recruitment: Recruitment, applicant: Applicant, known: Participant
) -> HttpResponse:  # fmt: skip
    """Sign the participant in again. A browser that is signed in as somebody else, or is not the participant's own, is
    asked first."""
    is_other = request.user.is_authenticated and not request.user.is_participant
    if request.method == "POST" or (is_own_browser(known, applicant) and not is_other):
        return _enter(request, known, applicant.browser)
    context = {"recruitment": recruitment, "participant": known}
    return page(request, "annotation/participation/continue.html", context)


def _join(request: HttpRequest, recruitment: Recruitment, applicant: Applicant) -> HttpResponse:
    form = QuestionForm(recruitment.plan, request.POST)
    applicant = replace(applicant, browser=applicant.browser or make_browser_key())
    try:
        if form.is_valid():
            limits.spend(limits.PARTICIPANTS_BY_ADDRESS, limits.client_ip(request))
            person = join_study(recruitment=recruitment, applicant=applicant, entry=form.read_entry())
            return _enter(request, person, applicant.browser)
    except CannotJoin as error:
        return show_obstacle(request, recruitment, applicant, error.obstacle)
    except (BadInput, ConsentChanged) as error:
        add_faults(form, error)
    return _show_consent(request, recruitment, form, status=422)


def _enter(request: HttpRequest, person: Participant, browser: str) -> HttpResponse:
    """Sign in as the participant and go to the first text, or to the completion code."""
    login(request, person.user, backend="evalapp.accounts.backends.PasswordBackend")
    campaign = person.recruitment.campaign_id
    response = redirect("annotation:my-participation") if person.has_ended else redirect("annotation:judge", campaign)
    if browser:
        _store_browser_key(response, browser)
    return response


def make_browser_key() -> str:
    return secrets.token_urlsafe(32)


def _store_browser_key(response: HttpResponse, key: str) -> None:
    response.set_cookie(
        COOKIE, key, max_age=COOKIE_AGE, path=settings.SESSION_COOKIE_PATH, samesite="Lax", httponly=True,
        secure=settings.SESSION_COOKIE_SECURE,
    )  # fmt: skip


def _show_consent(
    request: HttpRequest, recruitment: Recruitment, form: QuestionForm, status: int = 200
) -> HttpResponse:  # fmt: skip
    consent = recruitment.consent_texts.order_by("-version").first()
    context = {
        "recruitment": recruitment,
        "plan": recruitment.plan,
        "campaign": recruitment.campaign,
        "form": form,
        "consent": render_markdown(consent.text) if consent else "",
        "consent_version": consent.version if consent else 0,
    }
    response = page(request, "annotation/participation/consent.html", context, status=status)
    if not request.COOKIES.get(COOKIE):
        # Already here, so that two windows of a browser are the same participant.
        _store_browser_key(response, make_browser_key())
    return response


def show_obstacle(request: HttpRequest, recruitment: Recruitment, applicant: Applicant, name: str) -> HttpResponse:
    """The page for people who do not take part, with the code or the way back for this outcome."""
    outcome = recruitment.plan.get_outcome("full" if name == "closed" else name)
    values = {**applicant.meta, recruitment.plan.id_parameter: applicant.external_id}
    context = {
        "recruitment": recruitment,
        "plan": recruitment.plan,
        "name": name,
        "title": TITLES.get(name, _("You cannot take part now")),
        "text": outcome.text or OBSTACLES.get(name, TEXTS.get(name, "")),
        "code": outcome.code,
        "address": outcome.make_address({**values, "participant": applicant.external_id, "code": outcome.code}),
    }
    return page(request, OUTCOME, context)


# ---- the participant's own page ---------------------------------------------------------------------------


@never_cache
@require_http_methods(["GET", "POST"])
def participation(request: HttpRequest) -> HttpResponse:
    """The state of the participant, with the completion code after the end, and a remark for the researchers."""
    person = get_own_participation(request.user)
    use_language(request, person.recruitment.campaign)
    if request.method == "POST":
        try:
            save_remark(participant=person, text=request.POST.get("remark", ""))
        except BadInput as error:
            messages.error(request, error.detail)
        else:
            messages.success(request, _("Thank you. The researchers will read your remark."))
        return redirect("annotation:my-participation")
    return page(request, "annotation/participation/show.html", _describe(person))


def _describe(person: Participant) -> dict[str, Any]:
    recruitment = person.recruitment
    plan, campaign = recruitment.plan, recruitment.campaign
    name = str(person.state)
    if name in (State.WORKING, State.LEFT) and campaign.state == Campaign.State.CLOSED:
        name = "closed"
    elif name == State.LEFT and find_obstacle(recruitment, person.external_id) == "full":
        name = "full"
    outcome = plan.get_outcome("full" if name == "closed" else name)
    code = get_code(person, plan) if person.has_ended else outcome.code
    return {
        "participant": person,
        "campaign": campaign,
        "plan": plan,
        "name": name,
        "title": TITLES[name],
        "text": outcome.text or TEXTS[name],
        "code": code,
        "address": outcome.make_address(person.make_values(code, plan.id_parameter)),
        "goes_on": name in (State.WORKING, State.LEFT),
        "remark_length": REMARK_LENGTH,
    }


@never_cache
@require_http_methods(["GET", "POST"])
def participation_withdraw(request: HttpRequest) -> HttpResponse:
    """Ask whether to delete the participant's answers; POST deletes them and signs out."""
    person = get_own_participation(request.user)
    use_language(request, person.recruitment.campaign)
    if request.method == "GET":
        return page(request, "annotation/participation/withdraw.html", _describe(person))
    withdraw_participant(participant=person, actor=request.user)
    recruitment = person.recruitment
    logout(request)
    context = {
        "recruitment": recruitment, "plan": recruitment.plan, "name": "withdrawn",
        "title": _("Your answers are deleted"),
        "text": _("Your answers and your participant id are no longer stored. You can close this page."),
    }  # fmt: skip
    return page(request, OUTCOME, context)
