"""What the ground itself puts on the overview of a project: the latest runs, and the people."""

from __future__ import annotations

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse

from evalapp.accounts.models import Membership, Project
from evalapp.accounts.roles import ROLES_FOR, Role
from evalapp.common.navigation import find_role
from evalapp.common.overview import Step
from evalapp.common.selectors import list_runs

LATEST = 5


def render_runs(request: HttpRequest, project: Project) -> str | None:
    runs = list(list_runs(project).order_by("-pk")[:LATEST])
    if not runs:
        return None
    return render_to_string("common/overview/runs.html", {"project": project, "runs": runs}, request)


def make_people_step(request: HttpRequest, project: Project) -> Step | None:
    """Owners invite; nobody else is asked to."""
    if not request.user.is_superuser and find_role(request, project) not in ROLES_FOR["manage"]:
        return None
    judges = Membership.objects.filter(project=project, role=Role.ANNOTATOR).count()
    words = f"{judges} annotator{'' if judges == 1 else 's'} so far." if judges else "People join by a link you send."
    url = reverse("accounts:invitation-create", args=[project.slug])
    return Step("Invite annotators", words, url, "Invite", done=judges > 0)
