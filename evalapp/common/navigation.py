"""The places of a project, in the order of the loop. Rooms are known by the names of their addresses only; a
place shows as soon as its address exists and the reader's role may open it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from evalapp.accounts.models import Membership, Project
from evalapp.accounts.roles import ROLES_FOR, Need

PLACES: tuple[tuple[str, str, Need], ...] = (
    ("Overview", "project", "member"),
    ("Items", "annotation:item-list", "read"),
    ("Uploads", "annotation:upload-list", "write"),
    ("Campaigns", "annotation:campaign-list", "read"),
    ("Corpora", "retrieval:corpus-list", "read"),
    ("References", "scoring:reference-sets", "read"),
    ("Evaluators", "scoring:evaluator-list", "read"),
    ("Systems", "scoring:systems", "read"),
    ("Evaluation", "scoring:evaluation", "read"),
    ("Agreement", "scoring:agreement", "read"),
    ("Exports", "annotation:export-list", "read"),
    ("Runs", "run-list", "read"),
    ("People", "accounts:member-list", "read"),
    ("Settings", "accounts:project-settings", "manage"),
)

#: What stands under a place although its address begins otherwise: below the project's.
ALSO = {"annotation:campaign-list": "writing/"}


def role_of(request: HttpRequest, project: Project) -> str | None:
    """The role `get_project` found, or a look at the membership where the page came another way."""
    if not hasattr(project, "role"):
        project.role = (
            Membership.objects.filter(project=project, user=request.user).values_list("role", flat=True).first()
        )
    return project.role


def places_of(request: HttpRequest | None, project: Project) -> list[dict[str, Any]]:
    user = getattr(request, "user", None)
    if request is None or user is None or not user.is_authenticated:
        return []
    role = role_of(request, project)
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
