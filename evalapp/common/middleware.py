"""What every request passes: headers against browsers that do too much, a readable page (or a fragment for htmx) for
domain errors."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evalapp.side_figures import collect_failures

from .errors import BadInput, EvalappError
from .outages import unstorable
from .pages import came_from, without_choices
from .problems import wait_headers

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


class SideFigures:
    """Collects the figures of a page that fail, so that the page comes without them and says so (`base.html`, and
    `pages.page` for a fragment). Answers of the API have no such place: their tables collect for themselves."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith("/api/"):
            return self.get_response(request)
        with collect_failures() as failed:
            request.failed_figures = failed  # type: ignore[attr-defined]
            return self.get_response(request)


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
