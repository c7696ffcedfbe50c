"""The campaigns of an annotator, of both kinds, with their progress and the time that is left."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import OuterRef, Prefetch, Subquery
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Campaign, CampaignMember, WritingCampaign, WritingMember
from evalapp.accounts.models import Membership, Project, User
from evalapp.common.errors import NotAllowed

C = TypeVar("C", Campaign, WritingCampaign)
M = TypeVar("M", CampaignMember, WritingMember)


@dataclass(frozen=True)
class OwnCampaign(Generic[C, M]):
    """A campaign with the annotator's progress; `member` is None before the first assignment."""

    campaign: C
    member: M | None

    @property
    def done(self) -> int:
        return self.member.done if self.member else 0

    @property
    def goal(self) -> int:
        units = self.campaign.unit_count
        return max(self.done, min(units, self.campaign.max_per_annotator or units))

    @property
    def left(self) -> int:
        return self.goal - self.done

    @property
    def mean_seconds(self) -> float | None:
        """The annotator's pace; None before the first answer, and in campaigns without a clock."""
        if not self.campaign.options.get("show_clock", True):
            return None
        return self.member.seconds / self.member.done if self.member and self.member.done else None

    @property
    def seconds_left(self) -> float | None:
        """The estimated time for the rest, at the annotator's pace so far."""
        return None if self.mean_seconds is None else self.mean_seconds * self.left


class NotInvited(NotAllowed):
    title = gettext_lazy("Your invitation does not cover this campaign")

    def __init__(self) -> None:
        super().__init__(
            _("Your invitation is for other campaigns of this project. Ask the researcher for a link to this one.")
        )


class NotBegun(Exception):
    """Raised instead of joining a campaign, so that its guidelines can come first."""


def make_campaign_key(campaign: Campaign | WritingCampaign) -> str:
    """The name of a campaign in invitations and memberships."""
    return f"{'judging' if isinstance(campaign, Campaign) else 'writing'}:{campaign.pk}"


def check_invited(*, project: Project, campaign: Campaign | WritingCampaign) -> None:
    """Raise NotInvited if the annotator was only invited to other campaigns. `project` comes from `get_project`."""
    member = Membership(role=project.role, campaigns=project.invited_to)  # type: ignore[attr-defined]
    if not member.may_enter(make_campaign_key(campaign)):
        raise NotInvited


def is_beginning(*, user: User, campaign: Campaign | WritingCampaign) -> bool:
    """Whether the user has not begun with an open campaign, so that its guidelines come first. Its first text is given
    out, and its row of the user created, when they begin."""
    return campaign.state == campaign.State.OPEN and not campaign.members.filter(annotator=user.pk).exists()


def own_campaigns(campaigns: type[C], members: type[M], *, user: User) -> list[OwnCampaign[C, M]]:
    """The opened campaigns that `user` may work in, newest first. Two queries."""
    mine = Membership.objects.filter(project=OuterRef("project"), user=user.pk)
    rows = (
        campaigns.objects.visible_to(user, "annotate")
        .filter(project__memberships__user=user)
        .exclude(state=campaigns.State.DRAFT)
        .select_related("project")
        .annotate(my_role=Subquery(mine.values("role")[:1]), my_campaigns=Subquery(mine.values("campaigns")[:1]))
        .prefetch_related(Prefetch("members", members.objects.filter(annotator=user), to_attr="own_members"))
        .order_by("-pk")
    )
    return [
        OwnCampaign(row, row.own_members[0] if row.own_members else None)
        for row in rows
        if Membership(role=row.my_role, campaigns=row.my_campaigns).may_enter(make_campaign_key(row))
    ]
