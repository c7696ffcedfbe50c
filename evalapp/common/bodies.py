"""Limits on request bodies, checked before anything reads the body: the check of a form's CSRF token would write it to
disk first."""

import re
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.shortcuts import render
from django.utils.translation import gettext as _
from rest_framework.exceptions import AuthenticationFailed

from evalapp.accounts.authentication import TokenAuthentication
from evalapp.accounts.selectors import get_project
from evalapp.ops import SMALL_BODY

from .errors import EvalappError, LengthMissing, SignInFirst, TooLarge, TooSlow
from .pages import came_from
from .problems import CONTENT_TYPE, SIGN_IN, from_domain, wait_headers
from .room import check_room

_PROJECT = re.compile(r"(?:/api/v1)?/projects/(?!new/\Z)([^/]+)/")


class BodyLimit:
    """Anyone may send a form. A body beyond `SMALL_BODY` needs a path for uploads or long forms, a valid session or
    token, and in a project a role with write permission. Runs after authentication."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.large = re.compile("|".join(settings.LARGE_BODY_PATHS))
        self.long = re.compile("|".join(settings.LONG_FORM_PATHS))

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            self.check(request)
        except EvalappError as error:
            return refuse(request, error)
        response = self.get_response(request)
        if getattr(request.META.get("wsgi.input"), "failed", False):  # see evalapp.ops.web
            for handler in request.upload_handlers:  # else half a file stays until the next garbage collection
                handler.upload_interrupted()
            return refuse(
                request, TooSlow(_("The upload stopped or was too slow. Send it again over a faster connection."))
            )
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """A client that disconnects or is too slow is not an internal error; `__call__` returns the response."""
        return HttpResponse(status=TooSlow.status) if isinstance(error, UnreadablePostError) else None

    def check(self, request: HttpRequest) -> None:
        if "HTTP_TRANSFER_ENCODING" in request.META:
            raise LengthMissing(_("Send the body with a Content-Length, not in chunks."))
        length = request.META.get("CONTENT_LENGTH") or "0"
        size = int(length) if length.isdecimal() else 0
        is_upload = self.large.fullmatch(request.path_info) is not None
        limit = settings.MAX_UPLOAD_BYTES if is_upload else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if size > SMALL_BODY:
            user = find_sender(request)
            if match := _PROJECT.match(request.path_info):
                get_project(user=user, slug=match[1], need="write")
            if not is_upload and not self.long.fullmatch(request.path_info):
                text = _("This address accepts at most %(most)d KB, and this is %(size)s KB. Shorten it.")
                raise TooLarge(text % {"most": SMALL_BODY // 1024, "size": f"{size / 1024:,.0f}"})
        if size > limit:
            text = _("At most %(most)s MB are accepted, and this is %(size)s MB. Split or compress it.")
            raise TooLarge(text % {"most": f"{limit // 1_000_000:,}", "size": f"{size / 1e6:,.1f}"})
        if is_upload and size > SMALL_BODY:
            check_room(size)


def find_sender(request: HttpRequest) -> Any:
    """Return the user of the session or token; an invalid header or cookie does not count."""
    if request.user.is_authenticated:
        return request.user
    try:
        result = TokenAuthentication().authenticate(request)
    except AuthenticationFailed as error:
        raise SignInFirst(str(error.detail)) from error
    if result is None:
        text = _("Without signing in, at most %(most)d KB are accepted.") % {"most": SMALL_BODY // 1024}
        way_out = SIGN_IN if request.path_info.startswith("/api/") else _("Sign in first.")
        raise SignInFirst(f"{text} {way_out}")
    return result[0]


def refuse(request: HttpRequest, error: EvalappError) -> HttpResponse:
    if request.path_info.startswith("/api/"):
        response: HttpResponse = JsonResponse(from_domain(error), status=error.status, content_type=CONTENT_TYPE)
    else:
        context = {"error": error, "back": came_from(request)}
        response = render(request, "errors/domain.html", context, status=error.status)
    for name, value in wait_headers(error).items():
        response.headers[name] = value
    if error.status == 401:
        response.headers["WWW-Authenticate"] = TokenAuthentication.keyword
    return response
