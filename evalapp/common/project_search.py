"""Search in a project: runs, people and the documentation; apps add the rest by `hooks.SEARCHES`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from evalapp.accounts.models import Membership, Project
from evalapp.common.documentation import search_documents
from evalapp.common.errors import BadInput
from evalapp.common.hooks import SEARCHES, Match
from evalapp.common.models import Run
from evalapp.stored_texts import translate_stored

#: Results per kind of object.
LIMIT = 8


def search_project(project: Project, query: str) -> list[tuple[Any, list[Match]]]:
    """Return the matches by kind, in the order of the navigation. Raises `BadInput` for a text that no database can
    contain."""
    query = query.strip()
    if "\0" in query:
        raise BadInput(_("A search text cannot contain a NUL character."))
    if not query:
        return []
    matches = SEARCHES.collect(project=project, query=query, limit=LIMIT) + list(_find_matches(project, query))
    return [(kind, list(group)) for kind, group in groupby(matches, key=lambda match: match.kind)]


def _find_matches(project: Project, query: str) -> Iterator[Match]:
    """Find members of a project by pseudonym and runs by title or number; sections of the documentation come last."""
    members = Membership.objects.filter(project=project, pseudonym__icontains=query).order_by("pseudonym")
    address = reverse("accounts:member-list", args=[project.slug])
    for member in members[:LIMIT]:
        yield Match(_("People"), member.pseudonym, address, member.get_role_display())
    condition = Q(title__icontains=query)
    if query.isdecimal() and len(query) < 10:
        condition |= Q(pk=int(query))
    for run in Run.objects.filter(condition, project=project).order_by("-pk")[:LIMIT]:
        url = reverse("run", args=[project.slug, run.pk])
        yield Match(_("Runs"), f"{run.pk}: {translate_stored(run.title)}", url, run.state_label)
    for hit in search_documents(query, LIMIT):
        title = hit.title if hit.section == hit.title else f"{hit.title} › {hit.section}"
        yield Match(_("Help"), title, hit.url, hit.excerpt)
