"""Compute the tables of inter-annotator agreement."""

from __future__ import annotations

from scoring.boards.agreement.query import AgreementQuery
from scoring.boards.agreement.raters import detail_table, overview_table
from scoring.boards.base import Data, Progress, Table


def compute(data: Data, query: AgreementQuery, progress: Progress | None = None) -> Table:
    """Return the agreement on one aspect, or on all if the query names none."""
    settings = {**query.params, **data.draws}
    ways = data.list_ways(query)
    if not query.aspect:
        parts = ((aspect.name, way, data.load_judged(aspect, way, query)) for aspect, way in ways)
        return {**overview_table(parts, settings), **data.describe_judged()}
    aspect, way = ways[0]
    columns, controls = data.load_judged(aspect, way, query), data.load_controls(query)
    table = detail_table(columns, settings, aspect=aspect.name, judged=way, controls=controls)
    return {**table, **data.describe_judged(aspect, way)}
