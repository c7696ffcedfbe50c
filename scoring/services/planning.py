"""The pilot of a study plan: the table of agreement of the planned aspect."""

from __future__ import annotations

from typing import Any

from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from scoring.boards.agreement.query import AgreementQuery

from ..selectors.aspects import choose_aspect
from .leaderboards import Answer, answer_leaderboard, get_leaderboard


def _make_query(project: Project, aspect: str) -> AgreementQuery:
    """Return the query about ratings of the aspect, by default the first that was rated."""
    return AgreementQuery(aspect=choose_aspect(project, aspect, judged_by="ratings").name, judged="ratings")


def get_pilot(project: Project, aspect: str) -> dict[str, Any]:
    """Return the current table, for commands, which may wait for it."""
    table: dict[str, Any] = get_leaderboard(project=project, query=_make_query(project, aspect)).table
    return table


def answer_pilot(project: Project, aspect: str, user: Any) -> Answer:
    """Return the table for a page, without a table if nothing was rated."""
    try:
        query = _make_query(project, aspect)
    except BadInput:
        return Answer(None, None, True)
    return answer_leaderboard(project=project, query=query, user=user)
