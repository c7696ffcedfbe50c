"""Turns domain errors that leave a page's view into a readable page (or a fragment for htmx)."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from .errors import EvalappError


class ErrorPages:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, EvalappError):
            return None
        part = getattr(request, "htmx", False) and not request.htmx.boosted
        template = "errors/_domain.html" if part else "errors/domain.html"
        return render(request, template, {"error": error}, status=error.status)
