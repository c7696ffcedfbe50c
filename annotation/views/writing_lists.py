"""Paginated lists of a writing campaign: references and attempts with their origin; withdrawal and restoration."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.models import WritingAttempt, WritingCampaign, WrittenReference
from annotation.selectors.writing import list_written
from annotation.services.writing_later import restore_reference, withdraw_reference
from evalapp.accounts.selectors import rater_names
from evalapp.common.errors import Conflict, NotThere
from evalapp.common.pagination import keyset

from .campaign_pages import PAGE_SIZE, WRITING
from .writing_forms import ARM_NAMES

WHY_WORDS = {
    "irrelevant": gettext_lazy("does not fit the context"),
    "no-gain": gettext_lazy("does not make the set more reliable"),
    "no-score": gettext_lazy("no score"),
    "limit": gettext_lazy("no attempts left"),
}


def describe_candidate_source(source: dict[str, Any]) -> str:
    """The origin of a candidate: corpus, row, licence, if known."""
    parts = [str(source.get("corpus") or "")]
    if source.get("row") is not None:
        parts.append(_("row %(row)s") % {"row": source["row"]})
    parts += [str(source[name]) for name in ("origin", "licence") if source.get(name)]
    return ", ".join(part for part in parts if part)


def _chosen(request: HttpRequest, rows: Any, pseudonyms: dict[int, str]) -> tuple[Any, dict[str, str]]:
    """The rows of the annotator, arm or item in the address."""
    wanted = {name: request.GET.get(name, "")[:200] for name in ("rater", "arm", "item")}
    if wanted["rater"]:
        people = [user for user, name in pseudonyms.items() if name == wanted["rater"]]
        rows = rows.filter(member__annotator__in=people)
    if wanted["arm"] in ARM_NAMES:
        rows = rows.filter(task__arm=wanted["arm"])
    if wanted["item"]:
        rows = rows.filter(task__unit__item__key=wanted["item"])
    return rows, {name: value for name, value in wanted.items() if value}


def make_written_lines(rows: list[WrittenReference], pseudonyms: dict[int, str]) -> list[dict[str, Any]]:
    return [
        {
            "row": row,
            "item": row.unit.item,
            "rater": pseudonyms.get(row.member.annotator_id, ""),
            "arm": ARM_NAMES.get(row.task.arm, row.task.arm),
            "attempt": row.attempt,
            "source": describe_candidate_source(row.attempt.source),
        }
        for row in rows
    ]


@require_safe
def reference_list(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Written references, newest first."""
    campaign = WRITING.find(request, slug, pk)
    pseudonyms = rater_names(campaign.project_id)
    rows, wanted = _chosen(request, list_written(campaign=campaign), pseudonyms)
    references = keyset(rows, order=("-pk",), cursor=request.GET.get("cursor", ""), size=PAGE_SIZE)
    lines = make_written_lines(references.rows, pseudonyms)
    return WRITING.show(request, "references", campaign, page=references, lines=lines, wanted=wanted)


@require_safe
def attempt_list(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Submitted texts and discarded candidates, newest first."""
    campaign = WRITING.find(request, slug, pk)
    pseudonyms = rater_names(campaign.project_id)
    rows = WritingAttempt.objects.filter(campaign=campaign).select_related("task__unit__item", "member")
    rows, wanted = _chosen(request, rows, pseudonyms)
    attempts = keyset(rows, order=("-pk",), cursor=request.GET.get("cursor", ""), size=PAGE_SIZE)
    lines = [
        {
            "row": row,
            "item": row.task.unit.item,
            "rater": pseudonyms.get(row.member.annotator_id, ""),
            "arm": ARM_NAMES.get(row.task.arm, row.task.arm),
            "source": describe_candidate_source(row.source),
            "why": WHY_WORDS.get(row.why, row.why),
        }
        for row in attempts.rows
    ]
    return WRITING.show(request, "attempts", campaign, page=attempts, lines=lines, wanted=wanted)


def _written(campaign: WritingCampaign, pk: int) -> WrittenReference:
    row = WrittenReference.objects.select_related("unit__item").filter(campaign=campaign, pk=pk).first()
    if row is None:
        raise NotThere(_("There is no such reference in this campaign."))
    return row


@require_http_methods(["GET", "POST"])
def reference_withdraw(request: HttpRequest, slug: str, pk: int, reference: int) -> HttpResponse:
    """Take a reference out of its set, with a reason; it can be restored."""
    campaign = WRITING.find(request, slug, pk, "write")
    row = _written(campaign, reference)
    if request.method == "POST":
        reason = request.POST.get("reason", "")[:300]
        try:
            withdraw_reference(user=request.user, reference_id=row.pk, reason=reason)
        except Conflict as error:
            messages.error(request, error.detail)
        else:
            messages.success(request, _("The reference is withdrawn from its set. It can be restored."))
        return redirect("annotation:writing-references", slug, pk)
    return WRITING.show(request, "withdraw", campaign, row=row)


@require_POST
def reference_restore(request: HttpRequest, slug: str, pk: int, reference: int) -> HttpResponse:
    campaign = WRITING.find(request, slug, pk, "write")
    row = _written(campaign, reference)
    try:
        restore_reference(user=request.user, reference_id=row.pk)
    except Conflict as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, _("The reference is restored to its set."))
    return redirect("annotation:writing-references", slug, pk)
