"""What else an annotator does with an assignment: keep a draft, skip it, flag it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from annotation.allocation.texts import UNSTORABLE, is_storable
from annotation.models import Assignment, Campaign, CampaignMember, ItemFlag, WritingFlag
from annotation.selectors.judging import get_own_assignment
from annotation.selectors.judging_sheet import get_sheet
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault, NotAllowed, NotThere

from . import judging_rows
from .judging import Then, Turn, check_right, hand_out, progress_of
from .judging_later import free_slots, take_slot_of
from .judging_rows import Held, lock_held

DRAFT_BYTES = 64_000
Flag = TypeVar("Flag", ItemFlag, WritingFlag)


class StaleDraft(Conflict):
    code, title = "stale-draft", "The draft was changed in another window"


@dataclass(frozen=True)
class Draft:
    version: int
    saved_at: datetime
    lease_until: datetime
    #: False: the lease had passed and the slot is somebody else's. Not told: a control has no slot that it could lose.
    holds: bool

    def wire(self) -> dict[str, Any]:
        return {"draft_version": self.version, "saved_at": self.saved_at, "lease_until": self.lease_until}


def save_draft(*, user: Any, public: str, version: int, draft: Any) -> Draft:
    """Keep what is typed if nobody saved in between (compare and set by `version`); renews the lease."""
    if not isinstance(draft, dict):
        raise BadInput("A draft is an object.", faults=[Fault("Send an object.", field="draft")])
    text = json.dumps(draft)
    if len(text) > DRAFT_BYTES:
        raise BadInput("The draft is too long.", faults=[Fault(f"At most {DRAFT_BYTES} bytes.", field="draft")])
    check_storable("draft", draft)
    now = timezone.now()
    # What one person does in a campaign happens one after the other: a draft and an answer, or the next hand-out, at
    # the same moment would each take a slot for the one assignment, and one slot would be lost.
    with transaction.atomic(), connection.cursor() as cursor:
        held = lock_held(cursor, public, user.pk)
        if held is None:
            raise NotThere("There is no such assignment of yours.")
        sheet = get_sheet(held.who.campaign_id, held.who.stamp, held.who.revision)
        check_right(user, held.who, sheet)
        if held.who.campaign_state == Campaign.State.CLOSED and held.state == Assignment.State.SUBMITTED:
            raise Conflict("The campaign is closed, so answers stay as they are.")
        lease_until = now + timedelta(minutes=sheet.lease_minutes)
        # A version that no column holds follows none.
        state = judging_rows.keep_draft(cursor, held, version, text, now, lease_until) if version < 2**31 - 1 else None
        if state is not None:
            return Draft(version + 1, now, lease_until, _holds(cursor, held, state, lease_until))
    row = Assignment.objects.get(pk=held.id)
    if row.draft_version == version + 1 and row.draft == draft and row.draft_saved_at:
        # The answer to this very call was lost on its way.
        return Draft(row.draft_version, row.draft_saved_at, row.lease_until, row.state == Assignment.State.OPEN)
    raise StaleDraft(
        f"The draft is at version {row.draft_version} by now, yours follows version {version}. Choose one.",
        stored={"version": row.draft_version, "draft": row.draft},
        yours={"version": version, "draft": draft},
    )


def check_storable(name: str, value: Any) -> None:
    if not is_storable(value):
        raise BadInput(UNSTORABLE, faults=[Fault(UNSTORABLE, field=name)])


def _holds(cursor: Any, held: Held, state: str, lease_until: datetime) -> bool:
    """Whether the answer would count. One that had expired is open again, with a slot if its unit has a free one."""
    if state != Assignment.State.EXPIRED:
        return state in {Assignment.State.OPEN, Assignment.State.SUBMITTED}
    slot = take_slot_of(cursor, held.unit_id) if held.needs_slot else None
    Assignment.objects.filter(pk=held.id).update(state=Assignment.State.OPEN, slot=slot, lease_until=lease_until)
    return slot is not None or not held.needs_slot


def skip_assignment(*, user: Any, public: str, reason: str = "", then: Then = "") -> Turn:
    """Give an assignment back; this person does not get it again. Skipping twice is one skip."""
    check_storable("reason", reason)
    now = timezone.now()
    with transaction.atomic(), connection.cursor() as cursor:
        held = lock_held(cursor, public, user.pk)
        if held is None:
            raise NotThere("There is no such assignment of yours.")
        who = held.who
        sheet = get_sheet(who.campaign_id, who.stamp, who.revision)
        check_right(user, who, sheet)
        if not sheet.options["allow_skip"]:
            raise NotAllowed("In this campaign nothing can be skipped.")
        row = Assignment.objects.select_for_update(of=("self",)).get(pk=held.id)
        if row.state == Assignment.State.SUBMITTED:
            raise Conflict("This was already answered. Change the answer instead of skipping it.")
        if row.state != Assignment.State.SKIPPED:
            Assignment.objects.filter(pk=row.pk).update(
                state=Assignment.State.SKIPPED, slot=None, skip_reason=reason.strip()[:300]
            )
            if row.slot_id is not None:
                free_slots([row.slot_id])
            CampaignMember.objects.filter(pk=who.member_id).update(skipped=F("skipped") + 1, last_at=now)
            who.skipped += 1
        shown, why = None, ""
        if then:
            judging_rows.run(cursor, *judging_rows.select_open(who.campaign_id, who.user_id))
            held_rows = judging_rows.fetch_shown(cursor)
            shown, why = hand_out(cursor, who, sheet, held_rows, ahead=then == "ahead", now=now)
    return Turn(sheet, progress_of(who, sheet), shown, why)  # type: ignore[arg-type]


def flag_assignment(*, user: Any, public: str, reason: str, text: str = "") -> ItemFlag:
    """Tell the researcher that something is wrong with this unit. The same remark twice is one."""
    remark = read_remark(reason, text)
    row = get_own_assignment(user=user, public=public)
    flag, _ = ItemFlag.objects.get_or_create(
        campaign=row.campaign, assignment=row, reason=reason, text=remark, resolved_at=None
    )
    return flag


def read_remark(reason: str, text: str) -> str:
    """The remark of a flag as it is stored; faults where it or its reason cannot be."""
    if reason not in ItemFlag.Reason.values:
        message = f"Choose one of: {', '.join(ItemFlag.Reason.values)}."
        raise BadInput(message, faults=[Fault(message, field="reason")])
    if len(text) > 4000:
        raise BadInput("The remark is too long.", faults=[Fault("At most 4000 characters.", field="text")])
    check_storable("text", text)
    return text.strip()


def resolve_flag(*, user: Any, flag: Flag) -> Flag:
    """A flag of judging or of writing has been dealt with."""
    with transaction.atomic():
        open_ones = type(flag)._default_manager.filter(pk=flag.pk, resolved_at=None)
        if open_ones.update(resolved_at=timezone.now(), resolved_by=user):
            audit.record(verb="flag.resolved", project=flag.campaign.project, actor=user, object=flag)
    flag.refresh_from_db()
    return flag
