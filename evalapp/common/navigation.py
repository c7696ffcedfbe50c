"""Navigation of a project in groups. Apps are known only by the names of their URLs; an entry is shown if its URL
exists and the user's role may open it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.db import DatabaseError
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _

from evalapp.accounts.models import Membership, Project
from evalapp.accounts.roles import ROLES_FOR, Need
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import EvalappError

_ADDRESS = re.compile(r"/projects/(?P<slug>[-a-zA-Z0-9_]+)/")


class Place(NamedTuple):
    """An entry of the navigation. `also` are further paths below the project's that belong to it."""

    label: Any
    name: str
    need: Need = "read"
    also: tuple[str, ...] = ()


#: A group leads to the first of its places that the user may open.
GROUPS: tuple[tuple[Any, tuple[Place, ...]], ...] = (
    (_("Overview"), (Place(_("Overview"), "project", "member"),)),
    (
        _("Data"),
        (
            Place(_("Items"), "annotation:item-list"),
            Place(_("Systems and their kinds"), "annotation:system-list"),
            Place(_("Reference sets"), "scoring:reference-sets"),
            Place(_("Corpora"), "retrieval:corpus-list"),
            Place(_("Uploads"), "annotation:upload-list", "write"),
        ),
    ),
    (
        _("Collect"),
        (
            Place(_("Campaigns"), "annotation:campaign-list", also=("writing/",)),
            Place(_("People"), "accounts:member-list"),
        ),
    ),
    (
        _("Metrics"),
        (
            Place(_("Evaluators"), "scoring:evaluator-list", also=("judges/",)),
            Place(_("Robustness"), "scoring:robustness"),
            Place(_("Studies"), "scoring:study-list"),
            Place(_("Runs"), "run-list"),
        ),
    ),
    (
        _("Results"),
        (
            Place(_("Systems"), "scoring:systems"),
            Place(_("Metrics vs. humans"), "scoring:evaluation", also=("references/enhanced/",)),
            Place(_("Agreement"), "scoring:agreement"),
            Place(_("Checkpoints"), "scoring:steps"),
            Place(_("Snapshots"), "scoring:snapshots"),
            Place(_("Reports"), "scoring:report-list"),
        ),
    ),
    (_("Export"), (Place(_("Exports"), "annotation:export-list"),)),
    (
        _("Settings"),
        (
            Place(_("Settings"), "accounts:project-settings", "manage"),
            Place(_("Webhooks"), "events:webhook-list", "manage"),
        ),
    ),
)


@dataclass(frozen=True)
class Entry:
    label: Any
    url: str
    is_current: bool = False


@dataclass(frozen=True)
class Group(Entry):
    places: tuple[Entry, ...] = ()


def find_role(request: HttpRequest, project: Project) -> str | None:
    """Return the user's role, as found by `get_project` or from the membership; None without one."""
    if not hasattr(project, "role"):
        project.role = (
            Membership.objects.filter(project=project, user=request.user).values_list("role", flat=True).first()
        )
    return project.role


def find_addressed_project(request: HttpRequest) -> Project | None:
    """Return the project in the request's address, so that error pages keep its navigation; None if there is none that
    the user is a member of."""
    address = _ADDRESS.match(request.path_info)  # not the resolver's match, which wrong addresses do not have
    if address is None or not hasattr(request, "user"):
        return None
    try:
        return get_project(user=request.user, slug=address["slug"], need="member")
    except (EvalappError, DatabaseError):
        return None


def list_groups(request: HttpRequest | None, project: Project) -> list[Group]:
    """Return the groups with the entries that the user may open. The entry with the longest address that the request's
    path begins with is the current one, and so is its group."""
    user = getattr(request, "user", None)
    if request is None or user is None or not user.is_authenticated:
        return []
    role = find_role(request, project)
    home = reverse("project", args=[project.slug])
    listed: list[tuple[Any, list[Entry]]] = []
    best, current = 0, None
    for label, places in GROUPS:
        entries = []
        for place in places:
            if not user.is_superuser and role not in ROLES_FOR[place.need]:
                continue
            try:
                url = reverse(place.name, args=[project.slug])
            except NoReverseMatch:
                continue
            entry = Entry(place.label, url)
            entries.append(entry)
            for path in (url, *(home + other for other in place.also)):
                # Everything is below the overview, so only its own address counts.
                if (request.path == path if url == home else request.path.startswith(path)) and len(path) > best:
                    best, current = len(path), entry
        if entries:
            listed.append((label, entries))
    return [
        Group(
            label,
            entries[0].url,
            current in entries,
            tuple(replace(entry, is_current=entry is current) for entry in entries),
        )
        for label, entries in listed
    ]


def find_parent(request: HttpRequest | None, groups: Iterable[Group]) -> Entry | None:
    """Return the current entry of `groups` if the page is below it; None on the page of the entry itself."""
    current = next((place for group in groups for place in group.places if place.is_current), None)
    return current if current is not None and request is not None and request.path != current.url else None
