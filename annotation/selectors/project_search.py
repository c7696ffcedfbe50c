"""Data and campaigns that the search in a project finds."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import CharField, F, Value
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from annotation.models import Campaign, System, WritingCampaign
from evalapp.accounts.models import Project
from evalapp.common.hooks import Match
from evalapp.names import natural_key

from .items import ItemFilter, find_items
from .search import get_item_page


def find_matches(*, project: Project, query: str, limit: int) -> Iterator[Match]:
    """Find items by id, context and output, then systems and campaigns by name."""
    items = {
        item.pk: item for item in find_items(project, ItemFilter(q=query, scope="id")).order_by("order_key")[:limit]
    }
    for scope in ("context", "output"):
        if len(items) < limit:
            page = get_item_page(project, ItemFilter(q=query, scope=scope), size=limit)
            items |= {item.pk: item for item in page.rows}
    for item in list(items.values())[:limit]:
        detail = (item.context[-1] if item.context else item.source or "")[:200]
        yield Match(_("Items"), item.key, reverse("annotation:item-show", args=[project.slug, item.pk]), detail)
    yield from _find_named(project, query, limit)


def _find_named(project: Project, query: str, limit: int) -> Iterator[Match]:
    """Systems and campaigns, in a single query: a project has few of both."""
    columns = ("what", "pk", "name", "status")
    systems, judging, writing = (
        model.objects.filter(project=project, name__icontains=query)
        .annotate(what=Value(what, CharField()), status=status)
        .order_by()
        .values_list(*columns)
        for model, what, status in (
            (System, "system", Value("", CharField())),
            (Campaign, "campaign", F("state")),
            (WritingCampaign, "writing", F("state")),
        )
    )
    rows = sorted(systems.union(judging, writing, all=True), key=lambda row: (row[0] != "system", natural_key(row[2])))
    items = reverse("annotation:item-list", args=[project.slug])
    for name in [row[2] for row in rows if row[0] == "system"][:limit]:
        yield Match(_("Systems"), name, items + "?" + urlencode({"system": name}))
    for what, pk, name, state in [row for row in rows if row[0] != "system"][:limit]:
        url = reverse(f"annotation:{what}", args=[project.slug, pk])
        yield Match(_("Campaigns"), name, url, Campaign.State(state).label)
