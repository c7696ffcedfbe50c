"""Who belongs to a project and in which role. A project never loses its last owner."""

from __future__ import annotations

import secrets
from collections.abc import Collection

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evalapp.accounts.models import Invitation, Membership, Project, User
from evalapp.accounts.roles import ROLES_FOR, Role, need_to_give
from evalapp.accounts.selectors import former_pseudonyms
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, NotThere

#: Without characters that are mistaken for one another when read aloud or copied by hand.
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
    """A new membership under a fresh pseudonym, or, for somebody who comes back, the one under which they had judged:
    else they would be two raters. Somebody who belongs already is a conflict."""
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


def _held(member: Membership) -> Membership:
    """The row as it is now, until the transaction ends; another owner may have been quicker."""
    found = Membership.objects.select_for_update().select_related("user", "project").filter(pk=member.pk).first()
    if found is None:
        raise NotThere(_("This member has been removed in the meantime."))
    return found


def _keep_an_owner(member: Membership) -> None:
    """Called in the transaction of the change. The row lock orders two owners who leave at once."""
    Project.objects.select_for_update().get(pk=member.project_id)
    others = Membership.objects.filter(project_id=member.project_id, role=Role.OWNER, user__is_active=True)
    if not others.exclude(pk=member.pk).exists():
        raise Conflict(_("This is the only owner of the project. Name another owner first."))


def _end_links(member: Membership, *, actor: User, but: Collection[str] = ()) -> None:
    """Links to the project that this member made end, but those to the roles `but`."""
    links = Invitation.objects.filter(project=member.project, created_by=member.user, revoked_at=None)
    links = links.exclude(role__in=but)
    for link in list(links.values_list("pk", flat=True)):
        audit.record(verb="invitation.revoked", project=member.project, actor=actor, object=link)
    links.update(revoked_at=timezone.now())


@transaction.atomic
def change_role(*, member: Membership, role: str, actor: User) -> Membership:
    """Links to the project that they made end where the new role may not make them: one would be a way back. An
    annotator whose role was changed is no longer limited to the campaigns of an invitation."""
    check_role(role)
    member = _held(member)
    before = member.role
    if before == role:
        return member
    if before == Role.OWNER:
        _keep_an_owner(member)
    member.role, member.campaigns = role, None
    member.save(update_fields=["role", "campaigns"])
    if not member.user.is_superuser:
        _end_links(member, actor=actor, but=[given for given in Role.values if role in ROLES_FOR[need_to_give(given)]])
    audit.record(
        verb="member.changed",
        project=member.project,
        actor=actor,
        object=member.user.username,
        before=before,
        role=role,
    )
    return member


@transaction.atomic
def lift_campaign_limit(*, member: Membership, actor: User) -> Membership:
    """An annotator who came by the link of one campaign may take part in all campaigns of the project."""
    member = _held(member)
    if member.campaigns is not None:
        before, member.campaigns = member.campaigns, None
        member.save(update_fields=["campaigns"])
        audit.record(
            verb="member.changed", project=member.project, actor=actor, object=member.user.username, campaigns=before
        )
    return member


@transaction.atomic
def remove_member(*, member: Membership, actor: User) -> None:
    """What the person judged stays under the pseudonym. Links to the project that they made end: one of these would be
    a way back."""
    member = _held(member)
    if member.role == Role.OWNER:
        _keep_an_owner(member)
    _end_links(member, actor=actor)
    audit.record(
        verb="member.removed",
        project=member.project,
        actor=actor,
        object=member.user.username,
        role=member.role,
        pseudonym=member.pseudonym,
    )
    member.delete()
