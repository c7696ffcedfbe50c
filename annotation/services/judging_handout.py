"""Hands open or new assignments to annotators, and takes back the places of expired ones."""

from datetime import datetime, timedelta
from typing import Any, Literal

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from annotation.allocation.mix import MemberCounts, choose_step
from annotation.allocation.streams import coin, draw
from annotation.models import Assignment, Campaign, Unit
from annotation.selectors.judging_sheet import Sheet

from . import judging_later, judging_rows, participants
from .judging_rows import AssignmentView, MemberContext
from .statements import run, run_batch

LONGEST_LEASE = timedelta(minutes=1440)  # the maximum of a plan

Why = Literal["", "empty", "limit", "draft", "paused", "closed", "ended", "full"]


def hand_out(
    cursor: Any, who: MemberContext, sheet: Sheet, assignments: list[AssignmentView], *, ahead: bool, now: datetime
) -> tuple[AssignmentView | None, Why]:
    """An open assignment or a new one. The caller holds the lock of the member. At most two are open: the one on the
    page and the one after it, which is requested in advance. Hired participants need a place, and end when nothing is
    left for them."""
    if not who.hired:
        return _hand_out(cursor, who, sheet, assignments, ahead=ahead, now=now)
    if stopped := participants.admit(who, sheet, assignments, now):
        return None, stopped
    if ahead and participants.is_screening(who, assignments):
        return None, "empty"
    shown, why = _hand_out(cursor, who, sheet, assignments, ahead=ahead, now=now)
    if why in ("limit", "empty") and not assignments:
        return None, participants.end_participation(who, now)
    return shown, why


def _hand_out(
    cursor: Any, who: MemberContext, sheet: Sheet, assignments: list[AssignmentView], *, ahead: bool, now: datetime
) -> tuple[AssignmentView | None, Why]:
    place = 1 if ahead and assignments else 0
    if len(assignments) > place:
        return assignments[place], ""
    if who.campaign_state != Campaign.State.OPEN:
        return None, who.campaign_state  # type: ignore[return-value]
    waiting = sum(not row.is_practice for row in assignments)
    if sheet.max_per_annotator and who.done + waiting >= sheet.max_per_annotator:
        return None, "limit"
    new = _new_assignment(cursor, who, sheet, now)
    return new, "" if new else "empty"


def _new_assignment(cursor: Any, who: MemberContext, sheet: Sheet, now: datetime) -> AssignmentView | None:
    order = who.practised + who.given + 1
    step = choose_step(
        MemberCounts(who.seed, who.practised, who.given),
        practice=sheet.practice_count,
        controls=sheet.control_count,
        control_rate=sheet.options["control_rate"],
        repeat_share=sheet.options["repeat_share"],
    )
    unit_id = _choose_extra_unit(who, sheet, step, order) if step != "normal" else None
    slot_id, repeat = None, 0
    if unit_id is not None:
        repeat = 1 if step == "repeat" else 0
        swapped = sheet.kind != "likert" and coin(who.seed, "side", unit_id, repeat)
    else:
        start = draw(who.seed, "order", order)
        claim = None
        if sheet.n_players:
            from . import judging_adaptive  # numpy and scipy: only for campaigns that need them

            claim = judging_adaptive.claim_or_begin(cursor, who, sheet, order, start)
        claim = claim or judging_rows.claim_slot(cursor, who.campaign_id, who.user_id, start)
        lease = timedelta(minutes=sheet.lease_minutes)
        if claim is None and return_expired_slots(campaign_id=who.campaign_id, now=now, lease=lease):
            claim = judging_rows.claim_slot(cursor, who.campaign_id, who.user_id, start)
        if claim is None:
            return None
        slot_id, unit_id, swapped = claim
    practice = step == "practice" and slot_id is None
    run_batch(
        cursor,
        [
            judging_rows.insert_assignment(
                who=who, unit_id=unit_id, slot_id=slot_id, repeat=repeat, order=order, swapped=swapped, now=now,
                lease_until=now + timedelta(minutes=sheet.lease_minutes),
            ),
            judging_rows.count_given(who, practice),
            judging_rows.select_new(unit_id, repeat, who.user_id),
        ],
    )  # fmt: skip
    if practice:
        who.practised += 1
    else:
        who.given += 1
    return judging_rows.fetch_assignments(cursor)[0]


def _choose_extra_unit(who: MemberContext, sheet: Sheet, step: str, order: int) -> int | None:
    """A practice or control unit that is new to the annotator, or one that they judge again; these have no slots."""
    mine = Assignment.objects.filter(campaign_id=who.campaign_id, annotator_id=who.user_id)
    not_expired = mine.exclude(state=Assignment.State.EXPIRED)  # expired assignments can be repeated, as with slots
    if step == "repeat":
        old = mine.filter(
            state=Assignment.State.SUBMITTED,
            repeat_number=0,
            unit__kind=Unit.Kind.NORMAL,
            slot__isnull=False,  # a late answer does not count, so a repeat could not be compared with it
            order_number__lte=order - sheet.options["repeat_gap"],
        ).exclude(unit__in=not_expired.filter(repeat_number=1).values("unit"))
        ids = list(old.order_by("order_number").values_list("unit_id", flat=True)[:200])
        return ids[draw(who.seed, "again", order) % len(ids)] if ids else None
    units = Unit.objects.filter(campaign_id=who.campaign_id, kind=step).exclude(pk__in=not_expired.values("unit"))
    ids = list(units.order_by("pk").values_list("pk", flat=True))
    if not ids:
        return None
    return ids[0] if step == "practice" else ids[draw(who.seed, "which", order) % len(ids)]


def renew_if_short(cursor: Any, shown: AssignmentView, sheet: Sheet, now: datetime) -> None:
    """Renew the lease if less than half of it is left."""
    lease = timedelta(minutes=sheet.lease_minutes)
    if shown.lease_until - now > lease / 2:
        return
    run(
        cursor,
        "UPDATE annotation_assignment SET lease_until = %s WHERE id = %s AND state = 'open'",
        [now + lease, shown.id],
    )
    shown.lease_until = now + lease


def return_expired_slots(
    *, campaign_id: int | None = None, now: datetime | None = None, lease: timedelta = LONGEST_LEASE
) -> int:
    """Expire assignments whose lease has ended and free their slots. Returns the number of freed slots.

    A lease that ends later than `lease` from now means that the clock was set back; it is reset. Control and repeated
    units have no slots but expire as well, because annotators could recognize them otherwise. Practice units do not
    expire."""
    moment = now or timezone.now()
    with transaction.atomic():
        due = (
            Assignment.objects.filter(
                Q(lease_until__lt=moment) | Q(lease_until__gt=moment + lease + timedelta(minutes=1)),
                state=Assignment.State.OPEN,
            )
            .exclude(unit__kind=Unit.Kind.PRACTICE)
            .order_by("pk")
        )
        if campaign_id is not None:
            due = due.filter(campaign_id=campaign_id)
        if connection.vendor == "postgresql":
            due = due.select_for_update(skip_locked=True, of=("self",))
        rows = list(due.values_list("pk", "slot_id", "lease_until")[:1000])
        expired = {pk: slot for pk, slot, until in rows if until < moment}
        slots = [slot for slot in expired.values() if slot is not None]
        if expired:
            Assignment.objects.filter(pk__in=expired).update(state=Assignment.State.EXPIRED, slot=None)
            judging_later.free_slots(slots)
        if len(rows) > len(expired):
            ahead = [pk for pk, _, _ in rows if pk not in expired]
            Assignment.objects.filter(pk__in=ahead).update(lease_until=moment + lease)
    return len(slots)
