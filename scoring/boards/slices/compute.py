"""Compute the leaderboard of evaluators by subset of items."""

from __future__ import annotations

from scoring.boards.base import Data, Progress, Table
from scoring.boards.metrics.compute import load_people
from scoring.boards.slices.query import SlicesQuery
from scoring.boards.slices.rows import slices_table


def compute(data: Data, query: SlicesQuery, progress: Progress | None = None) -> Table:
    """Return every evaluator in every subset; without a key, the first key of the items is used."""
    key = data.choose_key(query.key)
    aspect, people = load_people(data, query)
    score_sets = query.select_sets(data, aspect.name)
    scored = [data.load_scored(one, people.output) for one in score_sets]
    settings = {**query.params, "key": key, **data.draws}
    outside = ~data.find_learned(score_sets, people.output)
    return slices_table(
        people, scored, data.load_parts(people.output, key), settings, aspect=aspect.name, outside=outside
    )
