"""Error pages."""

import json
import logging
import sys
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost, TooManyFilesSent
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import get_script_prefix
from django.utils.translation import gettext as _

from evalapp.common.errors import NotAllowed, NotThere, TooLarge
from evalapp.common.navigation import find_addressed_project
from evalapp.common.outages import explain
from evalapp.common.problems import CONTENT_TYPE, RETRY_SECONDS, explain_origin, from_domain, problem

log = logging.getLogger(__name__)


def _answer(request: HttpRequest, code: str, title: Any, status: int, detail: str) -> HttpResponse:
    if request.path_info.startswith("/api/"):
        body = json.dumps(problem(code, title, status, detail))
        return HttpResponse(body, status=status, content_type=CONTENT_TYPE)
    context = {"title": title, "detail": detail, "status": status, "project": find_addressed_project(request)}
    return render(request, "errors/page.html", context, status=status)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if isinstance(exception, TooManyFilesSent):
        detail = _("At most %(most)d files are accepted at once. Send them in several requests.")
        detail %= {"most": settings.DATA_UPLOAD_MAX_NUMBER_FILES}
        return _answer(request, TooLarge.code, TooLarge.title, TooLarge.status, detail)
    if isinstance(exception, DisallowedHost):
        detail = _(
            "“%(host)s” is not a host name of this installation. If it should be, ask the operators to add it to "
            "ALLOWED_HOSTS and to pass the header Host through the proxy."
        ) % {"host": request.META.get("HTTP_HOST", "")[:200]}
        return _answer(request, "unknown-host", _("This host name is not in ALLOWED_HOSTS"), 400, detail)
    return _answer(request, "bad-request", _("The request could not be read"), 400, _("Go back and try again."))


def not_allowed(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, "not-allowed", NotAllowed.title, 403, _("Ask an owner of the project."))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Respond to a form without a valid CSRF token: it was open for too long, the user signed in or out in between,
    another site sent it, or the settings lack the address of the proxy."""
    detail = explain_origin(request, reason) or _(
        "The page was open for too long, or you signed in or out in the meantime. Go back, reload the page and send "
        "the form again."
    )
    return _answer(request, "not-allowed", _("The form was not accepted"), 403, detail)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(
        request, "not-found", NotThere.title, 404, _("The address is wrong, or you have no access to the object.")
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """Respond to an unexpected error: 503 with a line of explanation and log for an unavailable service or a full disk,
    otherwise 500. Needs neither database nor session."""
    error = sys.exc_info()[1]
    outage = explain(error) if error is not None else None
    if outage is None:
        title, status = _("Internal error"), 500
        detail = _("No data was lost. Try again; the log has the details.")
        body = problem("server-error", title, status, detail)
    else:
        title, detail, status = outage.title, outage.detail, outage.status
        body = from_domain(outage)
    if request.path_info.startswith("/api/"):
        response = HttpResponse(json.dumps(body), status=status, content_type=CONTENT_TYPE)
    else:
        context = {"title": title, "detail": detail, "status": status, "home": get_script_prefix()}
        response = HttpResponse(render_to_string("errors/server.html", context), status=status)
    if outage is not None:
        log.error("%s %s: %s (%s)", request.method, request.path, outage.title, " ".join(str(error).split()))
        response.headers["Retry-After"] = RETRY_SECONDS
        response._has_been_logged = True  # type: ignore[attr-defined] # Django would add the stack
    return response
