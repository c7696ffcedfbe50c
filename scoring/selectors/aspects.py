"""Which aspect a leaderboard is about. What people said of it is read in `people`."""

from __future__ import annotations

from typing import Any, Literal

from annotation.models import Aspect, Comparison, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere


def choose_aspect(project: Project, name: str, *, judged_by: Literal["ratings", "comparisons"]) -> Aspect:
    """The aspect of that name; without a name the first one that people judged."""
    aspects = list(Aspect.objects.filter(project=project))
    if name:
        for aspect in aspects:
            if aspect.name == name:
                return aspect
        known = ", ".join(aspect.name for aspect in aspects)
        raise NotThere(f"There is no aspect “{name}” in {project.slug}. There are: {known or 'none yet'}.")
    rows: Any = Rating.objects if judged_by == "ratings" else Comparison.objects
    for aspect in aspects:
        found = rows.filter(aspect=aspect)
        if judged_by == "ratings":
            found = found.filter(output__isnull=False)
        if found.exists():
            return aspect
    raise BadInput(
        f"Nobody has made {judged_by} of outputs in {project.slug} yet. "
        "Upload some, or open a campaign to have outputs judged."
    )
