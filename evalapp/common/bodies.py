"""Limits on request bodies, checked before anything reads the body: the check of a form's CSRF token would write it to
disk first."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.shortcuts import render
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
            return refuse(request, TooSlow("The body stopped or came too slowly. Send it again on a faster line."))
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """A client that disconnects or is too slow is not an internal error; `__call__` returns the response."""
        return HttpResponse(status=TooSlow.status) if isinstance(error, UnreadablePostError) else None

    def check(self, request: HttpRequest) -> None:
        if "HTTP_TRANSFER_ENCODING" in request.META:
            raise LengthMissing("Send the body with its Content-Length, not in chunks.")
        length = request.META.get("CONTENT_LENGTH") or "0"
        size = int(length) if length.isdecimal() else 0
        is_upload = self.large.fullmatch(request.path_info) is not None
        limit = settings.MAX_UPLOAD_BYTES if is_upload else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if size > SMALL_BODY:
            user = find_sender(request)
            if found := _PROJECT.match(request.path_info):
                get_project(user=user, slug=found[1], need="write")
            if not is_upload and not self.long.fullmatch(request.path_info):
                most = f"At most {SMALL_BODY // 1024} KB are taken at this address"
                raise TooLarge(f"{most}; this is {size / 1024:,.0f} KB. Shorten it.")
        if size > limit:
            raise TooLarge(
                f"At most {limit // 1_000_000:,} MB are taken here; this is {size / 1e6:,.1f} MB. Split or compress it."
            )
        if is_upload and size > SMALL_BODY:
            check_room(size)


def find_sender(request: HttpRequest) -> Any:
    """Return the user of the session or token; an invalid header or cookie does not count."""
    if request.user.is_authenticated:
        return request.user
    try:
        found = TokenAuthentication().authenticate(request)
    except AuthenticationFailed as error:
        raise SignInFirst(str(error.detail)) from error
    if found is None:
        limit = f"Without a sign-in at most {SMALL_BODY // 1024} KB are taken."
        raise SignInFirst(f"{limit} {SIGN_IN}" if request.path_info.startswith("/api/") else f"{limit} Sign in first.")
    return found[0]


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
