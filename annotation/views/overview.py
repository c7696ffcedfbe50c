"""Data on the overview page of a project: counts, and the first step."""

from django.db.models import Count
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from annotation.models import Item, Output
from annotation.selectors.presence import has_outputs
from evalapp.accounts.models import Project
from evalapp.common.overview import Step


def count_items(_request: HttpRequest, projects: list[Project]) -> dict[int, int]:
    return _counts(Item, projects)


def count_outputs(_request: HttpRequest, projects: list[Project]) -> dict[int, int]:
    return _counts(Output, projects)


def _counts(model: type[Item] | type[Output], projects: list[Project]) -> dict[int, int]:
    rows = model.objects.filter(project__in=[project.pk for project in projects]).order_by()
    return dict(rows.values_list("project_id").annotate(n=Count("pk")))


def make_data_step(_request: HttpRequest, project: Project) -> Step:
    if has_outputs(project):
        return Step(
            _("Data uploaded"), _("Items and outputs."),
            reverse("annotation:item-list", args=[project.slug]), _("View items"), done=True,
        )  # fmt: skip
    items = Item.objects.filter(project=project).exists()
    text = (
        _("Items are uploaded. Next: upload the systems' outputs (outputs.jsonl or outputs.csv).")
        if items
        else _("Items with references, and the outputs of systems: JSONL, CSV or TSV.")
    )
    return Step(_("Upload data"), text, reverse("annotation:upload-list", args=[project.slug]), _("Upload"))
