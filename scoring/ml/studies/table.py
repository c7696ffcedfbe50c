"""The table of a study: figures over seeds, analysis of variance, and differences from the first row.

Explained in docs/explanation/evaluators/studies.md."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from evalapp.stats.core.multiple_tests import holm, needed_draws
from evalapp.stats.core.replicates import blocked_anova, estimate_mean, one_way_anova, paired_difference
from evalapp.stats.correlation.pair_tests import PairTests
from evalapp.stats.correlation.significance import compare_all
from scoring.ml.studies.kinds import Kind
from scoring.ml.studies.m1 import make_order
from scoring.ml.studies.measures import StudyData
from scoring.ml.studies.rival import add_differences, tabulate_order
from scoring.ml.studies.steps import Step
from scoring.ml.training.gold import collect_rated_outputs
from scoring.ml.training.record import record_groups

Result: TypeAlias = Mapping[str, Any]
#: Cells by row, column and seed (None: nothing is trained).
_Cells: TypeAlias = dict[str, dict[str, dict[int | None, Mapping[str, Any]]]]


def tabulate(
    kind: Kind, results: Sequence[tuple[Step, Result]], data: StudyData, labels: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return a table for each part (an aspect, or "") of a study of this `kind` from the steps and their `results` on
    `data`, with the rows in the order of `labels`; the first is the one that others are compared with.

    A table has `name`, `columns` (the last ones: differences from the rival), `rows` (label and cells) and `tests`. A
    cell has the mean over seeds and its standard deviation, and Student's interval over seeds; from one seed it has the
    interval over groups of items, if any. If the kind compares rows, a cell also has the difference from the first row,
    paired by seed, with Holm's adjustment over the rows, and `tests` has the analyses of variance by column.
    """
    parts: dict[str, _Cells] = {}
    for step, result in results:
        _add_cells(parts, result["parts"], step.seed)
    for _step, result in results:
        _add_cells(parts, result["floors"], None)
    labels = list(dict.fromkeys(labels))
    tables = [_tabulate_part(name, _order_rows(rows, labels), kind) for name, rows in parts.items()]
    for table in tables:
        table["items"] = None
        if kind.compares_variants:
            table["items"] = _compare_on_items(table["name"], results, data)
        add_differences(table, results, data)
    return [*tables, *_tabulate_orders(results, data)]


def _tabulate_orders(results: Sequence[tuple[Step, Result]], data: StudyData) -> list[dict[str, Any]]:
    """The tables of correlations with M1 by aspect."""
    found: dict[str, dict[str, list[Any]]] = {}
    for _step, result in results:
        for label, by_aspect in result["orders"].items():
            for aspect, values in by_aspect.items():
                found.setdefault(aspect, {}).setdefault(label, []).append(values)
    orders = {aspect: make_order(data.test, aspect) for aspect in found}
    return [tabulate_order(aspect, order, found[aspect]) for aspect, order in orders.items() if order]


def _order_rows(rows: _Cells, labels: Sequence[str]) -> _Cells:
    """The rows in the order of `labels`, then the others. A row that is the same with every seed, such as that of a
    closed-form solution, has no spread: it counts once."""
    ordered = [label for label in labels if label in rows] + [label for label in rows if label not in labels]
    result: _Cells = {}
    for label in ordered:
        cells = rows[label]
        is_fixed = all(len({cell["value"] for cell in by_seed.values()}) == 1 for by_seed in cells.values())
        result[label] = (
            {column: dict([next(iter(by_seed.items()))]) for column, by_seed in cells.items()} if is_fixed else cells
        )
    return result


def _add_cells(parts: dict[str, _Cells], measured: Mapping[str, Any], seed: int | None) -> None:
    for name, rows in measured.items():
        for label, cells in rows.items():
            for column, cell in cells.items():
                parts.setdefault(name, {}).setdefault(label, {}).setdefault(column, {})[seed] = cell


def _tabulate_part(name: str, rows: _Cells, kind: Kind) -> dict[str, Any]:
    columns = list(dict.fromkeys(column for cells in rows.values() for column in cells))
    joined = {label: {column: _join(cells[column]) for column in cells} for label, cells in rows.items()}
    tests = {}
    for column in columns if kind.tests else ():
        tests[column] = _test_rows({label: cells[column] for label, cells in rows.items() if column in cells})
        if kind.compares_variants:
            _add_differences(column, rows, joined)
    return {
        "name": name,
        "columns": columns,
        "rows": [{"label": label, "cells": cells} for label, cells in joined.items()],
        "tests": {column: found for column, found in tests.items() if found},
    }


