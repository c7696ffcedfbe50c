"""The state of the writing page: the current item, its references, the candidate of the round and the attempts that are
left. `writing_handout` assigns items and `writing_attempts` handles submitted texts."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.allocation.writing import EarlierAttempts
from annotation.models import (
    Reference,
    WritingAttempt,
    WritingCampaign,
    WritingCandidate,
    WritingMember,
    WritingTask,
    WrittenReference,
)
from annotation.selectors.attributes import read_attributes
from annotation.selectors.own_campaigns import check_invited
from annotation.selectors.writing import get_own_task, is_taken_back, list_originals
from evalapp.accounts.models import User
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import NotAllowed

from .writing_candidates import fetch_round_candidates, find_candidate, find_round_candidate
from .writing_last import LastText, count_awaited, find_last

Why = Literal["", "empty", "limit", "draft", "paused", "closed"]
WHY_TEXT: dict[str, str | Promise] = {
    "": "",
    "empty": gettext_lazy("You have worked on all items in this campaign. Thank you."),
    "limit": gettext_lazy("You have reached the maximum number of items per person. Thank you."),
    "draft": gettext_lazy("This campaign is not open yet."),
    "paused": gettext_lazy("This campaign is paused. Your texts are saved; come back later."),
    "closed": gettext_lazy("This campaign is closed."),
}
_WAITING, _SHOWN = WrittenReference.State.WAITING.value, WrittenReference.State.SHOWN.value


@dataclass(frozen=True)
class ReferenceView:
    """A reference on the page. `gain` is None if the arm sees no scores, and for references that the campaign started
    from; those also have no `public` id. `waiting`: other annotators have not confirmed it yet."""

    text: str
    gain: float | None = None
    mine: bool = False
    added_by_other: bool = False
    waiting: bool = False
    public: str = ""


@dataclass(frozen=True)
class CandidateView:
    public: str
    text: str
    query: str
    jaccard: float | None
    source: dict[str, Any]


@dataclass(frozen=True)
class TaskView:
    """The state of the writing page. `task` is None if there is nothing to write, for the reason `why`. `state`: write,
    wait (for others in the group), done, skipped, none. `candidate` is the candidate of the round (None if annotators
    choose). `growth`: (number of references in the set, its score) after each added text. `version` is that of the
    draft. `last` is the text that the annotator can take back: their last one for this item or, before they start
    here, for the previous item."""

    campaign: WritingCampaign
    member: WritingMember | None = None
    task: WritingTask | None = None
    why: Why = ""
    state: Literal["write", "wait", "done", "skipped", "none"] = "none"
    context: tuple[str, ...] = ()
    source: str | None = None
    originals: tuple[str, ...] = ()
    references: tuple[ReferenceView, ...] = ()
    candidate: CandidateView | None = None
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
    last: LastText | None = None

    @property
    def why_text(self) -> str:
        return str(WHY_TEXT[self.why])

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
        """The state as the API returns it. The arm is not named: annotators without scores do not learn of others."""
        names = (
            "state why source attempts_left max_attempts target draft round rounds waiting_for note done goal "
            "to_confirm shows_scores shows_candidates allows_edit allows_own_text"
        )
        return {
            **read_attributes(self, names),
            "id": self.public,
            "campaign": self.campaign.pk,
            "message": self.why_text,
            "context": list(self.context),
            "originals": list(self.originals),
            "references": [read_attributes(row, "text gain mine added_by_other waiting") for row in self.references],
            "candidate": None if self.candidate is None else vars(self.candidate),
            "growth": [list(point) for point in self.growth],
            "draft_version": self.version,
            "last": None if self.last is None else vars(self.last),
        }


# ---- the state of the page --------------------------------------------------------------------------------


def get_task_view(*, user: User, public: str) -> TaskView:
    """The current state of a task; reading it renews the lease."""
    task = get_own_task(user=user, public=public)
    renew_lease(task)
    return make_task_view(task)


def renew_lease(task: WritingTask) -> None:
    lease = timedelta(minutes=task.campaign.lease_minutes)
    now = timezone.now()
    if task.state == WritingTask.State.OPEN and task.lease_until - now < lease / 2:
        WritingTask.objects.filter(pk=task.pk, state=WritingTask.State.OPEN).update(lease_until=now + lease)
        task.lease_until = now + lease


def check_right(user: User, campaign: WritingCampaign) -> Any:
    project = get_project(user=user, slug=campaign.project.slug, need="annotate")
    if project.role is None:  # type: ignore[attr-defined]
        raise NotAllowed(_("Only members of the project can write. Join the project first."))
    check_invited(project=project, campaign=campaign)
    return project


def make_task_view(task: WritingTask) -> TaskView:
    campaign, member = task.campaign, task.member
    is_open = task.state == WritingTask.State.OPEN
    state: Any = "write" if is_open else task.state
    candidate: WritingCandidate | None = None
    rounds = waiting_for = 0
    note = ""
    if campaign.in_rounds:
        rounds, note = fetch_round_candidates(task) if is_open else (0, "")
        waiting_for = count_awaited(task) if is_open else 0
        candidate = find_round_candidate(task) if is_open and not waiting_for else None
        state = "wait" if waiting_for else state
    references, growth = _references(task)
    return TaskView(
        campaign=campaign,
        member=member,
        task=task,
        state=state,
        context=tuple(task.unit.item.context),
        source=task.unit.item.source,
        originals=select_originals(campaign, list_originals(task)) if _is_constrained(campaign) else (),
        references=references,
        candidate=None if candidate is None else _shown(candidate),
        attempts_left=_left(task, candidate),
        growth=growth if task.shows_scores else (),
        draft=task.draft,
        version=task.draft_version,
        goal=get_goal(campaign, member),
        round=task.round,
        rounds=rounds,
        waiting_for=waiting_for,
        note=note,
        to_confirm=count_to_confirm(member),
        last=find_last(member, task),
    )


def _shown(row: WritingCandidate) -> CandidateView:
    return CandidateView(row.public, row.text, row.query, row.jaccard, row.source)


def get_goal(campaign: WritingCampaign, member: WritingMember) -> int:
    return max(member.done, min(campaign.unit_count, campaign.max_per_annotator or campaign.unit_count))


def _references(task: WritingTask) -> tuple[tuple[ReferenceView, ...], tuple[tuple[int, float], ...]]:
    """The references of the item, followed by those that wait for confirmation, and how the score grew."""
    here = Reference.objects.filter(item=task.unit.item_id, set=task.member.set_id).order_by("position")
    added = WrittenReference.objects.filter(unit=task.unit_id, set=task.member.set_id)
    written = {row.reference_id: row for row in added.filter(state=_SHOWN)}
    rows, growth = [], []
    for place, (pk, text) in enumerate(here.values_list("pk", "text"), 1):
        written_row = written.get(pk)
        rows.append(_row(task, text, written_row))
        if written_row is not None and written_row.score is not None:
            growth.append((place, written_row.score))
    waiting = added.filter(state=_WAITING).order_by("pk")
    return (*rows, *(_row(task, row.text, row) for row in waiting)), tuple(growth)


def _row(task: WritingTask, text: str, written: WrittenReference | None) -> ReferenceView:
    if written is None:
        return ReferenceView(text)
    mine = written.member_id == task.member_id
    gain = written.gain if task.shows_scores else None
    return ReferenceView(text, gain, mine, not mine, written.state == _WAITING, written.public)


def count_earlier_attempts(task: WritingTask, candidate: WritingCandidate | None) -> EarlierAttempts:
    """The annotator's attempts for the candidate in this task, without texts that they took back. For own texts: the
    attempts since the last accepted or discarded one."""
    rows = WritingAttempt.objects.filter(~is_taken_back(), task=task, candidate=candidate)
    if candidate is None:
        rows = rows.filter(round=task.round)
    attempts = list(rows.values_list("edited", "counted"))
    return EarlierAttempts(any(not edited for edited, _ in attempts), sum(counted for _, counted in attempts))


def _is_constrained(campaign: WritingCampaign) -> bool:
    return campaign.kind == WritingCampaign.Kind.CONSTRAINT


def select_originals(campaign: WritingCampaign, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The originals to show under a constraint. Texts are compared with the first reference, so only that one is shown;
    without further constraints, a text must differ from all originals."""
    if not _is_constrained(campaign):
        return ()
    return texts if campaign.options["constraint"] == "free" else texts[:1]


def _left(task: WritingTask, candidate: WritingCandidate | None) -> int:
    """The edits that are left for the candidate of the round, or for the candidate in the draft."""
    if candidate is None and isinstance(task.draft, dict) and isinstance(task.draft.get("candidate"), str):
        candidate = find_candidate(task, task.draft["candidate"])
    return max(0, int(task.campaign.options["max_attempts"]) - count_earlier_attempts(task, candidate).edits)


def count_to_confirm(member: WritingMember) -> int:
    """The number of texts that wait for this annotator's confirmation."""
    if not member.campaign.options["confirmations"]:
        return 0
    return list_unconfirmed(member).count()


def list_unconfirmed(member: WritingMember) -> Any:
    return (
        WrittenReference.objects.filter(campaign=member.campaign_id, state=_WAITING)
        .exclude(member=member)
        .exclude(confirmations__member=member)
    )
