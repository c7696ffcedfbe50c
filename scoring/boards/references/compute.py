"""Compute the leaderboard of evaluators by reference set."""

from __future__ import annotations

from scoring.boards.base import Data, Progress, Table
from scoring.boards.metrics.compute import load_people
from scoring.boards.references.query import EnhancedQuery
from scoring.boards.references.rows import enhanced_table


def compute(data: Data, query: EnhancedQuery, progress: Progress | None = None) -> Table:
    """Return one row per evaluator, one cell per reference set, and the differences between sets."""
    aspect, people = load_people(data, query)
    names, by_evaluator = data.score_sets_by_references(query, aspect.name)
    every = [one for of_sets in by_evaluator for one in of_sets.values()]
    scored = [{name: data.load_scored(one, people.output) for name, one in of_sets.items()} for of_sets in by_evaluator]
    outside = ~data.find_learned(every, people.output)
    settings = {**query.params, **data.draws}
    table = enhanced_table(people, scored, settings, aspect=aspect.name, names=names, outside=outside)
    return {**table, **data.describe_references(names)}
