"""What every request passes: headers against browsers that do too much, a readable page (or a fragment for htmx) for
domain errors, and the limit of a body."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from .errors import BadInput, EvalappError, TooLarge
from .outages import unstorable
from .pages import came_from, without_choices
from .problems import CONTENT_TYPE, from_domain, wait_headers

#: What no page of ours ever asks a browser for.
PERMISSIONS = ", ".join(
    f"{name}=()"
    for name in (
        "accelerometer", "autoplay", "browsing-topics", "camera", "display-capture", "encrypted-media", "fullscreen",
        "geolocation", "gyroscope", "magnetometer", "microphone", "midi", "payment", "picture-in-picture",
        "publickey-credentials-get", "screen-wake-lock", "usb", "xr-spatial-tracking",
    )
)  # fmt: skip


class Headers:
    """No cache keeps what was made for one person, unless the view says otherwise; no page uses a device; no other
    site reads an answer. Static files are served before this and may be kept."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "private, no-store")
        response.headers.setdefault("Permissions-Policy", PERMISSIONS)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return response


class ErrorPages:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        error = unstorable(error) or error
        if not isinstance(error, EvalappError):
            return None
        part = getattr(request, "htmx", False) and not request.htmx.boosted
        template = "errors/_domain.html" if part else "errors/domain.html"
        plain = without_choices(request) if isinstance(error, BadInput) else ""
        context = {"error": error, "back": came_from(request), "plain": plain}
        response = render(request, template, context, status=error.status)
        for name, value in wait_headers(error).items():
            response.headers[name] = value
        return response


class BodyLimit:
    """Refuses a body that is too large by its announced length, before anything reads it (the check of a form's CSRF
    token would write it to disk first). Stands after authentication, so that only people signed in or programs
    with a token may send much."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.large = re.compile("|".join(settings.LARGE_BODY_PATHS))

    def __call__(self, request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        size = int(length) if length.isdecimal() else 0
        known = request.user.is_authenticated or request.headers.get("Authorization")
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if known and self.large.fullmatch(request.path_info):
            limit = settings.MAX_UPLOAD_BYTES
        if size <= limit:
            return self.get_response(request)
        text = f"At most {limit // 1_000_000:,} MB are taken here; this is {size / 1e6:,.1f} MB. Split or compress it."
        error = TooLarge(text)
        if request.path_info.startswith("/api/"):
            return JsonResponse(from_domain(error), status=error.status, content_type=CONTENT_TYPE)
        return render(request, "errors/domain.html", {"error": error, "back": came_from(request)}, status=error.status)
