"""Update the leaderboards of a project before its export."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.common.errors import EvalappError
from evalapp.side_figures import side_figure

from ..models import Leaderboard
from ..selectors.exports import list_exported_queries, read_stored_query
from .leaderboards import get_leaderboard


def refresh_tables(*, project: Project, tick: Callable[[int, int], None] = lambda done, total: None) -> None:
    """Compute outdated stored tables, and the usual tables if they are missing.

    A table that can no longer be computed (its filter was withdrawn, its evaluator deleted) is not exported.
    """
    stored = [
        query for row in Leaderboard.objects.filter(project=project).order_by("pk") if (query := read_stored_query(row))
    ]
    queries = list(dict.fromkeys([*stored, *list_exported_queries(project)]))
    for done, query in enumerate(queries):
        tick(done, len(queries))
        with side_figure(_("A table of %(kind)s") % {"kind": query.kind}), suppress(EvalappError):
            get_leaderboard(project=project, query=query)
