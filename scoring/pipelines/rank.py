"""Computing a leaderboard that is too large for a request."""

from __future__ import annotations

from typing import Any

from evalapp.common.runner import RunContext

from ..selectors.leaderboards import SHAPES
from ..services.leaderboards import compute_leaderboard


def run(context: RunContext, *, board: str, query: dict[str, Any], stamp: str) -> dict[str, Any]:
    """`stamp` is the state of the data that was asked for; it only tells one request from another."""
    context.progress(0, None, "rows", "computing")
    row = compute_leaderboard(project=context.project, query=SHAPES[board](**query))
    return {"leaderboard": row.pk, "rows": len(row.table["rows"]), "seconds": row.seconds}
