"""Drafts, finishing, skips and flags of writing tasks."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import WritingFlag, WritingMember, WritingTask
from annotation.selectors.writing import NOT_YOURS, get_own_task
from evalapp.accounts.models import User
from evalapp.common.errors import Conflict, NotThere

from .judging_acts import check_draft, check_storable, make_stale_draft, read_remark
from .writing_store import close_task
from .writing_view import TaskView, check_right, get_task_view, renew_lease

_OPEN = WritingTask.State.OPEN


@dataclass(frozen=True)
class Draft:
    version: int
    saved_at: datetime

    def wire(self) -> dict[str, Any]:
        return {"draft_version": self.version, "saved_at": self.saved_at}


def save_draft(*, user: User, public: str, draft: Any, version: int) -> Draft:
    """Save a draft if it follows the stored version (compare and set), and renew the lease."""
    check_draft(draft)
    task = get_own_task(user=user, public=public)
    now = timezone.now()
    changed = WritingTask.objects.filter(pk=task.pk, draft_version=version).update(
        draft=draft, draft_version=version + 1, draft_saved_at=now
    )
    if changed:
        renew_lease(task)
        return Draft(version + 1, now)
    if not WritingTask.objects.filter(pk=task.pk).exists():  # a text was taken back in another tab
        raise NotThere(str(NOT_YOURS))
    task.refresh_from_db(fields=["draft", "draft_version", "draft_saved_at"])
    if task.draft_version == version + 1 and task.draft == draft and task.draft_saved_at:
        return Draft(task.draft_version, task.draft_saved_at)  # the same call again, because its response was lost
    raise make_stale_draft(task, version, draft)


def finish_task(*, user: User, public: str, submission: UUID | None = None) -> TaskView:
    """Finish the item. Idempotent. `submission` is ignored; the page's queue sends one with every call."""
    task = get_own_task(user=user, public=public)
    check_right(user, task.campaign)
    if task.state == WritingTask.State.SKIPPED:
        raise Conflict(_("You have skipped this item."))
    with transaction.atomic():
        close_task(task, WritingTask.Why.FINISHED.value)
    return get_task_view(user=user, public=public)


def skip_task(*, user: User, public: str, reason: str = "") -> TaskView:
    """Skip an item; the annotator does not get it again. Added texts stay. Idempotent."""
    check_storable("reason", reason)
    task = get_own_task(user=user, public=public)
    check_right(user, task.campaign)
    with transaction.atomic():
        changed = WritingTask.objects.filter(pk=task.pk, state=_OPEN).update(
            state=WritingTask.State.SKIPPED, skip_reason=reason.strip()[:300], closed_at=timezone.now()
        )
        if changed:
            WritingMember.objects.filter(pk=task.member_id).update(skipped=F("skipped") + 1, last_at=timezone.now())
        elif task.state == WritingTask.State.DONE:
            raise Conflict(_("You have already finished this item."))
    return get_task_view(user=user, public=public)


def flag_task(*, user: User, public: str, reason: str, text: str = "") -> WritingFlag:
    """Report a problem with the item. Idempotent while the flag is open."""
    remark = read_remark(reason, text)
    task = get_own_task(user=user, public=public)
    with transaction.atomic():
        if not WritingTask.objects.select_for_update(no_key=True).filter(pk=task.pk):  # a concurrent repetition waits
            raise NotThere(str(NOT_YOURS))
        return WritingFlag.objects.get_or_create(
            campaign=task.campaign, task=task, reason=reason, text=remark, resolved_at=None
        )[0]
