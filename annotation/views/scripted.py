"""What the scripts of the pages for annotators send and get: JSON in, JSON out, errors as problem details. What the
answers say is made by the views of each page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse

from evalapp.common.errors import BadInput, EvalappError
from evalapp.common.problems import CONTENT_TYPE, from_domain, problem, wait_headers


def wants_json(request: HttpRequest) -> bool:
    return request.content_type == "application/json"


def signed_in(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """`login_required`, but a script is told by a 401: it would follow the redirect to the page of signing in and take
    that for a yes, and the text that it keeps until the server has it would be gone."""
    guarded = login_required(view)

    @wraps(view)
    def guard(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        if wants_json(request) and not request.user.is_authenticated:
            body = problem("not-authenticated", "Nobody is signed in", 401, "Sign in, then send it again.")
            return JsonResponse(body, status=401, content_type=CONTENT_TYPE)
        return guarded(request, *arguments, **named)

    return guard


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def json_body(request: HttpRequest) -> dict[str, Any]:
    try:
        body = json.loads(request.body, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadInput("The body must be JSON.") from error
    if not isinstance(body, dict):
        raise BadInput("The body must be a JSON object.")
    return body


def problem_answer(error: EvalappError, html: str = "") -> JsonResponse:
    body = from_domain(error) | ({"html": html} if html else {})
    return JsonResponse(body, status=error.status, content_type=CONTENT_TYPE, headers=wait_headers(error))


def make_store_key(request: HttpRequest, work: str) -> str:
    """The key under which a browser stores drafts and unsent answers, so that accounts on one computer do not mix."""
    return hashlib.sha256(f"{work} {request.user.pk}".encode()).hexdigest()[:16]
