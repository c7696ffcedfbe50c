"""Public pages of documentation."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from evalapp.common.markdown import render_markdown
from evalapp.common.pages import page
from evalapp.common.problem_types import PROBLEM_TYPES


@login_not_required
@require_safe
def errors(request: HttpRequest) -> HttpResponse:
    """List all types of problem documents with meaning and remedy; their `type` links here."""
    problems = [
        {"type": type_, "meaning": render_markdown(str(type_.meaning)), "way_out": render_markdown(str(type_.way_out))}
        for type_ in PROBLEM_TYPES
    ]
    return page(request, "docs/errors.html", {"problems": problems})
