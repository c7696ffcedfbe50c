"""Links for hired participants: create, change, renew, close; and bans of participants."""

import secrets
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.allocation.recruitment import RecruitmentPlan, read_participant_id, read_recruitment
from annotation.allocation.texts import UNSTORABLE, is_storable
from annotation.models import Campaign, ConsentText, Participant, ParticipantBan, Recruitment
from evalapp.accounts.authentication import digest
from evalapp.accounts.models import Project, User
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault
from evalapp.common.naming import check_names

from .participant_answers import stop_participant


def read_settings(raw: Any, campaign: Campaign) -> RecruitmentPlan:
    """The settings with their defaults, or BadInput with every error by field."""
    if not is_storable(raw):
        raise BadInput(UNSTORABLE)
    plan, problems = read_recruitment(raw)
    if plan is not None:
        problems = _check_campaign(plan, campaign)
    if plan is None or problems:
        faults = [Fault(message, field=where) for where, message in problems]
        several = _("The settings have %(n)d errors. Nothing was saved.") % {"n": len(faults)}
        raise BadInput(str(faults[0]) if len(faults) == 1 else several, faults=faults)
    return plan


def _check_campaign(plan: RecruitmentPlan, campaign: Campaign) -> list[tuple[str, str]]:
    """Rules that can have no effect in this campaign, with their reason."""
    problems = []
    if plan.pass_mark is not None and not campaign.units.filter(kind="practice").exists():
        problems.append(("pass_mark", _("The campaign has no practice items, so nobody could be screened.")))
    has_controls = campaign.units.filter(kind="control").exists()
    if not has_controls:
        no_controls = _("The campaign has no control items, so this would have no effect.")
        problems += [
            (name, no_controls) for name in ("min_controls", "bonus_controls") if getattr(plan, name) is not None
        ]
    if plan.min_agreement is not None and campaign.overlap < 2:
        problems.append(("min_agreement", _("Each text is judged by one person only, so there is no agreement.")))
    if plan.lease_minutes < campaign.lease_minutes:
        text = _("A place must be held at least as long as a text: %(n)d minutes.") % {"n": campaign.lease_minutes}
        problems.append(("lease_minutes", text))
    return problems


@transaction.atomic
def create_recruitment(*, campaign: Campaign, user: User | None, settings: Any) -> tuple[Recruitment, str]:
    """Return a new link and its secret, which is not stored."""
    plan = read_settings(settings, campaign)
    if campaign.state == Campaign.State.CLOSED:
        raise Conflict(_("The campaign is closed, so nobody could take part."))
    secret = secrets.token_urlsafe(24)
    row = Recruitment.objects.create(
        campaign=campaign, label=plan.label, digest=digest(secret), places=plan.places, settings=plan.as_dict(),
        created_by=user if user is not None and user.pk else None,
    )  # fmt: skip
    _store_consent(row, plan.consent)
    audit.record(
        verb="recruitment.created", project=campaign.project, actor=user, object=row.pk, campaign=campaign.pk,
        places=plan.places,
    )  # fmt: skip
    return row, secret


def _store_consent(row: Recruitment, text: str) -> None:
    """Store a changed consent text as a new version."""
    latest = row.consent_texts.order_by("-version").first()
    if text and (latest is None or latest.text != text):
        ConsentText.objects.create(recruitment=row, version=latest.version + 1 if latest else 1, text=text)


@transaction.atomic
def update_recruitment(*, recruitment: Recruitment, user: User | None, changes: Any) -> Recruitment:
    """Change settings. Participants keep the consent text that they agreed to; rules apply to those who end later."""
    if not isinstance(changes, dict):
        raise BadInput(_("Send an object with the fields that change."))
    row = Recruitment.objects.select_for_update().get(pk=recruitment.pk)
    settings = dict(row.settings)
    if changes.get("platform"):
        # Its parameters replace the stored ones, except where the changes name others.
        settings |= {"id_parameter": None, "meta_parameters": None}
    plan = read_settings({**settings, **changes}, row.campaign)
    if not plan.consent and row.consent_texts.exists():
        text = _("Participants have been asked for consent, so the text can be changed but not removed.")
        raise BadInput.for_field("consent", text)
    last = row.participants.aggregate(last=Max("place"))["last"] or 0
    if plan.places < last:
        text = _("Place %(n)d is in use. Choose at least so many places, or close the link.") % {"n": last}
        raise BadInput.for_field("places", text)
    row.label, row.places, row.settings = plan.label, plan.places, plan.as_dict()
    row.save(update_fields=["label", "places", "settings"])
    _store_consent(row, plan.consent)
    _record("changed", row, user, fields=sorted(changes))
    return row


@transaction.atomic
def renew_link(*, recruitment: Recruitment, user: User) -> str:
    """Replace the secret of a link: the old address stops working. Returns the new secret."""
    secret = secrets.token_urlsafe(24)
    Recruitment.objects.filter(pk=recruitment.pk).update(digest=digest(secret))
    _record("renewed", recruitment, user)
    return secret


@transaction.atomic
def close_recruitment(*, recruitment: Recruitment, user: User | None, closed: bool = True) -> None:
    """Let nobody new in, or let them in again. Participants who have begun can finish. Idempotent."""
    rows = Recruitment.objects.filter(pk=recruitment.pk, closed_at__isnull=closed)
    if rows.update(closed_at=timezone.now() if closed else None):
        _record("closed" if closed else "reopened", recruitment, user)


def _record(done: str, row: Recruitment, user: User | None, **detail: Any) -> None:
    audit.record(verb=f"recruitment.{done}", project=row.campaign.project, actor=user, object=row.pk, **detail)


def ban_participant(*, project: Project, user: User, external_id: str, reason: str = "") -> ParticipantBan:
    """Keep a participant id out of all studies of the project; those who are working with it are stopped."""
    text, message = read_participant_id(external_id)
    if message:
        raise BadInput.for_field("external_id", _("Enter a participant id of at most 100 characters."))
    check_names(reason=reason)
    try:
        with transaction.atomic():
            # Those who are joining wait, or have joined and are stopped below.
            links = Recruitment.objects.filter(campaign__project=project).order_by("pk")
            list(links.select_for_update(of=("self",)).values_list("pk"))
            ban = ParticipantBan.objects.create(
                project=project, external_id=text, reason=reason.strip()[:300], created_by=user
            )
            # The id is not in the audit log, because its entries cannot be changed when the person withdraws.
            audit.record(verb="participant.banned", project=project, actor=user, object=ban.pk)
    except IntegrityError as error:
        raise Conflict.for_field("external_id", _("This participant is banned already.")) from error
    people = Participant.objects.filter(recruitment__campaign__project=project, external_id=text)
    for person in people.select_related("recruitment", "user"):
        stop_participant(person)
    return ban


@transaction.atomic
def lift_ban(*, ban: ParticipantBan, user: User) -> None:
    """Let a participant id in again. Participants who were stopped stay so."""
    audit.record(verb="participant.unbanned", project=ban.project, actor=user, object=ban.pk)
    ban.delete()
