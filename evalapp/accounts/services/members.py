"""Change the members of a project and their roles. A project always keeps an owner."""

import secrets
from collections.abc import Collection
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evalapp.accounts.models import Invitation, Membership, Project, User
from evalapp.accounts.roles import ROLES_FOR, Role, need_to_invite
from evalapp.accounts.selectors import check_no_participant, former_pseudonyms
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, NotThere
from evalapp.common.mails import cancel_mails

#: Without characters that are easily confused.
ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"


def new_pseudonym() -> str:
    return "r-" + "".join(secrets.choice(ALPHABET) for _ in range(8))


def check_role(role: str) -> None:
    if role not in Role.values:
        raise BadInput(
            _("Unknown role “%(role)s”. Roles: %(roles)s.") % {"role": role, "roles": ", ".join(Role.values)}
        )


@transaction.atomic
def add_member(*, project: Project, user: User, role: str, actor: User | None) -> Membership:
    """Add a member with a new pseudonym; former members get their earlier one, so that they do not count as two raters.
    Raises `Conflict` for current members."""
    check_role(role)
    before = former_pseudonyms(project.pk, user=user).get(user.pk)
    for attempt in range(20):
        pseudonym = before if before and not attempt else new_pseudonym()
        if Membership.objects.filter(project=project, pseudonym=pseudonym).exists():
            continue
        try:
            with transaction.atomic():
                member = Membership.objects.create(project=project, user=user, role=role, pseudonym=pseudonym)
        except IntegrityError as error:
            if Membership.objects.filter(project=project, user=user).exists():
                raise Conflict(_("%(user)s is already a member of this project.") % {"user": user}) from error
            continue
        audit.record(verb="member.added", project=project, actor=actor, object=user.username, role=role)
        return member
    raise Conflict(_("No free pseudonym was found. Try again."))


def _lock_member(member: Membership) -> Membership:
    """Lock the current row until the transaction ends, because other owners may change it, too."""
    row = Membership.objects.select_for_update().select_related("user", "project").filter(pk=member.pk).first()
    if row is None:
        raise NotThere(_("This member has been removed in the meantime."))
    return row


def _check_other_owner(member: Membership) -> None:
    """Raise `Conflict` if there is no other owner. The lock serialises owners who leave at the same time."""
    Project.objects.select_for_update().get(pk=member.project_id)
    others = Membership.objects.filter(project_id=member.project_id, role=Role.OWNER, user__is_active=True)
    if not others.exclude(pk=member.pk).exists():
        raise Conflict(_("This is the only owner of the project. Name another owner first."))


def _revoke_links(member: Membership, *, actor: User, except_roles: Collection[str] = ()) -> None:
    """Revoke the invitations that this member created, except those to `except_roles`."""
    links = Invitation.objects.filter(project=member.project, created_by=member.user, revoked_at=None)
    links = links.exclude(role__in=except_roles)
    for link in links:
        audit.record(verb="invitation.revoked", project=member.project, actor=actor, object=link.pk)
        cancel_mails(about=link.topic)
    links.update(revoked_at=timezone.now())


@transaction.atomic
def change_role(*, member: Membership, role: str, actor: User) -> Membership:
    """Change a role. Invitations by this member that the new role may not create are revoked, because they would be a
    way back. The limit of an annotator to campaigns is lifted."""
    check_role(role)
    member = _lock_member(member)
    check_no_participant(member.user)
    before = member.role
    if before == role:
        return member
    if before == Role.OWNER:
        _check_other_owner(member)
    member.role, member.campaigns = role, None
    member.save(update_fields=["role", "campaigns"])
    if not member.user.is_superuser:
        allowed = [other for other in Role.values if role in ROLES_FOR[need_to_invite(other)]]
        _revoke_links(member, actor=actor, except_roles=allowed)
    _record("member.changed", member, actor, before=before, role=role)
    return member


def _record(verb: str, member: Membership, actor: User, **detail: Any) -> None:
    audit.record(verb=verb, project=member.project, actor=actor, object=member.user.username, **detail)


@transaction.atomic
def lift_campaign_limit(*, member: Membership, actor: User) -> Membership:
    """Let an annotator who was invited to one campaign take part in all campaigns of the project."""
    member = _lock_member(member)
    check_no_participant(member.user)
    if member.campaigns is not None:
        before, member.campaigns = member.campaigns, None
        member.save(update_fields=["campaigns"])
        _record("member.changed", member, actor, campaigns=before)
    return member


@transaction.atomic
def remove_member(*, member: Membership, actor: User) -> None:
    """Remove a member. Judgements remain under the pseudonym. Invitations by this member are revoked, because they
    would be a way back."""
    member = _lock_member(member)
    if member.role == Role.OWNER:
        _check_other_owner(member)
    _revoke_links(member, actor=actor)
    _record("member.removed", member, actor, role=member.role, pseudonym=member.pseudonym)
    member.delete()
