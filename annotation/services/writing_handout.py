"""Assigns items to annotators of writing campaigns: joining, with arm, group and reference set, and the next item."""

import secrets
from datetime import timedelta

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.allocation.streams import draw
from annotation.allocation.writing import choose_arm, choose_group
from annotation.models import (
    Reference,
    ReferenceSet,
    WritingCampaign,
    WritingMember,
    WritingTask,
    WritingUnit,
    WrittenReference,
)
from annotation.selectors.own_campaigns import NotBegun
from evalapp.accounts.models import Membership, User
from evalapp.common.errors import NotThere

from .judging import CampaignNotOpen
from .writing_last import find_last
from .writing_plans import WRITING, begin_set, make_set_name
from .writing_view import WHY_TEXT, TaskView, Why, check_right, count_to_confirm, get_goal, get_task_view


def get_next_task(*, user: User, campaign_id: int, joins: bool = True) -> TaskView:
    """The annotator's open item, or a new one. Without `joins`, NotBegun is raised before the first one."""
    with transaction.atomic():
        member = lock_member(user, campaign_id, joins=joins)
        campaign = member.campaign
        task = WritingTask.objects.filter(member=member, state=WritingTask.State.OPEN).first()
        why: Why = ""
        if task is None:
            task, why = _hand_out(campaign, member)
    if task is None:
        return TaskView(
            campaign, member, why=why, goal=get_goal(campaign, member), to_confirm=count_to_confirm(member),
            last=find_last(member, None),
        )  # fmt: skip
    return get_task_view(user=user, public=task.public)


def lock_member(user: User, campaign_id: int, *, joins: bool = True) -> WritingMember:
    """The annotator's row in the campaign, created on the first call and locked until the end of the transaction, so
    that calls from two tabs are serialized. Its campaign is read after the lock, see `CampaignWork.find_locked`."""
    locked = WritingMember.objects.select_for_update(no_key=True).values_list("pk", flat=True)
    mine = locked.filter(campaign_id=campaign_id if campaign_id < 2**63 else 0, annotator_id=user.pk or 0)
    pk = mine.first()
    if pk is None:
        if not joins:
            raise NotBegun
        pk = locked.get(pk=_join(user, campaign_id).pk)
    member = WritingMember.objects.select_related("campaign__project", "campaign__start_set", "set").get(pk=pk)
    check_right(user, member.campaign)
    return member


def _join(user: User, campaign_id: int) -> WritingMember:
    campaign = WRITING.find_locked(campaign_id)
    if campaign is None:
        raise NotThere(_("There is no such campaign that you can see."))
    check_right(user, campaign)
    if campaign.state == WritingCampaign.State.DRAFT:
        raise CampaignNotOpen(str(WHY_TEXT["draft"]))
    member = WritingMember.objects.filter(campaign=campaign, annotator=user).first()
    if member is not None:  # created by another tab meanwhile
        return member
    options, number = campaign.options, WritingMember.objects.filter(campaign=campaign).count()
    group = choose_group(number, options["group_size"]) if campaign.in_rounds else 0
    arm = ""
    if options["assign"] == "annotator":
        place, stream = (group, "group") if campaign.in_rounds else (number, "annotator")
        arm = choose_arm(campaign.seed, options["arms"], place, stream)
    return WritingMember.objects.create(
        campaign=campaign,
        annotator=user,
        number=number,
        group=group,
        arm=arm,
        set=_choose_set(campaign, user, number, arm),
    )


def _choose_set(campaign: WritingCampaign, user: User, number: int, arm: str) -> ReferenceSet:
    if campaign.target_set is not None:
        return campaign.target_set
    if not campaign.in_rounds:
        reference_set = ReferenceSet.objects.filter(project=campaign.project, name=make_set_name(campaign, arm)).first()
        return reference_set or begin_set(campaign, arm)  # it was deleted before the first text
    pseudonym = Membership.objects.get(project=campaign.project, user=user).pseudonym
    taken = ReferenceSet.objects.filter(project=campaign.project, name=make_set_name(campaign, pseudonym)).exists()
    return begin_set(campaign, arm, f"{number}-{pseudonym}" if taken else pseudonym)


