"""Pages about hired participants for the people who run a campaign: links, their participants, payment, bans."""

import csv
from io import StringIO
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.allocation.recruitment import ID_LENGTH, PAY_COLUMNS
from annotation.models import Campaign, Participant, ParticipantBan, Recruitment
from annotation.parsers.writer import guard_cell
from annotation.selectors.participants import (
    SHOWN,
    describe_recruitment,
    list_bans,
    list_payments,
    list_recruitments,
)
from annotation.services.participant_answers import withdraw_participant
from annotation.services.recruitments import (
    ban_participant,
    close_recruitment,
    create_recruitment,
    lift_ban,
    renew_link,
    update_recruitment,
)
from evalapp.accounts.forms import submit
from evalapp.common.errors import EvalappError, NotThere

from .campaign_pages import JUDGING
from .recruitment_forms import RecruitmentEditor

FOLDER = "participants"


class BanForm(forms.Form):
    external_id = forms.CharField(max_length=ID_LENGTH, label=gettext_lazy("Participant id"))
    reason = forms.CharField(required=False, max_length=300, label=gettext_lazy("Reason"))


def _find(request: HttpRequest, slug: str, pk: int, number: int) -> tuple[Campaign, Recruitment]:
    campaign = JUDGING.find(request, slug, pk, "write")
    row = Recruitment.objects.filter(campaign=campaign, pk=number).first()
    if row is None:
        raise NotThere(_("There is no such link for participants of this campaign."))
    row.campaign = campaign
    return campaign, row


def _show(request: HttpRequest, name: str, campaign: Campaign, *, status: int = 200, **context: Any) -> HttpResponse:
    response = JUDGING.show(request, f"{FOLDER}/{name}", campaign, status=status, **context)
    response.headers["Cache-Control"] = "no-store"
    return response


