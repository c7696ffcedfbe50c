"""What somebody who writes is answered: the outcome of a text, the same again for the same submission, and the refusals
that have a name."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from annotation.allocation.writing import Verdict
from annotation.models import WritingAttempt, WritingTask
from evalapp.common.errors import Conflict

from .writing_desk import Desk, get_desk


class SubmissionConflict(Conflict):
    code, title = "submission-conflict", "This submission was used for something else"


class TaskClosed(Conflict):
    code, title = "task-closed", "Nothing more is added here"


class RoundConflict(Conflict):
    code, title = "round", "The round is another one by now"


class CandidateClosed(Conflict):
    code, title = "candidate-closed", "This candidate was dealt with"


@dataclass(frozen=True)
class Sent:
    """What came from the browser, with its fingerprint."""

    submission: UUID
    text: str
    relevant: bool | None
    candidate: str | None
    seconds: float | None
    unscored: bool
    kind: str = "text"

    @property
    def body_hash(self) -> str:
        body = [self.kind, self.text, self.relevant, self.candidate, self.unscored]
        return hashlib.sha256(json.dumps(body).encode()).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """`decision`: accept, edit, drop, or wait (no score: kept as a draft). Scores are None where the arm sees none.
    `repeated`: the same submission had come before."""

    decision: str
    score_before: float | None
    score_after: float | None
    attempts_left: int
    message: str
    desk: Desk
    improved: bool | None = None
    why: str = ""
    repeated: bool = False

    def wire(self) -> dict[str, Any]:
        return {
            "decision": self.decision,
            "score_before": self.score_before,
            "score_after": self.score_after,
            "improved": self.improved,
            "attempts_left": self.attempts_left,
            "why": self.why,
            "message": self.message,
            "repeated": self.repeated,
            "desk": self.desk.wire(),
        }


_EDIT = {
    "irrelevant": "You called the candidate not relevant: edit it until it is an answer.",
    "no-gain": "With this text the set does not become more reliable. Edit it.",
}


def message_of(decision: str, why: str, left: int, unscored: bool, waits: bool) -> str:
    if decision == "wait":
        return "Score not available; kept as a draft. Try again, or add it without a score."
    if decision == "accept":
        if waits:
            return "Stored. It stands in the set once others have confirmed it."
        return "Added without a score." if unscored else "Added."
    if decision == "edit":
        return f"{_EDIT[why]} {left} attempt{'' if left == 1 else 's'} left."
    if why == "limit":
        return "No attempt is left, so the candidate is dropped. Go on with another one."
    return "Put aside."


def waiting_outcome(user: Any, task: WritingTask, verdict: Verdict, note: str) -> Outcome:
    """No score could be had: nothing is stored but the draft, and the submission may come again."""
    message = message_of(verdict.decision, verdict.why, verdict.left, False, False)
    if note:
        message = f"{message} ({note})"
    desk = get_desk(user=user, public=task.public)
    return Outcome(verdict.decision, None, None, verdict.left, message, desk, None, verdict.why)


def stored_outcome(user: Any, task: WritingTask, row: WritingAttempt) -> Outcome:
    shows, waits = task.shows_scores, bool(task.campaign.options["confirmations"])
    return Outcome(
        decision=row.decision,
        score_before=row.score_before if shows else None,
        score_after=row.score_after if shows else None,
        attempts_left=row.left,
        message=message_of(row.decision, row.why, row.left, row.unscored, waits),
        desk=get_desk(user=user, public=task.public),
        improved=row.improved if shows else None,
        why=row.why,
    )


def answered(user: Any, task: WritingTask, sent: Sent) -> Outcome | None:
    """What this submission was answered the first time."""
    row = WritingAttempt.objects.filter(submission=sent.submission).first()
    if row is None:
        return None
    if row.task_id != task.pk or row.body_hash != sent.body_hash:
        stored = {"text": row.text, "relevant": row.relevant} if row.task_id == task.pk else {}
        raise SubmissionConflict(
            "This submission was used for another text. Send the new one under a number of its own.",
            stored=stored,
            yours={"text": sent.text, "relevant": sent.relevant},
        )
    return replace(stored_outcome(user, task, row), repeated=True)
