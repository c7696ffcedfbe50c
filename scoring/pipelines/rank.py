"""Computing a leaderboard that is too large for a request."""

from __future__ import annotations

from typing import Any

from annotation.models.data import ORIGINAL
from evalapp.common.runner import RunContext
from scoring.boards.registry import get_board

from ..selectors.run_results import make_board_address
from ..selectors.score_sets import current_sets
from ..services.columns import keep_columns, keep_outputs
from ..services.leaderboards import compute_leaderboard


def run(context: RunContext, *, board: str, query: dict[str, Any], stamp: str) -> dict[str, Any]:
    """`stamp` is the state of the data that was asked for; it only tells one request from another."""
    keep_outputs(context.project)
    for score_set in current_sets(context.project, query.get("references") or ORIGINAL):
        context.check()
        keep_columns(score_set)
    context.progress(0, None, "steps", "computing")
    asked = get_board(board).query(**query)
    row = compute_leaderboard(
        project=context.project,
        query=asked,
        progress=lambda done, total: context.progress(done, total, "steps", "computing"),
    )
    return {
        "leaderboard": row.pk,
        "rows": len(row.table["rows"]),
        "seconds": row.seconds,
        "url": make_board_address(context.project, asked),
    }
