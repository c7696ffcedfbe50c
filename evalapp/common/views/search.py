"""The search page of a project."""

from django.http import HttpRequest, HttpResponse

from evalapp.accounts.models import Project
from evalapp.common.pages import page, project_page
from evalapp.common.project_search import search_project


@project_page(GET="read")
def search(request: HttpRequest, project: Project) -> HttpResponse:
    """Items, systems, campaigns, evaluators, runs and help that contain the text `?q=`."""
    query = request.GET.get("q", "")[:200]
    context = {"project": project, "search_query": query, "kinds": search_project(project, query)}
    return page(request, "common/search.html", context)
