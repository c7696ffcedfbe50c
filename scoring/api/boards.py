"""How a leaderboard is answered: the table that is kept, with its age, or the run that computes it."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response

from ..services.leaderboards import Answer


def board_response(answer: Answer, serializer: Any) -> Response:
    run = answer.run.pk if answer.run else None
    pending = {"run": run, "detail": "The table is large and is being computed in this run."}
    if answer.table is None or answer.leaderboard is None:
        return Response(pending, status=202)
    table = {**answer.table, "computed_at": answer.leaderboard.computed_at}
    try:
        is_current = answer.is_current and not answer.is_old
        return Response(serializer({**table, "is_current": is_current, "run": run}).data)
    except (KeyError, TypeError, ValueError):
        # One that came with an upload, made by another program maybe, need not tell all that is promised here.
        if answer.leaderboard.stamp:
            raise
        return Response(pending, status=202)
