"""The board of evaluators against each other from the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scoring.boards.base import Data, Progress, Table
from scoring.boards.matrix.query import MatrixQuery
from scoring.boards.matrix.rows import matrix_table


def compute(data: Data, query: MatrixQuery, progress: Progress | None = None) -> Table:
    """Evaluators against each other over all outputs of the chosen systems, rated or not."""
    score_sets = query.select_sets(data, "")
    outputs, cluster, system = data.load_outputs(query.systems)
    # In memory column by column, as the statistics read them.
    columns = np.full((len(score_sets), len(outputs)), np.nan).T
    scored = []
    for number, score_set in enumerate(score_sets):
        one = data.load_scored(score_set, outputs)
        columns[:, number] = one.metric
        scored.append(replace(one, metric=columns[:, number]))
    return matrix_table(scored, columns, cluster, system, {**query.params, **data.draws}, aspect=query.aspect)
