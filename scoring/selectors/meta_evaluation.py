"""Points of a scatter plot of metric scores and human scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evalapp.accounts.models import Project
from scoring.boards.base import AspectInfo
from scoring.boards.data.project import ProjectData
from scoring.boards.metrics import compute as metrics
from scoring.boards.metrics.by_ratings import find_common_outputs
from scoring.boards.metrics.people import People
from scoring.boards.metrics.query import EvaluatorsQuery

from ..models import ScoreSet

if TYPE_CHECKING:
    from numpy.typing import NDArray


def load_people(project: Project, query: EvaluatorsQuery) -> tuple[AspectInfo, People]:
    """Return the aspect of the query and its human scores by output."""
    return metrics.load_people(ProjectData(project), query)


def load_points(
    project: Project, query: EvaluatorsQuery, score_set: ScoreSet, table: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return metric and human score of each output with both (or of systems). For a ranking they are in the table,
    which is computed if it is not given."""
    if query.people != "ratings":
        return _ranked_points(metrics.compute(ProjectData(project), query) if table is None else table, score_set)
    data = ProjectData(project)
    aspect, people = metrics.load_people(data, query)
    sets = query.select_sets(data, aspect.name)
    used = ~data.find_learned(sets, people.output)
    if query.level == "system":
        scored = [data.load_scored(one, people.output) for one in sets]
        used, _ = find_common_outputs(people, scored, query.params, used)
    people = people.only(used)
    metric = data.load_values(score_set, people.output)
    both = np.isfinite(metric) & np.isfinite(people.mean)
    labels = np.array([unit.label for unit in people.units.units], dtype=object)
    if query.level == "system":
        return _system_points(score_set, people, metric, both, labels)
    return [
        {"metric": float(m), "people": float(h), "system": str(labels[s])}
        for m, h, s in zip(metric[both], people.mean[both], people.system[both], strict=True)
    ]


def _ranked_points(table: dict[str, Any], score_set: ScoreSet) -> list[dict[str, Any]]:
    values = next((row["values"] for row in table["rows"] if row["score_set"] == score_set.pk), [])
    people = [row for row in table["scores"] if row["value"] is not None]
    return [
        {"metric": value, "people": row["value"], "system": row["label"]}
        for value, row in zip(values, people, strict=False)
        if value is not None
    ]


def _system_points(
    score_set: ScoreSet, people: People, metric: NDArray[Any], both: NDArray[Any], labels: NDArray[Any]
) -> list[dict[str, Any]]:
    # As in `Scored.has_own`.
    counted = () if score_set.n_in_training else score_set.systems
    own = {(row["system"], row["step"]): row["value"] for row in counted}
    points = []
    for code in np.unique(people.system[both]):
        rows = both & (people.system == code)
        unit = people.units.units[int(code)]
        value = own.get((unit.name, unit.step)) if own else float(metric[rows].mean())
        if value is not None:
            points.append({"metric": value, "people": float(people.mean[rows].mean()), "system": str(labels[code])})
    return points
