"""Before a project is exported: the tables that go with it are made to tell the present state."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from evalapp.accounts.models import Project
from evalapp.common.errors import EvalappError
from evalapp.side_figures import side_figure

from ..models import Leaderboard
from ..selectors.exports import list_exported_queries, read_stored_query
from .leaderboards import get_leaderboard


def refresh_tables(*, project: Project, tick: Callable[[int, int], None] = lambda done, total: None) -> None:
    """Compute anew what is kept and old, and the usual tables where they are missing. One that cannot be computed any
    more (its filter was withdrawn, its evaluator is gone) stays out of the export."""
    kept = [
        query for row in Leaderboard.objects.filter(project=project).order_by("pk") if (query := read_stored_query(row))
    ]
    queries = list(dict.fromkeys([*kept, *list_exported_queries(project)]))
    for done, query in enumerate(queries):
        tick(done, len(queries))
        with side_figure(f"A table of {query.kind}"), suppress(EvalappError):
            get_leaderboard(project=project, query=query)
