"""Evaluators, reference sets and snapshots that the search in a project finds."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from annotation.models import ReferenceSet
from evalapp.accounts.models import Project
from evalapp.common.hooks import Match

from ..models import Evaluator, Snapshot
from .catalogue import entries


def find_matches(*, project: Project, query: str, limit: int) -> Iterator[Match]:
    """Find evaluators by name, those of the catalogue also by summary; reference sets and snapshots by name."""
    own = Evaluator.objects.filter(project=project).filter(Q(slug__icontains=query) | Q(name__icontains=query))
    named = {row.slug: str(row.get_kind_display()) for row in own.order_by("slug")[:limit]}
    word = query.lower()
    named |= {
        entry.name: entry.summary
        for entry in entries()
        if entry.name not in named and (word in entry.name or word in entry.summary.lower())
    }
    for name, detail in list(named.items())[:limit]:
        yield Match(_("Evaluators"), name, reverse("scoring:evaluator", args=[project.slug, name]), detail)
    for row in ReferenceSet.objects.filter(project=project, name__icontains=query).order_by("name")[:limit]:
        yield Match(_("Reference sets"), row.name, reverse("scoring:reference-set", args=[project.slug, row.name]))
    titled = Q(title__icontains=query) | Q(slug__icontains=query)
    for snapshot in Snapshot.objects.filter(titled, project=project).order_by("-pk")[:limit]:
        url = reverse("scoring:snapshot", args=[project.slug, snapshot.slug])
        yield Match(_("Snapshots"), snapshot.title, url)
