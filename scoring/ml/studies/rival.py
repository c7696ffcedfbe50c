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


def add_differences(table: dict[str, Any], results: Sequence[tuple[Step, Mapping[str, Any]]], data: StudyData) -> None:
    """Add the difference of every trained row from the rival to the `table` of an aspect: of Spearman's coefficient
    over rated outputs, and of the share of decided pairs that are right.

    A difference is the mean over seeds; its interval resamples groups of items of the test part, and its p is adjusted
    by Holm over the rows. The rival's training has no chance in it. Without its row nothing is added."""
    aspect = table["name"]
    for column, values, compare in (
        ("spearman", "scores", _compare_scores(aspect, data)),
        ("decided", "right", _compare_pairs(aspect, data)),
    ):
        found = _compare_rows(results, aspect, values, compare)
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


def _compare_rows(
    results: Sequence[tuple[Step, Mapping[str, Any]]], aspect: str, name: str, compare: _Compare
) -> dict[str, dict[str, Any]]:
    """The cells by row; empty without the rival or without another trained row."""
    values: dict[str, list[Floats]] = {}
    for step, result in results:
        for label, by_aspect in result[name].items() if step.seed is not None else ():
            if aspect in by_aspect:
                known = [math.nan if value is None else value for value in by_aspect[aspect]]
                values.setdefault(label, []).append(np.array(known))
    if RIVAL not in values:
        return {}
    rival = values.pop(RIVAL)[0]
    found = {label: compare(own, rival) for label, own in values.items()}
    adjusted = holm([difference.p for difference in found.values()])
    return {
        label: {
            **difference.estimate.as_dict(), "sd": None, "over": "groups", "p": difference.p, "p_holm": p,
            "values": [difference.as_dict()["value"]],
        }
        for (label, difference), p in zip(found.items(), adjusted, strict=True)
    }  # fmt: skip
