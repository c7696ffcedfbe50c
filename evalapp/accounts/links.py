"""Absolute addresses of secret links, as the person who made them sees the site."""

from django.http import HttpRequest
from django.urls import reverse


def make_invitation_link(request: HttpRequest, secret: str) -> str:
    """Return the address of an invitation on the host of this request."""
    address: str = request.build_absolute_uri(reverse("accounts:invitation", args=[secret]))
    return address
