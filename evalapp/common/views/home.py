"""The first page: my projects and my work, or the way in."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from evalapp.common.pages import page


def home(request: HttpRequest) -> HttpResponse:
    return page(request, "home.html", {})
