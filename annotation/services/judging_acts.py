"""Drafts, skips and flags of judging assignments."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.allocation.texts import UNSTORABLE, is_storable
from annotation.models import Assignment, Campaign, CampaignMember, ItemFlag, WritingFlag
from annotation.models.shared import BaseAssignment
from annotation.selectors.judging import get_own_assignment
from annotation.selectors.judging_sheet import get_sheet
from evalapp.accounts.models import User
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault, NotAllowed, NotThere

from . import judging_rows
from .judging import NextAssignment, Then, check_right, make_progress
from .judging_handout import hand_out
from .judging_later import free_slots, take_free_slot
from .judging_rows import LockedAssignment, lock_assignment
from .participants import check_may_answer
from .statements import run

DRAFT_BYTES, REMARK_LENGTH = 64_000, 4000
Flag = TypeVar("Flag", ItemFlag, WritingFlag)


class StaleDraft(Conflict):
    code, title = "stale-draft", gettext_lazy("The draft was changed in another window")


@dataclass(frozen=True)
class Draft:
    version: int
    saved_at: datetime
    lease_until: datetime
    #: Whether an answer would count; False if the slot went to someone else. Not sent: it would identify control units.
    holds: bool

    def wire(self) -> dict[str, Any]:
        return {"draft_version": self.version, "saved_at": self.saved_at, "lease_until": self.lease_until}


def save_draft(*, user: User, public: str, version: int, draft: Any) -> Draft:
    """Save a draft if it follows the stored version (compare and set), and renew the lease."""
    text = check_draft(draft)
    now = timezone.now()
    # An annotator's calls are serialized: a concurrent draft and answer would each take a slot for the assignment, and
    # one of them would be lost.
    with transaction.atomic(), connection.cursor() as cursor:
        assignment = lock_assignment(cursor, public, user.pk)
        if assignment is None:
            raise NotThere(_("There is no such assignment of yours."))
        sheet = get_sheet(assignment.who.campaign_id, assignment.who.stamp, assignment.who.revision)
        check_right(user, assignment.who, sheet)
        if assignment.who.hired:
            check_may_answer(user)
        if assignment.who.campaign_state == Campaign.State.CLOSED and assignment.state == Assignment.State.SUBMITTED:
            raise Conflict(_("The campaign is closed, so answers can no longer be changed."))
        lease_until = now + timedelta(minutes=sheet.lease_minutes)
        # A version beyond the column's range follows no stored one.
        kept = (
            judging_rows.keep_draft(cursor, assignment, version, text, now, lease_until)
            if version < 2**31 - 1
            else None
        )
        if kept is not None:
            return Draft(version + 1, now, lease_until, _holds(cursor, assignment, *kept, lease_until))
    row = Assignment.objects.get(pk=assignment.id)
    if row.draft_version == version + 1 and row.draft == draft and row.draft_saved_at:
        # The same call again, because its response was lost.
        return Draft(row.draft_version, row.draft_saved_at, row.lease_until, row.state == Assignment.State.OPEN)
    raise make_stale_draft(row, version, draft)


def check_draft(draft: Any) -> str:
    """The draft as JSON, or BadInput."""
    if not isinstance(draft, dict):
        raise BadInput(_("A draft is an object."), faults=[Fault(_("Send an object."), field="draft")])
    text = json.dumps(draft)
    if len(text) > DRAFT_BYTES:
        limit = _("The maximum is %(n)s bytes.") % {"n": f"{DRAFT_BYTES:,}"}
        raise BadInput(_("The draft is too long."), faults=[Fault(limit, field="draft")])
    check_storable("draft", draft)
    return text


def make_stale_draft(row: BaseAssignment, version: int, draft: Any) -> StaleDraft:
    """The error for a draft that does not follow the stored version, with both drafts."""
    message = _("The draft is at version %(stored)d now; yours follows version %(yours)d. Choose one.")
    return StaleDraft(
        message % {"stored": row.draft_version, "yours": version},
        stored={"version": row.draft_version, "draft": row.draft},
        yours={"version": version, "draft": draft},
    )


def check_storable(name: str, value: Any) -> None:
    if not is_storable(value):
        raise BadInput.for_field(name, UNSTORABLE)


def _holds(cursor: Any, assignment: LockedAssignment, state: str, slot: int | None, lease_until: datetime) -> bool:
    """Whether the answer would count. An expired assignment is reopened, with a slot if its unit has a free one."""
    if state == Assignment.State.SKIPPED:
        return False
    if state == Assignment.State.EXPIRED:
        slot = take_free_slot(cursor, assignment.unit_id) if assignment.needs_slot else None
        Assignment.objects.filter(pk=assignment.id).update(
            state=Assignment.State.OPEN, slot=slot, lease_until=lease_until
        )
    return slot is not None or not assignment.needs_slot


def skip_assignment(*, user: User, public: str, reason: str = "", then: Then = "") -> NextAssignment:
    """Skip an assignment; the annotator does not get it again. Idempotent."""
    check_storable("reason", reason)
    now = timezone.now()
    with transaction.atomic(), connection.cursor() as cursor:
        assignment = lock_assignment(cursor, public, user.pk)
        if assignment is None:
            raise NotThere(_("There is no such assignment of yours."))
        who = assignment.who
        sheet = get_sheet(who.campaign_id, who.stamp, who.revision)
        check_right(user, who, sheet)
        if who.hired:
            check_may_answer(user)
        if not sheet.options["allow_skip"]:
            raise NotAllowed(_("This campaign does not allow skipping."))
        row = Assignment.objects.select_for_update(of=("self",)).get(pk=assignment.id)
        if row.state == Assignment.State.SUBMITTED:
            raise Conflict(_("You have already answered this. Change the answer instead of skipping."))
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
            run(cursor, *judging_rows.select_open(who.campaign_id, who.user_id))
            held_rows = judging_rows.fetch_assignments(cursor)
            shown, why = hand_out(cursor, who, sheet, held_rows, ahead=then == "ahead", now=now)
    return NextAssignment(sheet, make_progress(who, sheet), shown, why)  # type: ignore[arg-type]


def flag_assignment(*, user: User, public: str, reason: str, text: str = "") -> ItemFlag:
    """Report a problem with the unit. Idempotent while the flag is open."""
    remark = read_remark(reason, text)
    row = get_own_assignment(user=user, public=public)
    with transaction.atomic():
        Assignment.objects.select_for_update(no_key=True).get(pk=row.pk)  # a concurrent repetition waits
        return ItemFlag.objects.get_or_create(
            campaign=row.campaign, assignment=row, reason=reason, text=remark, resolved_at=None
        )[0]


def read_remark(reason: str, text: str) -> str:
    """The text of a flag as it is stored; BadInput if it or its reason is not valid."""
    if reason not in ItemFlag.Reason.values:
        message = _("Choose one of: %(reasons)s.") % {"reasons": ", ".join(map(str, ItemFlag.Reason.labels))}
        raise BadInput.for_field("reason", message)
    if len(text) > REMARK_LENGTH:
        limit = _("The maximum is %(n)s characters.") % {"n": f"{REMARK_LENGTH:,}"}
        raise BadInput(_("The text is too long."), faults=[Fault(limit, field="text")])
    check_storable("text", text)
    return text.strip()


def resolve_flag(*, user: User, flag: Flag) -> Flag:
    """Mark a flag of either kind of campaign as resolved. Idempotent."""
    with transaction.atomic():
        open_ones = type(flag)._default_manager.filter(pk=flag.pk, resolved_at=None)
        if open_ones.update(resolved_at=timezone.now(), resolved_by=user):
            audit.record(verb="flag.resolved", project=flag.campaign.project, actor=user, object=flag)
    flag.refresh_from_db()
    return flag