def _hand_out(campaign: WritingCampaign, member: WritingMember) -> tuple[WritingTask | None, Why]:
    if campaign.state != WritingCampaign.State.OPEN:
        return None, campaign.state  # type: ignore[return-value]
    again = _reopened(campaign, member)
    if again is not None:
        return again, ""
    if campaign.max_per_annotator and member.done >= campaign.max_per_annotator:
        return None, "limit"
    unit = _choose_unit(campaign, member)
    if unit is None:
        return None, "empty"
    return (
        WritingTask.objects.create(
            campaign=campaign, unit=unit, member=member, arm=unit.arm or member.arm,
            public=secrets.token_urlsafe(12), lease_until=timezone.now() + timedelta(minutes=campaign.lease_minutes),
        ),
        "",
    )  # fmt: skip


def _reopened(campaign: WritingCampaign, member: WritingMember) -> WritingTask | None:
    """Reopen an item of the annotator that was complete and now needs a reference, because a text was taken back,
    withdrawn or rejected. It counts as not done again."""
    ended = WritingTask.objects.filter(
        unit=OuterRef("pk"), member=member, state=WritingTask.State.DONE, why=WritingTask.Why.FULL
    )
    unit = _with_place(campaign, member).filter(Exists(ended)).first()
    # Taking a text back in another tab has locked the task and waits for the member, which is locked here.
    tasks = WritingTask.objects.select_for_update(skip_locked=True).filter(unit=unit, member=member)
    if unit is None or tasks.values_list("pk", flat=True).first() is None:
        return None
    WritingTask.objects.filter(unit=unit, member=member).update(
        state=WritingTask.State.OPEN, why="", closed_at=None,
        lease_until=timezone.now() + timedelta(minutes=campaign.lease_minutes),
    )  # fmt: skip
    WritingMember.objects.filter(pk=member.pk).update(done=F("done") - 1)
    return WritingTask.objects.get(unit=unit, member=member)


def _with_place(campaign: WritingCampaign, member: WritingMember) -> QuerySet[WritingUnit]:
    """Items with fewer references in the annotator's set than the target, including those waiting, by rank."""
    zero = Value(0)
    there = Reference.objects.filter(item=OuterRef("item"), set=member.set_id).order_by().values("item")
    waiting = WrittenReference.objects.filter(
        unit=OuterRef("pk"), set=member.set_id, state=WrittenReference.State.WAITING
    )
    return (
        WritingUnit.objects.filter(campaign=campaign)
        .alias(
            there=Coalesce(Subquery(there.annotate(n=Count("pk")).values("n")), zero),
            waiting=Coalesce(Subquery(waiting.order_by().values("unit").annotate(n=Count("pk")).values("n")), zero),
        )
        .filter(there__lt=campaign.options["target"] - F("waiting"))
        .order_by("rank")
    )


def _choose_unit(campaign: WritingCampaign, member: WritingMember) -> WritingUnit | None:
    """An item that is new to the annotator and needs references. In rounds, all annotators have the same order.
    Otherwise the search starts at a random rank, first among items without an open task, so that annotators share an
    item only if there is no other. Each query stops at the first match in the index of ranks."""
    tasks = WritingTask.objects.filter(unit=OuterRef("pk"))
    rows = _with_place(campaign, member).filter(~Exists(tasks.filter(member=member)))
    if campaign.in_rounds:
        return rows.first()
    start = draw(campaign.seed, "unit", member.number, member.done + member.skipped) % max(campaign.unit_count, 1)
    alone = rows.filter(~Exists(tasks.filter(state=WritingTask.State.OPEN)))
    for choice in (alone, rows):
        unit = choice.filter(rank__gte=start).first() or choice.filter(rank__lt=start).first()
        if unit is not None:
            return unit
    return None
