"""Compute a leaderboard that is too large for a request."""

from __future__ import annotations

from typing import Any

from annotation.models.data import ORIGINAL
from evalapp.common.runner import RunContext
from scoring.boards.registry import get_board

from ..selectors.run_results import make_board_address
from ..selectors.score_sets import current_sets
from ..services.columns import cache_columns, cache_outputs
from ..services.leaderboards import compute_leaderboard


def run(context: RunContext, *, board: str, query: dict[str, Any], stamp: str) -> dict[str, Any]:
    """The job `rank`. `stamp` identifies the state of the data; it only distinguishes requests."""
    cache_outputs(context.project)
    for score_set in current_sets(context.project, query.get("references") or ORIGINAL):
        context.check()
        cache_columns(score_set)
    context.progress(0, None, "steps", "computing")
    parsed = get_board(board).query(**query)
    row = compute_leaderboard(
        project=context.project,
        query=parsed,
        progress=lambda done, total: context.progress(done, total, "steps", "computing"),
    )
    return {
        "leaderboard": row.pk,
        "rows": len(row.table["rows"]),
        "seconds": row.seconds,
        "url": make_board_address(context.project, parsed),
    }