@require_safe
def recruitment_list(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The links of a campaign for hired participants, and the bans of the project."""
    return _show_list(request, JUDGING.find(request, slug, pk, "write"), BanForm())


def _show_list(request: HttpRequest, campaign: Campaign, form: BanForm) -> HttpResponse:
    context = {"links": list_recruitments(campaign), "bans": list(list_bans(campaign.project)[:SHOWN]), "form": form}
    return _show(request, "list", campaign, status=422 if form.errors else 200, **context)


@require_http_methods(["GET", "POST"])
def recruitment_new(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A new link. Only the response to the POST contains its address."""
    campaign = JUDGING.find(request, slug, pk, "write")
    editor = RecruitmentEditor(data=request.POST if request.method == "POST" else None)
    if request.method == "POST" and editor.is_valid():
        try:
            row, secret = create_recruitment(campaign=campaign, user=request.user, settings=editor.as_settings())
        except EvalappError as error:
            editor.add_faults(error)
        else:
            row.campaign = campaign
            return _show_link(request, campaign, row, secret)
    return _show_form(request, campaign, None, editor)


def _show_form(
    request: HttpRequest, campaign: Campaign, row: Recruitment | None, editor: RecruitmentEditor
) -> HttpResponse:  # fmt: skip
    failed = request.method == "POST"
    return _show(
        request, "form", campaign, status=422 if failed else 200, link=row, form=editor.form, rows=editor.rows,
        failed=failed, opened=editor.list_open(),
    )  # fmt: skip


@require_http_methods(["GET", "POST"])
def recruitment_show(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """A link with its participants. POST closes, reopens or renews it; a new address is only in that response."""
    campaign, row = _find(request, slug, pk, number)
    if request.method == "GET":
        return _show_link(request, campaign, row)
    act = request.POST.get("do", "")
    if act == "renew":
        return _show_link(request, campaign, row, renew_link(recruitment=row, user=request.user))
    if act in ("close", "reopen"):
        close_recruitment(recruitment=row, user=request.user, closed=act == "close")
        text = _("Closed. Those who have begun can finish.") if act == "close" else _("The link is open again.")
        messages.success(request, text)
    return redirect("annotation:participants-link", slug, pk, number)


def _show_link(request: HttpRequest, campaign: Campaign, row: Recruitment, secret: str = "") -> HttpResponse:
    link, plan = describe_recruitment(row), row.plan
    address = ""
    if secret:
        address = request.build_absolute_uri(reverse("annotation:study", args=[secret]))
        address += f"?{plan.id_parameter}={{ID}}"
    people = list(list_payments(row, limit=SHOWN))
    needed = campaign.unit_count * campaign.overlap
    possible = row.places * campaign.goal
    return _show(
        request, "show", campaign, link=link, plan=plan, address=address, people=people, shown=SHOWN, needed=needed,
        possible=possible, consents=list(row.consent_texts.order_by("-version")),
    )  # fmt: skip


@require_http_methods(["GET", "POST"])
def recruitment_edit(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """Change the settings of a link. Rules apply to participants who end later."""
    campaign, row = _find(request, slug, pk, number)
    editor = RecruitmentEditor(data=request.POST if request.method == "POST" else None, settings=row.plan.as_dict())
    if request.method == "POST" and editor.is_valid():
        try:
            update_recruitment(recruitment=row, user=request.user, changes=editor.as_settings())
        except EvalappError as error:
            editor.add_faults(error)
        else:
            messages.success(request, _("Saved."))
            return redirect("annotation:participants-link", slug, pk, number)
    return _show_form(request, campaign, row, editor)


@never_cache
@require_safe
def payments_file(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """All participants as CSV, for payment. Cells that a spreadsheet could run are guarded."""
    campaign, row = _find(request, slug, pk, number)
    parameters = row.plan.meta_parameters
    text = StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(map(guard_cell, (*PAY_COLUMNS, *parameters)))
    for person in list_payments(row):
        cells = [_as_cell(person[name]) for name in PAY_COLUMNS]
        writer.writerow(map(guard_cell, (*cells, *(person["meta"].get(name, "") for name in parameters))))
    response = HttpResponse("\ufeff" + text.getvalue(), content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{campaign.slug}-participants-{row.pk}.safe.csv"'
    return response


def _as_cell(value: Any) -> Any:
    return value.isoformat(timespec="seconds") if hasattr(value, "isoformat") else value


@require_http_methods(["GET", "POST"])
def participant_withdraw(request: HttpRequest, slug: str, pk: int, number: int, participant: int) -> HttpResponse:
    """Delete the data of a participant who asked for it."""
    campaign, row = _find(request, slug, pk, number)
    people = Participant.objects.select_related("user", "recruitment__campaign__project")
    person = people.filter(recruitment=row, pk=participant).first()
    if person is None:
        raise NotThere(_("This link has no such participant."))
    if request.method == "GET":
        return _show(request, "withdraw", campaign, link=row, participant=person)
    withdraw_participant(participant=person, actor=request.user)
    messages.success(request, _("The data of this participant are deleted."))
    return redirect("annotation:participants-link", slug, pk, number)


@require_POST
def ban(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Keep a participant id out of all studies of the project."""
    campaign = JUDGING.find(request, slug, pk, "write")
    form = BanForm(request.POST)

    def store(**values: str) -> ParticipantBan:
        return ban_participant(project=campaign.project, user=request.user, **values)

    if submit(form, store) is None:
        return _show_list(request, campaign, form)
    messages.success(request, _("Banned. The id can no longer take part in studies of this project."))
    return redirect("annotation:participants", slug, pk)


@require_POST
def unban(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    campaign = JUDGING.find(request, slug, pk, "write")
    row = ParticipantBan.objects.select_related("project").filter(project=campaign.project, pk=number).first()
    if row is None:
        raise NotThere(_("There is no such ban in this project."))
    lift_ban(ban=row, user=request.user)
    messages.success(request, _("The ban is lifted."))
    return redirect("annotation:participants", slug, pk)
