"""Personal data of annotators in this app, for their data export and deletion. The export contains nothing that
annotators could not know; ratings and choices stay, under the pseudonym."""

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from annotation.models import (
    Assignment,
    ItemFlag,
    Judgement,
    Participant,
    WritingAttempt,
    WritingFlag,
    WritingTask,
    WritingUnit,
    WrittenReference,
)
from evalapp.accounts.models import User
from evalapp.common.audit_chain import erase
from evalapp.common.hooks import OwnData

from .writing_later import was_taken_back, withdraw_row

REASON = "Withdrawn by its writer"


def own_parts(*, user: User) -> list[OwnData]:
    judged = Judgement.objects.filter(annotator=user).order_by("pk")
    drafts = Assignment.objects.filter(annotator=user).exclude(draft=None).order_by("pk")
    flags = ItemFlag.objects.filter(assignment__annotator=user).order_by("pk")
    attempts = WritingAttempt.objects.filter(member__annotator=user).order_by("pk")
    written = WrittenReference.objects.filter(member__annotator=user).order_by("pk")
    taken_part = Participant.objects.filter(user=user).exclude(state=Participant.State.WITHDRAWN)
    item_flags = WritingFlag.objects.filter(task__member__annotator=user).order_by("pk")
    return [
        OwnData("judgements", _("Your answers in all versions, with notes and times in seconds."), list(judged.values(
            "campaign__name", "assignment__public", "version", "current", "answer", "note", "seconds", "created_at"))),
        OwnData("drafts", _("Answers that you started."), list(drafts.values("campaign__name", "public", "draft"))),
        OwnData("flags", _("Problems with texts that you reported."), list(flags.values(
            "campaign__name", "assignment__public", "reason", "text", "created_at"))),
        OwnData("remarks", _("Problems with items that you reported while writing."), list(item_flags.values(
            "campaign__name", "task__public", "reason", "text", "created_at"))),
        OwnData("attempts", _("Texts that you submitted while writing."), list(attempts.values(
            "campaign__name", "task__public", "number", "text", "decision", "seconds", "created_at"))),
        OwnData("references", _("Your accepted texts, with their current state."), list(written.values(
            "campaign__name", "public", "text", "state", "created_at"))),
        OwnData("participation", _("Your participation in a study, with your consent and answers to questions."),
            list(taken_part.values(
                "external_id", "meta", "state", "consent__version", "consent__text", "consented_at", "answers",
                "may_export", "remark", "joined_at", "ended_at"))),
    ]  # fmt: skip


@transaction.atomic
def withdraw_texts(*, user: User) -> dict[str, int]:
    """Empty notes, flags, drafts and written texts; accepted texts leave their sets."""
    texts = 0
    written = WrittenReference.objects.filter(member__annotator=user).exclude(text="").order_by("unit", "pk")
    for pk, unit in written.values_list("pk", "unit"):  # in a fixed order, to avoid deadlocks
        WritingUnit.objects.select_for_update(no_key=True).get(pk=unit)
        row = WrittenReference.objects.select_related("member").get(pk=pk)
        # A text that was taken back counts as never added, with or without its text.
        reason = row.reason if was_taken_back(row) else REASON
        if row.state != WrittenReference.State.WITHDRAWN:
            withdraw_row(row, user, REASON)
        WrittenReference.objects.filter(pk=pk).update(text="", meta={}, reason=reason)
        erase(Q(verb__startswith="reference.") & Q(detail__reference=pk))
        texts += 1
    judgements = Judgement.objects.filter(annotator=user)
    return {
        "references": texts,
        "notes": judgements.exclude(note="").update(note=""),
        "flags": ItemFlag.objects.filter(assignment__annotator=user).exclude(text="").update(text="")
        + WritingFlag.objects.filter(task__member__annotator=user).exclude(text="").update(text=""),
        "remarks": Participant.objects.filter(user=user).exclude(remark="").update(remark=""),
        "drafts": Assignment.objects.filter(annotator=user).exclude(draft=None).update(draft=None)
        + WritingTask.objects.filter(member__annotator=user).exclude(draft=None).update(draft=None),
        "attempts": WritingAttempt.objects.filter(member__annotator=user)
        .exclude(text="")
        .update(text="", text_before="", candidate_text=None),
    }
