"""Compute the leaderboard of evaluators by subset of items."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalapp.stats.core.coding import BoolArray
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings
from evalapp.stats.correlation.slices import slice_estimates
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.base import Data, Progress, Settings, Table, order_evaluators
from scoring.boards.metrics.compute import load_people
from scoring.boards.metrics.people import (
    People,
    Scored,
    describe_scored,
    list_chosen,
    no_estimate,
    sign_table,
    with_missing,
)
from scoring.boards.slices.query import SlicesQuery
from scoring.boards.systems.rankings import read_draws

#: Maximum number of subsets; the rest is `OTHERS`.
MOST_PARTS = 20

OTHERS = "(others)"


def compute(data: Data, query: SlicesQuery, progress: Progress | None = None) -> Table:
    """Return every evaluator in every subset; without a key, the first key of the items is used."""
    key = data.choose_key(query.key)
    aspect, people = load_people(data, query)
    score_sets = query.select_sets(data, aspect.name)
    scored = [data.load_scored(one, people.output) for one in score_sets]
    settings = {**query.params, "key": key, **data.draws}
    outside = ~data.find_learned(score_sets, people.output)
    return slices_table(
        people, scored, data.load_parts(people.output, key), settings, aspect=aspect.name, outside=outside
    )


def largest_parts(part: NDArray[Any], most: int = MOST_PARTS) -> NDArray[Any]:
    """Replace all but the most frequent values by `OTHERS` (ties: by name)."""
    names, counts = np.unique(part, return_counts=True)
    if len(names) <= most:
        return part
    order = sorted(range(len(names)), key=lambda k: (-counts[k], names[k]))
    kept = names[order[: most - 1]]
    return np.where(np.isin(part, kept), part, OTHERS)


def slices_table(
    people: People, scored: Sequence[Scored], part: NDArray[Any], settings: Settings, *, aspect: str, outside: BoolArray
) -> Table:
    """Return the correlation of each evaluator with human scores in every subset, as measured and shrunk towards the
    overall value. `part` is the subset of each output. `settings`: key, coefficient, systems, references, ratings."""
    compared = people if outside.all() else people.only(outside)
    parts = largest_parts(np.asarray(part)[outside])
    names, counts = np.unique(parts, return_counts=True)
    rows = []
    for one in scored:
        result = (
            slice_estimates(
                one.metric[outside],
                compared.mean,
                compared.item,
                compared.system,
                parts,
                settings=CorrelationSettings(coefficients=(settings["coefficient"],)),
                bootstrap=Bootstrap(cluster=compared.cluster, **read_draws(settings)),
            )
            if len(compared)
            else None
        )
        slices = {str(s.name): s.as_dict() for s in result.slices} if result else {}
        whole = result.whole.as_dict() if result else no_estimate("nothing can be compared")
        rows.append(
            {
                **describe_scored(one),
                "estimate": whole,
                "spread": result.as_dict()["spread"] if result else None,
                "cells": [slices.get(str(name)) or _empty(str(name)) for name in names],
            }
        )
    counted = [{"name": str(name), "n": int(n)} for name, n in zip(names, counts, strict=True)]
    return {
        "kind": "slices",
        "aspect": aspect,
        **{name: settings[name] for name in ("systems", "references", "ratings")},
        **people.count(compared),
        "key": settings["key"],
        "coefficient": settings["coefficient"],
        "signature": sign_table(settings, aspect, f"slices:{settings['key']}"),
        "parts": counted,
        "evaluators": list_chosen(settings),
        "note": with_missing("" if len(names) > 1 else "All items belong to the same subset.", settings, rows),
        "rows": sorted(rows, key=lambda row: order_evaluators(row, row["estimate"])),
    }


def _empty(name: str) -> Table:
    reason = no_estimate("no output of this subset has both scores")
    return {"name": name, "raw": reason, "shrunken": dict(reason), "weight": None, "n_pairs": 0}
