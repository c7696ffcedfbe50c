"""Data on the overview page of a project: counts, and the first step."""

from typing import Any

from django.core.cache import cache
from django.db.models import Count, Value
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.models import Comparison, Item, Output, Rating, Reference
from annotation.selectors.presence import has_items, has_outputs, remember_counts
from evalapp.accounts.models import Membership, Project
from evalapp.accounts.selectors import can
from evalapp.common.overview import Step

LABELS = {
    "items": gettext_noop("Items"),
    "outputs": gettext_noop("Outputs"),
    "references": gettext_noop("References"),
    "ratings": gettext_noop("Ratings"),
    "comparisons": gettext_noop("Comparisons"),
    "people": gettext_noop("People"),
}
#: A project with more rows than this is counted again after this many seconds, not on each view.
COUNTED_ANEW, SECONDS = 200_000, 300


def count_data(_request: HttpRequest, project: Project) -> list[tuple[Any, int]]:
    """Return what a project has, in one query. Counts of a large project may be some minutes old, because counting
    millions of judgements takes longer than the rest of the page."""
    key = f"counts:{project.pk}"
    counts: dict[str, int] | None = cache.get(key)
    if counts is None:
        parts = [
            rows.order_by().annotate(what=Value(name)).values("what").annotate(n=Count("pk")).values_list("what", "n")
            for name, rows in {
                "items": Item.objects.filter(project=project),
                "outputs": Output.objects.filter(project=project),
                "references": Reference.objects.filter(set__project=project),
                "ratings": Rating.objects.filter(project=project),
                "comparisons": Comparison.objects.filter(project=project),
                "people": Membership.objects.filter(project=project),
            }.items()
        ]
        counts = dict(parts[0].union(*parts[1:], all=True))
        if sum(counts.values()) > COUNTED_ANEW:
            cache.set(key, counts, SECONDS)
    counts = {name: counts.get(name, 0) for name in LABELS}
    remember_counts(project, counts)
    return [(_(label), counts[name]) for name, label in LABELS.items()]


def count_items(_request: HttpRequest, projects: list[Project]) -> dict[int, int]:
    return _counts(Item, projects)


def count_outputs(_request: HttpRequest, projects: list[Project]) -> dict[int, int]:
    return _counts(Output, projects)


def _counts(model: type[Item] | type[Output], projects: list[Project]) -> dict[int, int]:
    rows = model.objects.filter(project__in=[project.pk for project in projects]).order_by()
    return dict(rows.values_list("project_id").annotate(n=Count("pk")))


def make_data_step(request: HttpRequest, project: Project) -> Step | None:
    if not can(user=request.user, project=project, need="write"):
        return None
    if has_outputs(project):
        return Step(
            _("Data uploaded"), _("Items and outputs."),
            reverse("annotation:item-list", args=[project.slug]), _("View items"), done=True,
        )  # fmt: skip
    text = (
        _("Items are uploaded. Next: upload the systems' outputs (outputs.jsonl or outputs.csv).")
        if has_items(project)
        else _(
            "Items with references, and the outputs of systems: any table (.xlsx, .csv, JSON, JSONL, Parquet), text "
            "files with a line per item, or files of the interchange format."
        )
    )
    return Step(_("Upload data"), text, reverse("annotation:upload-list", args=[project.slug]), _("Upload"))
