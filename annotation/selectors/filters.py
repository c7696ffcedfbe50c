"""Reading named exclusions of raters."""

from __future__ import annotations

from django.db.models import QuerySet

from annotation.models import Comparison, RaterFilter, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import Conflict, NotThere


def list_filters(project: Project, *, active_only: bool = False) -> QuerySet[RaterFilter]:
    rows = RaterFilter.objects.filter(project=project).select_related("created_by", "withdrawn_by")
    return rows.filter(withdrawn_at=None) if active_only else rows


def get_filter(project: Project, name: str) -> RaterFilter:
    """The filter of that name, withdrawn or not."""
    found = RaterFilter.objects.filter(project=project, name=name).first()
    if found is None:
        known = ", ".join(list_filters(project, active_only=True).values_list("name", flat=True))
        raise NotThere(f"There is no filter “{name}” in {project.slug}. There are: {known or 'none yet'}.")
    return found


def get_active_filter(project: Project, name: str) -> RaterFilter:
    """What a table may be computed with: a withdrawn filter is refused with the way out."""
    found = get_filter(project, name)
    if not found.is_active:
        raise Conflict(
            f"The filter “{name}” was withdrawn on {found.withdrawn_at:%Y-%m-%d}. Take it up again on the agreement "
            "page, or leave it out."
        )
    return found


def filter_signature(found: RaterFilter | None) -> str:
    """What a signature says of a filter: its name and a digest of its raters; nothing where there is none."""
    return "" if found is None else f"|filter:{found.name}@{found.digest}"


def rater_keys(project: Project) -> list[str]:
    """Everybody who rated or compared in the project, sorted: keys of judgements, and the people behind them."""
    from evalapp.stats.agreement.judged import people_of

    rated = Rating.objects.filter(project=project).order_by().values_list("rater", flat=True).distinct()
    compared = Comparison.objects.filter(project=project).order_by().values_list("rater", flat=True).distinct()
    keys = {*rated, *compared}
    return sorted({*keys, *people_of(keys)[0].values()})
