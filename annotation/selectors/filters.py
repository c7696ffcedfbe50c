"""Reads rater filters."""

from __future__ import annotations

from django.db.models import QuerySet

from annotation.models import Comparison, RaterFilter, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import Conflict, NotThere


def list_filters(project: Project, *, active_only: bool = False) -> QuerySet[RaterFilter]:
    rows = RaterFilter.objects.filter(project=project).select_related("created_by", "withdrawn_by")
    return rows.filter(withdrawn_at=None) if active_only else rows


def get_filter(project: Project, name: str) -> RaterFilter:
    """The filter with this name, withdrawn or not."""
    found = RaterFilter.objects.filter(project=project, name=name).first()
    if found is None:
        known = ", ".join(list_filters(project, active_only=True).values_list("name", flat=True))
        raise NotThere(f"There is no filter “{name}” in {project.slug}. There are: {known or 'none yet'}.")
    return found


def get_active_filter(project: Project, name: str) -> RaterFilter:
    """A filter that tables can use; a withdrawn one is rejected with advice."""
    found = get_filter(project, name)
    if not found.is_active:
        raise Conflict(
            f"The filter “{name}” was withdrawn on {found.withdrawn_at:%Y-%m-%d}. Take it up again on the agreement "
            "page, or leave it out."
        )
    return found


def filter_signature(found: RaterFilter | None) -> str:
    """The part of a signature for a filter: its name and a digest of its raters; empty without a filter."""
    return "" if found is None else f"|filter:{found.name}@{found.digest}"


def rater_keys(project: Project) -> list[str]:
    """All raters of ratings and comparisons in the project, sorted."""
    from evalapp.stats.agreement.judged import resolve_raters

    rated = Rating.objects.filter(project=project).order_by().values_list("rater", flat=True).distinct()
    compared = Comparison.objects.filter(project=project).order_by().values_list("rater", flat=True).distinct()
    keys = {*rated, *compared}
    return sorted({*keys, *resolve_raters(keys)[0].values()})
