"""Late answers, revisions and replays. Every answer that arrives is stored, or rejected with both versions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.allocation.plan import OPTIONS
from annotation.models import Assignment, Campaign, CampaignMember, Judgement, Slot
from annotation.selectors.judging_sheet import Sheet
from evalapp.accounts.models import User
from evalapp.common.errors import Conflict, NotAllowed

from . import judging_rows
from .judging_rows import Answer, LockedAssignment
from .statements import Statement, is_postgres, run, run_batch


class SubmissionConflict(Conflict):
    code, title = "submission-conflict", gettext_lazy("The submission id was used for another answer")


class StaleAnswer(Conflict):
    code, title = "stale-answer", gettext_lazy("The answer was changed in the meantime")


def free_slots(slots: Sequence[int]) -> None:
    Slot.objects.filter(pk__in=slots).update(state=Slot.State.FREE)


def note_done(assignment: LockedAssignment, answer: Answer) -> None:
    """Update the counters in memory like those of the member's row."""
    if assignment.unit_kind != "practice":
        assignment.who.done += 1
        assignment.who.seconds += answer.seconds or 0.0


def wire_judgement(row: Judgement) -> dict[str, Any]:
    return {
        "submission": str(row.submission),
        "version": row.version,
        "answer": row.answer,
        "note": row.note,
        "saved_at": row.created_at.isoformat(),
    }


def find_submission_conflict(submission: UUID, user: User, answer: Any, note: str) -> Conflict | None:
    """The error for a submission id that is in use; None if it is not. It never contains other people's answers."""
    row = Judgement.objects.filter(submission=submission).first()
    if row is None:
        return None
    stored = wire_judgement(row) if row.annotator_id == user.pk else None
    return SubmissionConflict(
        _("This submission id was already used for another answer. Send yours with a new id."),
        stored=stored,
        yours={"answer": answer, "note": note},
    )


def store_other(
    cursor: Any, assignment: LockedAssignment, sheet: Sheet, answer: Answer, now: datetime
) -> tuple[int, bool, datetime, bool]:
    """Store an answer to an assignment that is not simply open. The caller holds the lock of the member. Returns the
    version, `extra`, the time, and whether the same submission was received before."""
    before = Judgement.objects.filter(submission=UUID(answer.submission)).first()
    yours = {"answer": answer.shown, "note": answer.note}
    if before is not None:
        if before.assignment_id == assignment.id and before.body_hash == answer.body_hash:
            return before.version, before.extra, before.created_at, True
        conflict = find_submission_conflict(before.submission, before.annotator, answer.shown, answer.note)
        assert conflict is not None
        if before.annotator_id != assignment.who.user_id:
            conflict.extra["stored"] = None
        raise conflict
    # Read again under a lock: the row may have changed while waiting for the member's row, and an expiring lease would
    # free the slot that the answer keeps.
    row = Assignment.objects.select_for_update(of=("self",)).get(pk=assignment.id)
    current = Judgement.objects.filter(assignment=row, current=True).first()
    if answer.replaces != (row.version or None):
        stored = wire_judgement(current) if current else None
        if current and answer.replaces is None:
            message = _("You have already answered this. To change the answer, send replaces: %(stored)d.")
        elif current:
            message = _("The answer is at version %(stored)d now; yours replaces version %(yours)d. Choose one.")
        else:
            message = _("There is no answer yet that this could replace. Send it without replaces.")
        message %= {"stored": row.version, "yours": answer.replaces or 0}
        raise StaleAnswer(message, stored=stored, yours=yours)
    if current is None:
        return _store_late(cursor, assignment, row, sheet, answer, now)
    return _revise(cursor, assignment, row, current, sheet, answer, now)


def _store_late(
    cursor: Any, assignment: LockedAssignment, row: Assignment, sheet: Sheet, answer: Answer, now: datetime
) -> tuple[int, bool, datetime, bool]:
    """Store the answer to an expired or skipped assignment: in a free slot of the unit, or as an extra answer."""
    slot = row.slot_id if row.state == Assignment.State.OPEN else None
    if assignment.needs_slot and slot is None:
        slot = take_free_slot(cursor, assignment.unit_id)
    answer.extra = assignment.needs_slot and slot is None
    if row.state == Assignment.State.SKIPPED:
        CampaignMember.objects.filter(pk=assignment.who.member_id).update(skipped=F("skipped") - 1)
        assignment.who.skipped -= 1
    Assignment.objects.filter(pk=row.pk).update(
        state=Assignment.State.SUBMITTED, version=1, slot=slot, submitted_at=now, draft=None, skip_reason=""
    )
    _write(cursor, assignment, sheet, answer, 1, now)
    run(cursor, *judging_rows.count_done(assignment, answer.seconds, now))
    note_done(assignment, answer)
    return 1, answer.extra, now, False


def take_free_slot(cursor: Any, unit_id: int) -> int | None:
    """A free slot of this unit, by one conditional update."""
    skip = " FOR UPDATE SKIP LOCKED" if is_postgres(cursor) else ""
    cursor.execute(
        f"""UPDATE annotation_slot SET state = 'taken' WHERE state = 'free' AND id = (
 SELECT id FROM annotation_slot WHERE unit_id = %s AND state = 'free' ORDER BY number LIMIT 1{skip}) RETURNING id""",
        [unit_id],
    )
    row = cursor.fetchone()
    return row[0] if row else None


def _revise(
    cursor: Any,
    assignment: LockedAssignment,
    row: Assignment,
    current: Judgement,
    sheet: Sheet,
    answer: Answer,
    now: datetime,
) -> tuple[int, bool, datetime, bool]:
    if assignment.who.campaign_state == Campaign.State.CLOSED:
        raise StaleAnswer(
            _("The campaign is closed, so answers can no longer be changed."),
            stored=wire_judgement(current),
            yours={"answer": answer.shown, "note": answer.note},
        )
    if not {**OPTIONS, **sheet.options}["allow_revise"]:
        raise NotAllowed(_("This campaign does not allow changing submitted answers."))
    if (current.answer, current.note) == (answer.shown, answer.note):
        return row.version, current.extra, current.created_at, True  # unchanged: no new version
    version = row.version + 1
    answer.extra = current.extra
    Judgement.objects.filter(pk=current.pk).update(current=False)
    Assignment.objects.filter(pk=row.pk).update(version=version, submitted_at=now, draft=None)
    _write(cursor, assignment, sheet, answer, version, now)
    return version, answer.extra, now, False


def _write(
    cursor: Any, assignment: LockedAssignment, sheet: Sheet, answer: Answer, version: int, now: datetime
) -> None:
    run_batch(
        cursor,
        [judging_rows.insert_judgement(assignment, answer, version, now), *make_results(assignment, sheet, answer)],
    )


def make_results(assignment: LockedAssignment, sheet: Sheet, answer: Answer) -> list[Statement]:
    return judging_rows.upsert_results(
        assignment,
        answer,
        project_id=sheet.project_id,
        kind=sheet.kind,
        aspect_ids=sheet.aspect_ids,
        rater=assignment.who.pseudonym + sheet.rater_suffix,
    )
