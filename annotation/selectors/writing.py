"""Reads writing campaigns for researchers (lists, plan) and for annotators (their campaigns and tasks). Annotators
never see the arm, draft or name of another person."""

from collections.abc import Collection
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

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
from evalapp.accounts.models import Project, User
from evalapp.accounts.roles import Need
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import NotAllowed, NotThere

from .attributes import read_attributes
from .own_campaigns import OwnCampaign, check_invited, own_campaigns

NOT_YOURS = gettext_lazy("There is no such task of yours.")
CLOSING = (WritingAttempt.Decision.ACCEPT.value, WritingAttempt.Decision.DROP.value)
#: The withdrawal reason of a reference that its own annotator took back.
TAKEN_BACK = "taken back by the writer"


# ---- for researchers --------------------------------------------------------------------------------------


def list_writing(*, project: Project) -> QuerySet[WritingCampaign]:
    """Writing campaigns, newest first, with `member_count` and `written_count` (references that are in a set)."""
    return (
        WritingCampaign.objects.filter(project=project)
        .select_related("project", "start_set", "target_set")
        .annotate(
            member_count=_count_rows(WritingMember.objects.all()),
            written_count=_count_rows(WrittenReference.objects.filter(state=WrittenReference.State.SHOWN)),
        )
        .order_by("-pk")
    )


def _count_rows(rows: QuerySet[Any]) -> Coalesce:
    """Counted by a subquery for each table: a join would multiply members by references."""
    counted = rows.filter(campaign=OuterRef("pk")).order_by().values("campaign")
    return Coalesce(Subquery(counted.annotate(n=Count("pk")).values("n")), 0)


def make_writing_plan(campaign: WritingCampaign) -> dict[str, Any]:
    """The plan in the form that `read_writing_plan` takes, for the form, the API and copies."""
    return {
        **read_attributes(campaign, "slug name kind guidelines evaluator corpus seed lease_minutes max_per_annotator"),
        "items": campaign.items or "all",
        "start_set": campaign.start_set.name if campaign.start_set else "",
        "options": {**OPTIONS, **campaign.options},
    }


def get_written(*, user: User, reference_id: int, need: Need = "write") -> WrittenReference:
    rows = WrittenReference.objects.select_related("campaign__project", "unit__item", "set", "attempt", "task")
    row = rows.filter(pk=reference_id).first()
    if row is None:
        raise NotThere(_("There is no such written reference that you can see."))
    get_project(user=user, slug=row.campaign.project.slug, need=need)
    return row


def list_written(*, campaign: WritingCampaign) -> QuerySet[WrittenReference]:
    """Written references, newest first, with attempt, item, annotator and set."""
    return (
        WrittenReference.objects.filter(campaign=campaign)
        .select_related("attempt", "unit__item", "member__annotator", "set", "withdrawn_by", "task")
        .order_by("-pk")
    )


# ---- for annotators ---------------------------------------------------------------------------------------


def list_my_writing(*, user: User) -> list[OwnCampaign[WritingCampaign, WritingMember]]:
    """The opened writing campaigns that `user` may work in, newest first."""
    return own_campaigns(WritingCampaign, WritingMember, user=user)


def get_own_task(*, user: User, public: str) -> WritingTask:
    """A task of the user, if they may still annotate in its project, with campaign, project, item and set."""
    row = (
        WritingTask.objects.select_related("campaign__project", "campaign__start_set", "unit__item", "member__set")
        .filter(public=public, member__annotator_id=user.pk or 0)
        .first()
    )
    if row is None:
        raise NotThere(str(NOT_YOURS))
    project = get_project(user=user, slug=row.campaign.project.slug, need="annotate")
    check_invited(project=project, campaign=row.campaign)
    return row


def list_own_written(*, user: User, campaign: WritingCampaign) -> QuerySet[WrittenReference]:
    """The texts that the user has added in a campaign, also those that no longer count."""
    rows = WrittenReference.objects.filter(campaign=campaign, member__annotator=user)
    return rows.select_related("task", "unit__item")


def check_shows_scores(task: WritingTask) -> None:
    if not task.shows_scores:
        raise NotAllowed(_("This task does not show scores."))


def check_shows_candidates(task: WritingTask) -> None:
    if not task.shows_candidates:
        raise NotAllowed(_("This task does not list candidates."))


def set_texts(task: WritingTask) -> tuple[str, ...]:
    """The current references of the task's item in its set, in order."""
    rows = Reference.objects.filter(item=task.unit.item_id, set=task.member.set_id)
    return tuple(rows.order_by("position").values_list("text", flat=True))


def is_taken_back() -> Exists:
    """A condition on attempts: the text was added and taken back by its annotator, so it counts as never added."""
    rows = WrittenReference.objects.filter(
        attempt=OuterRef("pk"), state=WrittenReference.State.WITHDRAWN, reason=TAKEN_BACK,
        withdrawn_by=F("member__annotator"),
    )  # fmt: skip
    return Exists(rows)


def list_closing_attempts(task: WritingTask) -> QuerySet[WritingAttempt]:
    """The attempts that finished a candidate or an own text, accepted or discarded."""
    return WritingAttempt.objects.filter(~is_taken_back(), task=task, decision__in=CLOSING)


def list_excluded_texts(task: WritingTask) -> tuple[str, ...]:
    """Texts that cannot be candidates for the task: references in the set or waiting for confirmation, outputs of the
    item, and candidates that the annotator has finished."""
    waiting = WrittenReference.objects.filter(
        unit=task.unit_id, set=task.member.set_id, state=WrittenReference.State.WAITING
    )
    outputs = Output.objects.filter(item=task.unit.item_id)
    closed = list_closing_attempts(task).filter(candidate_text__isnull=False)
    return (
        *set_texts(task),
        *waiting.values_list("text", flat=True),
        *outputs.values_list("text", flat=True),
        *closed.values_list("candidate_text", flat=True),
    )


def list_originals(task: WritingTask) -> tuple[str, ...]:
    """The item's references in the start set, which are the originals under a constraint."""
    rows = Reference.objects.filter(item=task.unit.item_id, set=task.campaign.start_set_id)
    return tuple(rows.order_by("position").values_list("text", flat=True))


def read_candidate_texts(task: WritingTask, ids: Collection[str]) -> dict[str, str]:
    """Texts of the candidates that were offered in this task, by public id; other ids are ignored."""
    rows = WritingCandidate.objects.filter(
        unit=task.unit_id, public__in=[each for each in ids if is_storable(each)][:1000]
    )
    return dict(rows.filter(Q(task=task) | Q(task=None)).values_list("public", "text"))
