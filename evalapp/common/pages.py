"""Render pages and their htmx fragments. A fragment is a part of the page from the same view and context, so links also
work without JavaScript."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from evalapp.accounts.roles import Need
from evalapp.accounts.selectors import get_project

from .errors import BadInput


def came_from(request: HttpRequest) -> str:
    """Return the path of the page with the link to this one; empty if it is unknown, on another site or this page."""
    origin = urlsplit(request.headers.get("Referer", ""))
    here = origin.scheme in ("http", "https") and origin.netloc == request.get_host()
    if not here or (origin.path == request.path and request.method == "GET"):
        return ""
    # Browsers read a path that begins with two slashes as another host.
    return urlunsplit(("", "", "/" + origin.path.lstrip("/"), origin.query, ""))


def strip_query(request: HttpRequest) -> str:
    """Return the path of this page without its query string; empty if it has none."""
    return "/" + request.path.lstrip("/") if request.method == "GET" and request.GET else ""


def read_choice(request: HttpRequest, name: str, known: Collection[str], default: str = "") -> str:
    """Return a parameter of the address. Raises `BadInput` unless it is one of `known`; if empty, it is `default`."""
    value: str = request.GET.get(name) or default
    if value != default and value not in known:
        text = _("%(name)s must be one of %(known)s, not “%(value)s”.")
        raise BadInput.for_field(name, text % {"name": name, "known": ", ".join(known), "value": value})
    return value


def wants_fragment(request: HttpRequest) -> bool:
    """Return whether htmx asks for a part of a page. Going back in the browser's history needs the whole page."""
    asked: Any = getattr(request, "htmx", None)
    return bool(asked) and not asked.boosted and not asked.history_restore_request


def page(
    request: HttpRequest, template: str, context: dict | None = None, *, fragment: str = "", status: int = 200
) -> HttpResponse:
    """Render `template`. For an htmx request with `fragment`, render only `<template without .html>/_<fragment>.html`,
    which the page includes."""
    if fragment and wants_fragment(request):
        template = f"{template.removesuffix('.html')}/_{fragment}.html"
        response = render(request, template, context or {}, status=status)
        failed = getattr(request, "failed_figures", [])
        response.content += render_to_string("components/_failed.html", {"failed": failed}).encode() if failed else b""
    else:
        response = render(request, template, context or {}, status=status)
    response.headers["Vary"] = "HX-Request, Cookie"
    return response


def project_page(**needs: Need) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator of a page of a project, which is called with the project instead of its slug.

    `needs` maps each allowed method to the permission it needs: `@project_page(GET="read", POST="write")`. HEAD is
    allowed like GET.
    """
    if "GET" in needs:
        needs.setdefault("HEAD", needs["GET"])

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        @require_http_methods(list(needs))
        @wraps(view)
        def show(request: HttpRequest, slug: str, **rest: Any) -> Any:
            return view(request, get_project(user=request.user, slug=slug, need=needs[request.method or ""]), **rest)

        return show

    return decorate
