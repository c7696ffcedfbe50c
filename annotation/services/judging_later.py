"""Answers beside the straight way: the same one again, a revision, one that comes late or after a skip. Nothing
that arrives is dropped; what cannot be reconciled is answered with both versions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F

from annotation.allocation.plan import OPTIONS
from annotation.models import Assignment, Campaign, CampaignMember, Judgement, Slot
from annotation.selectors.judging_sheet import Sheet
from evalapp.common.errors import Conflict, NotAllowed

from . import judging_rows
from .judging_rows import Answer, Held


class SubmissionConflict(Conflict):
    code, title = "submission-conflict", "The same submission came with another answer"


class StaleAnswer(Conflict):
    code, title = "stale-answer", "The answer was changed in the meantime"


def free_slots(slots: Sequence[int]) -> None:
    Slot.objects.filter(pk__in=slots).update(state=Slot.State.FREE)


def note_done(held: Held, answer: Answer) -> None:
    """Keep the figures in memory in step with the member's row."""
    if held.unit_kind != "practice":
        held.who.done += 1
        held.who.seconds += answer.seconds or 0.0


def wire_judgement(row: Judgement) -> dict[str, Any]:
    return {
        "submission": str(row.submission),
        "version": row.version,
        "answer": row.answer,
        "note": row.note,
        "saved_at": row.created_at.isoformat(),
    }


def submission_conflict(submission: UUID, user: Any, answer: Any, note: str) -> Conflict | None:
    """The error for a submission number that is taken; None if it is not. Other people's answers stay unsaid."""
    row = Judgement.objects.filter(submission=submission).first()
    if row is None:
        return None
    stored = wire_judgement(row) if row.annotator_id == user.pk else None
    return SubmissionConflict(
        "This submission number was already used for another answer. Send yours with a new one.",
        stored=stored,
        yours={"answer": answer, "note": note},
    )


def store_beside(
    cursor: Any, held: Held, sheet: Sheet, answer: Answer, now: datetime
) -> tuple[int, bool, datetime, bool]:
    """Under the member's lock, for an assignment that is not simply open: version, extra, when stored, and whether
    the same submission had come before."""
    before = Judgement.objects.filter(submission=UUID(answer.submission)).first()
    yours = {"answer": answer.shown, "note": answer.note}
    if before is not None:
        if before.assignment_id == held.id and before.body_hash == answer.body_hash:
            return before.version, before.extra, before.created_at, True
        conflict = submission_conflict(before.submission, before.annotator, answer.shown, answer.note)
        assert conflict is not None
        if before.annotator_id != held.who.user_id:
            conflict.extra["stored"] = None
        raise conflict
    # Read anew and locked: what was read while waiting for the member's row may be old, and a lease that ends between
    # here and the answer would free the slot that the answer then keeps.
    row = Assignment.objects.select_for_update(of=("self",)).get(pk=held.id)
    current = Judgement.objects.filter(assignment=row, current=True).first()
    if answer.replaces != (row.version or None):
        stored = wire_judgement(current) if current else None
        if current and answer.replaces is None:
            message = f"This was already answered. To change the answer, send replaces: {row.version}."
        elif current:
            message = f"The answer is at version {row.version} by now, yours replaces {answer.replaces}. Choose one."
        else:
            message = "There is no answer yet that this could replace. Send it without replaces."
        raise StaleAnswer(message, stored=stored, yours=yours)
    if current is None:
        return _store_late(cursor, held, row, sheet, answer, now)
    return _revise(cursor, held, row, current, sheet, answer, now)


def _store_late(
    cursor: Any, held: Held, row: Assignment, sheet: Sheet, answer: Answer, now: datetime
) -> tuple[int, bool, datetime, bool]:
    """The lease had passed, or it was skipped: the unit's free slot if there is one, else kept as extra."""
    slot = row.slot_id if row.state == Assignment.State.OPEN else None
    if held.needs_slot and slot is None:
        slot = take_slot_of(cursor, held.unit_id)
    answer.extra = held.needs_slot and slot is None
    if row.state == Assignment.State.SKIPPED:
        CampaignMember.objects.filter(pk=held.who.member_id).update(skipped=F("skipped") - 1)
        held.who.skipped -= 1
    Assignment.objects.filter(pk=row.pk).update(
        state=Assignment.State.SUBMITTED, version=1, slot=slot, submitted_at=now, draft=None, skip_reason=""
    )
    _write(cursor, held, sheet, answer, 1, now)
    judging_rows.run(cursor, *judging_rows.count_done(held, answer.seconds, now))
    note_done(held, answer)
    return 1, answer.extra, now, False


def take_slot_of(cursor: Any, unit_id: int) -> int | None:
    """A free slot of this unit, by one conditional update."""
    skip = " FOR UPDATE SKIP LOCKED" if judging_rows.is_postgres(cursor) else ""
    cursor.execute(
        f"""UPDATE annotation_slot SET state = 'taken' WHERE state = 'free' AND id = (
 SELECT id FROM annotation_slot WHERE unit_id = %s AND state = 'free' ORDER BY number LIMIT 1{skip}) RETURNING id""",
        [unit_id],
    )
    found = cursor.fetchone()
    return found[0] if found else None


def _revise(
    cursor: Any, held: Held, row: Assignment, current: Judgement, sheet: Sheet, answer: Answer, now: datetime
) -> tuple[int, bool, datetime, bool]:
    if held.who.campaign_state == Campaign.State.CLOSED:
        raise StaleAnswer(
            "The campaign is closed, so answers stay as they are.",
            stored=wire_judgement(current),
            yours={"answer": answer.shown, "note": answer.note},
        )
    if not {**OPTIONS, **sheet.options}["allow_revise"]:
        raise NotAllowed("In this campaign an answer cannot be changed once it is sent.")
    if (current.answer, current.note) == (answer.shown, answer.note):
        return row.version, current.extra, current.created_at, True  # nothing to correct: no further version
    version = row.version + 1
    answer.extra = current.extra
    Judgement.objects.filter(pk=current.pk).update(current=False)
    Assignment.objects.filter(pk=row.pk).update(version=version, submitted_at=now, draft=None)
    _write(cursor, held, sheet, answer, version, now)
    return version, answer.extra, now, False


def _write(cursor: Any, held: Held, sheet: Sheet, answer: Answer, version: int, now: datetime) -> None:
    judging_rows.run_batch(
        cursor, [judging_rows.insert_judgement(held, answer, version, now), *results(held, sheet, answer)]
    )


def results(held: Held, sheet: Sheet, answer: Answer) -> list[judging_rows.Statement]:
    return judging_rows.upsert_results(
        held,
        answer,
        project_id=sheet.project_id,
        kind=sheet.kind,
        aspect_ids=sheet.aspect_ids,
        rater=held.who.pseudonym + sheet.rater_suffix,
    )
