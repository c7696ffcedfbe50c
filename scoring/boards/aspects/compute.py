"""Compute the leaderboard by aspect from the main leaderboard of each aspect."""

from __future__ import annotations

from scoring.boards.aspects.query import AspectsQuery
from scoring.boards.aspects.rows import aspects_table
from scoring.boards.base import Data, Progress, Table
from scoring.boards.choices import FIGURES


def compute(data: Data, query: AspectsQuery, progress: Progress | None = None) -> Table:
    """Return one figure for every evaluator and aspect."""
    figure = FIGURES.get(query.coefficient, query.coefficient)
    return aspects_table(data.compute_by_aspect(query, progress), {**query.params, "figure": figure, **data.draws})
