"""Database changes for submitted texts, in the caller's transaction: lock the item, store the attempt, add the
reference to its set, start the next round, finish. The order of locks is: the item's unit, the task, the member."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Max
from django.utils import timezone

from annotation.allocation.writing import Verdict
from annotation.models import (
    Reference,
    WritingAttempt,
    WritingCampaign,
    WritingCandidate,
    WritingMember,
    WritingTask,
    WritingUnit,
    WrittenReference,
)
from annotation.selectors.writing import list_closing_attempts

from .writing_answers import Submission
from .writing_candidates import fetch_round_candidates

#: How often to retry after a concurrent change.
TRIES = 12
_OPEN = WritingTask.State.OPEN


@dataclass(frozen=True)
class TaskSnapshot:
    """The state of the task at the time when the scores were requested."""

    candidate: WritingCandidate | None
    present: tuple[str, ...]
    meta: dict[str, Any]


@dataclass(frozen=True)
class Scores:
    before: float | None = None
    after: float | None = None
    signature: str = ""
    note: str = ""


def lock_task(task: WritingTask) -> datetime | None:
    """Lock the item and the task. None if the task is no longer open or was returned meanwhile."""
    WritingUnit.objects.select_for_update(no_key=True).get(pk=task.unit_id)
    fresh = WritingTask.objects.select_for_update().filter(pk=task.pk).first()
    if fresh is None:
        return None
    task.state, task.round, task.draft_version = fresh.state, fresh.round, fresh.draft_version
    if (
        fresh.state != _OPEN
        or not WritingCampaign.objects.filter(
            pk=task.campaign_id, state__in=(WritingCampaign.State.OPEN, WritingCampaign.State.PAUSED)
        ).exists()
    ):
        return None
    return timezone.now()


def is_closed(task: WritingTask, candidate: WritingCandidate | None) -> bool:
    if candidate is None:
        return False
    if task.campaign.in_rounds and candidate.number != task.round:
        return True
    return list_closing_attempts(task).filter(candidate=candidate).exists()


def count_waiting(task: WritingTask) -> int:
    state = WrittenReference.State.WAITING
    return WrittenReference.objects.filter(unit=task.unit_id, set=task.member.set_id, state=state).count()


def store_attempt(
    task: WritingTask,
    sent: Submission,
    look: TaskSnapshot,
    scores: Scores,
    verdict: Verdict,
    now: datetime,
    edited: bool,
) -> WritingAttempt:
    rows = WritingAttempt.objects.filter(task=task)
    earlier = rows.filter(candidate=look.candidate).exclude(text="")
    if look.candidate is None:
        earlier = earlier.filter(round=task.round)
    before = earlier.order_by("-number").values_list("text", flat=True).first()
    offered = look.candidate.text if look.candidate else None
    return WritingAttempt.objects.create(
        campaign_id=task.campaign_id,
        task=task,
        member_id=task.member_id,
        number=(rows.aggregate(last=Max("number"))["last"] or 0) + 1,
        round=task.round,
        candidate=look.candidate,
        candidate_text=offered,
        source=_source(look.candidate),
        text_before=before if before is not None else offered or "",
        text=sent.text,
        relevant=sent.relevant,
        edited=edited,
        counted=verdict.counted,
        unscored=sent.unscored and verdict.improved is None and task.arm == "scores",
        references_before=len(look.present),
        score_before=scores.before,
        score_after=scores.after,
        signature=scores.signature,
        improved=verdict.improved,
        decision=verdict.decision,
        why=verdict.why,
        left=verdict.left,
        submission=sent.submission,
        body_hash=sent.body_hash,
        seconds=sent.seconds,
        created_at=now,
    )


def _source(candidate: WritingCandidate | None) -> dict[str, Any]:
    if candidate is None:
        return {}
    return {**candidate.source, "query": candidate.query, "jaccard": candidate.jaccard}


def add_written(task: WritingTask, attempt: WritingAttempt, look: TaskSnapshot) -> None:
    """Create the reference of an accepted attempt: in the set, or waiting if other annotators must confirm it."""
    before, after = attempt.score_before, attempt.score_after
    waits = bool(task.campaign.options["confirmations"])
    row = WrittenReference(
        campaign_id=task.campaign_id, attempt=attempt, task=task, unit_id=task.unit_id, member_id=task.member_id,
        set=task.member.set, public=secrets.token_urlsafe(12), text=attempt.text, meta=look.meta, score=after,
        gain=None if before is None or after is None else after - before,
        state=WrittenReference.State.WAITING.value if waits else WrittenReference.State.SHOWN.value,
    )  # fmt: skip
    if not waits:
        row.reference = put_reference(task.unit.item_id, task.member.set_id, attempt.text, look.meta)
    row.save()


def put_reference(item_id: int, set_id: int, text: str, meta: dict[str, Any]) -> Reference:
    """Add a reference at the end of the item's references in the set. The caller has locked the item's unit; other code
    that writes to the set may still take the position, so this retries."""
    rows = Reference.objects.filter(item=item_id, set=set_id)
    for left in range(TRIES, 0, -1):
        last = rows.aggregate(last=Max("position"))["last"]
        try:
            with transaction.atomic():
                return Reference.objects.create(
                    item_id=item_id, set_id=set_id, position=0 if last is None else last + 1, text=text, meta=meta
                )
        except IntegrityError:
            if left == 1:
                raise
    raise AssertionError("unreachable")


def advance_task(task: WritingTask, sent: Submission, verdict: Verdict) -> None:
    """Update the task and the member's counters after a stored attempt."""
    now = timezone.now()
    member = WritingMember.objects.filter(pk=task.member_id)
    seconds = sent.seconds or 0.0
    member.update(
        accepted=F("accepted") + int(verdict.decision == "accept"), seconds=F("seconds") + seconds, last_at=now
    )
    if not verdict.closes:
        store_draft(task, sent)
        return
    end_round(task)
    if verdict.decision == "accept" and Reference.objects.filter(
        item=task.unit.item_id, set=task.member.set_id
    ).count() + count_waiting(task) >= int(task.campaign.options["target"]):
        for other in WritingTask.objects.filter(unit=task.unit_id, member__set=task.member.set_id, state=_OPEN):
            close_task(other, WritingTask.Why.FULL.value)


def end_round(task: WritingTask) -> None:
    """Finish the current candidate or text; after the last round, finish the item."""
    WritingTask.objects.filter(pk=task.pk).update(
        round=F("round") + 1, draft=None, draft_version=F("draft_version") + 1, draft_saved_at=None
    )
    task.round += 1
    if task.campaign.in_rounds and task.round >= fetch_round_candidates(task)[0]:
        close_task(task, WritingTask.Why.EMPTY.value)


def close_task(task: WritingTask, why: str) -> bool:
    """Finish an open task and count it as done. False if it was not open."""
    changed = WritingTask.objects.filter(pk=task.pk, state=_OPEN).update(
        state=WritingTask.State.DONE, why=why, closed_at=timezone.now()
    )
    if changed:
        WritingMember.objects.filter(pk=task.member_id).update(done=F("done") + 1, last_at=timezone.now())
    return bool(changed)


def store_draft(task: WritingTask, sent: Submission) -> None:
    if sent.text:
        draft = {"text": sent.text, "candidate": sent.candidate, "relevant": sent.relevant}
        WritingTask.objects.filter(pk=task.pk).update(
            draft=draft, draft_version=F("draft_version") + 1, draft_saved_at=timezone.now()
        )
