"""Secrets and signatures of webhooks, as in the Standard Webhooks specification (standardwebhooks.com), for which
libraries exist in many languages."""

import base64
import hashlib
import hmac
import secrets

from django.utils.crypto import salted_hmac

from ..models import Webhook

PREFIX = "whsec_"


def make_salt() -> str:
    return secrets.token_hex(16)


def derive_secret(salt: str) -> str:
    """Return the secret of a salt: `whsec_` and 32 bytes in base64. It changes with SECRET_KEY."""
    key = salted_hmac("evalapp.events.webhook", salt, algorithm="sha256").digest()
    return PREFIX + base64.b64encode(key).decode()


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def find_secret(webhook: Webhook) -> str | None:
    """Return the secret that was shown; None if SECRET_KEY was changed since."""
    secret = derive_secret(webhook.salt)
    return secret if hmac.compare_digest(hash_secret(secret), webhook.digest) else None


def sign(secret: str, message: str, timestamp: int, body: bytes) -> str:
    """Return the header `webhook-signature`: `v1,` and the HMAC-SHA256 of `MESSAGE.TIMESTAMP.BODY` in base64."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.digest(key, f"{message}.{timestamp}.".encode() + body, "sha256")
    return "v1," + base64.b64encode(digest).decode()
