"""What every template may use beside its own context."""

from django.conf import settings
from django.http import HttpRequest


def site(request: HttpRequest) -> dict:
    return {"version": settings.VERSION}
