"""Reading writing campaigns: for those who plan them (the list, one campaign, its plan), and for those who write (their
campaigns, their own tasks, what a task may be shown). Never another person's arm, draft or name to an annotator."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from annotation.allocation.texts import is_storable
from annotation.allocation.writing_plan import OPTIONS
from annotation.models import (
    Output,
    Reference,
    WritingAttempt,
    WritingCampaign,
    WritingCandidate,
    WritingMember,
    WritingTask,
    WrittenReference,
)
from evalapp.accounts.models import Project
from evalapp.accounts.roles import Need
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import NotAllowed, NotThere

from .own import Own, check_invited, own_campaigns

NOT_YOURS = "There is no such task of yours."
CLOSING = (WritingAttempt.Decision.ACCEPT.value, WritingAttempt.Decision.DROP.value)
#: The reason of a reference whose own writer took it out of the set again.
TAKEN_BACK = "taken back by the writer"


# ---- for those who plan and watch -------------------------------------------------------------------------


def list_writing(*, project: Project) -> QuerySet[WritingCampaign]:
    """Newest first, each with `member_count` and `written_count` (references that stand in a set)."""
    return (
        WritingCampaign.objects.filter(project=project)
        .select_related("project", "start_set", "target_set")
        .annotate(
            member_count=_count_of(WritingMember.objects.all()),
            written_count=_count_of(WrittenReference.objects.filter(state=WrittenReference.State.SHOWN)),
        )
        .order_by("-pk")
    )


def _count_of(rows: QuerySet[Any]) -> Coalesce:
    """Each table by itself: joined, every member would meet every reference."""
    own = rows.filter(campaign=OuterRef("pk")).order_by().values("campaign")
    return Coalesce(Subquery(own.annotate(n=Count("pk")).values("n")), 0)


def writing_plan(campaign: WritingCampaign) -> dict[str, Any]:
    """The plan as `read_writing_plan` takes it: what the page edits, the API shows, and a copy starts from."""
    return {
        "slug": campaign.slug,
        "name": campaign.name,
        "kind": campaign.kind,
        "guidelines": campaign.guidelines,
        "items": campaign.items or "all",
        "start_set": campaign.start_set.name if campaign.start_set else "",
        "evaluator": campaign.evaluator,
        "corpus": campaign.corpus,
        "seed": campaign.seed,
        "lease_minutes": campaign.lease_minutes,
        "max_per_annotator": campaign.max_per_annotator,
        "options": {**OPTIONS, **campaign.options},
    }


def get_written(*, user: Any, reference_id: int, need: Need = "write") -> WrittenReference:
    rows = WrittenReference.objects.select_related("campaign__project", "unit__item", "set", "attempt", "task")
    row = rows.filter(pk=reference_id).first() if reference_id < 2**63 else None
    if row is None:
        raise NotThere("There is no such written reference that you can see.")
    get_project(user=user, slug=row.campaign.project.slug, need=need)
    return row


def list_written(*, campaign: WritingCampaign) -> QuerySet[WrittenReference]:
    """What was written, newest first, with its attempt, item, writer and set."""
    return (
        WrittenReference.objects.filter(campaign=campaign)
        .select_related("attempt", "unit__item", "member__annotator", "set", "withdrawn_by", "task")
        .order_by("-pk")
    )


# ---- for those who write ----------------------------------------------------------------------------------


def my_writing(*, user: Any) -> list[Own[WritingCampaign, WritingMember]]:
    """Campaigns that are or were open, in projects in which `user` may annotate; newest first."""
    return own_campaigns(WritingCampaign, WritingMember, user=user)


def get_my_desk_task(*, user: Any, public: str) -> WritingTask:
    """A task of one's own, while one may still annotate in its project, with campaign, project, item and set."""
    row = (
        WritingTask.objects.select_related("campaign__project", "campaign__start_set", "unit__item", "member__set")
        .filter(public=public, member__annotator_id=user.pk or 0)
        .first()
    )
    if row is None:
        raise NotThere(NOT_YOURS)
    project = get_project(user=user, slug=row.campaign.project.slug, need="annotate")
    check_invited(project=project, campaign=row.campaign)
    return row


def check_shows_scores(task: WritingTask) -> None:
    if not task.shows_scores:
        raise NotAllowed("Scores are not shown in this task.")


def check_shows_candidates(task: WritingTask) -> None:
    if not task.shows_candidates:
        raise NotAllowed("Candidates are not listed in this task.")


def set_texts(task: WritingTask) -> tuple[str, ...]:
    """The present references of the task's item in the set it adds to, in order."""
    rows = Reference.objects.filter(item=task.unit.item_id, set=task.member.set_id)
    return tuple(rows.order_by("position").values_list("text", flat=True))


def is_taken_back() -> Exists:
    """Of attempts: their text was added and taken back by its writer, so that the rules read it as never added."""
    rows = WrittenReference.objects.filter(
        attempt=OuterRef("pk"), state=WrittenReference.State.WITHDRAWN, reason=TAKEN_BACK,
        withdrawn_by=F("member__annotator"),
    )  # fmt: skip
    return Exists(rows)


def closing_attempts(task: WritingTask) -> QuerySet[WritingAttempt]:
    """The attempts with which this person has dealt with a candidate or a text of their own."""
    return WritingAttempt.objects.filter(~is_taken_back(), task=task, decision__in=CLOSING)


def excluded_texts(task: WritingTask) -> tuple[str, ...]:
    """What is no candidate for the task: references that are there or wait to be confirmed, outputs of the item, and
    candidates that this person has dealt with."""
    waiting = WrittenReference.objects.filter(
        unit=task.unit_id, set=task.member.set_id, state=WrittenReference.State.WAITING
    )
    outputs = Output.objects.filter(item=task.unit.item_id)
    closed = closing_attempts(task).filter(candidate_text__isnull=False)
    return (
        *set_texts(task),
        *waiting.values_list("text", flat=True),
        *outputs.values_list("text", flat=True),
        *closed.values_list("candidate_text", flat=True),
    )


def originals_of(task: WritingTask) -> tuple[str, ...]:
    """Under a constraint: what the item's references in the set that the campaign begins from are."""
    rows = Reference.objects.filter(item=task.unit.item_id, set=task.campaign.start_set_id)
    return tuple(rows.order_by("position").values_list("text", flat=True))


def candidate_texts(task: WritingTask, ids: Collection[str]) -> dict[str, str]:
    """Texts of the candidates that this task was offered, by opaque id; others are left out."""
    rows = WritingCandidate.objects.filter(
        unit=task.unit_id, public__in=[each for each in ids if is_storable(each)][:1000]
    )
    return dict(rows.filter(Q(task=task) | Q(task=None)).values_list("public", "text"))
