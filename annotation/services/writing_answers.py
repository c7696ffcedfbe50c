"""Responses to submitted texts: the outcome, its replay for a repeated submission, and named errors."""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from annotation.allocation.writing import Verdict
from annotation.models import WritingAttempt, WritingTask
from annotation.selectors.attributes import read_attributes
from evalapp.accounts.models import User
from evalapp.common.errors import Conflict

from .writing_view import TaskView, get_task_view


class SubmissionConflict(Conflict):
    code, title = "submission-conflict", gettext_lazy("The submission id was used for something else")


class TaskClosed(Conflict):
    code, title = "task-closed", gettext_lazy("The item takes no more texts")


class RoundConflict(Conflict):
    code, title = "round", gettext_lazy("The round has changed")


class CandidateClosed(Conflict):
    code, title = "candidate-closed", gettext_lazy("The candidate is no longer open")


@dataclass(frozen=True)
class Submission:
    """A submitted text, with its fingerprint."""

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
    """The outcome of a submitted text. `decision`: accept, edit, drop, or wait (no score, saved as a draft). Scores are
    None if the arm sees none. `repeated`: the same submission was received before."""

    decision: str
    score_before: float | None
    score_after: float | None
    attempts_left: int
    message: str
    view: TaskView
    improved: bool | None = None
    why: str = ""
    repeated: bool = False

    def wire(self) -> dict[str, Any]:
        names = "decision score_before score_after improved attempts_left why message repeated"
        return {**read_attributes(self, names), "desk": self.view.wire()}


_EDIT = {
    "irrelevant": gettext_lazy("You marked the candidate as not relevant. Edit it so that it fits the context."),
    "no-gain": gettext_lazy("This text does not make the set more reliable. Edit it."),
}


def make_message(decision: str, why: str, left: int, unscored: bool, waits: bool) -> str:
    if decision == "wait":
        return _("No score available. Your text is saved as a draft. Try again, or add it without a score.")
    if decision == "accept":
        if waits:
            return _("Saved. It is added to the set when other annotators have confirmed it.")
        return _("Added without a score.") if unscored else _("Added.")
    if decision == "edit":
        return f"{_EDIT[why]} " + ngettext("%(n)d attempt left.", "%(n)d attempts left.", left) % {"n": left}
    if why == "limit":
        return _("No attempts left, so the candidate is discarded. Continue with another one.")
    return _("Discarded.")


def make_waiting_outcome(user: User, task: WritingTask, verdict: Verdict, note: str) -> Outcome:
    """The outcome if no score is available: only the draft is saved, and the submission can be repeated."""
    message = make_message(verdict.decision, verdict.why, verdict.left, False, False)
    if note:
        message = f"{message} ({note})"
    view = get_task_view(user=user, public=task.public)
    return Outcome(verdict.decision, None, None, verdict.left, message, view, None, verdict.why)


def make_stored_outcome(user: User, task: WritingTask, row: WritingAttempt) -> Outcome:
    shows, waits = task.shows_scores, bool(task.campaign.options["confirmations"])
    return Outcome(
        decision=row.decision,
        score_before=row.score_before if shows else None,
        score_after=row.score_after if shows else None,
        attempts_left=row.left,
        message=make_message(row.decision, row.why, row.left, row.unscored, waits),
        view=get_task_view(user=user, public=task.public),
        improved=row.improved if shows else None,
        why=row.why,
    )


def find_earlier_outcome(user: User, task: WritingTask, sent: Submission) -> Outcome | None:
    """The first outcome of a repeated submission; None if it is new."""
    row = WritingAttempt.objects.filter(submission=sent.submission).first()
    if row is None:
        return None
    if row.task_id != task.pk or row.body_hash != sent.body_hash:
        stored = {"text": row.text, "relevant": row.relevant} if row.task_id == task.pk else {}
        raise SubmissionConflict(
            _("This submission id was used for another text. Send the new text with a new id."),
            stored=stored,
            yours={"text": sent.text, "relevant": sent.relevant},
        )
    return replace(make_stored_outcome(user, task, row), repeated=True)
