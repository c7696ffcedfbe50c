"""Show, download and withdraw the data stored about a user, and close their account.

Ratings belong to the project and stay, under the pseudonym. Texts that the user wrote can be withdrawn; closing the
account removes everything that identifies them."""

import secrets
from typing import Any

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.db import transaction
from django.utils.translation import gettext as _

from evalapp.accounts.models import ApiToken, Identity, Invitation, Membership, User
from evalapp.common import audit
from evalapp.common.audit_chain import erase_person
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.hooks import OWN_DATA, WITHDRAW_TEXTS, OwnData
from evalapp.common.models import AuditEvent, Mail

from .members import remove_member


def collect(*, user: User) -> list[OwnData]:
    """Return everything that is stored under this user's name or id."""
    memberships = Membership.objects.filter(user=user).select_related("project").order_by("project__slug")
    tokens = ApiToken.objects.filter(user=user).order_by("pk")
    events = AuditEvent.objects.filter(actor=user).order_by("pk")
    return [
        OwnData("account", _("Your account."), [_account(user)]),
        OwnData(
            "projects",
            _("Your projects, your role in each, and the pseudonym under which your judgements are stored."),
            [{"project": row.project.slug, "role": row.role, "judges_as": row.pseudonym,
              "campaigns": "all" if row.campaigns is None else row.campaigns, "since": row.created_at}
             for row in memberships],
        ),
        OwnData(
            "tokens", _("Your API tokens, without their secrets."),
            [{"name": row.name, "begins": row.prefix, "made": row.created_at, "used": row.last_used_at}
             for row in tokens],
        ),
        OwnData(
            "sign-ins", _("Your accounts elsewhere with which you sign in."),
            [{"at": row.issuer, "subject": row.subject, "email": row.email, "since": row.created_at,
              "used": row.last_used_at} for row in Identity.objects.filter(user=user).order_by("pk")],
        ),
        *OWN_DATA.collect(user=user),
        OwnData(
            "acts", _("Your actions, as recorded in the audit log."),
            [{"at": row.at, "what": row.verb, "to": row.object, "project": row.scope} for row in events],
        ),
    ]  # fmt: skip


def _account(user: User) -> dict[str, Any]:
    return {
        "user_name": user.username, "name": user.first_name, "email": user.email, "colours": user.theme,
        "since": user.date_joined, "last_signed_in": user.last_login, "preferences": user.preferences,
    }  # fmt: skip


@transaction.atomic
def withdraw_texts(*, user: User) -> dict[str, int]:
    """Remove the texts that the user wrote, in all apps. Numbers and choices stay. Returns counts by noun."""
    counts: dict[str, int] = {}
    for app_counts in WITHDRAW_TEXTS.call(user=user):
        counts |= app_counts
    audit.record(verb="account.withdrew", actor=user, object=user.username, **counts)
    return counts


@transaction.atomic
def close_account(*, user: User, password: str) -> User:
    """Close an account: sign-in becomes impossible and personal data are removed; the id stays with ratings and texts.
    `password` is the user name for an account without password. Raises Conflict if the user is the only owner of a
    project."""
    if user.has_usable_password() and not user.check_password(password):
        raise BadInput.for_field("password", _("Wrong password."))
    if not user.has_usable_password() and password != user.username:
        raise BadInput.for_field("password", _("This is not your user name."))
    for member in Membership.objects.filter(user=user).select_related("project"):
        try:
            remove_member(member=member, actor=user)
        except Conflict as error:
            text = _("You are the only owner of %(project)s. Name another owner or delete the project first.")
            text %= {"project": member.project.name}
            raise Conflict.for_field("password", text) from error
    name = user.username
    ApiToken.objects.filter(user=user).delete()
    Identity.objects.filter(user=user).delete()
    if user.email:
        Mail.objects.filter(to__iexact=user.email).delete()
        Invitation.objects.filter(email__iexact=user.email).update(email="")
    for model in (AccessAttempt, AccessLog, AccessFailureLog):
        model.objects.filter(username=name).delete()
    user.username, user.email, user.first_name, user.last_name = _anonymous_name(user), "", "", ""
    user.is_active, user.is_staff, user.is_superuser, user.preferences = False, False, False, {}
    user.is_researcher = False
    user.set_unusable_password()
    user.save()
    audit.record(verb="account.closed", actor=user, object=user.username)
    erase_person(pk=user.pk, username=name)
    return user


def _anonymous_name(user: User) -> str:
    """Return `closed-ID`, or a longer name if another user already has that one."""
    name = f"closed-{user.pk}"
    while User.objects.filter(username=name).exists():
        name = f"closed-{user.pk}-{secrets.token_hex(4)}"
    return name
