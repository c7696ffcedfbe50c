"""Navigation of a project. Apps are known only by the names of their URLs; an entry is shown if its URL exists and the
user's role may open it."""

from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _

from evalapp.accounts.models import Membership, Project
from evalapp.accounts.roles import ROLES_FOR, Need

PLACES: tuple[tuple[Any, str, Need], ...] = (
    (_("Overview"), "project", "member"),
    (_("Items"), "annotation:item-list", "read"),
    (_("Uploads"), "annotation:upload-list", "write"),
    (_("Campaigns"), "annotation:campaign-list", "read"),
    (_("Corpora"), "retrieval:corpus-list", "read"),
    (_("References"), "scoring:reference-sets", "read"),
    (_("Evaluators"), "scoring:evaluator-list", "read"),
    (_("Systems"), "scoring:systems", "read"),
    (_("Evaluation"), "scoring:evaluation", "read"),
    (_("Agreement"), "scoring:agreement", "read"),
    (_("Exports"), "annotation:export-list", "read"),
    (_("Runs"), "run-list", "read"),
    (_("People"), "accounts:member-list", "read"),
    (_("Settings"), "accounts:project-settings", "manage"),
)

#: Other paths, below the project's, that belong to an entry.
ALSO = {"annotation:campaign-list": "writing/"}


def find_role(request: HttpRequest, project: Project) -> str | None:
    """Return the user's role, as found by `get_project` or from the membership; None without one."""
    if not hasattr(project, "role"):
        project.role = (
            Membership.objects.filter(project=project, user=request.user).values_list("role", flat=True).first()
        )
    return project.role


def list_places(request: HttpRequest | None, project: Project) -> list[dict[str, Any]]:
    """Return the navigation entries that the user may open, each with label, URL and whether it is the current one."""
    user = getattr(request, "user", None)
    if request is None or user is None or not user.is_authenticated:
        return []
    role = find_role(request, project)
    places = []
    for label, name, need in PLACES:
        if not user.is_superuser and role not in ROLES_FOR[need]:
            continue
        try:
            url = reverse(name, args=[project.slug])
        except NoReverseMatch:
            continue
        current = request.path == url if name == "project" else request.path.startswith(url)
        if name in ALSO:
            current = current or request.path.startswith(reverse("project", args=[project.slug]) + ALSO[name])
        places.append({"label": label, "url": url, "current": current})
    return places
