"""The text that an annotator can take back: their last one, while nothing depends on it. In rounds, the next round
depends on it, so waiting for the group is here as well."""

from dataclasses import dataclass

from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.allocation.writing import GroupPosition, waits_for
from annotation.models import WritingAttempt, WritingCampaign, WritingMember, WritingTask, WrittenReference

_STANDING = (WrittenReference.State.SHOWN.value, WrittenReference.State.WAITING.value)


@dataclass(frozen=True)
class LastText:
    """A text that can be taken back, with its public id and that of its task."""

    task: str
    reference: str
    text: str


def find_last(member: WritingMember, task: WritingTask | None) -> LastText | None:
    """The text that `member` can take back: the last one for `task` or, if they have not started it, the text that
    completed the previous item."""
    row = find_last_written(task) if task is not None else None
    if row is None and (task is None or not has_begun(task)):
        before = WritingTask.objects.filter(member=member, state=WritingTask.State.DONE).order_by("-closed_at").first()
        task, row = before, find_last_written(before) if before is not None else None
    if task is None or row is None or find_objection(task, row):
        return None
    return LastText(task.public, row.public, row.text)


def find_last_written(task: WritingTask) -> WrittenReference | None:
    """The newest text of the task that is in the set or waits for confirmation."""
    rows = WrittenReference.objects.select_related("attempt", "member").filter(task=task, state__in=_STANDING)
    return rows.order_by("-attempt__number").first()


def has_begun(task: WritingTask) -> bool:
    """Whether the annotator has submitted, typed or flagged anything."""
    typed = isinstance(task.draft, dict) and bool(task.draft.get("text"))
    return typed or WritingAttempt.objects.filter(task=task).exists() or task.flags.exists()


def find_objection(task: WritingTask, row: WrittenReference) -> str:
    """The reason why the text cannot be taken back; empty if it can."""
    campaign = task.campaign
    if campaign.state not in (WritingCampaign.State.OPEN, WritingCampaign.State.PAUSED):
        return _("The campaign is closed, so nothing can be changed.")
    full = task.state == WritingTask.State.DONE and task.why == WritingTask.Why.FULL
    if task.state != WritingTask.State.OPEN and not full:
        return _("You have finished this item. Ask the campaign's owner to withdraw the text.")
    if row.confirmations.exists():
        return _("Another annotator has already compared this text. Ask the campaign's owner to withdraw it.")
    if full and any(has_begun(other) for other in _open_tasks(task)):
        return _("You have started the next item. Ask the campaign's owner to withdraw the text.")
    if campaign.in_rounds and _has_gone_on(task, row.attempt):
        return _("The next round has started. Ask the campaign's owner to withdraw the text.")
    return ""


def _open_tasks(task: WritingTask) -> list[WritingTask]:
    return list(WritingTask.objects.filter(member=task.member_id, state=WritingTask.State.OPEN).exclude(pk=task.pk))


def _has_gone_on(task: WritingTask, attempt: WritingAttempt) -> bool:
    """Whether the annotator has finished the next candidate, or others in the group already see it."""
    if WritingAttempt.objects.filter(task=task, round__gt=attempt.round).exists():
        return True
    group = WritingTask.objects.filter(unit=task.unit_id, member__group=task.member.group).exclude(pk=task.pk)
    further = max(group.values_list("round", flat=True), default=0) - attempt.round
    return further > 1 or (further == 1 and not count_awaited(task))


def count_awaited(task: WritingTask) -> int:
    """The number of others in the group that the annotator waits for before the next candidate."""
    now = timezone.now()
    others = WritingTask.objects.filter(
        campaign=task.campaign_id, state=WritingTask.State.OPEN, member__group=task.member.group
    ).exclude(member=task.member_id)
    places = [
        GroupPosition(rank, dealt, lease > now)
        for rank, dealt, lease in others.values_list("unit__rank", "round", "lease_until")
    ]
    return waits_for(GroupPosition(task.unit.rank, task.round), places)
