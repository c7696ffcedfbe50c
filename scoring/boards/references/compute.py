"""Compute the leaderboard of evaluators by reference set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from evalapp.side_figures import side_note, side_value
from evalapp.stats.core.coding import BoolArray, FloatArray
from evalapp.stats.core.multiple_tests import holm
from evalapp.stats.correlation.meta_evaluation import OTHER_SYSTEMS, THESE_SYSTEMS, CorrelationSettings
from evalapp.stats.correlation.paired import compare
from evalapp.stats.resampling.bootstrap import Bootstrap
from evalapp.stats.resampling.jackknife import NAME
from evalapp.translation import gettext as _
from scoring.boards.base import Data, Progress, Settings, Table
from scoring.boards.metrics.compute import load_people
from scoring.boards.metrics.people import (
    COEFFICIENTS,
    People,
    Scored,
    chosen_part,
    joined,
    list_chosen,
    no_estimate,
    of_all_outputs,
    with_missing,
)
from scoring.boards.references.query import EnhancedQuery

NOT_SCORED = "not scored with this set"


def compute(data: Data, query: EnhancedQuery, progress: Progress | None = None) -> Table:
    """Return one row per evaluator, one cell per reference set, and the differences between sets."""
    aspect, people = load_people(data, query)
    names, by_evaluator = data.score_sets_by_references(query, aspect.name)
    every = [one for of_sets in by_evaluator for one in of_sets.values()]
    scored = [{name: data.load_scored(one, people.output) for name, one in of_sets.items()} for of_sets in by_evaluator]
    outside = ~data.find_learned(every, people.output)
    settings = {**query.params, **data.draws}
    table = enhanced_table(people, scored, settings, aspect=aspect.name, names=names, outside=outside)
    return {**table, **data.describe_references(names)}


def enhanced_table(
    people: People,
    by_evaluator: Sequence[Mapping[str, Scored]],
    settings: Settings,
    *,
    aspect: str,
    names: Sequence[str],
    outside: BoolArray,
) -> Table:
    """Return one row per evaluator (given as reference set -> scores), one cell per set of `names`, and the differences
    between all pairs of sets. `settings`: level, grouping, systems, ratings."""
    compared = people if outside.all() else people.only(outside)
    level, grouping = settings["level"], settings["grouping"]
    draws = compared.draw(settings)
    comparison = _Comparison(people, compared, outside, CorrelationSettings(level=level, grouping=grouping), draws)
    computed = [comparison.compute_row(names, sets) for sets in by_evaluator]
    rows = [row for row, _ in computed]
    wider = sorted({row["evaluator"] for row, is_wider in computed if is_wider})
    baseline = names[0] if names else ""
    tests = [d for row in rows for d in row["differences"] if d["b"] == baseline]
    for p, difference in zip(holm([d["p"] for d in tests]), tests, strict=True):
        difference["p_holm"] = p
    is_by_system = level == "system"
    method = f"boot:inputs|resamples:{draws.resamples}|seed:{draws.seed}"
    method = f"interval:{NAME}|test:perm-systems" if is_by_system else method
    counts = people.count(compared)
    return {
        "kind": "enhanced",
        "aspect": aspect,
        "level": level,
        "grouping": grouping,
        "systems": settings["systems"],
        "ratings": settings["ratings"],
        "baseline": baseline,
        "population": OTHER_SYSTEMS if is_by_system else THESE_SYSTEMS,
        "rows": rows,
        **{name: value for name, value in counts.items() if name not in ("n_systems", "n_items")},
        "evaluators": list_chosen(settings),
        "note": side_note(
            lambda: with_missing(
                joined(_enhanced_note(names, rows, len(people)), of_all_outputs(wider)), settings, rows
            )
        ),
        "signature": (
            f"level:{level}|grouping:{grouping}|{method}|aspect:{aspect}"
            f"|ratings:{settings['ratings']}|systems:{settings['systems']}|refs:{'+'.join(names)}"
            f"{chosen_part(settings)}"
        ),
    }


@dataclass(frozen=True)
class _Comparison:
    """The human scores of all rated outputs, those that are `compared` because their outputs are in no training data
    (`outside`), and how scores are correlated with them."""

    people: People
    compared: People
    outside: BoolArray
    correlation: CorrelationSettings
    draws: Bootstrap

    def compute_row(self, names: Sequence[str], sets: Mapping[str, Scored]) -> tuple[Table, bool]:
        """Return the row of an evaluator, and whether its own values of systems count more outputs than are compared.

        Its cells use the rated outputs that it scored with all of its sets, so that only the references differ.
        """
        level = self.correlation.level
        columns = {name: sets[name].column(self.people, level)[self.outside] for name in names if name in sets}
        usable = np.all([np.isfinite(column) for column in columns.values()], axis=0)
        columns = {name: np.where(usable, column, np.nan) for name, column in columns.items()}
        cells = {}
        for name in names:
            if name not in columns:
                cells[name] = _absent()
                continue
            correlations = self.compared.correlate(columns[name], self.correlation, self.draws)
            cells[name] = {
                **{coefficient: correlations[coefficient].as_dict() for coefficient in COEFFICIENTS},
                "n": correlations.n_pairs,
                "signature": sets[name].signature,
                "note": sets[name].note if level == "system" and not sets[name].has_own else "",
            }
        first = sets[next(iter(sets))]
        own = [one.column(self.people, level) for one in sets.values() if level == "system" and one.has_own]
        row = {
            "evaluator": first.evaluator,
            "name": first.name,
            "cells": cells,
            "differences": side_value(
                _("The differences between reference sets"), lambda: self._list_differences(columns), list[Table]()
            ),
            "n": int((usable & np.isfinite(self.compared.mean)).sum()),
        }
        return row, any(usable.sum() < np.isfinite(column).sum() for column in own)

    def _list_differences(self, columns: Mapping[str, FloatArray]) -> list[Table]:
        """Return Pearson of `a` minus Pearson of `b` for every two sets; `b` is the earlier one."""
        human = (self.compared.mean, self.compared.item, self.compared.system)
        differences = []
        for b, a in combinations(columns, 2):
            difference = compare(columns[a], columns[b], *human, settings=self.correlation, bootstrap=self.draws)
            differences.append({"a": a, "b": b, **difference.as_dict(), "p_holm": None})
        return differences


def _absent() -> Table:
    return {**{name: no_estimate(NOT_SCORED) for name in COEFFICIENTS}, "n": 0, "signature": "", "note": NOT_SCORED}


def _enhanced_note(names: Sequence[str], rows: Sequence[Mapping[str, Any]], n_people: int) -> str:
    if n_people == 0:
        return "No output of these systems has ratings of this aspect."
    if len(names) < 2:
        return "Fewer than two reference sets have scores. Score with another set to compare them."
    if all(sum(cell["note"] != NOT_SCORED for cell in row["cells"].values()) < 2 for row in rows):
        return "No evaluator has scores with at least two selected sets. Apply the same evaluator with each set."
    return ""
