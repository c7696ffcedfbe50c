"""Take the answers of a participant out of the results: set them aside after failing, or delete them on request."""

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from annotation.models import Assignment, Campaign, CampaignMember, Comparison, Judgement, Participant, Rating
from evalapp.accounts.models import Membership, User
from evalapp.accounts.services import remove_member
from evalapp.common import audit
from evalapp.common.errors import Conflict

from .judging_later import free_slots
from .uploads import lock_promotion

State = Participant.State


def set_aside_answers(person: Participant) -> None:
    """Remove the ratings of a failed participant and free the slots of their answers; the judgements stay, marked as
    extra, so that they do not count. Idempotent."""
    campaign = person.recruitment.campaign
    with lock_promotion(campaign.project, None, alone=True):
        if not Participant.objects.filter(pk=person.pk, set_aside=False).update(set_aside=True):
            return
        _remove_results(campaign, person.user)
        Judgement.objects.filter(campaign=campaign, annotator=person.user).update(extra=True)
        _free_assignments(campaign, person.user)


def _remove_results(campaign: Campaign, user: User) -> None:
    own = list(Judgement.objects.filter(campaign=campaign, annotator=user).values_list("pk", flat=True))
    for model in (Rating, Comparison):
        model.objects.filter(project=campaign.project_id, judgement__in=own).delete()  # type: ignore[attr-defined]
    Campaign.objects.filter(pk=campaign.pk).update(removed_count=F("removed_count") + len(own))


def _free_assignments(campaign: Campaign, user: User) -> None:
    own = Assignment.objects.filter(campaign=campaign, annotator=user)
    slots = list(own.filter(slot__isnull=False).values_list("slot", flat=True))
    own.update(slot=None)
    own.filter(state=Assignment.State.OPEN).update(state=Assignment.State.EXPIRED)
    free_slots(slots)


def withdraw_participant(*, participant: Participant, actor: User) -> None:
    """Delete the answers of a participant and everything that identifies them. What is left says that somebody took
    part, and holds the place if the participant has passed: it was, or will be, paid. Idempotent."""
    campaign = participant.recruitment.campaign
    with lock_promotion(campaign.project, None, alone=True):
        person = Participant.objects.select_for_update(of=("self",)).get(pk=participant.pk)
        if person.state == State.WITHDRAWN:
            return
        user = person.user
        _remove_results(campaign, user)
        _free_assignments(campaign, user)
        Assignment.objects.filter(campaign=campaign, annotator=user).delete()
        CampaignMember.objects.filter(campaign=campaign, annotator=user).delete()
        for member in Membership.objects.filter(user=user).select_related("project"):
            remove_member(member=member, actor=actor)
        User.objects.filter(pk=user.pk).update(is_active=False, preferences={})
        Participant.objects.filter(pk=person.pk).update(
            state=State.WITHDRAWN, external_id=f"withdrawn-{person.pk}", browser="", meta={}, answers={}, remark="",
            may_export=False, lease_until=None, place=person.place if person.state == State.PASSED else None,
        )  # fmt: skip
        audit.record(verb="participant.withdrawn", project=campaign.project, actor=actor, object=person.pk)


def stop_participant(person: Participant) -> None:
    """Ban a participant who is working: their place and their open texts go to others, their answers stay."""
    with transaction.atomic():
        stopped = Participant.objects.filter(pk=person.pk, state__in=[State.WORKING, State.LEFT])
        if not stopped.update(state=State.BANNED, place=None, lease_until=None):
            return
        own = Assignment.objects.filter(
            campaign=person.recruitment.campaign_id, annotator=person.user, state=Assignment.State.OPEN
        )
        slots = list(own.filter(slot__isnull=False).values_list("slot", flat=True))
        own.update(state=Assignment.State.EXPIRED, slot=None)
        free_slots(slots)


def withdraw_own_answers(*, user: User) -> None:
    """Withdraw the answers of the participant whose account this is."""
    person = Participant.objects.select_related("recruitment__campaign__project").filter(user=user).first()
    if person is None:
        raise Conflict(_("You are not taking part in a study with this account."))
    withdraw_participant(participant=person, actor=user)
