"""Change an account: display settings and password."""

from dataclasses import asdict
from typing import Any

from django.db import transaction

from evalapp.accounts.models import User
from evalapp.accounts.selectors import active_tokens, check_no_participant
from evalapp.common import audit
from evalapp.common.display import Display
from evalapp.common.naming import check_names

from .tokens import revoke_token

FIELDS = ("first_name", "email", "theme", "preferences")


@transaction.atomic
def update_account(*, user: User, **changes: Any) -> User:
    """Change name, e-mail or display. The audit log gets the names of changed fields, not their values."""
    changed = [name for name in FIELDS if name in changes and getattr(user, name) != changes[name]]
    if {"first_name", "email"} & set(changed):
        check_no_participant(user)
    if "first_name" in changed:
        check_names(first_name=changes["first_name"])
    if changed:
        for name in changed:
            setattr(user, name, changes[name])
        user.save(update_fields=changed)
        audit.record(verb="account.changed", actor=user, object=user.username, fields=changed)
    return user


def update_display(*, user: User, display: Display) -> User:
    """Change how pages look for the user, on all devices."""
    chosen = asdict(display)
    return update_account(user=user, theme=chosen.pop("theme"), preferences={**user.preferences, **chosen})


@transaction.atomic
def change_password(*, form: Any) -> tuple[User, int]:
    """Save Django's validated form. Returns the user and the number of revoked API tokens. The caller keeps this
    browser signed in."""
    user = form.save()
    audit.record(verb="account.password-changed", actor=user, object=user.username)
    return user, _revoke_unless_kept(user, form)


@transaction.atomic
def reset_password(*, form: Any) -> tuple[User, int]:
    """Save the validated form of a password reset. Returns the user and the number of revoked API tokens."""
    user = form.save()
    audit.record(verb="account.password-reset", actor=user, object=user.username)
    return user, _revoke_unless_kept(user, form)


@transaction.atomic
def note_new_password(*, user: User, keep_tokens: bool = False) -> int:
    """Record that an administrator has set a password by a command. Returns the number of revoked API tokens."""
    audit.record(verb="account.password-changed", actor=None, object=user.username)
    return 0 if keep_tokens else revoke_tokens(user, None)


def _revoke_unless_kept(user: User, form: Any) -> int:
    """Revoke all tokens unless the form says otherwise, because the old password may have been known to others."""
    return 0 if form.cleaned_data.get("keep_tokens") else revoke_tokens(user, user)


def revoke_tokens(user: User, actor: User | None) -> int:
    """Revoke all API tokens of a user; return their number."""
    tokens = list(active_tokens(user))
    for token in tokens:
        revoke_token(token=token, actor=actor)
    return len(tokens)
