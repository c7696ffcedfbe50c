"""Public pages of documentation."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from evalapp.common.markdown import render_markdown
from evalapp.common.pages import page
from evalapp.common.problem_types import PROBLEM_TYPES


@require_safe
def errors(request: HttpRequest) -> HttpResponse:
    """Every type of problem document with its meaning and the way out; the `type` of each leads here."""
    problems = [
        {"type": one, "meaning": render_markdown(one.meaning), "way_out": render_markdown(one.way_out)}
        for one in PROBLEM_TYPES
    ]
    return page(request, "docs/errors.html", {"problems": problems})
