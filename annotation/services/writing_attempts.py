"""What somebody who writes sends: a text, or a candidate put aside. The server asks for the scores itself, outside any
transaction, and judges under the item's lock against the very set it asked for: when the set grew in between it asks
again. A browser's number is never read."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from annotation.allocation.texts import UNSTORABLE, is_storable
from annotation.allocation.wording import changed_words, shared_words
from annotation.allocation.writing import Attempt, Rules, Verdict, is_allowed, judge_attempt, same_text
from annotation.allocation.writing_plan import CONSTRAINTS
from annotation.models import WritingAttempt, WritingCampaign, WritingCandidate, WritingTask, WrittenReference
from annotation.selectors.writing import closing_attempts, get_my_desk_task, originals_of, set_texts
from evalapp.common.errors import BadInput, Conflict, Fault, NotAllowed

from . import hooks
from .writing_answers import (
    CandidateClosed,
    Outcome,
    RoundConflict,
    Sent,
    TaskClosed,
    answered,
    stored_outcome,
    waiting_outcome,
)
from .writing_candidates import find_candidate, round_candidate
from .writing_desk import check_right, tried_before
from .writing_last import count_awaited
from .writing_store import (
    TRIES,
    Look,
    Scores,
    add_written,
    close_task,
    count_waiting,
    go_on,
    is_closed,
    keep_draft,
    lock_task,
    store_attempt,
)

TEXT_LENGTH = 10_000
LONGEST = 86_400.0
_OPEN = WritingTask.State.OPEN


# ---- a text is sent ---------------------------------------------------------------------------------------


def submit_attempt(
    *, user: Any, public: str, submission: UUID, text: str, relevant: bool | None = None, candidate: str | None = None,
    seconds: float | None = None, unscored: bool = False,
) -> Outcome:  # fmt: skip
    """Judge a text and add it where the rules say so, once: the same `submission` again answers as the first time. In
    rounds the candidate is that of the round, and has to be named. `unscored`: add it although no score can be had."""
    sent = Sent(
        submission, _checked_text(text), relevant, _checked_candidate(candidate), _checked_seconds(seconds), unscored
    )
    for _ in range(TRIES):
        task = get_my_desk_task(user=user, public=public)
        known = answered(user, task, sent)
        if known is not None:
            return known
        check_right(user, task.campaign)
        _check_open(task, sent)
        look = _look_at(task, sent)
        scores = _ask(task, look, sent.text)
        try:
            with transaction.atomic():
                stored = _judge(task, sent, look, scores)
        except IntegrityError:
            known = answered(user, task, sent)
            if known is None:
                raise
            return known
        if stored is not None:
            verdict, attempt = stored
            if attempt is None:
                return waiting_outcome(user, task, verdict, scores.note)
            return stored_outcome(user, task, attempt)
    keep_draft(task, sent)
    raise Conflict("Others add references to this item just now. Your text is kept; send it again in a moment.")


def _checked_text(text: Any) -> str:
    if not isinstance(text, str) or not text.strip():
        raise BadInput("Write a text first.", faults=[Fault("Write a text first.", field="text")])
    if len(text) > TEXT_LENGTH:
        message = f"The text is longer than {TEXT_LENGTH:,} characters."
        raise BadInput(message, faults=[Fault(message, field="text")])
    if not is_storable(text):
        raise BadInput(UNSTORABLE, faults=[Fault(UNSTORABLE, field="text")])
    return text.strip()


def _checked_candidate(public: str | None) -> str | None:
    """A name that no candidate can have is refused before the database is asked, which cannot take every text."""
    if public is not None and not is_storable(public):
        raise _not_offered()
    return public


def _not_offered() -> BadInput:
    message = "This candidate was not offered here."
    return BadInput(message, faults=[Fault(message, field="candidate")])


def _checked_seconds(seconds: float | None) -> float | None:
    return None if seconds is None else min(max(float(seconds), 0.0), LONGEST)


def _check_open(task: WritingTask, sent: Sent) -> None:
    """A task that takes texts; else the text is kept as its draft and the person is told why."""
    if task.state == _OPEN and task.campaign.state != WritingCampaign.State.CLOSED:
        return
    keep_draft(task, sent)
    if task.campaign.state == WritingCampaign.State.CLOSED:
        raise TaskClosed("The campaign is closed, so nothing is added any more. Your text is kept as a draft.")
    if task.why == WritingTask.Why.FULL:
        count = task.campaign.options["target"]
        raise TaskClosed(f"This item has its {count} references by now. Your text is kept as a draft.")
    raise TaskClosed("You have ended this item. Your text is kept as a draft.")


def _look_at(task: WritingTask, sent: Sent) -> Look:
    candidate = _candidate(task, sent.candidate)
    rules = _rules(task)
    offered = candidate.text if candidate else None
    if not is_allowed(rules, Attempt(sent.text, offered)):
        if rules.arm == "candidates":
            raise NotAllowed("Candidates are taken as they are here. Choose one, or put it aside.")
        raise NotAllowed("Texts of your own are not asked for here. Begin with a candidate.")
    present = set_texts(task)
    _check_new(task, sent.text, present)
    return Look(candidate, present, _check_wording(task, sent.text))


def _rules(task: WritingTask) -> Rules:
    options: dict[str, Any] = task.campaign.options
    return Rules(
        task.arm,  # type: ignore[arg-type]
        max_attempts=options["max_attempts"],
        min_gain=options["min_gain"],
        own_text=options["own_text"],
    )


def _candidate(task: WritingTask, public: str | None) -> WritingCandidate | None:
    """The candidate that is meant, unless this person has dealt with it."""
    if task.campaign.in_rounds:
        if count_awaited(task):
            raise RoundConflict("The others of your group are still in the last round. Wait for them.")
        current = round_candidate(task)
        if current is None:
            raise RoundConflict("There is no candidate in this round. Look at the page again.")
        if public is None:
            message = "Name the candidate of the round, so that nothing is taken for what follows it."
            raise BadInput(message, faults=[Fault(message, field="candidate")])
        if public != current.public:
            raise RoundConflict("The round has gone on. Look at the page again; your text is kept there.")
        return current
    if public is None:
        return None
    row = find_candidate(task, public)
    if row is None:
        raise _not_offered()
    if closing_attempts(task).filter(candidate=row).exists():
        raise CandidateClosed("You have added or dropped this candidate before. Choose another one.")
    return row


def _check_new(task: WritingTask, text: str, present: tuple[str, ...]) -> None:
    waiting = WrittenReference.objects.filter(
        unit=task.unit_id, set=task.member.set_id, state=WrittenReference.State.WAITING
    )
    form = same_text(text)
    if any(same_text(other) == form for other in (*present, *waiting.values_list("text", flat=True))):
        message = "This text is a reference of the item already."
        raise BadInput(message, faults=[Fault(message, field="text")])


def _check_wording(task: WritingTask, text: str) -> dict[str, Any]:
    """The mark of a text under a constraint; BadInput when it does not keep the constraint."""
    campaign, options = task.campaign, task.campaign.options
    if campaign.kind != WritingCampaign.Kind.CONSTRAINT:
        return {"campaign": campaign.slug}
    constraint = options["constraint"]
    meta: dict[str, Any] = {"campaign": campaign.slug, "constraint": constraint, "kind": CONSTRAINTS[constraint]}
    originals, message = originals_of(task), ""
    if any(same_text(text) == same_text(original) for original in originals):
        message = "This is the original. Write another text."
    elif originals and constraint == "avoid-original-words":
        shared = shared_words(text, originals[0])
        meta["shared_words"] = shared
        if len(shared) > options["shared_words"]:
            message = f"Say it in other words. The original has these as well: {', '.join(shared)}."
    elif originals and constraint == "minimally-wrong":
        changed = changed_words(text, originals[0])
        meta["changed_words"] = changed
        limit = options["changed_words"]
        if limit is not None and changed > limit:
            message = f"Change at most {limit} words of the original; this changes {changed}."
    if message:
        raise BadInput(message, faults=[Fault(message, field="text")], shared=meta.get("shared_words", []))
    return meta


def _ask(task: WritingTask, look: Look, text: str) -> Scores:
    """The scores of the set without and with the text, for every arm of a campaign with an evaluator: what the arms
    without scores came to is told at the end."""
    campaign = task.campaign
    if not campaign.evaluator or campaign.kind != WritingCampaign.Kind.REAM:
        return Scores()
    sets = [*([look.present] if look.present else []), (*look.present, text)]
    found = hooks.predict_reliability(
        project=campaign.project, evaluator=campaign.evaluator, item=task.unit.item, sets=sets
    )  # fmt: skip
    return Scores(
        found.values[0] if look.present and found.values else None,
        found.values[-1] if found.values else None,
        found.signature,
        found.note,
    )


# ---- judged under the lock --------------------------------------------------------------------------------


def _judge(task: WritingTask, sent: Sent, look: Look, scores: Scores) -> tuple[Verdict, WritingAttempt | None] | None:
    """The verdict and the stored attempt (none while it waits for a score); None when the set has changed since."""
    now = lock_task(task)
    if now is None or set_texts(task) != look.present:
        return None
    rules = _rules(task)
    offered = look.candidate.text if look.candidate else None
    attempt = Attempt(
        sent.text, offered, sent.relevant, scores.before, scores.after, empty=not look.present, unscored=sent.unscored
    )
    tried = tried_before(task, look.candidate)
    if tried.edits >= rules.max_attempts or is_closed(task, look.candidate):
        return None  # another tab was faster; the next look says so
    _check_new(task, sent.text, look.present)
    if len(look.present) + count_waiting(task) >= task.campaign.options["target"]:
        close_task(task, WritingTask.Why.FULL.value)
        return None
    verdict = judge_attempt(rules, tried, attempt)
    if verdict.decision == "wait":
        keep_draft(task, sent)
        return verdict, None
    row = store_attempt(task, sent, look, scores, verdict, now, attempt.is_edited)
    if verdict.decision == "accept":
        add_written(task, row, look)
    go_on(task, sent, verdict)
    return verdict, row


# ---- put aside --------------------------------------------------------------------------------------------


def drop_candidate(
    *, user: Any, public: str, submission: UUID, candidate: str | None = None, seconds: float | None = None
) -> Outcome:
    """Put a candidate aside for good (None: the text of one's own, or the candidate of the round)."""
    sent = Sent(submission, "", None, _checked_candidate(candidate), _checked_seconds(seconds), False, kind="drop")
    task = get_my_desk_task(user=user, public=public)
    known = answered(user, task, sent)
    if known is not None:
        return known
    check_right(user, task.campaign)
    _check_open(task, sent)
    row = _candidate(task, candidate)
    verdict = Verdict("drop", None, False, 0)
    try:
        with transaction.atomic():
            now = lock_task(task)
            if now is None or is_closed(task, row):
                raise CandidateClosed("This candidate was dealt with meanwhile. Look at the page again.")
            look = Look(row, set_texts(task), {})
            attempt = store_attempt(task, sent, look, Scores(), verdict, now, edited=False)
            go_on(task, sent, verdict)
    except IntegrityError:
        known = answered(user, task, sent)
        if known is None:
            raise
        return known
    return stored_outcome(user, task, attempt)
