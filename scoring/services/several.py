"""Score with several evaluators at once, each with its default options. What is already scored is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.models.data import ORIGINAL
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, EvalappError, NotThere
from evalapp.common.models import Run
from scoring.boards.choices import ASSISTANT

from ..selectors.catalogue import get_entry, list_shipped, resolve_alias
from ..selectors.score_sets import SetState, list_states
from .scores import Grounds, apply_evaluator, check_scoring

MOST_EVALUATORS = 100
#: Runs of this installation from which the speed of an evaluator is taken.
RECENT_RUNS = 300
#: Seconds per output of an evaluator that was never applied here, with an encoder (on a CPU) and without.
WITH_ENCODER, WITHOUT = 0.03, 0.0005
#: The time of runs with fewer outputs is that of their start.
LEAST_OUTPUTS = 200
#: Outcomes: nothing is scored yet; only new and changed outputs are scored; nothing to do; a run is doing it; refused.
OUTCOMES = NEW, CHANGED, CURRENT, UNDER_WAY, REFUSED = "new", "changed", "current", "under-way", "refused"


@dataclass(frozen=True)
class PlannedScores:
    """What scoring with an evaluator would do: at most `n_outputs` outputs in about `seconds`; `is_measured`: as fast
    as its last run here. `why` is the reason of a refusal."""

    evaluator: str
    outcome: str
    references: str = ""
    n_outputs: int = 0
    seconds: float = 0.0
    is_measured: bool = False
    why: str = ""

    @property
    def is_needed(self) -> bool:
        return self.outcome in (NEW, CHANGED)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def plan_scores(*, project: Project, evaluators: Sequence[str], references: str = ORIGINAL) -> list[PlannedScores]:
    """Return what scoring with each evaluator would do, in the given order. Raises `BadInput` for unknown names."""
    names = list(dict.fromkeys(evaluators))
    planner = _Planner(project, names, references)
    return [planner.plan(name) for name in names]


def score_several(
    *, project: Project, user: Any = None, evaluators: Sequence[str], references: str = ORIGINAL
) -> tuple[list[Run], list[PlannedScores]]:
    """Queue a run for each evaluator that has something to score; return the runs, and the plans left out."""
    plans = plan_scores(project=project, evaluators=evaluators, references=references)
    runs = [
        apply_evaluator(project=project, user=user, evaluator=plan.evaluator, references=references)
        for plan in plans
        if plan.is_needed
    ]
    return runs, [plan for plan in plans if not plan.is_needed]


class _Planner:
    """Reads once what all plans need."""

    def __init__(self, project: Project, names: Sequence[str], references: str) -> None:
        self.grounds, self.references = Grounds(project, names), references
        self._check_names(names)
        self.states: dict[str, list[SetState]] = {}
        for state in list_states(project, self.grounds.n_outputs):
            self.states.setdefault(state.score_set.evaluator.slug, []).append(state)
        kinds = ("score", "combine", "refit")
        self.active = list(Run.objects.filter(project=project, kind__in=kinds, state__in=Run.ACTIVE))
        self.speeds = _list_speeds()

    def _check_names(self, names: Sequence[str]) -> None:
        if not names:
            raise BadInput.for_field("evaluators", _("Select at least one evaluator."))
        if len(names) > MOST_EVALUATORS:
            text = _("At most %(most)s evaluators at once.") % {"most": MOST_EVALUATORS}
            raise BadInput.for_field("evaluators", text)
        for name in names:
            if name not in self.grounds.rows and name not in list_shipped():
                try:
                    get_entry(resolve_alias(name)[0])
                except NotThere as error:
                    raise BadInput.for_field("evaluators", error.detail) from error

    def plan(self, name: str) -> PlannedScores:
        row = self.grounds.find(name)
        if row is not None and row.is_combined:
            return self._make_plan(name, "", self.states.get(name, []), "combine", {"slug": name}, WITHOUT)
        if name == ASSISTANT:
            return self._make_plan(name, "", self.states.get(name, []), "refit", {"evaluator": name}, WITHOUT)
        if row is not None and row.is_judge:
            return self._make_plan(name, "", self.states.get(name, []), "judge", {"slug": name}, WITHOUT)
        try:
            asked = check_scoring(self.grounds, name, references=self.references)
        except EvalappError as error:
            return PlannedScores(name, REFUSED, why=error.detail)
        used, options = asked.params["references"], asked.params["options"]
        found = [state for state in self.states.get(asked.slug, []) if _is_of(state, used, options)]
        return self._make_plan(name, used, found, "score", asked.params, WITH_ENCODER if asked.queue else WITHOUT)

    def _make_plan(
        self, name: str, references: str, found: list[SetState], kind: str, params: dict[str, Any], slow: float
    ) -> PlannedScores:
        if any(run.kind == kind and params.items() <= run.params.items() for run in self.active):
            return PlannedScores(name, UNDER_WAY, references)
        complete = [state for state in found if state.score_set.scored_at]
        if any(not state.is_stale for state in complete):
            return PlannedScores(name, CURRENT, references)
        seconds = self.grounds.n_outputs * self.speeds.get(name, slow)
        outcome = CHANGED if complete else NEW
        return PlannedScores(name, outcome, references, self.grounds.n_outputs, seconds, name in self.speeds)


def _is_of(state: SetState, references: str, options: dict[str, Any]) -> bool:
    """Return whether a score set has these references and options; uploaded scores have no options."""
    run = state.score_set.run
    return state.score_set.references == references and (run is None or run.params.get("options", options) == options)


def _list_speeds() -> dict[str, float]:
    """Return the seconds per output in the last run of each evaluator, in any project."""
    runs = Run.objects.filter(kind="score", state=Run.State.SUCCEEDED).order_by("-pk")
    rows = runs.values_list("params__evaluator", "result__scored", "started_at", "finished_at")[:RECENT_RUNS]
    result: dict[str, float] = {}
    for name, scored, began, ended in rows:
        if name and scored and began and ended:
            result.setdefault(name, (ended - began).total_seconds() / max(scored, LEAST_OUTPUTS))
    return result
