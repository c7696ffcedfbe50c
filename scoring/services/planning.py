"""The pilot of a plan: the table of agreement of the aspect that is planned for."""

from __future__ import annotations

from typing import Any

from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from scoring.boards.agreement.query import AgreementQuery

from ..selectors.aspects import choose_aspect
from .leaderboards import Answer, answer_leaderboard, get_leaderboard


def pilot_query(project: Project, aspect: str) -> AgreementQuery:
    """Ratings of the aspect, or of the first that was rated."""
    return AgreementQuery(aspect=choose_aspect(project, aspect, judged_by="ratings").name, judged="ratings")


def pilot_of(project: Project, aspect: str) -> dict[str, Any]:
    """The present table, computed here and now if it must be: for commands."""
    found: dict[str, Any] = get_leaderboard(project=project, query=pilot_query(project, aspect)).table
    return found


def answer_pilot(project: Project, aspect: str, user: Any) -> Answer:
    """The table for a page; none where nothing was rated."""
    try:
        query = pilot_query(project, aspect)
    except BadInput:
        return Answer(None, None, True)
    return answer_leaderboard(project=project, query=query, user=user)
