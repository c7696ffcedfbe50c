"""What is stored about a person: shown, taken away, withdrawn; and the end of an account.

Ratings are the project's and stay, under the pseudonym. What a person wrote in their own words can be withdrawn; with
the account goes everything that says who they were."""

from __future__ import annotations

import secrets
from typing import Any

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.db import transaction

from evalapp.accounts.models import ApiToken, Membership, User
from evalapp.common import audit
from evalapp.common.audit_chain import erase_person
from evalapp.common.errors import BadInput, Conflict, Fault
from evalapp.common.models import AuditEvent
from evalapp.common.own_data import Part, parts_of, withdraw_from_rooms

from .members import remove_member


def collect(*, user: User) -> list[Part]:
    """Everything that is stored with this person's name or number."""
    memberships = Membership.objects.filter(user=user).select_related("project").order_by("project__slug")
    tokens = ApiToken.objects.filter(user=user).order_by("pk")
    events = AuditEvent.objects.filter(actor=user).order_by("pk")
    return [
        Part("account", "Your account.", [_account(user)]),
        Part(
            "projects", "Your projects, your role in each, and the pseudonym under which your judgements are stored.",
            [{"project": row.project.slug, "role": row.role, "judges_as": row.pseudonym,
              "campaigns": "all" if row.campaigns is None else row.campaigns, "since": row.created_at}
             for row in memberships],
        ),
        Part(
            "tokens", "Your API tokens, without their secrets.",
            [{"name": row.name, "begins": row.prefix, "made": row.created_at, "used": row.last_used_at}
             for row in tokens],
        ),
        *parts_of(user),
        Part(
            "acts", "What you did, as the audit says it.",
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
    """Empty what the person wrote in their own words, in every room. Numbers and choices stay."""
    counts = withdraw_from_rooms(user)
    audit.record(verb="account.withdrew", actor=user, object=user.username, **counts)
    return counts


@transaction.atomic
def close_account(*, user: User, password: str) -> None:
    """The end of an account. Nobody can sign in with it, nothing says whose it was; its number stays behind the ratings
    and texts. Whoever owns a project alone hands it over or deletes it first."""
    if not user.check_password(password):
        text = "This is not your password."
        raise BadInput(text, faults=[Fault(text, field="password")])
    for member in Membership.objects.filter(user=user).select_related("project"):
        try:
            remove_member(member=member, actor=user)
        except Conflict as error:
            text = f"You are the last owner of {member.project.name}. Make somebody else an owner, or delete it, first."
            raise Conflict(text, faults=[Fault(text, field="password")]) from error
    name = user.username
    ApiToken.objects.filter(user=user).delete()
    for model in (AccessAttempt, AccessLog, AccessFailureLog):
        model.objects.filter(username=name).delete()
    user.username, user.email, user.first_name, user.last_name = _name_of_nobody(user), "", "", ""
    user.is_active, user.is_staff, user.is_superuser, user.preferences = False, False, False, {}
    user.set_unusable_password()
    user.save()
    audit.record(verb="account.closed", actor=user, object=user.username)
    erase_person(pk=user.pk, username=name)


def _name_of_nobody(user: User) -> str:
    """Somebody may have joined as `closed-7` before number 7 goes."""
    name = f"closed-{user.pk}"
    while User.objects.filter(username=name).exists():
        name = f"closed-{user.pk}-{secrets.token_hex(4)}"
    return name
