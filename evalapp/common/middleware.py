"""Middleware: security headers, failed parts of pages, and error pages for domain errors."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import translation

from evalapp.languages import WHOLE
from evalapp.side_figures import collect_failures

from .display import read_display
from .errors import BadInput, EvalappError
from .navigation import find_addressed_project
from .outages import unstorable
from .pages import came_from, strip_query, wants_fragment
from .problems import wait_headers

#: Browser features that no page uses.
PERMISSIONS = ", ".join(
    f"{name}=()"
    for name in (
        "accelerometer", "autoplay", "browsing-topics", "camera", "display-capture", "encrypted-media", "fullscreen",
        "geolocation", "gyroscope", "magnetometer", "microphone", "midi", "payment", "picture-in-picture",
        "publickey-credentials-get", "screen-wake-lock", "usb", "xr-spatial-tracking",
    )
)  # fmt: skip

#: What monitoring programs and browsers ask for even when the database is unavailable.
SESSIONLESS = ("/health/", "/metrics", "/static/", "/favicon.ico", "/robots.txt")

#: Reports by link are kept out of search engines, and their links out of the Referer header of other sites.
SHARED = "/reports/"

#: Where the pages are that annotators do not see.
RESEARCHERS = ("/projects/", SHARED)


class Headers:
    """Adds headers: responses are not cached unless the view allows it, pages use no devices, other sites cannot read
    responses, links of reports stay secret. Static files are served earlier and may be cached."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "private, no-store")
        response.headers.setdefault("Permissions-Policy", PERMISSIONS)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        if request.path_info.startswith(SHARED):
            response.headers["X-Robots-Tag"] = "noindex, nofollow, noarchive"
            response.headers["Referrer-Policy"] = "no-referrer"
        return response


class Sessionless:
    """Drops the cookies of requests that need no session: reading it would need the database. Runs before the
    session."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info.startswith(SESSIONLESS):
            request.META.pop("HTTP_COOKIE", None)
        return self.get_response(request)


class Language:
    """Shows pages in the language that the person has chosen, or else in that of the browser. Researchers' pages are in
    English where that language has none of them. The API answers in English, so that programs get the same words
    whoever runs them."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        language = settings.LANGUAGE_CODE
        if not request.path_info.startswith("/api/"):
            chosen = read_display(request).language
            language = chosen if chosen != "browser" else translation.get_language_from_request(request)
            if language not in WHOLE and request.path_info.startswith(RESEARCHERS):
                language = settings.LANGUAGE_CODE
        with translation.override(language):
            response = self.get_response(request)
            # Campaigns may have chosen another language (`annotation.views.languages`).
            response.headers.setdefault("Content-Language", translation.get_language() or language)
        return response


class SideFigures:
    """Collects parts of a page that fail, so that the page is shown without them, with a notice (`base.html`, and
    `pages.page` for fragments). Tables of the API collect for themselves."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info.startswith("/api/"):
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
        part = wants_fragment(request)
        template = "errors/_domain.html" if part else "errors/domain.html"
        plain = strip_query(request) if isinstance(error, BadInput) else ""
        context = {
            "error": error,
            "back": came_from(request),
            "plain": plain,
            "project": None if part else find_addressed_project(request),
        }
        response = render(request, template, context, status=error.status)
        for name, value in wait_headers(error).items():
            response.headers[name] = value
        return response
