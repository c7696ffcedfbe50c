"""Outdated scores in tables of evaluators, or of systems by an evaluator."""

from collections.abc import Mapping
from typing import Any

from evalapp.accounts.models import Project
from scoring.boards.base import Query
from scoring.boards.data.project import ProjectData

from .inputs import count_outputs
from .score_sets import SetState, get_states


def with_staleness(project: Project, query: Query, table: Mapping[str, Any]) -> dict[str, Any]:
    """Add `stale` to a table: its outdated scores with `evaluator`, `aspect`, `references`, `reason`, `n_unscored`
    (outputs without a score) and `final` (applying the evaluator again does not renew them). Rows of evaluators get
    `stale` (the reason) and `n_unscored`."""
    if not query.reads_scores:
        return dict(table)
    sets = query.select_sets(ProjectData(project), table["aspect"])
    states = get_states(project, sets, count_outputs(project))
    result = {**table, "stale": [_describe(state) for state in states if state.is_stale]}
    if query.kind == "evaluators":
        of_set = {state.score_set.pk: state for state in states}
        result["rows"] = [{**row, **_of_row(of_set.get(row["score_set"]))} for row in table["rows"]]
    return result


def _describe(state: SetState) -> dict[str, Any]:
    score_set = state.score_set
    return {
        "evaluator": score_set.evaluator.slug, "aspect": score_set.aspect, "references": score_set.references,
        "reason": state.words, "n_unscored": state.n_missing, "final": state.is_final,
    }  # fmt: skip


def _of_row(state: SetState | None) -> dict[str, Any]:
    return {"stale": state.words if state else "", "n_unscored": state.n_missing if state else 0}
