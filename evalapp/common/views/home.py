"""The home page (projects, or sign-in) and the overview of a project."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from evalapp.accounts.forms import SignInForm
from evalapp.accounts.models import Project
from evalapp.accounts.roles import ROLES_FOR, Role
from evalapp.accounts.selectors import my_projects
from evalapp.accounts.services import may_create_projects
from evalapp.common.overview import list_counts, list_figures, list_sections, list_steps
from evalapp.common.pages import page, project_page
from evalapp.common.selectors import list_deletions


@login_not_required
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    if not request.user.is_authenticated:
        return page(request, "common/home/welcome.html", {"form": SignInForm(request)})
    projects = list(my_projects(request.user)[:200])
    context = {
        "projects": projects,
        "roles": dict(Role.choices),
        "counts": list_counts(request, projects),
        "may_create": may_create_projects(request.user),
        "deletions": list_deletions(request.user),
    }
    return page(request, "common/home/projects.html", context)


@project_page(GET="member")
def overview(request: HttpRequest, project: Project) -> HttpResponse:
    """Show a project. Annotators, who may not see its data, are redirected to their work."""
    if project.role is not None and project.role not in ROLES_FOR["read"]:
        return redirect("annotation:my-work")
    figures = list_figures(request, project)  # first: later parts need not ask what it has counted
    steps = list_steps(request, project)
    context = {
        "project": project,
        "sections": list_sections(request, project),
        "steps": steps,
        "following": next((step for step in steps if not step.done), None),
        "figures": figures,
    }
    return page(request, "common/home/overview.html", context)
