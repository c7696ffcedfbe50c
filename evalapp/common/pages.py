"""How pages and their htmx fragments are rendered: one view, one template, one context; the fragment is a
named part of the page, so every link also works without script."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string


def came_from(request: HttpRequest) -> str:
    """The page of this site that a link or a button led from, to go back to; "" where that is not known, or is this
    very page."""
    origin = urlsplit(request.headers.get("Referer", ""))
    here = origin.scheme in ("http", "https") and origin.netloc == request.get_host()
    if not here or (origin.path == request.path and request.method == "GET"):
        return ""
    # Of a path that begins with two slashes browsers make another host.
    return urlunsplit(("", "", "/" + origin.path.lstrip("/"), origin.query, ""))


def without_choices(request: HttpRequest) -> str:
    """This page without what its address asks for; "" where it asks for nothing."""
    # Of a path that begins with two slashes browsers make another host.
    return "/" + request.path.lstrip("/") if request.method == "GET" and request.GET else ""


def page(
    request: HttpRequest, template: str, context: dict | None = None, *, fragment: str = "", status: int = 200
) -> HttpResponse:
    """Render `template`; for an htmx request and a named `fragment`, `components`-style: the template
    `<template without .html>/_<fragment>.html` only. The page includes the same file, so both agree."""
    if fragment and getattr(request, "htmx", False) and not request.htmx.boosted:
        template = f"{template.removesuffix('.html')}/_{fragment}.html"
        response = render(request, template, context or {}, status=status)
        failed = getattr(request, "failed_figures", [])
        response.content += render_to_string("components/_failed.html", {"failed": failed}).encode() if failed else b""
    else:
        response = render(request, template, context or {}, status=status)
    response.headers["Vary"] = "HX-Request, Cookie"
    return response
