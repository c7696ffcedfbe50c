"""Invitation links: a secret that gives a role, for a time and a number of uses. Only its digest is kept."""

from __future__ import annotations

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

from evalapp.accounts.authentication import digest
from evalapp.accounts.models import CAMPAIGN_PAGES, Invitation, Membership, Project, User, resolve_landing
from evalapp.accounts.roles import Role
from evalapp.accounts.selectors import with_makers
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, Fault, NotThere
from evalapp.common.naming import check_names, find_name_faults
from evalapp.names import fold_confusables

from .members import add_member, check_role

#: By the kind of a campaign the name of its model, of a room that this one does not import.
CAMPAIGN_MODELS = {"judging": "Campaign", "writing": "WritingCampaign"}
MAX_DAYS = 365
MAX_USES = 10_000
GONE = (
    "This invitation is not valid any more, or the link is incomplete. Have you joined by it already? Then sign in. "
    "Ask for a new one if not."
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
    """The invitation and its secret, which is never seen again. `landing` is a page of this site."""
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
        text = _("Enter a page of this site, starting with a slash.")
        raise BadInput(text, faults=[Fault(text, field="landing")])
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
    """Refuses a page of another project: who joins this one could not open it."""
    found = resolve_landing(landing) if landing else None
    if found is None:
        return
    kind, text = CAMPAIGN_PAGES.get(found.view_name), ""
    if kind is not None:
        rows = apps.get_model("annotation", CAMPAIGN_MODELS[kind]).objects.filter(
            project=project, pk=found.kwargs["pk"]
        )
        text = "" if rows.exists() else _("This project has no such campaign. Enter the page of one of its campaigns.")
    elif found.kwargs.get("slug", project.slug) != project.slug:
        text = _("This page belongs to another project. Enter a page of this project.")
    if text:
        raise BadInput(text, faults=[Fault(text, field="landing")])


def find_invitation(*, secret: str) -> Invitation:
    """The invitation if it can still be used."""
    found = with_makers(Invitation.objects.filter(digest=digest(secret))).first()
    if found is None or found.state != Invitation.State.OPEN:
        raise NotThere(GONE)
    return found


def invitation_followed(*, secret: str, user: Any) -> Invitation | None:
    """An invitation, used up or over by now, into a project to which this person belongs: who follows it again is led
    on."""
    if not user.is_authenticated:
        return None
    mine = Invitation.objects.filter(digest=digest(secret), revoked_at=None, project__memberships__user=user)
    return mine.select_related("project").first()


@transaction.atomic
def accept_invitation(*, secret: str, user: User) -> tuple[Membership, Invitation]:
    """Join. Members keep their role; a link is used up only where it gives them access to more campaigns. Two people
    never share the last use."""
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
        raise NotThere(GONE)
    if member is None:
        member = add_member(project=invitation.project, user=user, role=invitation.role, actor=user)
        member.campaigns = [campaign] if campaign else None
    else:
        member.campaigns = [*member.campaigns, campaign] if campaign else None
    member.save(update_fields=["campaigns"])
    audit.record(verb="invitation.accepted", project=invitation.project, actor=user, object=invitation.pk)
    return member, invitation


def check_look(name: str) -> None:
    """Raise `Conflict` if a new user name can be taken for that of an account: it differs only in capitals or in
    letters that look alike."""
    look = fold_confusables(name)
    if any(
        other != name and look & fold_confusables(other) for other in User.objects.values_list("username", flat=True)
    ):
        text = _(
            "This user name differs from that of another account only in capitals or in letters that look alike. "
            "Choose another, or sign in if that account is yours."
        )
        raise Conflict(text, faults=[Fault(text, field="username")])


@transaction.atomic
def join_with_new_account(
    *, secret: str, username: str, password: str, email: str = "", name: str = ""
) -> tuple[Membership, Invitation]:
    """The only way to an account: an invitation. Both are made together or not at all."""
    find_invitation(secret=secret)
    # As the form of signing in writes it: else nobody gets in who types full-width letters or a ligature.
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
        raise Conflict(text, faults=[Fault(text, field="username")]) from error
    audit.record(verb="account.created", actor=user, object=user.username)
    return accept_invitation(secret=secret, user=user)


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, actor: User) -> Invitation:
    """The link stops working; who came by it stays. Revoking twice is revoking once."""
    if Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=timezone.now()):
        audit.record(verb="invitation.revoked", project=invitation.project, actor=actor, object=invitation.pk)
    invitation.refresh_from_db()
    return invitation
