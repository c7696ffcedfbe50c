"""Campaigns from plan to end, for both kinds of work: create, change, open, pause, resume, close, delete."""

from typing import Any

from annotation.models import Campaign, WritingCampaign
from evalapp.accounts.models import Project, User

from .campaign_work import C, CampaignWork, Transition
from .judging_plans import JUDGING
from .writing_plans import WRITING


def get_work(campaign: C) -> CampaignWork[C, Any]:
    """The kind of work of a campaign."""
    return JUDGING if isinstance(campaign, Campaign) else WRITING  # type: ignore[return-value]


def create_campaign(*, project: Project, user: User | None, plan: Any) -> Campaign:
    """Create a draft of a judging campaign from a plan (see `annotation.allocation.plan`)."""
    return JUDGING.create(project=project, user=user, plan=plan)


def create_writing(*, project: Project, user: User | None, plan: Any) -> WritingCampaign:
    """Create a draft of a writing campaign from a plan (see `annotation.allocation.writing_plan`)."""
    return WRITING.create(project=project, user=user, plan=plan)


def sketch_campaign(*, project: Project, plan: Any) -> Campaign:
    """A judging campaign that is not stored, for estimates. Raises `BadInput` for an invalid plan."""
    return JUDGING.sketch(project, plan)


def sketch_writing(*, project: Project, plan: Any) -> WritingCampaign:
    """A writing campaign that is not stored, for estimates. Raises `BadInput` for an invalid plan."""
    return WRITING.sketch(project, plan)


def update_campaign(*, campaign: C, user: User | None, changes: dict[str, Any]) -> C:
    """Change any part of a draft, or what does not affect the answers once the campaign was opened."""
    return get_work(campaign).update(campaign=campaign, user=user, changes=changes)


def open_campaign(*, campaign: C, user: User | None, **how: Any) -> C:
    """Create the units and let annotators in. A large judging campaign is opened by a worker (`campaign.opening` is its
    run), unless `here`; with `send` false the caller executes that run."""
    return get_work(campaign).open(campaign, user, **how)


def move_campaign(*, campaign: C, user: User | None, transition: Transition) -> C:
    """Pause, resume or close a campaign. Paused: no new assignments, but open ones can still be submitted. Closed: also
    no changes to answers; in a judging campaign the first answer to an open assignment is still accepted."""
    return get_work(campaign).move(campaign=campaign, user=user, transition=transition)


def pause_campaign(*, campaign: C, user: User | None) -> C:
    return move_campaign(campaign=campaign, user=user, transition="pause")


def resume_campaign(*, campaign: C, user: User | None) -> C:
    return move_campaign(campaign=campaign, user=user, transition="resume")


def close_campaign(*, campaign: C, user: User | None) -> C:
    return move_campaign(campaign=campaign, user=user, transition="close")


def delete_campaign(*, campaign: C, user: User | None) -> None:
    """Delete a campaign without answers, with its plan and its reference sets. Answers are never deleted with it."""
    get_work(campaign).delete(campaign=campaign, user=user)
