"""Submitted texts and discarded candidates. The server computes the scores itself, outside any transaction. It then
decides under the lock of the item; if the set has changed since the scores were computed, it starts over. Scores sent
by a browser are never used."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from annotation.allocation.texts import is_storable
from annotation.allocation.wording import changed_words, shared_words
from annotation.allocation.writing import Attempt, Rules, Verdict, is_allowed, judge_attempt, same_text
from annotation.allocation.writing_plan import CONSTRAINTS
from annotation.models import WritingAttempt, WritingCampaign, WritingCandidate, WritingTask, WrittenReference
from annotation.selectors.writing import get_own_task, list_closing_attempts, list_originals, set_texts
from evalapp.accounts.models import User
from evalapp.common.errors import BadInput, Conflict, EvalappError, NotAllowed

from . import hooks
from .judging_acts import check_storable
from .writing_answers import (
    CandidateClosed,
    Outcome,
    RoundConflict,
    Submission,
    TaskClosed,
    find_earlier_outcome,
    make_stored_outcome,
    make_waiting_outcome,
)
from .writing_candidates import find_candidate, find_round_candidate
from .writing_last import count_awaited
from .writing_store import (
    TRIES,
    Scores,
    TaskSnapshot,
    add_written,
    advance_task,
    close_task,
    count_waiting,
    is_closed,
    lock_task,
    store_attempt,
    store_draft,
)
from .writing_view import check_right, count_earlier_attempts

TEXT_LENGTH = 10_000
LONGEST = 86_400.0
_OPEN = WritingTask.State.OPEN


# ---- submitted texts --------------------------------------------------------------------------------------


def submit_attempt(
    *, user: User, public: str, submission: UUID, text: str, relevant: bool | None = None, candidate: str | None = None,
    seconds: float | None = None, unscored: bool = False,
) -> Outcome:  # fmt: skip
    """Decide on a text and add it if the rules allow. The same `submission` again returns the first outcome. In rounds,
    `candidate` must be that of the round. `unscored`: add the text even if no score is available."""
    sent = Submission(
        submission, _checked_text(text), relevant, _checked_candidate(candidate), _checked_seconds(seconds), unscored
    )
    for _try in range(TRIES):
        outcome = _answer_once(user, public, sent, _try_text)
        if outcome is not None:
            return outcome
    store_draft(get_own_task(user=user, public=public), sent)
    raise Conflict(_("Other annotators are adding references to this item. Your text is saved; send it again soon."))


def _answer_once(
    user: User, public: str, sent: Submission, act: Callable[[User, WritingTask, Submission], Outcome | None]
) -> Outcome | None:
    """The first outcome of a repeated submission, otherwise that of `act`. `act` also fails if a concurrent request
    stores the same submission first, so after an error the first outcome is looked up again."""
    task = get_own_task(user=user, public=public)
    known = find_earlier_outcome(user, task, sent)
    if known is not None:
        return known
    check_right(user, task.campaign)
    try:
        _check_open(task)
        return act(user, task, sent)
    except (EvalappError, IntegrityError) as error:
        known = find_earlier_outcome(user, task, sent)
        if known is not None:
            return known
        if isinstance(error, TaskClosed):
            store_draft(task, sent)
        raise


def _try_text(user: User, task: WritingTask, sent: Submission) -> Outcome | None:
    """The outcome of the text; None if the set has changed while it was scored."""
    look = _look_at(task, sent)
    scores = _ask(task, look, sent.text)
    with transaction.atomic():
        stored = _judge(task, sent, look, scores)
    if stored is None:
        return None
    verdict, attempt = stored
    if attempt is None:
        return make_waiting_outcome(user, task, verdict, scores.note)
    return make_stored_outcome(user, task, attempt)


def _checked_text(text: Any) -> str:
    if not isinstance(text, str) or not text.strip():
        raise BadInput.for_field("text", _("Write a text first."))
    if len(text) > TEXT_LENGTH:
        raise BadInput.for_field("text", _("The text is longer than %(n)s characters.") % {"n": f"{TEXT_LENGTH:,}"})
    check_storable("text", text)
    return text.strip()


def _checked_candidate(public: str | None) -> str | None:
    """An id that no candidate can have is rejected first, because the database cannot store every text."""
    if public is not None and not is_storable(public):
        raise _not_offered()
    return public


def _not_offered() -> BadInput:
    return BadInput.for_field("candidate", _("This candidate was not offered here."))


def _checked_seconds(seconds: float | None) -> float | None:
    return None if seconds is None else min(max(float(seconds), 0.0), LONGEST)


def _check_open(task: WritingTask) -> None:
    """TaskClosed if the task takes no more texts. The caller saves the text as a draft."""
    if task.campaign.state == WritingCampaign.State.CLOSED:
        raise TaskClosed(_("The campaign is closed. Your text is saved as a draft but not added."))
    if task.state == _OPEN:
        return
    if task.why == WritingTask.Why.FULL:
        message = _("This item already has its %(n)d references. Your text is saved as a draft.")
        raise TaskClosed(message % {"n": task.campaign.options["target"]})
    raise TaskClosed(_("You have finished this item. Your text is saved as a draft."))


def _look_at(task: WritingTask, sent: Submission) -> TaskSnapshot:
    candidate = _candidate(task, sent.candidate)
    rules = _rules(task)
    offered = candidate.text if candidate else None
    if not is_allowed(rules, Attempt(sent.text, offered)):
        if rules.arm == "candidates":
            raise NotAllowed(_("Candidates cannot be edited here. Accept or discard them as they are."))
        raise NotAllowed(_("This campaign does not accept own texts. Start with a candidate."))
    present = set_texts(task)
    _check_new(task, sent.text, present)
    return TaskSnapshot(candidate, present, _check_wording(task, sent.text))


def _rules(task: WritingTask) -> Rules:
    options: dict[str, Any] = task.campaign.options
    return Rules(
        task.arm,  # type: ignore[arg-type]
        max_attempts=options["max_attempts"],
        min_gain=options["min_gain"],
        own_text=options["own_text"],
    )


def _candidate(task: WritingTask, public: str | None) -> WritingCandidate | None:
    """The named candidate, if it is still open for the annotator."""
    if task.campaign.in_rounds:
        if count_awaited(task):
            raise RoundConflict(_("Others in your group are still in the previous round. Please wait."))
        current = find_round_candidate(task)
        if current is None:
            raise RoundConflict(_("There is no candidate in this round. Reload the page."))
        if public is None:
            raise BadInput.for_field("candidate", _("Give the id of the candidate of this round."))
        if public != current.public:
            raise RoundConflict(_("The round has changed. Reload the page; your text is saved there."))
        return current
    if public is None:
        return None
    row = find_candidate(task, public)
    if row is None:
        raise _not_offered()
    if list_closing_attempts(task).filter(candidate=row).exists():
        raise CandidateClosed(_("You have already added or discarded this candidate. Choose another one."))
    return row


def _check_new(task: WritingTask, text: str, present: tuple[str, ...]) -> None:
    waiting = WrittenReference.objects.filter(
        unit=task.unit_id, set=task.member.set_id, state=WrittenReference.State.WAITING
    )
    form = same_text(text)
    if any(same_text(other) == form for other in (*present, *waiting.values_list("text", flat=True))):
        raise BadInput.for_field("text", _("The item already has this text as a reference."))


def _check_wording(task: WritingTask, text: str) -> dict[str, Any]:
    """Metadata for the reference; BadInput if the text violates the campaign's constraint."""
    campaign, options = task.campaign, task.campaign.options
    if campaign.kind != WritingCampaign.Kind.CONSTRAINT:
        return {"campaign": campaign.slug}
    constraint = options["constraint"]
    meta: dict[str, Any] = {"campaign": campaign.slug, "constraint": constraint, "kind": CONSTRAINTS[constraint]}
    originals, message = list_originals(task), ""
    if any(same_text(text) == same_text(original) for original in originals):
        message = _("This is the original. Write another text.")
    elif originals and constraint == "avoid-original-words":
        shared = shared_words(text, originals[0])
        meta["shared_words"] = shared
        if len(shared) > options["shared_words"]:
            message = _("Use other words. The original also contains: %(words)s.") % {"words": ", ".join(shared)}
    elif originals and constraint == "minimally-wrong":
        changed = changed_words(text, originals[0])
        meta["changed_words"] = changed
        limit = options["changed_words"]
        if limit is not None and changed > limit:
            message = _("Change at most %(limit)d words of the original; you changed %(changed)d.")
            message %= {"limit": limit, "changed": changed}
    if message:
        raise BadInput.for_field("text", message, shared=meta.get("shared_words", []))
    return meta


