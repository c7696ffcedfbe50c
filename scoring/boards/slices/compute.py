"""The board of evaluators by part of the items from the data."""

from __future__ import annotations

from scoring.boards.base import Data, Progress, Table
from scoring.boards.metrics.compute import load_people
from scoring.boards.slices.query import SlicesQuery
from scoring.boards.slices.rows import slices_table


def compute(data: Data, query: SlicesQuery, progress: Progress | None = None) -> Table:
    """Every evaluator in every part of the items; without a key by the first that the items have."""
    key = data.choose_key(query.key)
    aspect, people = load_people(data, query)
    score_sets = query.select_sets(data, aspect.name)
    scored = [data.load_scored(one, people.output) for one in score_sets]
    settings = {**query.params, "key": key, **data.draws}
    outside = ~data.find_learned(score_sets, people.output)
    return slices_table(
        people, scored, data.load_parts(people.output, key), settings, aspect=aspect.name, outside=outside
    )
