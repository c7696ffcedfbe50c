"""Reads reports for people who do not sign in, and what a new one contains besides tables."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import (
    Campaign,
    CampaignMember,
    Comparison,
    Item,
    Output,
    Rating,
    Reference,
    System,
)
from evalapp.accounts.authentication import digest
from evalapp.accounts.models import Project
from evalapp.common.errors import NotThere

from ..models import SharedReport

#: Items with texts, outputs of each, and characters of a text.
EXAMPLES, EXAMPLE_OUTPUTS, EXAMPLE_LENGTH = 3, 4, 600
#: One sentence for all links that do not work, so that it does not say which existed.
GONE = gettext_lazy(
    "This report is no longer shared, or the link is incomplete. Ask the person who sent you the link for a new one."
)


def list_reports(project: Project) -> QuerySet[SharedReport]:
    """Return the reports, newest first, without contents."""
    rows = SharedReport.objects.filter(project=project).select_related("created_by")
    return rows.defer("content").order_by("-pk")


def get_report(project: Project, pk: int) -> SharedReport:
    row = SharedReport.objects.filter(project=project, pk=pk).select_related("created_by", "project").first()
    if row is None:
        raise NotThere(_("This project has no such report."))
    return row


def find_shared(secret: str) -> SharedReport:
    """Return the report of a link. Raises `NotThere`, always with the same sentence, if it is revoked, expired or
    unknown, or if its project is being deleted."""
    rows = SharedReport.objects.filter(digest=digest(secret), revoked_at=None, expires_at__gt=timezone.now())
    row = rows.filter(project__deleting_at=None).first()
    if row is None:
        raise NotThere(str(GONE))
    return row


def count_data(project: Project) -> dict[str, Any]:
    """Return the counts of a report. It reads every judgement, which takes seconds for millions."""
    from annotation.exporters.facts import count_persons  # imports numpy

    simulated, here = Count("pk", filter=Q(simulated=True)), Count("pk", filter=Q(judgement__isnull=False))
    judged = {
        model: model.objects.filter(project=project).order_by().aggregate(n=Count("pk"), simulated=simulated, here=here)
        for model in (Rating, Comparison)
    }
    raters = {
        rater
        for model in judged
        for rater in model.objects.filter(project=project).order_by().values_list("rater", flat=True).distinct()
    }
    kinds = System.objects.filter(project=project).order_by().values_list("kind").annotate(n=Count("pk"))
    campaigns = Campaign.objects.filter(project=project, members__done__gt=0).distinct()
    annotators = CampaignMember.objects.filter(campaign__project=project, done__gt=0)
    return {
        "items": Item.objects.filter(project=project).count(),
        "systems": dict(kinds),
        "outputs": Output.objects.filter(project=project).count(),
        "references": Reference.objects.filter(set__project=project).count(),
        "ratings": judged[Rating]["n"],
        "comparisons": judged[Comparison]["n"],
        "raters": count_persons(raters),
        "simulated": sum(counted["simulated"] for counted in judged.values()),
        "judged_here": sum(counted["here"] for counted in judged.values()),
        "campaigns": campaigns.count(),
        "annotators": annotators.values("annotator").distinct().count(),
    }


def read_examples(project: Project) -> list[dict[str, Any]]:
    """Return the first judged items with outputs of systems. References and notes, which annotators may have written,
    are left out."""
    items = list(Item.objects.filter(project=project, judged=True).order_by("order_key")[:EXAMPLES])
    outputs = Output.objects.filter(item__in=items).exclude(system__kind=System.Kind.CONTROL)
    rows = outputs.select_related("system").order_by("system__order_key", F("step").desc(nulls_last=True))
    by_item: dict[int, dict[str, str]] = {}
    for row in rows:
        # The last checkpoint of each system.
        shown = by_item.setdefault(row.item_id, {})
        if len(shown) < EXAMPLE_OUTPUTS:
            shown.setdefault(row.system.name, _shorten(row.text))
    return [
        {
            "context": [_shorten(text) for text in [*item.context, *([item.source] if item.source else [])]],
            "outputs": [{"system": name, "text": text} for name, text in by_item.get(item.pk, {}).items()],
        }
        for item in items
    ]


def _shorten(text: Any) -> str:
    words = str(text)
    return words if len(words) <= EXAMPLE_LENGTH else words[:EXAMPLE_LENGTH].rstrip() + "…"
