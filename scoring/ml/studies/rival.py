"""Differences of trained evaluators from the rival, on the same outputs, pairs and systems of the test part.

Explained in docs/explanation/evaluators/studies.md#figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from evalapp.stats.core.estimate import Estimate
from evalapp.stats.core.multiple_tests import holm
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings
from evalapp.stats.correlation.paired import Difference, add_interval, compare_replicates, compare_shares
from evalapp.stats.resampling.bootstrap import Bootstrap, with_interval
from scoring.ml.base import Floats
from scoring.ml.studies.kinds import RIVAL
from scoring.ml.studies.m1 import SystemOrder
from scoring.ml.studies.measures import StudyData
from scoring.ml.studies.steps import Step
from scoring.ml.training.gold import collect_rated_outputs
from scoring.ml.training.record import record_groups
from scoring.ml.training.verdicts import collect_pairs

#: Prefix of a column of differences from the rival.
OVER = "over_rival:"
#: The column of the coefficient with M1.
WITH_M1 = "m1_spearman"
#: Compares the values of all trainings of a row with those of the rival.
_Compare: TypeAlias = Callable[[list[Floats], Floats], Difference]
#: Values of all trainings of each row.
_Values: TypeAlias = dict[str, list[Floats]]
_Results: TypeAlias = Sequence[tuple[Step, Mapping[str, Any]]]


def add_differences(table: dict[str, Any], results: _Results, data: StudyData) -> None:
    """Add the difference of every trained row from the rival to the `table` of an aspect: of Spearman's coefficient
    over rated outputs, and of the share of decided pairs that are right; in a table of selections, of the shares of
    people's best.

    A difference is the mean over seeds. Its interval resamples groups of items of the test part, or the runs of
    selections, which have different items. Its p is adjusted by Holm over the rows. The rival is trained once, because
    its training has no chance in it. Without its row nothing is added."""
    aspect = table["name"]
    _add_column(table, "spearman", _collect_values(results, aspect, "scores"), _compare_scores(aspect, data))
    _add_column(table, "decided", _collect_values(results, aspect, "right"), _compare_pairs(aspect, data))
    for column in ("steps_wins", "variants_wins"):
        values, runs = _collect_picks(results, aspect, column)
        _add_column(table, column, values, _compare_picks(runs))


def _add_column(table: dict[str, Any], column: str, values: _Values, compare: _Compare) -> None:
    found = _compare_rows(values, compare)
    for row in table["rows"]:
        if row["label"] in found:
            row["cells"][f"{OVER}{column}"] = found[row["label"]]
    if found:
        table["columns"].append(f"{OVER}{column}")


def _compare_scores(aspect: str, data: StudyData) -> _Compare:
    def compare(own: list[Floats], rival: Floats) -> Difference:
        rated = collect_rated_outputs(data.test, aspect)
        return compare_replicates(
            own, rival, rated.means(), [record.item for record in rated.records],
            [record.system for record in rated.records], settings=CorrelationSettings(coefficients=("spearman",)),
            bootstrap=Bootstrap(cluster=record_groups(rated.records)),
        )  # fmt: skip

    return compare


def _compare_pairs(aspect: str, data: StudyData) -> _Compare:
    def compare(own: list[Floats], rival: Floats) -> Difference:
        group = collect_pairs(data.test, aspect).group
        return compare_shares(np.mean(own, axis=0), rival, bootstrap=Bootstrap(cluster=group))

    return compare


def _compare_picks(runs: list[int]) -> _Compare:
    return lambda own, rival: compare_shares(np.mean(own, axis=0), rival, bootstrap=Bootstrap(cluster=runs))


def _collect_values(results: _Results, aspect: str, name: str) -> _Values:
    """The values `name` of trained rows."""
    values: _Values = {}
    for step, result in results:
        for label, by_aspect in result[name].items() if step.seed is not None else ():
            if aspect in by_aspect:
                known = [math.nan if value is None else value for value in by_aspect[aspect]]
                values.setdefault(label, []).append(np.array(known))
    return values


def _collect_picks(results: _Results, aspect: str, column: str) -> tuple[_Values, list[int]]:
    """Whether the picks of trained rows were people's best, for each choice and run, and the runs."""
    picks: dict[str, list[dict[tuple[str, int], float]]] = {}
    for step, result in results:
        for label, by_aspect in result["picks"].items() if step.seed is not None else ():
            rows = by_aspect.get(aspect, {}).get(column)
            if rows:
                picks.setdefault(label, []).append({(choice, run): float(hit) for choice, run, hit in rows})
    keys = sorted({key for every in picks.values() for one in every for key in one})
    values = {
        label: [np.array([one.get(key, math.nan) for key in keys]) for one in every] for label, every in picks.items()
    }
    return values, [run for _choice, run in keys]


def _compare_rows(values: _Values, compare: _Compare) -> dict[str, dict[str, Any]]:
    """The cells by row; empty without the rival or without another trained row."""
    if RIVAL not in values:
        return {}
    rival = values[RIVAL][0]
    return _make_cells({label: compare(own, rival) for label, own in values.items() if label != RIVAL})


def _make_cells(differences: Mapping[str, Difference]) -> dict[str, dict[str, Any]]:
    """The cells of the differences of all rows, with p adjusted by Holm."""
    adjusted = holm([one.p for one in differences.values()])
    return {
        label: _make_cell(one.estimate) | {"p": one.p, "p_holm": p}
        for (label, one), p in zip(differences.items(), adjusted, strict=True)
    }


def _make_cell(estimate: Estimate) -> dict[str, Any]:
    cell = estimate.as_dict()
    return {**cell, "sd": None, "over": "groups" if cell["low"] is not None else "", "values": [cell["value"]]}


def tabulate_order(
    aspect: str, order: SystemOrder, found: Mapping[str, Sequence[Sequence[float | None]]]
) -> dict[str, Any]:
    """Return a table of coefficients with M1: a row for each scorer, from what `order.correlate` has `found` for its
    trainings. A figure is the mean over trainings with an interval over groups of items, and so is its difference from
    the rival."""
    n = len(order.systems)
    draws = {
        label: np.array([[math.nan if value is None else value for value in one] for one in every]).mean(axis=0)
        for label, every in found.items()
    }
    groups = {"groups of items": order.n_groups}
    cells: dict[str, dict[str, Any]] = {label: {} for label in draws}
    for label, values in draws.items():
        undefined = Estimate.undefined("the scores of all systems are equal", n)
        point = Estimate.point(values[0], n) if math.isfinite(values[0]) else undefined
        cells[label][WITH_M1] = _make_cell(with_interval(point, values[1:], clusters=groups))
    columns = [WITH_M1]
    if RIVAL in draws and len(draws) > 1:
        columns.append(f"{OVER}{WITH_M1}")
        differences = {}
        for label, values in draws.items():
            gap = values - draws[RIVAL]
            if label != RIVAL and math.isfinite(gap[0]):
                differences[label] = add_interval(Estimate.point(gap[0], n), gap[1:], groups)
        for label, cell in _make_cells(differences).items():
            cells[label][columns[1]] = cell
    rows = [{"label": label, "cells": own} for label, own in cells.items()]
    return {"name": aspect, "columns": columns, "rows": rows, "tests": {}, "items": None}
