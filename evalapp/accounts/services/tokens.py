"""Create and revoke API tokens."""

import secrets
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evalapp.accounts.authentication import digest
from evalapp.accounts.models import ApiToken, Project, User
from evalapp.accounts.roles import SCOPES
from evalapp.accounts.selectors import check_no_participant
from evalapp.common import audit
from evalapp.common.errors import BadInput, Fault
from evalapp.common.naming import find_name_faults

MAX_DAYS = 365


@transaction.atomic
def create_token(
    *, user: User, name: str, scopes: Sequence[str], days: int = 90, project: Project | None = None
) -> tuple[ApiToken, str]:
    """Return a new token and its secret, which is not stored. A token never has more permissions than its user."""
    check_no_participant(user)
    faults = find_name_faults(name=name)
    if not name.strip():
        faults.append(Fault(_("Give the token a name that says where it is used."), field="name"))
    if not scopes or set(scopes) - set(SCOPES):
        faults.append(Fault(_("Choose at least one of: %(scopes)s.") % {"scopes": ", ".join(SCOPES)}, field="scopes"))
    if not 1 <= days <= MAX_DAYS:
        faults.append(Fault(_("From 1 to %(most)d days.") % {"most": MAX_DAYS}, field="days"))
    if faults:
        raise BadInput(_("The token could not be created."), faults=faults)
    secret = "ea_" + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        name=name.strip()[:100],
        prefix=secret[:10],
        digest=digest(secret),
        scopes=[scope for scope in SCOPES if scope in scopes],
        project=project,
        expires_at=timezone.now() + timedelta(days=days),
    )
    audit.record(verb="token.created", project=project, actor=user, object=token.prefix, scopes=token.scopes)
    return token, secret


@transaction.atomic
def revoke_token(*, token: ApiToken, actor: User | None) -> ApiToken:
    """Revoke a token. Idempotent."""
    if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
        audit.record(verb="token.revoked", project=token.project, actor=actor, object=token.prefix)
    token.refresh_from_db()
    return token
