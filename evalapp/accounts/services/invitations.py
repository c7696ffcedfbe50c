"""Invitation links: a secret that gives a role, for a limited time and number of uses."""

import secrets
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalapp.accounts.authentication import digest
from evalapp.accounts.models import CAMPAIGN_PAGES, Invitation, Membership, Project, User, resolve_landing
from evalapp.accounts.roles import Role
from evalapp.accounts.selectors import check_no_participant, with_creators
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault, NotThere
from evalapp.common.mails import cancel_mails
from evalapp.common.naming import check_names, find_name_faults
from evalapp.names import fold_confusables

from .members import add_member, check_role

#: Kind of campaign -> name of its model in the app annotation, which this app does not import.
CAMPAIGN_MODELS = {"judging": "Campaign", "writing": "WritingCampaign"}
MAX_DAYS = 365
MAX_USES = 10_000
GONE = gettext_lazy(
    "This invitation is no longer valid, or the link is incomplete. If you have used it to join, sign in; otherwise "
    "ask for a new one."
)


@transaction.atomic
def create_invitation(
    *,
    project: Project,
    role: str,
    actor: User,
    label: str = "",
    days: int = 14,
    max_uses: int = 1,
    landing: str = "",
) -> tuple[Invitation, str]:
    """Return a new invitation and its secret, which is not stored. `landing` is a page of this site."""
    check_role(role)
    check_names(label=label, landing=landing)
    if not 1 <= days <= MAX_DAYS:
        raise BadInput(
            _("The invitation has no valid end."),
            faults=[Fault(_("From 1 to %(most)d days.") % {"most": MAX_DAYS}, field="days")],
        )
    if not 1 <= max_uses <= MAX_USES:
        raise BadInput(
            _("The number of people must be from 1 to %(most)d.") % {"most": MAX_USES},
            faults=[Fault(_("From 1 to %(most)d.") % {"most": MAX_USES}, field="max_uses")],
        )
    if landing and not (landing.startswith("/") and url_has_allowed_host_and_scheme(landing, allowed_hosts=None)):
        raise BadInput.for_field("landing", _("Enter a page of this site, starting with a slash."))
    _check_landing(project, landing)
    secret = secrets.token_urlsafe(24)
    invitation = Invitation.objects.create(
        project=project,
        role=role,
        label=label[:100],
        digest=digest(secret),
        landing=landing[:200],
        expires_at=timezone.now() + timedelta(days=days),
        max_uses=max_uses,
        created_by=actor,
    )
    audit.record(
        verb="invitation.created", project=project, actor=actor, object=invitation.pk, role=role, uses=max_uses
    )
    return invitation, secret


def _check_landing(project: Project, landing: str) -> None:
    """Refuse a page of another project, which new members of this project could not open."""
    match = resolve_landing(landing) if landing else None
    if match is None:
        return
    kind, text = CAMPAIGN_PAGES.get(match.view_name), ""
    if kind is not None:
        campaigns = apps.get_model("annotation", CAMPAIGN_MODELS[kind]).objects
        if not campaigns.filter(project=project, pk=match.kwargs["pk"]).exists():
            text = _("This project has no such campaign. Enter the page of a campaign in this project.")
    elif match.kwargs.get("slug", project.slug) != project.slug:
        text = _("This page belongs to another project. Enter a page of this project.")
    if text:
        raise BadInput.for_field("landing", text)


def find_invitation(*, secret: str) -> Invitation:
    """Return the open invitation of a secret; raise `NotThere` if there is none."""
    invitation = with_creators(Invitation.objects.filter(digest=digest(secret))).first()
    if invitation is None or invitation.state != Invitation.State.OPEN:
        raise NotThere(str(GONE))
    return invitation


def find_followed_invitation(*, secret: str, user: Any) -> Invitation | None:
    """Return a used or expired invitation to a project of which the user is a member, who may follow it again."""
    if not user.is_authenticated:
        return None
    mine = Invitation.objects.filter(digest=digest(secret), revoked_at=None, project__memberships__user=user)
    return mine.select_related("project").first()


@transaction.atomic
def accept_invitation(*, secret: str, user: User) -> tuple[Membership, Invitation]:
    """Join a project. Members keep their role; a use is counted only if the link gives them access to more campaigns.
    Only one of two concurrent users gets the last use."""
    check_no_participant(user)
    invitation = find_invitation(secret=secret)
    campaign = invitation.campaign
    member = Membership.objects.select_for_update().filter(project=invitation.project, user=user).first()
    gives_more = member is not None and invitation.role == Role.ANNOTATOR and not member.may_enter(campaign)
    if member is not None and not gives_more:
        return member, invitation
    usable = Invitation.objects.filter(
        pk=invitation.pk, revoked_at=None, expires_at__gt=timezone.now(), uses__lt=F("max_uses")
    )
    if usable.update(uses=F("uses") + 1) != 1:
        raise NotThere(str(GONE))
    if member is None:
        member = add_member(project=invitation.project, user=user, role=invitation.role, actor=user)
        member.campaigns = [campaign] if campaign else None
    else:
        member.campaigns = [*member.campaigns, campaign] if campaign else None
    member.save(update_fields=["campaigns"])
    audit.record(verb="invitation.accepted", project=invitation.project, actor=user, object=invitation.pk)
    return member, invitation


def check_look(name: str) -> None:
    """Raise `Conflict` if a new user name differs from an existing one only in capitals or in letters that look
    alike."""
    look = fold_confusables(name)
    if any(
        other != name and look & fold_confusables(other) for other in User.objects.values_list("username", flat=True)
    ):
        text = _(
            "This user name differs from that of another account only in capitals or in letters that look alike. "
            "Choose another, or sign in if that account is yours."
        )
        raise Conflict.for_field("username", text)


@transaction.atomic
def join_with_new_account(
    *, secret: str, username: str, password: str, email: str = "", name: str = ""
) -> tuple[Membership, Invitation]:
    """Create an account and join a project. There is no other way to an account."""
    find_invitation(secret=secret)
    # Normalised like the name in the sign-in form, for example full-width letters and ligatures.
    user = User(username=User.normalize_username(username), email=email, first_name=name[:150])
    faults = find_name_faults(name=name)
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        faults += [Fault(text, field=field) for field, texts in error.message_dict.items() for text in texts]
    try:
        validate_password(password, user)
    except ValidationError as error:
        faults += [Fault(text, field="password") for text in error.messages]
    if faults:
        raise BadInput(_("The account could not be created."), faults=faults)
    check_look(user.username)
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError as error:
        text = _("This user name is taken. Choose another, or sign in if it is yours.")
        raise Conflict.for_field("username", text) from error
    audit.record(verb="account.created", actor=user, object=user.username)
    return accept_invitation(secret=secret, user=user)


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, actor: User) -> Invitation:
    """Revoke a link. Members who joined with it remain. Idempotent."""
    if Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=timezone.now()):
        audit.record(verb="invitation.revoked", project=invitation.project, actor=actor, object=invitation.pk)
        cancel_mails(about=invitation.topic)
    invitation.refresh_from_db()
    return invitation
