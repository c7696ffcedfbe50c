"""API tokens as `Authorization: Bearer TOKEN`. The token found is put on the user as `api_token`, where
`get_project` reads its scopes."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed

from . import limits
from .models import ApiToken

TOUCH = timedelta(minutes=1)


def digest(secret: str) -> str:
    """Tokens are 32 random bytes, so one round of SHA-256 cannot be searched."""
    return hashlib.sha256(secret.encode()).hexdigest()


class TokenAuthentication(BaseAuthentication):
    keyword = "Bearer"

    def authenticate(self, request: Any) -> tuple[Any, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != b"bearer":
            return None
        if len(parts) != 2:
            raise AuthenticationFailed("Write the header as: Authorization: Bearer TOKEN")
        try:
            secret = parts[1].decode("ascii")
        except UnicodeDecodeError as error:
            raise AuthenticationFailed("The token has characters that no token has.") from error
        now = timezone.now()
        token = ApiToken.objects.select_related("user").filter(digest=digest(secret)).first()
        if token is None or token.revoked_at or token.expires_at < now or not token.user.is_active:
            # After looking: what works is let through whatever others tried from the same address.
            limits.spend(limits.TOKEN_FAILURES, limits.client_ip(request))
            raise AuthenticationFailed(
                "The token is unknown, expired or revoked. Make a new one under Account, Tokens."
            )
        if token.last_used_at is None or token.last_used_at < now - TOUCH:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        token.user.api_token = token
        return token.user, token

    def authenticate_header(self, request: Any) -> str:
        return self.keyword
