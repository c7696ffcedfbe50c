"""Helpers for the scripts of the annotation pages: JSON requests and responses, errors as problem details."""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_not_required, login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _

from evalapp.common.errors import BadInput, EvalappError
from evalapp.common.problems import CONTENT_TYPE, from_domain, problem, wait_headers


def wants_json(request: HttpRequest) -> bool:
    return request.content_type == "application/json"


def signed_in(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Requires signing in like other pages, but scripts get a 401. They would follow the redirect to the sign-in page,
    take it for a success and delete their local copy of the text."""
    guarded = login_required(view)

    @login_not_required  # the guard redirects people itself
    @wraps(view)
    def guard(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        if wants_json(request) and not request.user.is_authenticated:
            body = problem("not-authenticated", _("Not signed in"), 401, _("Sign in, then send it again."))
            return JsonResponse(body, status=401, content_type=CONTENT_TYPE)
        return guarded(request, *arguments, **named)

    return guard


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def read_json(request: HttpRequest) -> dict[str, Any]:
    try:
        body = json.loads(request.body, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadInput(_("The body must be JSON.")) from error
    if not isinstance(body, dict):
        raise BadInput(_("The body must be a JSON object."))
    return body


def read_body(request: HttpRequest) -> dict[str, Any]:
    """The fields of a form, or the members of a JSON object."""
    return read_json(request) if wants_json(request) else request.POST.dict()


def read_submission(body: Mapping[str, Any]) -> UUID:
    """The id of a submission, from a form or JSON."""
    try:
        return UUID(str(body.get("submission", "")))
    except ValueError as error:
        raise BadInput(_("The form was incomplete. Reload the page and submit again.")) from error


def make_problem_response(error: EvalappError, html: str = "") -> JsonResponse:
    body = from_domain(error) | ({"html": html} if html else {})
    return JsonResponse(body, status=error.status, content_type=CONTENT_TYPE, headers=wait_headers(error))


def answers_problems(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Answer scripts with problem details if the view raises an error; forms get the error page."""

    @wraps(view)
    def guard(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        try:
            return view(request, *arguments, **named)
        except EvalappError as error:
            if not wants_json(request):
                raise
            return make_problem_response(error)

    return guard


def make_store_key(request: HttpRequest, work: str) -> str:
    """The key under which a browser stores drafts and unsent answers, so that accounts on one computer do not mix."""
    return hashlib.sha256(f"{work} {request.user.pk}".encode()).hexdigest()[:16]
