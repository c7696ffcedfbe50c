"""Compute the leaderboard of evaluators on compared pairs."""

from __future__ import annotations

from scoring.boards.base import Data, Progress, Table
from scoring.boards.metrics.compute import load_comparisons, load_scored_on
from scoring.boards.pairs.query import PairsQuery
from scoring.boards.pairs.verdicts import pairs_table


def compute(data: Data, query: PairsQuery, progress: Progress | None = None) -> Table:
    """Return how often each evaluator agrees with human preferences."""
    aspect, compared = load_comparisons(data, query, turing=False)
    scored_on = load_scored_on(data, query, aspect, compared)
    return pairs_table(compared, settings={**query.params, **data.draws}, aspect=aspect.name, **scored_on)
