"""Take the answers of a participant out of the results: set them aside after failing, or delete them on request.

Locks are taken in the order of `participants`: the member's row first, so that an answer on its way is stored before it
is removed, then the project."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.db.models import F, QuerySet

from annotation.allocation.recruitment import make_withdrawn_id
from annotation.models import Assignment, Campaign, CampaignMember, Comparison, Judgement, Participant, Rating
from evalapp.accounts.models import Membership, User
from evalapp.accounts.services import remove_member
from evalapp.common import audit

from .judging_later import free_slots
from .uploads import lock_promotion

State = Participant.State


def _lock_member(person: Participant) -> None:
    """Let an answer that is being stored finish; later ones wait until the transaction ends."""
    members = CampaignMember.objects.filter(campaign=person.recruitment.campaign_id, annotator=person.user_id)
    list(members.select_for_update().values_list("pk"))


@contextmanager
def _lock_results(person: Participant) -> Iterator[None]:
    """A transaction that may delete the ratings of a participant."""
    with transaction.atomic():
        _lock_member(person)
        with lock_promotion(person.recruitment.campaign.project, None, alone=True):
            yield


def set_aside_answers(person: Participant) -> None:
    """Remove the ratings of a failed participant and free the slots of their answers; the judgements stay, marked as
    extra, so that they do not count. Idempotent."""
    campaign = person.recruitment.campaign
    with _lock_results(person):
        if not Participant.objects.filter(pk=person.pk, set_aside=False).update(set_aside=True):
            return
        _remove_results(campaign, person.user)
        Judgement.objects.filter(campaign=campaign, annotator=person.user).update(extra=True)
        _free_slots(_list_assignments(person))


def _remove_results(campaign: Campaign, user: User) -> None:
    own = list(Judgement.objects.filter(campaign=campaign, annotator=user).values_list("pk", flat=True))
    for model in (Rating, Comparison):
        model.objects.filter(project=campaign.project_id, judgement__in=own).delete()  # type: ignore[attr-defined]
    Campaign.objects.filter(pk=campaign.pk).update(removed_count=F("removed_count") + len(own))


def _list_assignments(person: Participant) -> QuerySet[Assignment]:
    return Assignment.objects.filter(campaign=person.recruitment.campaign_id, annotator=person.user_id)


def _free_slots(assignments: QuerySet[Assignment]) -> None:
    """Give assigned texts to others; open assignments expire."""
    slots = list(assignments.filter(slot__isnull=False).values_list("slot", flat=True))
    assignments.update(slot=None)
    assignments.filter(state=Assignment.State.OPEN).update(state=Assignment.State.EXPIRED)
    free_slots(slots)


def withdraw_participant(*, participant: Participant, actor: User) -> None:
    """Delete the answers of a participant and everything that identifies them. What is left says that somebody took
    part, and holds the place if the participant has passed: it was, or will be, paid. Idempotent."""
    campaign = participant.recruitment.campaign
    with _lock_results(participant):
        person = Participant.objects.select_for_update(of=("self",)).get(pk=participant.pk)
        if person.state == State.WITHDRAWN:
            return
        user = person.user
        _remove_results(campaign, user)
        _free_slots(_list_assignments(participant))
        _list_assignments(participant).delete()
        CampaignMember.objects.filter(campaign=campaign, annotator=user).delete()
        for member in Membership.objects.filter(user=user).select_related("project"):
            remove_member(member=member, actor=actor)
        User.objects.filter(pk=user.pk).update(is_active=False, preferences={})
        Participant.objects.filter(pk=person.pk).update(
            state=State.WITHDRAWN, external_id=make_withdrawn_id(person.pk), browser="", meta={}, answers={}, remark="",
            code="", may_export=False, lease_until=None, place=person.place if person.state == State.PASSED else None,
        )  # fmt: skip
        audit.record(verb="participant.withdrawn", project=campaign.project, actor=actor, object=person.pk)


def stop_participant(person: Participant) -> None:
    """Ban a participant who is working: their place and their open texts go to others, their answers stay."""
    with transaction.atomic():
        _lock_member(person)
        stopped = Participant.objects.filter(pk=person.pk, state__in=[State.WORKING, State.LEFT])
        if not stopped.update(state=State.BANNED, place=None, lease_until=None):
            return
        _free_slots(_list_assignments(person).filter(state=Assignment.State.OPEN))
