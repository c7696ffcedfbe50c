"""What lies before somebody who writes: the item to work on now, its references, the candidate of the round, what is
left of the attempts. Items are handed out by `writing_handout`; what is sent goes to `writing_attempts`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from django.utils import timezone

from annotation.allocation.writing import Tried
from annotation.models import (
    Reference,
    WritingAttempt,
    WritingCampaign,
    WritingCandidate,
    WritingMember,
    WritingTask,
    WrittenReference,
)
from annotation.selectors.own import check_invited
from annotation.selectors.writing import get_my_desk_task, is_taken_back, originals_of
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import NotAllowed

from .writing_candidates import candidates_of_rounds, find_candidate, round_candidate
from .writing_last import Last, count_awaited, find_last

Why = Literal["", "empty", "limit", "draft", "paused", "closed"]
WHY_TEXT: dict[str, str] = {
    "": "",
    "empty": "There is nothing left for you to write here. Thank you.",
    "limit": "You have reached the number of items asked of one person. Thank you.",
    "draft": "This campaign is not open yet.",
    "paused": "This campaign is paused. Your texts are kept; come back later.",
    "closed": "This campaign is closed.",
}
_WAITING, _SHOWN = WrittenReference.State.WAITING.value, WrittenReference.State.SHOWN.value


@dataclass(frozen=True)
class DeskReference:
    """`gain` is None where the arm sees no scores, and for references that were there before. `waiting`: others have
    not confirmed it yet. `public` is empty for what nobody wrote here."""

    text: str
    gain: float | None = None
    mine: bool = False
    added_by_other: bool = False
    waiting: bool = False
    public: str = ""


@dataclass(frozen=True)
class DeskCandidate:
    public: str
    text: str
    query: str
    jaccard: float | None
    source: dict[str, Any]


@dataclass(frozen=True)
class Desk:
    """`task` is None when there is nothing to write; `why` says why. `state`: write, wait (for others of the group),
    done, skipped, none. `candidate` is the one of the round (None where the annotator chooses). `growth`: (number of
    references in the set, its score), one for each that was added. `version` is that of the draft. `last` is what this
    person can take back: their last text for this item or, before they begin here, for the item before."""

    campaign: WritingCampaign
    member: WritingMember | None = None
    task: WritingTask | None = None
    why: Why = ""
    state: Literal["write", "wait", "done", "skipped", "none"] = "none"
    context: tuple[str, ...] = ()
    source: str | None = None
    originals: tuple[str, ...] = ()
    references: tuple[DeskReference, ...] = ()
    candidate: DeskCandidate | None = None
    attempts_left: int = 0
    growth: tuple[tuple[int, float], ...] = ()
    draft: dict[str, Any] | None = None
    version: int = 0
    goal: int = 0
    round: int = 0
    rounds: int = 0
    waiting_for: int = 0
    note: str = ""
    to_confirm: int = 0
    last: Last | None = None

    @property
    def why_text(self) -> str:
        return WHY_TEXT[self.why]

    @property
    def public(self) -> str:
        return self.task.public if self.task else ""

    @property
    def done(self) -> int:
        return self.member.done if self.member else 0

    @property
    def target(self) -> int:
        return int(self.campaign.options["target"])

    @property
    def max_attempts(self) -> int:
        return int(self.campaign.options["max_attempts"])

    @property
    def shows_scores(self) -> bool:
        return bool(self.task and self.task.shows_scores)

    @property
    def shows_candidates(self) -> bool:
        return bool(self.task and self.task.shows_candidates)

    @property
    def allows_edit(self) -> bool:
        return bool(self.task and self.task.arm != "candidates")

    @property
    def allows_own_text(self) -> bool:
        return self.allows_edit and bool(self.campaign.options["own_text"]) and not self.campaign.in_rounds

    def wire(self) -> dict[str, Any]:
        """As the API sends it. No arm by name: a page without scores does not say that others have them."""
        return {
            "id": self.public,
            "campaign": self.campaign.pk,
            "state": self.state,
            "why": self.why,
            "message": self.why_text,
            "context": list(self.context),
            "source": self.source,
            "originals": list(self.originals),
            "references": [
                {
                    "text": row.text, "gain": row.gain, "mine": row.mine, "added_by_other": row.added_by_other,
                    "waiting": row.waiting,
                }
                for row in self.references
            ],
            "candidate": None if self.candidate is None else vars(self.candidate),
            "attempts_left": self.attempts_left,
            "max_attempts": self.max_attempts,
            "target": self.target,
            "growth": [list(point) for point in self.growth],
            "draft": self.draft,
            "draft_version": self.version,
            "round": self.round,
            "rounds": self.rounds,
            "waiting_for": self.waiting_for,
            "note": self.note,
            "done": self.done,
            "goal": self.goal,
            "to_confirm": self.to_confirm,
            "last": None if self.last is None else vars(self.last),
            "shows_scores": self.shows_scores,
            "shows_candidates": self.shows_candidates,
            "allows_edit": self.allows_edit,
            "allows_own_text": self.allows_own_text,
        }  # fmt: skip


# ---- what lies on the desk --------------------------------------------------------------------------------


def get_desk(*, user: Any, public: str) -> Desk:
    """The task as it stands now; somebody who looks at it has the lease again."""
    task = get_my_desk_task(user=user, public=public)
    renew_lease(task)
    return make_desk(task)


def renew_lease(task: WritingTask) -> None:
    lease = timedelta(minutes=task.campaign.lease_minutes)
    now = timezone.now()
    if task.state == WritingTask.State.OPEN and task.lease_until - now < lease / 2:
        WritingTask.objects.filter(pk=task.pk, state=WritingTask.State.OPEN).update(lease_until=now + lease)
        task.lease_until = now + lease


def check_right(user: Any, campaign: WritingCampaign) -> Any:
    project = get_project(user=user, slug=campaign.project.slug, need="annotate")
    if project.role is None:  # type: ignore[attr-defined]
        raise NotAllowed("Only members of the project can write in it. Join it first.")
    check_invited(project=project, campaign=campaign)
    return project


def make_desk(task: WritingTask) -> Desk:
    campaign, member = task.campaign, task.member
    is_open = task.state == WritingTask.State.OPEN
    state: Any = "write" if is_open else task.state
    candidate: WritingCandidate | None = None
    rounds = waiting_for = 0
    note = ""
    if campaign.in_rounds:
        rounds, note = candidates_of_rounds(task) if is_open else (0, "")
        waiting_for = count_awaited(task) if is_open else 0
        candidate = round_candidate(task) if is_open and not waiting_for else None
        state = "wait" if waiting_for else state
    references, growth = _references(task)
    return Desk(
        campaign=campaign,
        member=member,
        task=task,
        state=state,
        context=tuple(task.unit.item.context),
        source=task.unit.item.source,
        originals=shown_originals(campaign, originals_of(task)) if _is_constrained(campaign) else (),
        references=references,
        candidate=None if candidate is None else _shown(candidate),
        attempts_left=_left(task, candidate),
        growth=growth if task.shows_scores else (),
        draft=task.draft,
        version=task.draft_version,
        goal=goal_of(campaign, member),
        round=task.round,
        rounds=rounds,
        waiting_for=waiting_for,
        note=note,
        to_confirm=count_to_confirm(member),
        last=find_last(member, task),
    )


def _shown(row: WritingCandidate) -> DeskCandidate:
    return DeskCandidate(row.public, row.text, row.query, row.jaccard, row.source)


def goal_of(campaign: WritingCampaign, member: WritingMember) -> int:
    return max(member.done, min(campaign.unit_count, campaign.max_per_annotator or campaign.unit_count))


def _references(task: WritingTask) -> tuple[tuple[DeskReference, ...], tuple[tuple[int, float], ...]]:
    """The references of the item in the set, those that wait behind them, and how the score grew."""
    here = Reference.objects.filter(item=task.unit.item_id, set=task.member.set_id).order_by("position")
    added = WrittenReference.objects.filter(unit=task.unit_id, set=task.member.set_id)
    written = {row.reference_id: row for row in added.filter(state=_SHOWN)}
    rows, growth = [], []
    for place, (pk, text) in enumerate(here.values_list("pk", "text"), 1):
        own = written.get(pk)
        rows.append(_row(task, text, own))
        if own is not None and own.score is not None:
            growth.append((place, own.score))
    waiting = added.filter(state=_WAITING).order_by("pk")
    return (*rows, *(_row(task, row.text, row) for row in waiting)), tuple(growth)


def _row(task: WritingTask, text: str, written: WrittenReference | None) -> DeskReference:
    if written is None:
        return DeskReference(text)
    mine = written.member_id == task.member_id
    gain = written.gain if task.shows_scores else None
    return DeskReference(text, gain, mine, not mine, written.state == _WAITING, written.public)


def tried_before(task: WritingTask, candidate: WritingCandidate | None) -> Tried:
    """What this person has sent for the candidate on this task, or, for a text of their own, since the last one that
    was accepted or dropped; without what they took back."""
    rows = WritingAttempt.objects.filter(~is_taken_back(), task=task, candidate=candidate)
    if candidate is None:
        rows = rows.filter(round=task.round)
    found = list(rows.values_list("edited", "counted"))
    return Tried(any(not edited for edited, _ in found), sum(counted for _, counted in found))


def _is_constrained(campaign: WritingCampaign) -> bool:
    return campaign.kind == WritingCampaign.Kind.CONSTRAINT


def shown_originals(campaign: WritingCampaign, texts: tuple[str, ...]) -> tuple[str, ...]:
    """What a text is written against. Its words, and what is better or wrong, are measured against the first reference,
    so only that one is shown; another text free of constraints must differ from all."""
    if not _is_constrained(campaign):
        return ()
    return texts if campaign.options["constraint"] == "free" else texts[:1]


def _left(task: WritingTask, candidate: WritingCandidate | None) -> int:
    """Edits that are left for the candidate of the round, or for the one in the draft."""
    if candidate is None and isinstance(task.draft, dict) and isinstance(task.draft.get("candidate"), str):
        candidate = find_candidate(task, task.draft["candidate"])
    return max(0, int(task.campaign.options["max_attempts"]) - tried_before(task, candidate).edits)


def count_to_confirm(member: WritingMember) -> int:
    """Texts of others that wait for this person's comparison with the original."""
    if not member.campaign.options["confirmations"]:
        return 0
    return waiting_for_confirmation(member).count()


def waiting_for_confirmation(member: WritingMember) -> Any:
    return (
        WrittenReference.objects.filter(campaign=member.campaign_id, state=_WAITING)
        .exclude(member=member)
        .exclude(confirmations__member=member)
    )
