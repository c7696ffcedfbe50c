"""What a project holds, in figures and in small tables: counts, systems, aspects."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, IntegerField, OuterRef, Subquery
from django.db.models.functions import Coalesce

from annotation.models import (
    Comparison,
    CorpusPair,
    Dialogue,
    Item,
    Output,
    Rating,
    System,
)

_COUNTED: dict[str, Any] = {
    "items": Item,
    "outputs": Output,
    "ratings": Rating,
    "comparisons": Comparison,
    "dialogues": Dialogue,
    "corpus": CorpusPair,
}


def table_counts(project: Any) -> dict[str, int]:
    """Rows of each table of the format; systems count those that have rows or a declaration."""
    counts = {"systems": System.objects.filter(project=project).count()}
    return counts | {name: model.objects.filter(project=project).count() for name, model in _COUNTED.items()}


def count_rows(project: Any) -> int:
    return sum(table_counts(project).values())


def list_systems(project: Any) -> list[System]:
    """Systems with `output_count`, in natural order of their names (`m2` before `m10`). Counted for each system in the
    index of its outputs: that counts half a million without reading their texts, as joining and grouping would."""
    counted = Output.objects.filter(system=OuterRef("pk")).order_by().values("system").annotate(n=Count("*"))
    count = Coalesce(Subquery(counted.values("n"), output_field=IntegerField()), 0)
    systems = System.objects.filter(project=project).annotate(output_count=count)
    return list(systems.order_by("order_key"))


def system_names(project: Any) -> list[str]:
    """In natural order."""
    return list(System.objects.filter(project=project).order_by("order_key").values_list("name", flat=True))
