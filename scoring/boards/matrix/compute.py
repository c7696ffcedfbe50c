"""Compute the correlations between evaluators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scoring.boards.base import Data, Progress, Table
from scoring.boards.matrix.query import MatrixQuery
from scoring.boards.matrix.rows import matrix_table


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
