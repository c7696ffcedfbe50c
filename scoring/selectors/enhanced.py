"""The same evaluators measured against several reference sets, side by side: correlation with people by set, and
whether the differences are more than chance. One set alone is in `meta_evaluation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from annotation.models import ReferenceSet
from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, Fault

from ..models import ScoreSet
from .leaderboards import COEFFICIENTS, MOST_SETS, EnhancedQuery
from .meta_evaluation import load_people, load_scores, outside_training
from .reference_sets import SetRow, list_sets

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOT_SCORED = "not scored with this set"


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


def newest_sets(project: Project, names: Sequence[str], aspect: str) -> dict[tuple[str, str], dict[str, ScoreSet]]:
    """(evaluator, aspect) -> the newest complete set of scores with each of these reference sets."""
    rows = ScoreSet.objects.filter(
        project=project, references__in=names, aspect__in=["", aspect], scored_at__isnull=False
    ).select_related("evaluator")
    found: dict[tuple[str, str], dict[str, ScoreSet]] = {}
    for row in rows.order_by("evaluator__slug", "aspect", "-scored_at", "-pk"):
        found.setdefault((row.evaluator.slug, row.aspect), {}).setdefault(row.references, row)
    return found


def rank_by_references(project: Project, query: EnhancedQuery) -> dict[str, Any]:
    """The table as plain values: one row per evaluator, one cell per set, differences between all pairs of sets.

    An evaluator's cells are over the rated outputs that it scored with every one of the sets, so that they differ in
    nothing but the references.
    """
    from evalapp.stats import correlate, holm

    aspect, people = load_people(project, query)  # type: ignore[arg-type]
    names = chosen_sets(project, query)
    by_evaluator = newest_sets(project, names, aspect.name)
    every = [score_set for cells in by_evaluator.values() for score_set in cells.values()]
    common = outside_training(every, people)
    compared = people if common.all() else people.only(common)
    settings: dict[str, Any] = {"level": query.level, "grouping": query.grouping, "cluster": compared.cluster}
    rows = []
    for (slug, _), of_sets in sorted(by_evaluator.items()):
        columns = {name: _column(of_sets[name], aspect, compared, query) for name in names if name in of_sets}
        usable = np.all([np.isfinite(column) for column in columns.values()], axis=0)
        cells = {}
        for name in names:
            if name not in columns:
                cells[name] = _absent()
                continue
            metric = np.where(usable, columns[name], np.nan)
            found = correlate(metric, compared.mean, compared.item, compared.system, **settings)
            cells[name] = {
                **{c: found[c].as_dict() for c in COEFFICIENTS},  # type: ignore[index]
                "n": found.n_pairs,
                "signature": of_sets[name].full_signature,
                "note": "",
            }
        rows.append(
            {
                "evaluator": slug,
                "name": of_sets[next(iter(of_sets))].evaluator.name,
                "cells": cells,
                "differences": _differences(columns, usable, compared, settings),
                "n": int((usable & np.isfinite(compared.mean)).sum()),
            }
        )
    first = names[0] if names else ""
    tests = [d for row in rows for d in row["differences"] if d["b"] == first]
    for found_p, difference in zip(holm([d["p"] for d in tests]), tests, strict=True):
        difference["p_holm"] = found_p
    described = {row.name: row for row in list_sets(project)}
    return {
        "kind": "enhanced",
        "aspect": aspect.name,
        "level": query.level,
        "grouping": query.grouping,
        "systems": query.systems,
        "ratings": query.ratings,
        "sets": [_describe(described[name]) for name in names if name in described],
        "baseline": first,
        "rows": rows,
        "n_outputs": len(compared),
        "n_excluded": len(people) - len(compared),
        "n_ratings": people.n_ratings,
        "n_raters": people.n_raters,
        "n_simulated": people.n_simulated,
        "note": _note(names, rows, len(people)),
        "signature": (
            f"level:{query.level}|grouping:{query.grouping}|boot:inputs|resamples:1000|seed:0|aspect:{aspect.name}"
            f"|ratings:{query.ratings}|systems:{query.systems}|refs:{'+'.join(names)}"
        ),
    }


def _column(score_set: ScoreSet, aspect: Any, people: Any, query: EnhancedQuery) -> NDArray[np.float64]:
    """The scores of rated outputs; at the level of systems the evaluator's own value of each, where it has one."""
    metric = load_scores(score_set, aspect, people.output)
    if query.level != "system" or not score_set.systems or not len(people):
        return metric
    own = {(row["system"], row["step"]): row["value"] for row in score_set.systems}
    values = [own.get((unit.name, unit.step)) for unit in people.units.units]
    of_unit = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return np.asarray(of_unit[people.system])


def _differences(
    columns: Mapping[str, NDArray[np.float64]], usable: NDArray[np.bool_], people: Any, settings: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Pearson of `a` minus Pearson of `b` for every two sets, `b` being the one named earlier."""
    from evalapp.stats import compare

    found = []
    for b, a in combinations(columns, 2):
        one, two = (np.where(usable, columns[name], np.nan) for name in (a, b))
        difference = compare(one, two, people.mean, people.item, people.system, **settings)
        found.append({"a": a, "b": b, **difference.as_dict(), "p_holm": None})
    return found


def _absent() -> dict[str, Any]:
    empty = {"value": None, "low": None, "high": None, "n": 0, "note": NOT_SCORED}
    return {**{name: dict(empty) for name in COEFFICIENTS}, "n": 0, "signature": "", "note": NOT_SCORED}


def _describe(row: SetRow) -> dict[str, Any]:
    return {
        "name": row.name, "kind": row.kind, "origin": row.origin, "metrics": row.meta.get("metrics", []),
        "n_references": row.n_references, "n_items": row.n_items, "per_item": row.per_item,
        "holds_judged_outputs": bool(row.meta.get("holds_judged_outputs")),
    }  # fmt: skip


def _note(names: Sequence[str], rows: Sequence[Mapping[str, Any]], n_people: int) -> str:
    if n_people == 0:
        return "No output of these systems has been rated for this aspect."
    if len(names) < 2:
        return "Scores were made with fewer than two reference sets. Score with another: the table compares them."
    if not any(len(row["differences"]) for row in rows):
        return "No evaluator was applied with two of these sets. Score the same one with each of them."
    return ""
