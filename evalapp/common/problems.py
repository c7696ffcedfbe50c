"""Errors of the API as RFC 9457 problem details; nothing else renders errors for programs."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from .errors import EvalappError, NotAllowed, NotThere
from .outages import unstorable

CONTENT_TYPE = "application/problem+json"
#: More faults than this help nobody; a small request must not ask for a huge answer.
MOST_ERRORS, LONGEST_TEXT = 100, 2000
#: When to try again what is not there just now.
RETRY_SECONDS = "5"
SIGN_IN = "Send a token with the request (Authorization: Bearer TOKEN); make one under Account, Tokens."


DOCUMENTATION = "/docs/errors"


def problem(code: str, title: str, status_code: int, detail: str, errors: list | None = None, **extra: Any) -> dict:
    body = {
        "type": f"{DOCUMENTATION}#{code}",
        "title": str(title),
        "status": status_code,
        "detail": _short(detail),
        **extra,
    }
    if errors:
        body["errors"] = [{key: _short(value) for key, value in error.items()} for error in errors[:MOST_ERRORS]]
    if errors and len(errors) > MOST_ERRORS:
        body["more_errors"] = len(errors) - MOST_ERRORS
    return body


def _short(text: Any) -> Any:
    return f"{text[:LONGEST_TEXT]}…" if isinstance(text, str) and len(text) > LONGEST_TEXT else text


def explain_origin(request: Any, reason: str) -> str:
    """Why a form was refused where its address of origin is the cause; empty for other reasons of Django's check."""
    if not reason.startswith(("Origin checking failed", "Referer checking failed")):
        return ""
    came = request.headers.get("Origin") or request.headers.get("Referer") or "no address"
    return (
        f"The form came from {came[:200]}, and this installation takes itself to be {request.scheme}://"
        f"{request.get_host()}. If the first is its address, its settings are wrong: CSRF_TRUSTED_ORIGINS must hold "
        "that origin, and the proxy in front must pass on Host and X-Forwarded-Proto (with SECURE_PROXY=1). Tell the "
        "people who run it. If it is not, another site sent the form, and nothing was done."
    )


def _flatten(detail: Any, field: str = "") -> list[dict]:
    if isinstance(detail, dict):
        return [row for key, value in detail.items() for row in _flatten(value, f"{field}.{key}".strip("."))]
    if isinstance(detail, list):
        rows = []
        for index, value in enumerate(detail):
            nested = isinstance(value, (dict, list))
            rows += _flatten(value, f"{field}[{index}]" if nested else field)
        return rows
    return [{"message": str(detail), **({"field": field} if field else {})}]


def from_domain(error: EvalappError) -> dict:
    errors = [fault.as_dict() for fault in error.faults]
    return problem(error.code, error.title, error.status, error.detail, errors, **error.extra)


def wait_headers(error: EvalappError) -> dict[str, str]:
    """When to come back, for who tried too often."""
    wait = error.extra.get("wait")
    return {"Retry-After": str(wait)} if wait else {}


def exception_handler(error: Exception, context: dict) -> Response | None:
    headers: dict[str, str] = {}
    error = unstorable(error) or error
    if isinstance(error, Http404):
        error = NotThere(_("Not found, or you have no access to it."))
    elif isinstance(error, PermissionDenied):
        error = NotAllowed(str(error) or _("Ask an owner of the project for a role that may do this."))
    if isinstance(error, EvalappError):
        body = from_domain(error)
        headers |= wait_headers(error)
    elif isinstance(error, ValidationError):
        body = problem("bad-input", "The input has faults", 400, "See errors.", _flatten(error.messages))
    elif isinstance(error, exceptions.APIException):
        code = error.get_codes() if isinstance(error.get_codes(), str) else "bad-input"
        title = str(error.default_detail)
        if "{" in title:  # a pattern of the framework: the title is the same for all of its kind
            title = f"{HTTPStatus(error.status_code).phrase}."
        errors = _flatten(error.detail) if isinstance(error.detail, (dict, list)) else None
        detail = "See errors." if errors else str(error.detail)
        if isinstance(error, exceptions.NotAuthenticated):
            detail = SIGN_IN
        if isinstance(error, exceptions.PermissionDenied) and detail.startswith("CSRF Failed: "):
            detail = explain_origin(context["request"], detail.removeprefix("CSRF Failed: ")) or detail
        body = problem(str(code).replace("_", "-"), title, error.status_code, detail, errors)
        if getattr(error, "auth_header", None):
            headers["WWW-Authenticate"] = error.auth_header  # type: ignore[attr-defined]
        if getattr(error, "wait", None):
            headers["Retry-After"] = str(int(error.wait))  # type: ignore[attr-defined]
    else:
        return None
    set_rollback()
    if body["status"] == status.HTTP_503_SERVICE_UNAVAILABLE:
        headers.setdefault("Retry-After", RETRY_SECONDS)
    return Response(body, status=body["status"], headers=headers, content_type=CONTENT_TYPE)
