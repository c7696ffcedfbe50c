"""Which account an identity of OpenID Connect opens. An account that exists is opened by an identity only if its user
connected the two, or if the provider may match e-mail addresses. Accounts of hired participants are never opened."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evalapp.accounts.models import Identity, User
from evalapp.accounts.selectors import check_no_participant
from evalapp.common import audit
from evalapp.common.errors import Conflict, NotAllowed, NotThere
from evalapp.common.naming import find_name_faults

from .account import revoke_tokens
from .invitations import check_look, find_invitation

if TYPE_CHECKING:
    from evalapp.accounts.oidc import ClaimedIdentity


@transaction.atomic
def sign_in_with_identity(*, claimed: ClaimedIdentity, invitation: str = "") -> User:
    """Return the account that an identity opens: the connected one, the one with the same verified address, or a new
    one, as the provider allows. `invitation` is the secret of the link through which the person came.

    Raises `NotAllowed` for a closed account and for people who have none, and `Conflict` if an address belongs to an
    account that the provider may not open."""
    row = _lock_identity(claimed)
    if row is None:
        user = _find_by_address(claimed) or _create_account(claimed, invitation)
        row = _attach_identity(user, claimed)
    user = row.user
    if not user.is_active or user.is_participant:
        raise NotAllowed(_("This account has been deactivated."))
    row.email, row.last_used_at = claimed.email, timezone.now()
    row.save(update_fields=["email", "last_used_at"])
    _apply_roles(user, claimed)
    audit.record(verb="account.signed-in", actor=user, object=user.username, provider=claimed.provider.name)
    return user


@transaction.atomic
def connect_identity(*, claimed: ClaimedIdentity, user: User) -> Identity:
    """Let an identity open the account of a user who is signed in and has confirmed it."""
    check_no_participant(user)
    row = _lock_identity(claimed)
    if row is None:
        return _attach_identity(user, claimed)
    if row.user_id != user.pk:
        raise Conflict(_("This sign-in already opens another account. Remove it there first."))
    return row


@transaction.atomic
def disconnect_identity(*, pk: int, user: User, passwords_allowed: bool) -> None:
    """Stop an identity from opening the user's account. Raises `Conflict` if no way to sign in would be left."""
    row = Identity.objects.select_for_update().filter(user=user, pk=pk).first()
    if row is None:
        raise NotThere(_("Your account has no such sign-in."))
    has_password = passwords_allowed and user.has_usable_password()
    if not has_password and not Identity.objects.filter(user=user).exclude(pk=pk).exists():
        raise Conflict(_("This is your only way to sign in. Connect another one first."))
    row.delete()
    audit.record(verb="account.disconnected", actor=user, object=user.username, issuer=row.issuer)


def _lock_identity(claimed: ClaimedIdentity) -> Identity | None:
    rows = Identity.objects.select_for_update()
    return rows.filter(issuer=claimed.provider.issuer, subject=claimed.subject).first()


def _attach_identity(user: User, claimed: ClaimedIdentity) -> Identity:
    issuer, subject = claimed.provider.issuer, claimed.subject
    try:
        with transaction.atomic():
            row = Identity.objects.create(user=user, issuer=issuer, subject=subject, email=claimed.email)
    except IntegrityError as error:
        raise Conflict(_("This sign-in is being connected by another request. Try again.")) from error
    audit.record(verb="account.connected", actor=user, object=user.username, provider=claimed.provider.name)
    return row


def _find_by_address(claimed: ClaimedIdentity) -> User | None:
    """Return the account with the verified address of the identity if the provider may match addresses.

    The address of an account was typed by its user, who may not own it. As after a reset of the password by mail, the
    owner of the address alone has the account from now on: password, sessions and tokens end."""
    if not claimed.email:
        return None
    accounts = User.objects.select_for_update().filter(email__iexact=claimed.email, is_participant=False)
    users = list(accounts[:2])
    if not users:
        return None
    if not any(user.is_active for user in users):
        raise NotAllowed(_("This account has been deactivated."))
    values = {"email": claimed.email, "provider": claimed.provider.label}
    if len(users) > 1:
        text = _("Several accounts have the address %(email)s. Sign in to one and connect %(provider)s under Account.")
        raise Conflict(text % values)
    if not claimed.provider.match_email:
        text = _("An account with the address %(email)s exists. Sign in to it and connect %(provider)s under Account.")
        raise Conflict(text % values)
    (user,) = users
    user.set_unusable_password()
    user.save(update_fields=["password"])
    revoke_tokens(user, user)
    return user


def _create_account(claimed: ClaimedIdentity, invitation: str) -> User:
    """Create an account without password, if the provider or an invitation allows it."""
    provider = claimed.provider
    is_listed = bool((claimed.roles or frozenset()) & (provider.administrators | provider.researchers))
    may_create = provider.create_accounts == "always" or (provider.create_accounts == "invited" and is_listed)
    if provider.create_accounts == "invited" and not may_create:
        may_create = _is_open(invitation)
    if not may_create:
        text = _(
            "No account belongs to this sign-in. Open the link of your invitation and choose %(provider)s there. If "
            "you have an account, sign in to it and connect %(provider)s under Account."
        )
        raise NotAllowed(text % {"provider": provider.label})
    name = "" if find_name_faults(name=claimed.name) else claimed.name
    user = User(username=_choose_username(claimed), email=claimed.email, first_name=name)
    user.set_unusable_password()
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError as error:
        raise Conflict(_("The account was not created, because another took its name. Try again.")) from error
    audit.record(verb="account.created", actor=user, object=user.username, provider=provider.name)
    return user


def _is_open(invitation: str) -> bool:
    try:
        find_invitation(secret=invitation)
    except NotThere:
        return False
    return True


def _choose_username(claimed: ClaimedIdentity) -> str:
    """Return a free user name like the one at the provider, with a number if that is taken or looks like another."""
    wanted = claimed.username or claimed.email.partition("@")[0] or claimed.name
    base = re.sub(r"[^\w.@+-]+", "-", User.normalize_username(wanted)).strip("-")[:140] or "user"
    number = 1
    while True:
        name = base if number == 1 else f"{base}-{number}"
        try:
            check_look(name)
        except Conflict:
            number += 1
            continue
        if not User.objects.filter(username=name).exists():
            return name
        number += 1


def _apply_roles(user: User, claimed: ClaimedIdentity) -> None:
    """Give or take what the groups at the provider say. The last administrator of the site remains one."""
    provider, roles = claimed.provider, claimed.roles or frozenset()
    wanted: dict[str, bool] = {}
    if provider.administrators:
        is_administrator = bool(roles & provider.administrators)
        others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
        wanted["is_superuser"] = is_administrator or (user.is_superuser and not others.exists())
    if provider.researchers:
        wanted["is_researcher"] = bool(roles & provider.researchers)
    changed = {name: value for name, value in wanted.items() if getattr(user, name) != value}
    if changed:
        for name, value in changed.items():
            setattr(user, name, value)
        user.save(update_fields=list(changed))
        audit.record(verb="account.role-changed", actor=user, object=user.username, provider=provider.name, **changed)
