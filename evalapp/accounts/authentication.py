"""Authentication by API token: `Authorization: Bearer TOKEN`. The user gets the token as `api_token`, for
`get_project`."""

import hashlib
from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed

from . import limits
from .models import ApiToken

TOUCH = timedelta(minutes=1)


def digest(secret: str) -> str:
    """Return the SHA-256 of a secret. One round suffices, because secrets are 32 random bytes."""
    return hashlib.sha256(secret.encode()).hexdigest()


class TokenAuthentication(BaseAuthentication):
    keyword = "Bearer"

    def authenticate(self, request: Any) -> tuple[Any, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != b"bearer":
            return None
        if len(parts) != 2:
            raise AuthenticationFailed(_("Send the header as: Authorization: Bearer TOKEN"))
        try:
            secret = parts[1].decode("ascii")
        except UnicodeDecodeError as error:
            raise AuthenticationFailed(_("The token contains invalid characters.")) from error
        now = timezone.now()
        token = ApiToken.objects.select_related("user").filter(digest=digest(secret)).first()
        if token is None or token.revoked_at or token.expires_at < now or not token.user.is_active:
            # Only failures are limited, so that valid tokens from the same address keep working.
            limits.spend(limits.TOKEN_FAILURES, limits.client_ip(request))
            raise AuthenticationFailed(
                _("The token is unknown, expired or revoked. Create a new one under Account, Tokens.")
            )
        if token.last_used_at is None or token.last_used_at < now - TOUCH:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        token.user.api_token = token
        return token.user, token

    def authenticate_header(self, request: Any) -> str:
        return self.keyword
