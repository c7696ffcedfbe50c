"""Differences of trained evaluators from the rival, on the same outputs and pairs of the test part.

Explained in docs/explanation/evaluators/studies.md#figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from evalapp.stats.core.multiple_tests import holm
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings
from evalapp.stats.correlation.paired import Difference, compare_replicates, compare_shares
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.ml.base import Floats
from scoring.ml.studies.kinds import RIVAL
from scoring.ml.studies.measures import StudyData
from scoring.ml.studies.steps import Step
from scoring.ml.training.gold import collect_rated_outputs
from scoring.ml.training.record import record_groups
from scoring.ml.training.verdicts import collect_pairs

#: Prefix of a column of differences from the rival.
OVER = "over_rival:"
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
    found = {label: compare(own, rival) for label, own in values.items() if label != RIVAL}
    adjusted = holm([difference.p for difference in found.values()])
    return {
        label: {
            **difference.estimate.as_dict(), "sd": None, "over": "groups", "p": difference.p, "p_holm": p,
            "values": [difference.as_dict()["value"]],
        }
        for (label, difference), p in zip(found.items(), adjusted, strict=True)
    }  # fmt: skip
