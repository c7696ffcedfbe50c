"""Which aspect, and which campaign, a leaderboard is about. What people said of it is read in `people`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from django.db.models import Exists

from annotation.models import Aspect, Campaign, Comparison, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere


def choose_aspect(
    project: Project, name: str, *, judged_by: Literal["ratings", "comparisons"], otherwise: str = ""
) -> Aspect:
    """The aspect of that name; without a name the first one that people judged. `otherwise` is added to what is said
    where outputs were not rated but compared."""
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
    text = f"Nobody has made {judged_by} of outputs in {project.slug} yet."
    if otherwise and judged_by == "ratings" and Comparison.objects.filter(project=project).exists():
        raise BadInput(f"{text} {otherwise}")
    raise BadInput(f"{text} Upload some, or open a campaign to have outputs judged.")


def compared_aspects(project: Project) -> list[str]:
    """Names of the aspects for which people compared two outputs, in the project's order."""
    rows = Comparison.objects.filter(output_b__isnull=False)
    return [aspect.name for aspect, ways in list_judged(project, {"pairs": rows}) if ways]


def find_campaign(project: Project, slug: str) -> Campaign | None:
    """None without a slug."""
    if not slug:
        return None
    found = Campaign.objects.filter(project=project, slug=slug).first()
    if found is None:
        there = ", ".join(Campaign.objects.filter(project=project).values_list("slug", flat=True)[:20]) or "none yet"
        raise NotThere(f"There is no campaign “{slug}” in {project.slug}. There are: {there}.")
    return found


def list_judged(project: Project, ways: Mapping[str, Any]) -> list[tuple[Aspect, frozenset[str]]]:
    """Every aspect in the project's order, with those of `ways` (name -> rows with an aspect) that have a row for it.

    Two questions. Each aspect is named: referred to from the list of aspects, PostgreSQL goes through the judgements of
    all projects for an aspect that nobody has judged.
    """
    aspects = list(Aspect.objects.filter(project=project))
    if not aspects:
        return []
    asked = {
        f"{way}_{aspect.pk}": Exists(rows.filter(aspect=aspect)) for aspect in aspects for way, rows in ways.items()
    }
    found = Project.objects.filter(pk=project.pk).annotate(**asked).values(*asked).get()
    return [(aspect, frozenset(way for way in ways if found[f"{way}_{aspect.pk}"])) for aspect in aspects]
