"""Which scores that a table of evaluators, or of systems by one, stands on are out of date, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalapp.accounts.models import Project

from ..models import ScoreSet
from .compared import compared_sets
from .inputs import count_outputs
from .leaderboards import AspectsQuery, EnhancedQuery, MatrixQuery, Query, SystemsQuery, chosen_evaluators, reads_scores
from .score_sets import SetState, get_current_set, get_states


def with_staleness(project: Project, query: Query, table: Mapping[str, Any]) -> dict[str, Any]:
    """The table with `stale`: what of its scores is out of date, each with `evaluator`, `aspect`, `references`,
    `reason`, `n_unscored`, how many outputs have no score, and `final`, whether nothing brings it up to date; and on
    each row of the main table of evaluators `stale` (the reason, or empty) and `n_unscored`."""
    if not reads_scores(query):
        return dict(table)
    states = get_states(project, _sets_of(project, query, table["aspect"]), count_outputs(project))
    found = {**table, "stale": [_describe(state) for state in states if state.is_stale]}
    if query.kind == "evaluators":
        of_set = {state.score_set.pk: state for state in states}
        found["rows"] = [{**row, **_of_row(of_set.get(row["score_set"]))} for row in table["rows"]]
    return found


def _sets_of(project: Project, query: Query, aspect: str) -> list[ScoreSet]:
    """The sets that the table of this query was computed from."""
    if isinstance(query, EnhancedQuery):
        from .enhanced import chosen_sets, newest_sets

        cells = newest_sets(project, chosen_sets(project, query), aspect, evaluators=chosen_evaluators(query))
        return [score_set for of_sets in cells.values() for score_set in of_sets.values()]
    if isinstance(query, SystemsQuery):
        from .rankings import get_evaluator

        found = get_current_set(project, get_evaluator(project, query.by), query.references, query.aspect)
        return [found] if found else []
    if isinstance(query, MatrixQuery):
        from .evaluator_boards import one_of_each

        return one_of_each(compared_sets(project, query), query.aspect)
    return compared_sets(project, query, None if isinstance(query, AspectsQuery) else aspect)


def _describe(state: SetState) -> dict[str, Any]:
    score_set = state.score_set
    return {
        "evaluator": score_set.evaluator.slug, "aspect": score_set.aspect, "references": score_set.references,
        "reason": state.words, "n_unscored": state.n_missing, "final": bool(state.deleted),
    }  # fmt: skip


def _of_row(state: SetState | None) -> dict[str, Any]:
    """A sentinel that nobody applied has no scores that could be out of date."""
    return {"stale": state.words if state else "", "n_unscored": state.n_missing if state else 0}
