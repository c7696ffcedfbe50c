"""Which text somebody who writes can take back, and why not: their last one, while nothing rests on it. For how many of
the group one waits is here as well, since a round that has gone on rests on what was written in it."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from annotation.allocation.writing import Place, waits_for
from annotation.models import WritingAttempt, WritingCampaign, WritingMember, WritingTask, WrittenReference

_STANDING = (WrittenReference.State.SHOWN.value, WrittenReference.State.WAITING.value)


@dataclass(frozen=True)
class Last:
    """A text that can be taken back, the task it was written for, and its opaque id."""

    task: str
    reference: str
    text: str


def find_last(member: WritingMember, task: WritingTask | None) -> Last | None:
    """What `member` can take back with `task` before them: their last text for it or, before they have begun with it,
    the one that completed the item before."""
    row = last_written(task) if task is not None else None
    if row is None and (task is None or not has_begun(task)):
        before = WritingTask.objects.filter(member=member, state=WritingTask.State.DONE).order_by("-closed_at").first()
        task, row = before, last_written(before) if before is not None else None
    if task is None or row is None or objection(task, row):
        return None
    return Last(task.public, row.public, row.text)


def last_written(task: WritingTask) -> WrittenReference | None:
    """The newest text of the task that stands in the set, or waits to be confirmed."""
    rows = WrittenReference.objects.select_related("attempt", "member").filter(task=task, state__in=_STANDING)
    return rows.order_by("-attempt__number").first()


def has_begun(task: WritingTask) -> bool:
    """Whether anything was sent, typed or said of it."""
    typed = isinstance(task.draft, dict) and bool(task.draft.get("text"))
    return typed or WritingAttempt.objects.filter(task=task).exists() or task.flags.exists()


def objection(task: WritingTask, row: WrittenReference) -> str:
    """Why the last text of the task stays; empty when it can be taken back."""
    campaign = task.campaign
    if campaign.state not in (WritingCampaign.State.OPEN, WritingCampaign.State.PAUSED):
        return "The campaign is closed, so nothing is changed any more."
    full = task.state == WritingTask.State.DONE and task.why == WritingTask.Why.FULL
    if task.state != WritingTask.State.OPEN and not full:
        return "You have ended this item. Ask who runs the campaign to withdraw the text."
    if row.confirmations.exists():
        return "Somebody else has compared this text by now. Ask who runs the campaign to withdraw it."
    if full and any(has_begun(other) for other in _open_tasks(task)):
        return "You have begun the next item. Ask who runs the campaign to withdraw the text."
    if campaign.in_rounds and _has_gone_on(task, row.attempt):
        return "The round has gone on by now. Ask who runs the campaign to withdraw the text."
    return ""


def _open_tasks(task: WritingTask) -> list[WritingTask]:
    return list(WritingTask.objects.filter(member=task.member_id, state=WritingTask.State.OPEN).exclude(pk=task.pk))


def _has_gone_on(task: WritingTask, attempt: WritingAttempt) -> bool:
    """Whether the next candidate was dealt with, or lies before the others of the group."""
    if WritingAttempt.objects.filter(task=task, round__gt=attempt.round).exists():
        return True
    group = WritingTask.objects.filter(unit=task.unit_id, member__group=task.member.group).exclude(pk=task.pk)
    further = max(group.values_list("round", flat=True), default=0) - attempt.round
    return further > 1 or (further == 1 and not count_awaited(task))


def count_awaited(task: WritingTask) -> int:
    """For how many others of the group this person waits before the next candidate."""
    now = timezone.now()
    others = WritingTask.objects.filter(
        campaign=task.campaign_id, state=WritingTask.State.OPEN, member__group=task.member.group
    ).exclude(member=task.member_id)
    places = [
        Place(rank, dealt, lease > now)
        for rank, dealt, lease in others.values_list("unit__rank", "round", "lease_until")
    ]
    return waits_for(Place(task.unit.rank, task.round), places)
