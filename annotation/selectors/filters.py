"""Reads rater filters."""

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotation.models import Comparison, RaterFilter, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import Conflict, NotThere


def list_filters(project: Project, *, active_only: bool = False) -> QuerySet[RaterFilter]:
    rows = RaterFilter.objects.filter(project=project).select_related("created_by", "withdrawn_by")
    return rows.filter(withdrawn_at=None) if active_only else rows


def get_filter(project: Project, name: str) -> RaterFilter:
    """The filter with this name, withdrawn or not."""
    row = RaterFilter.objects.filter(project=project, name=name).first()
    if row is None:
        known = ", ".join(list_filters(project, active_only=True).values_list("name", flat=True))
        message = _("There is no filter “%(name)s” in %(project)s. Existing filters: %(known)s.")
        raise NotThere(message % {"name": name, "project": project.slug, "known": known or _("none")})
    return row


def get_active_filter(project: Project, name: str) -> RaterFilter:
    """A filter that tables can use; a withdrawn one is rejected with advice."""
    row = get_filter(project, name)
    if not row.is_active:
        message = _(
            "The filter “%(name)s” was withdrawn on %(date)s. Restore it on the agreement page, or do not use it."
        )
        raise Conflict(message % {"name": name, "date": f"{row.withdrawn_at:%Y-%m-%d}"})
    return row


def make_filter_signature(row: RaterFilter | None) -> str:
    """The part of a signature for a filter: its name and a digest of its raters; empty without a filter."""
    return "" if row is None else f"|filter:{row.name}@{row.digest}"


def list_rater_keys(project: Project) -> list[str]:
    """All raters of ratings and comparisons in the project, sorted."""
    from evalapp.stats.agreement.judged import resolve_raters

    rated = Rating.objects.filter(project=project).order_by().values_list("rater", flat=True).distinct()
    compared = Comparison.objects.filter(project=project).order_by().values_list("rater", flat=True).distinct()
    keys = {*rated, *compared}
    return sorted({*keys, *resolve_raters(keys)[0].values()})
