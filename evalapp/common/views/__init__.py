"""Error pages: each says what happened and where to go on."""

from __future__ import annotations

import json

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from evalapp.common.problems import CONTENT_TYPE, problem


def _answer(request: HttpRequest, code: str, title: str, status: int, detail: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        body = json.dumps(problem(code, title, status, detail))
        return HttpResponse(body, status=status, content_type=CONTENT_TYPE)
    return render(request, "errors/page.html", {"title": title, "detail": detail, "status": status}, status=status)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, "bad-request", "The request could not be read", 400, "Go back and try again.")


def not_allowed(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, "not-allowed", "Your role does not allow this", 403, "Ask an owner of the project.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without our token: open for too long, signed in or out meanwhile, or sent by another site."""
    detail = "The page was open for too long, or you signed in or out meanwhile. Go back, load it again and send it."
    return _answer(request, "not-allowed", "The form could not be taken", 403, detail)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(
        request,
        "not-found",
        "Nothing is there",
        404,
        "The address is wrong, or the object is not yours to see.",
    )


def server_error(request: HttpRequest) -> HttpResponse:
    title, detail = "Something broke here", "Nothing was lost. Try again; the log has the details."
    if request.path.startswith("/api/"):
        return _answer(request, "server-error", title, 500, detail)
    body = render_to_string("errors/server.html", {"title": title, "detail": detail, "status": 500})
    return HttpResponse(body, status=500)
