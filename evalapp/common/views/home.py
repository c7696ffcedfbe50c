"""The first page (my projects and my work, or the way in) and the overview of one project."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_safe

from evalapp.accounts.forms import SignInForm
from evalapp.accounts.roles import ROLES_FOR
from evalapp.accounts.selectors import get_project, my_projects
from evalapp.accounts.services import may_create_projects
from evalapp.common.overview import counts_for, sections_for, steps_for
from evalapp.common.pages import page
from evalapp.common.selectors import list_deletions


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    if not request.user.is_authenticated:
        return page(request, "common/home/welcome.html", {"form": SignInForm(request)})
    projects = list(my_projects(request.user)[:200])
    context = {
        "projects": projects,
        "counts": counts_for(request, projects),
        "may_create": may_create_projects(request.user),
        "deletions": list_deletions(request.user),
    }
    return page(request, "common/home/projects.html", context)


def _work_address() -> str:
    try:
        return reverse("annotation:my-work")
    except NoReverseMatch:
        return ""


@login_required
@require_safe
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    """An annotator, who must not see what a project holds, is led to the work."""
    project = get_project(user=request.user, slug=slug, need="member")
    if project.role is not None and project.role not in ROLES_FOR["read"]:
        work = _work_address()
        return redirect(work) if work else page(request, "common/home/annotator.html", {"project": project})
    steps = steps_for(request, project)
    following = next((step for step in steps if not step.done), None)
    context = {
        "project": project,
        "sections": sections_for(request, project),
        "steps": steps,
        "following": following,
        "counts": counts_for(request, [project]),
    }
    return page(request, "common/home/overview.html", context)
