"""Error pages: each says what happened and where to go on."""

from __future__ import annotations

import json
import logging
import sys

from django.conf import settings
from django.core.exceptions import DisallowedHost, TooManyFilesSent
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from evalapp.common.errors import TooLarge
from evalapp.common.outages import explain
from evalapp.common.problems import CONTENT_TYPE, RETRY_SECONDS, explain_origin, from_domain, problem

log = logging.getLogger(__name__)


def _answer(request: HttpRequest, code: str, title: str, status: int, detail: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        body = json.dumps(problem(code, title, status, detail))
        return HttpResponse(body, status=status, content_type=CONTENT_TYPE)
    return render(request, "errors/page.html", {"title": title, "detail": detail, "status": status}, status=status)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if isinstance(exception, TooManyFilesSent):
        detail = (
            f"At most {settings.DATA_UPLOAD_MAX_NUMBER_FILES} files are taken at once. Send them in several requests."
        )
        return _answer(request, TooLarge.code, TooLarge.title, TooLarge.status, detail)
    if isinstance(exception, DisallowedHost):
        host = request.META.get("HTTP_HOST", "")[:200]
        detail = (
            f"This installation was asked as “{host}”, a name it does not know. If that is its name, ALLOWED_HOSTS "
            "must hold it, and the proxy in front must pass on Host. Tell the people who run it."
        )
        return _answer(request, "unknown-host", "This host name is not in ALLOWED_HOSTS", 400, detail)
    return _answer(request, "bad-request", "The request could not be read", 400, "Go back and try again.")


def not_allowed(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, "not-allowed", "Your role does not allow this", 403, "Ask an owner of the project.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without our token: open for too long, signed in or out meanwhile, sent by another site, or through a proxy
    whose address is missing in the settings."""
    detail = explain_origin(request, reason) or (
        "The page was open for too long, or you signed in or out meanwhile. Go back, load it again and send it."
    )
    return _answer(request, "not-allowed", "The form could not be taken", 403, detail)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(
        request,
        "not-found",
        "Not found",
        404,
        "The address is wrong, or the object is not yours to see.",
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """What nobody expected. A dead service or a full disk is told apart: 503 with one line about it, for people and in
    the log. Needs neither database nor session."""
    error = sys.exc_info()[1]
    outage = explain(error) if error is not None else None
    if outage is None:
        title, detail, status = "Something broke here", "Nothing was lost. Try again; the log has the details.", 500
        body = problem("server-error", title, status, detail)
    else:
        title, detail, status = outage.title, outage.detail, outage.status
        body = from_domain(outage)
    if request.path.startswith("/api/"):
        response = HttpResponse(json.dumps(body), status=status, content_type=CONTENT_TYPE)
    else:
        context = {"title": title, "detail": detail, "status": status}
        response = HttpResponse(render_to_string("errors/server.html", context), status=status)
    if outage is not None:
        log.error("%s %s: %s (%s)", request.method, request.path, outage.title, " ".join(str(error).split()))
        response.headers["Retry-After"] = RETRY_SECONDS
        response._has_been_logged = True  # type: ignore[attr-defined] # Django would add the stack
    return response
