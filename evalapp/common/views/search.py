"""The search page of a project."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from evalapp.accounts.selectors import get_project
from evalapp.common.pages import page
from evalapp.common.project_search import search_project


@login_required
@require_safe
def search(request: HttpRequest, slug: str) -> HttpResponse:
    """Items, systems, campaigns, evaluators, runs and help that contain the text `?q=`."""
    project = get_project(user=request.user, slug=slug, need="read")
    query = request.GET.get("q", "")[:200]
    context = {"project": project, "search_query": query, "kinds": search_project(project, query)}
    return page(request, "common/search.html", context)
