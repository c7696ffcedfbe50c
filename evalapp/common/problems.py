"""Errors of the API as problem documents (RFC 9457)."""

from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from .errors import BadInput, EvalappError, NotAllowed, NotThere
from .outages import unstorable

CONTENT_TYPE = "application/problem+json"
#: Limits of a problem document, so that a small request cannot cause a huge response.
MAX_ERRORS, MAX_TEXT = 100, 2000
#: Value of `Retry-After` while a service is unavailable.
RETRY_SECONDS = "5"
SIGN_IN = gettext_lazy("Send a token with the request (Authorization: Bearer TOKEN); create one under Account, Tokens.")
DOCUMENTATION = "/docs/errors"


def problem(code: str, title: str, status_code: int, detail: str, errors: list | None = None, **extra: Any) -> dict:
    body = {
        "type": f"{DOCUMENTATION}#{code}",
        "title": str(title),
        "status": status_code,
        "detail": _truncate(str(detail)),
        **extra,
    }
    if errors:
        body["errors"] = [{key: _truncate(value) for key, value in error.items()} for error in errors[:MAX_ERRORS]]
    if errors and len(errors) > MAX_ERRORS:
        body["more_errors"] = len(errors) - MAX_ERRORS
    return body


def _truncate(text: Any) -> Any:
    return f"{text[:MAX_TEXT]}…" if isinstance(text, str) and len(text) > MAX_TEXT else text


def explain_origin(request: Any, reason: str) -> str:
    """Return an explanation if Django's CSRF check failed because of the origin of a form; otherwise an empty text."""
    if not reason.startswith(("Origin checking failed", "Referer checking failed")):
        return ""
    origin = request.headers.get("Origin") or request.headers.get("Referer") or _("no address")
    text = _(
        "The form was sent from %(origin)s, but the address of this installation is %(address)s. If the first address "
        "is correct, ask the operators to add it to CSRF_TRUSTED_ORIGINS and to pass Host and X-Forwarded-Proto "
        "through the proxy (with SECURE_PROXY=1). Otherwise another site sent the form, and nothing was changed."
    )
    return text % {"origin": origin[:200], "address": f"{request.scheme}://{request.get_host()}"}


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
    """Return the header `Retry-After` if the error has a waiting time."""
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
        body = problem("bad-input", BadInput.title, 400, _("See errors."), _flatten(error.messages))
    elif isinstance(error, exceptions.APIException):
        code = error.get_codes() if isinstance(error.get_codes(), str) else "bad-input"
        title = str(error.default_detail)
        if "{" in title:  # a format string of the framework; titles must not depend on the request
            title = f"{HTTPStatus(error.status_code).phrase}."
        errors = _flatten(error.detail) if isinstance(error.detail, (dict, list)) else None
        detail = _("See errors.") if errors else str(error.detail)
        if isinstance(error, exceptions.NotAuthenticated):
            detail = str(SIGN_IN)
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
