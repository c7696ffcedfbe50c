"""What else somebody who writes does with an item: keep a draft, end it, give it back, flag it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from annotation.allocation.texts import UNSTORABLE, is_storable
from annotation.models import WritingFlag, WritingMember, WritingTask
from annotation.selectors.writing import NOT_YOURS, get_my_desk_task
from evalapp.common.errors import BadInput, Conflict, Fault, NotThere

from .judging_acts import DRAFT_BYTES, StaleDraft, read_remark
from .writing_desk import Desk, check_right, get_desk, renew_lease
from .writing_store import close_task

_OPEN = WritingTask.State.OPEN


@dataclass(frozen=True)
class Draft:
    version: int
    saved_at: datetime

    def wire(self) -> dict[str, Any]:
        return {"draft_version": self.version, "saved_at": self.saved_at}


def save_draft(*, user: Any, public: str, draft: Any, version: int) -> Draft:
    """Keep what is typed if nobody saved in between (compare and set by `version`); renews the lease."""
    if not isinstance(draft, dict):
        raise BadInput("A draft is an object.", faults=[Fault("Send an object.", field="draft")])
    if len(json.dumps(draft)) > DRAFT_BYTES:
        raise BadInput("The draft is too long.", faults=[Fault(f"At most {DRAFT_BYTES} bytes.", field="draft")])
    if not is_storable(draft):
        raise BadInput(UNSTORABLE, faults=[Fault(UNSTORABLE, field="draft")])
    task = get_my_desk_task(user=user, public=public)
    now = timezone.now()
    changed = WritingTask.objects.filter(pk=task.pk, draft_version=version).update(
        draft=draft, draft_version=version + 1, draft_saved_at=now
    )
    if changed:
        renew_lease(task)
        return Draft(version + 1, now)
    if not WritingTask.objects.filter(pk=task.pk).exists():  # given back: a text was taken back in another tab
        raise NotThere(NOT_YOURS)
    task.refresh_from_db(fields=["draft", "draft_version", "draft_saved_at"])
    if task.draft_version == version + 1 and task.draft == draft and task.draft_saved_at:
        return Draft(task.draft_version, task.draft_saved_at)  # the answer to this very call was lost on its way
    raise StaleDraft(
        f"The draft is at version {task.draft_version} by now, yours follows version {version}. Choose one.",
        stored={"version": task.draft_version, "draft": task.draft},
        yours={"version": version, "draft": draft},
    )


def finish_task(*, user: Any, public: str, submission: UUID | None = None) -> Desk:
    """One is done with this item. Twice is once; `submission` is taken for the sake of the page's queue."""
    task = get_my_desk_task(user=user, public=public)
    check_right(user, task.campaign)
    if task.state == WritingTask.State.SKIPPED:
        raise Conflict("You have skipped this item.")
    with transaction.atomic():
        close_task(task, WritingTask.Why.FINISHED.value)
    return get_desk(user=user, public=public)


def skip_task(*, user: Any, public: str, reason: str = "") -> Desk:
    """Give an item back; this person does not get it again. What they added to it stays. Twice is once."""
    if not isinstance(reason, str) or not is_storable(reason):
        raise BadInput(UNSTORABLE, faults=[Fault(UNSTORABLE, field="reason")])
    task = get_my_desk_task(user=user, public=public)
    check_right(user, task.campaign)
    with transaction.atomic():
        changed = WritingTask.objects.filter(pk=task.pk, state=_OPEN).update(
            state=WritingTask.State.SKIPPED, skip_reason=reason.strip()[:300], closed_at=timezone.now()
        )
        if changed:
            WritingMember.objects.filter(pk=task.member_id).update(skipped=F("skipped") + 1, last_at=timezone.now())
        elif task.state == WritingTask.State.DONE:
            raise Conflict("You have ended this item already.")
    return get_desk(user=user, public=public)


def flag_task(*, user: Any, public: str, reason: str, text: str = "") -> WritingFlag:
    """Tell the researcher that something is wrong with this item. The same remark twice is one."""
    remark = read_remark(reason, text)
    task = get_my_desk_task(user=user, public=public)
    flag, _ = WritingFlag.objects.get_or_create(
        campaign=task.campaign, task=task, reason=reason, text=remark, resolved_at=None
    )
    return flag
