"""The same evaluators measured against several reference sets, side by side: correlation with people by set, and
whether the differences are more than chance. One set alone is in `meta_evaluation`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from annotation.models import ReferenceSet
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault
from scoring.boards.choices import MOST_SETS
from scoring.boards.references.query import EnhancedQuery

from ..models import ScoreSet
from .reference_sets import SetRow, list_sets


def scored_sets(project: Project) -> list[str]:
    """Names of the sets that scores were made with: `original` first, then in the order in which they were made."""
    names = set(
        ScoreSet.objects.filter(project=project, scored_at__isnull=False).exclude(references="")
        .values_list("references", flat=True)
    )  # fmt: skip
    rows = ReferenceSet.objects.filter(project=project, name__in=names).order_by("pk").values_list("name", flat=True)
    return [*([ORIGINAL] if ORIGINAL in names else []), *(name for name in rows if name != ORIGINAL)]


def chosen_sets(project: Project, query: EnhancedQuery) -> list[str]:
    """The sets a query names, or the first that were scored. Raises `BadInput` for one that is not there."""
    if not query.references:
        return scored_sets(project)[:MOST_SETS]
    names = list(dict.fromkeys(name for name in query.references.split(",") if name))
    there = {ORIGINAL, *ReferenceSet.objects.filter(project=project).values_list("name", flat=True)}
    missing = [name for name in names if name not in there]
    if missing:
        text = f"There is no reference set “{missing[0]}” in {project.slug}. There are: {', '.join(sorted(there))}."
        raise BadInput(text, faults=[Fault(text, field="references")])
    if not 2 <= len(names) <= MOST_SETS:
        text = f"Name 2 to {MOST_SETS} reference sets to be compared."
        raise BadInput(text, faults=[Fault(text, field="references")])
    return names


def newest_sets(
    project: Project, names: Sequence[str], aspect: str, *, evaluators: Collection[str] = ()
) -> dict[tuple[str, str], dict[str, ScoreSet]]:
    """(evaluator, aspect) -> the newest complete set of scores with each of these reference sets; of all evaluators or
    of these (slugs)."""
    rows = ScoreSet.objects.filter(
        project=project, references__in=names, aspect__in=["", aspect], scored_at__isnull=False
    ).select_related("evaluator")
    if evaluators:
        rows = rows.filter(evaluator__slug__in=evaluators)
    found: dict[tuple[str, str], dict[str, ScoreSet]] = {}
    for row in rows.order_by("evaluator__slug", "aspect", "-scored_at", "-pk"):
        found.setdefault((row.evaluator.slug, row.aspect), {}).setdefault(row.references, row)
    return found


def describe_sets(project: Project, names: Sequence[str]) -> list[dict[str, Any]]:
    """What the board tells of each of these sets."""
    described = {row.name: row for row in list_sets(project)}
    return [_describe(described[name]) for name in names if name in described]


def _describe(row: SetRow) -> dict[str, Any]:
    return {
        "name": row.name, "kind": row.kind, "origin": row.origin, "metrics": row.meta.get("metrics", []),
        "n_references": row.n_references, "n_items": row.n_items, "per_item": row.per_item,
        "holds_judged_outputs": bool(row.meta.get("holds_judged_outputs")),
    }  # fmt: skip
