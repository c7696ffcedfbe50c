"""Compute the correlations between evaluators."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evalapp.stats.core.coding import FloatArray, IntArray
from evalapp.stats.core.common_rows import find_common_rows
from evalapp.stats.correlation.matrix import correlation_matrix
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.base import Data, Progress, Settings, Table
from scoring.boards.matrix.query import MatrixQuery
from scoring.boards.metrics.people import (
    FEW_SYSTEMS,
    LEAST_SHARE,
    Scored,
    describe_scored,
    list_chosen,
    sign_table,
    with_missing,
)
from scoring.boards.systems.rankings import read_draws


def compute(data: Data, query: MatrixQuery, progress: Progress | None = None) -> Table:
    """Return the correlations over all outputs of a subset of systems, rated or not."""
    score_sets = query.select_sets(data, "")
    outputs, cluster, system = data.load_outputs(query.systems)
    # Column-major, as the statistics read them.
    columns = np.full((len(score_sets), len(outputs)), np.nan).T
    scored = []
    for number, score_set in enumerate(score_sets):
        one = data.load_scored(score_set, outputs)
        columns[:, number] = one.metric
        scored.append(replace(one, metric=columns[:, number]))
    return matrix_table(scored, columns, cluster, system, {**query.params, **data.draws}, aspect=query.aspect)


def matrix_table(
    scored: Sequence[Scored],
    columns: FloatArray,
    cluster: IntArray,
    system: IntArray,
    settings: Settings,
    *,
    aspect: str = "",
) -> Table:
    """Return the correlations between the columns (n outputs, k evaluators), or between system means at the system
    level. `settings`: level, coefficient, systems, references."""
    over, unit = columns, cluster
    by_system = settings["level"] == "system"
    if by_system:
        # Means are comparable only over the same outputs.
        common = find_common_rows(
            list(columns.T), np.ones(len(columns), dtype=bool), np.unique(system, return_inverse=True)[1],
            least=FEW_SYSTEMS, share=0.0 if list_chosen(settings) else LEAST_SHARE, what="systems",
        )  # fmt: skip
        used = common.rows if common.used else np.ones(len(columns), dtype=bool)
        over, unit = _means(columns[used], system[used])
    what = "systems" if by_system else "items"
    result = correlation_matrix(
        over, coefficient=settings["coefficient"], what=what, bootstrap=Bootstrap(cluster=unit, **read_draws(settings))
    )
    place = {number: k for k, number in enumerate(_similar(result.values))}
    order = sorted(range(len(scored)), key=lambda k: place[k])
    rows = []
    for i in order:
        cells = [None if i == j else result[i, j].as_dict() for j in order]
        rows.append({**describe_scored(scored[i]), "n": int(np.isfinite(columns[:, i]).sum()), "cells": cells})
    return {
        "kind": "matrix",
        "aspect": aspect,
        **{name: settings[name] for name in ("level", "coefficient", "systems", "references")},
        "ratings": "",
        "signature": sign_table(
            settings, aspect, f"matrix|level:{settings['level']}", "boot:systems" if by_system else "boot:inputs"
        ),
        "n_outputs": len(columns),
        "n_items": len(np.unique(cluster)),
        "n_systems": len(np.unique(system)),
        "n_simulated": 0,
        "evaluators": list_chosen(settings),
        "note": with_missing(
            "" if len(scored) > 1 else "There are fewer than two evaluators to compare.", settings, rows
        ),
        "rows": rows,
    }


def _means(columns: FloatArray, system: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the mean of every system and column over scored outputs, and the systems as clusters."""
    names, code = np.unique(system, return_inverse=True)
    defined = np.isfinite(columns)
    result = np.full((len(names), columns.shape[1]), np.nan)
    for k in range(columns.shape[1]):
        counts = np.bincount(code, weights=defined[:, k], minlength=len(names))
        sums = np.bincount(code, weights=np.where(defined[:, k], columns[:, k], 0.0), minlength=len(names))
        np.divide(sums, counts, out=result[:, k], where=counts > 0)
    return result, np.arange(len(names))


def _similar(values: FloatArray) -> list[int]:
    """Return an order in which similar evaluators are adjacent: start with the one closest to all others, then take the
    one closest to the last. Ties go to the first."""
    if not len(values):
        return []
    closeness = np.nan_to_num(values, nan=-1.0)
    order = [int(closeness.sum(axis=1).argmax())]
    left = [k for k in range(len(values)) if k != order[0]]
    while left:
        order.append(max(left, key=lambda k: (closeness[order[-1], k], -k)))
        left.remove(order[-1])
    return order
