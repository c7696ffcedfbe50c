"""Annotators take back their last text: it leaves the set but stays on record, and the item returns to its earlier
state."""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.allocation.texts import is_storable
from annotation.models import Reference, WritingMember, WritingTask, WritingUnit, WrittenReference
from annotation.selectors.writing import NOT_YOURS, TAKEN_BACK, get_own_task
from evalapp.accounts.models import User
from evalapp.common.errors import BadInput, Conflict, NotThere

from .writing_last import find_last_written, find_objection
from .writing_later import was_taken_back, withdraw_row
from .writing_store import count_waiting
from .writing_view import TaskView, check_right, get_task_view

_OPEN = WritingTask.State.OPEN


class NotLast(Conflict):
    code, title = "not-last", gettext_lazy("This text cannot be taken back")


def take_back_last(*, user: User, public: str, reference: str) -> TaskView:
    """Take the annotator's last text for an item out of the set; `reference` is its id (`TaskView.last`). Idempotent.

    The attempt stays on record but no longer counts: its candidate is open again, and its edit is not used up. The text
    returns to the editor unless that contains another one. An item that it completed is reopened; an item that was
    assigned meanwhile is returned if the annotator has not started it."""
    task = get_own_task(user=user, public=public)
    check_right(user, task.campaign)
    row = WrittenReference.objects.filter(task=task, public=reference).first() if is_storable(reference) else None
    if row is None:
        raise BadInput.for_field("reference", _("You have no such text for this item. Reload the page."))
    with transaction.atomic():
        WritingUnit.objects.select_for_update(no_key=True).get(pk=task.unit_id)
        fresh = _lock_tasks(task)
        WritingMember.objects.select_for_update(no_key=True).get(pk=task.member_id)
        for name in ("state", "why", "round", "draft"):
            setattr(task, name, getattr(fresh, name))
        task.campaign.refresh_from_db(fields=["state"])  # it may have been closed while waiting for the lock
        row = _locked(row.pk)
        if not was_taken_back(row):
            _check(task, row)
            withdraw_row(row, user, TAKEN_BACK)
            _go_back(task, row)
    return get_task_view(user=user, public=public)


def _lock_tasks(task: WritingTask) -> WritingTask:
    """Lock the task and the annotator's open task, which may have to be returned."""
    rows = WritingTask.objects.select_for_update().order_by("pk")
    tasks = {row.pk: row for row in rows.filter(Q(pk=task.pk) | Q(member=task.member_id, state=_OPEN))}
    if task.pk not in tasks:
        raise NotThere(str(NOT_YOURS))
    return tasks[task.pk]


def _locked(pk: int) -> WrittenReference:
    rows = WrittenReference.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("campaign__project", "unit__item", "set", "member", "attempt").get(pk=pk)


def _check(task: WritingTask, row: WrittenReference) -> None:
    last = find_last_written(task)
    if last is None or last.pk != row.pk:
        gone = row.state in (WrittenReference.State.WITHDRAWN, WrittenReference.State.REFUSED)
        raise NotLast(_("This text is no longer in the set.") if gone else _("You have added another text since."))
    why = find_objection(task, row)
    if why:
        raise NotLast(why)


def _go_back(task: WritingTask, row: WrittenReference) -> None:
    """Restore counters, round, draft and state from before the text was added."""
    changes: dict[str, Any] = {}
    attempt = row.attempt
    if task.round == attempt.round + 1 and not task.attempts.filter(round__gt=attempt.round).exists():
        changes["round"] = attempt.round
    if not (isinstance(task.draft, dict) and task.draft.get("text")):
        candidate = attempt.candidate.public if attempt.candidate is not None else None
        changes["draft"] = {"text": row.text, "candidate": candidate, "relevant": attempt.relevant}
        changes |= {"draft_version": F("draft_version") + 1, "draft_saved_at": timezone.now()}
    WritingMember.objects.filter(pk=task.member_id).update(accepted=F("accepted") - 1, last_at=timezone.now())
    if task.state != _OPEN and _has_place(task):
        WritingTask.objects.filter(member=task.member_id, state=_OPEN).delete()  # not started, see `find_objection`
        lease = timezone.now() + timedelta(minutes=task.campaign.lease_minutes)
        changes |= {"state": _OPEN.value, "why": "", "closed_at": None, "lease_until": lease}
        WritingMember.objects.filter(pk=task.member_id).update(done=F("done") - 1)
    if changes:
        WritingTask.objects.filter(pk=task.pk).update(**changes)


def _has_place(task: WritingTask) -> bool:
    there = Reference.objects.filter(item=task.unit.item_id, set=task.member.set_id).count()
    return there + count_waiting(task) < int(task.campaign.options["target"])
