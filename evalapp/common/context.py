"""Context processors."""

from django.conf import settings
from django.http import HttpRequest


def site(request: HttpRequest) -> dict:
    return {
        "version": settings.VERSION,
        "providers": settings.OIDC_PROVIDERS.values(),
        "passwords": settings.PASSWORD_SIGN_IN,
    }
