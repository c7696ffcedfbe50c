"""Which sets of scores a table of evaluators stands on."""

from __future__ import annotations

from typing import Any

from evalapp.accounts.models import Project

from ..models import ScoreSet
from .score_sets import current_sets


def compared_sets(project: Project, query: Any, aspect: str | None = None) -> list[ScoreSet]:
    """The current sets of the evaluators that the query chooses, or of all. With `aspect` as `current_sets`."""
    sets, chosen = current_sets(project, query.references, aspect), query.chosen
    return [score_set for score_set in sets if score_set.evaluator.slug in chosen] if chosen else sets