def _ask(task: WritingTask, look: TaskSnapshot, text: str) -> Scores:
    """The scores of the set without and with the text. They are also computed for arms that do not show them, so that
    arms can be compared."""
    campaign = task.campaign
    if not campaign.evaluator or campaign.kind != WritingCampaign.Kind.REAM:
        return Scores()
    sets = [*([look.present] if look.present else []), (*look.present, text)]
    prediction = hooks.predict_reliability(
        project=campaign.project, evaluator=campaign.evaluator, item=task.unit.item, sets=sets
    )  # fmt: skip
    return Scores(
        prediction.values[0] if look.present and prediction.values else None,
        prediction.values[-1] if prediction.values else None,
        prediction.signature,
        prediction.note,
    )


# ---- the decision, under the lock -------------------------------------------------------------------------


def _judge(
    task: WritingTask, sent: Submission, look: TaskSnapshot, scores: Scores
) -> tuple[Verdict, WritingAttempt | None] | None:
    """The verdict and the stored attempt (None if there is no score yet); None if the set has changed meanwhile."""
    now = lock_task(task)
    if now is None or set_texts(task) != look.present:
        return None
    rules = _rules(task)
    offered = look.candidate.text if look.candidate else None
    attempt = Attempt(
        sent.text, offered, sent.relevant, scores.before, scores.after, empty=not look.present, unscored=sent.unscored
    )
    tried = count_earlier_attempts(task, look.candidate)
    if tried.edits >= rules.max_attempts or is_closed(task, look.candidate):
        return None  # changed by another tab; the next try reports it
    _check_new(task, sent.text, look.present)
    if len(look.present) + count_waiting(task) >= task.campaign.options["target"]:
        close_task(task, WritingTask.Why.FULL.value)
        return None
    verdict = judge_attempt(rules, tried, attempt)
    if verdict.decision == "wait":
        store_draft(task, sent)
        return verdict, None
    row = store_attempt(task, sent, look, scores, verdict, now, attempt.is_edited)
    if verdict.decision == "accept":
        add_written(task, row, look)
    advance_task(task, sent, verdict)
    return verdict, row


# ---- discarded candidates ---------------------------------------------------------------------------------


def drop_candidate(
    *, user: User, public: str, submission: UUID, candidate: str | None = None, seconds: float | None = None
) -> Outcome:
    """Discard a candidate (None: the current own text, or the candidate of the round)."""
    sent = Submission(
        submission, "", None, _checked_candidate(candidate), _checked_seconds(seconds), False, kind="drop"
    )
    outcome = _answer_once(user, public, sent, _drop)
    assert outcome is not None
    return outcome


def _drop(user: User, task: WritingTask, sent: Submission) -> Outcome:
    row = _candidate(task, sent.candidate)
    with transaction.atomic():
        now = lock_task(task)
        if now is None or is_closed(task, row):
            raise CandidateClosed(_("This candidate is no longer open. Reload the page."))
        look = TaskSnapshot(row, set_texts(task), {})
        verdict = Verdict("drop", None, False, 0)
        attempt = store_attempt(task, sent, look, Scores(), verdict, now, edited=False)
        advance_task(task, sent, verdict)
    return make_stored_outcome(user, task, attempt)