def _join(by_seed: Mapping[int | None, Mapping[str, Any]]) -> dict[str, Any]:
    """The cell of a row: over its seeds, or that of its only seed."""
    cells = list(by_seed.values())
    values = [cell["value"] for cell in cells]
    if len(cells) == 1:
        return {**cells[0], "sd": None, "over": "groups" if cells[0]["low"] is not None else "", "values": values}
    estimate, sd = estimate_mean([math.nan if value is None else value for value in values])
    n_undefined = values.count(None)
    note = f"undefined with {n_undefined} of {len(values)} seeds" if n_undefined else ""
    figures = {**estimate.as_dict(), "n": cells[0]["n"], "note": note or estimate.note}
    return {**figures, "sd": sd if math.isfinite(sd) else None, "over": "seeds", "values": values}


def _values(by_seed: Mapping[int | None, Mapping[str, Any]]) -> dict[int | None, float]:
    return {seed: math.nan if cell["value"] is None else float(cell["value"]) for seed, cell in by_seed.items()}


def _test_rows(cells: Mapping[str, Mapping[int | None, Mapping[str, Any]]]) -> dict[str, Any]:
    """The analyses of variance between the rows with several seeds; empty without two."""
    rows = {label: _values(by_seed) for label, by_seed in cells.items() if len(by_seed) > 1}
    if len(rows) < 2:
        return {}
    seeds = [seed for seed in next(iter(rows.values())) if all(seed in row for row in rows.values())]
    blocks = np.array([[row[seed] for row in rows.values()] for seed in seeds]).reshape(len(seeds), len(rows))
    one_way = one_way_anova([list(row.values()) for row in rows.values()])
    return {"one_way": one_way.as_dict(), "blocked": blocked_anova(blocks).as_dict(), "rows": list(rows)}


def _add_differences(column: str, rows: _Cells, joined: Mapping[str, Mapping[str, dict[str, Any]]]) -> None:
    """Add the difference from the first row to the cells of the others, paired by seed."""
    first, *others = rows
    base = _values(rows[first].get(column, {}))
    tested: list[tuple[str, float]] = []
    for label in others:
        own = _values(rows[label].get(column, {}))
        seeds = [seed for seed in base if seed in own]
        if len(seeds) < 2:
            continue
        estimate, p = paired_difference([base[seed] for seed in seeds], [own[seed] for seed in seeds])
        joined[label][column]["difference"] = {**estimate.as_dict(), "p": p if math.isfinite(p) else None}
        tested.append((label, p))
    for (label, _p), adjusted in zip(tested, holm([p for _label, p in tested]), strict=True):
        joined[label][column]["difference"]["p_holm"] = adjusted


def _compare_on_items(aspect: str, results: Sequence[tuple[Step, Result]], data: StudyData) -> dict[str, Any] | None:
    """Compare the rows by Spearman's coefficient over the rated outputs, with the scores of the first seed: groups of
    items are exchanged, Holm's adjustment over all pairs. None without two rows."""
    scores: dict[str, list[float]] = {}
    for _step, result in results:
        for label, by_aspect in result["scores"].items():
            if aspect in by_aspect:
                scores.setdefault(label, [math.nan if value is None else value for value in by_aspect[aspect]])
    if len(scores) < 2:
        return None
    rated = collect_rated_outputs(data.test, aspect)
    found = compare_all(
        scores, rated.means(), [record.item for record in rated.records], [record.system for record in rated.records],
        cluster=record_groups(rated.records),
        tests=PairTests(coefficient="spearman", k=needed_draws(len(scores))),
    )  # fmt: skip
    names = found.names
    pairs = [
        {"better": names[a], "worse": names[b], "p_holm": float(found.p_holm[a, b])}
        for a in range(len(names))
        for b in range(len(names))
        if a != b and math.isfinite(found.p_holm[a, b])
    ]
    return {
        "letters": dict(zip(names, found.letters, strict=True)), "pairs": pairs, "note": found.note,
        "n": found.n_rows, "population": found.population, "signature": found.signature,
    }  # fmt: skip
