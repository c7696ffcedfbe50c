"""Compute the main leaderboard of evaluators: against ratings of outputs or dialogues, or a ranking of systems."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evalapp.side_figures import side_figure
from evalapp.stats.assisted.means import estimate_means, find_saved, place_means
from evalapp.stats.core.coding import BoolArray, IntArray
from evalapp.translation import gettext as _
from scoring.boards.base import AspectInfo, Data, Progress, Query, Table
from scoring.boards.choices import BY_COMPARISONS
from scoring.boards.metrics.by_ratings import evaluators_table
from scoring.boards.metrics.dialogues import Turns, dialogues_table
from scoring.boards.metrics.people import People, ScoredSets
from scoring.boards.metrics.query import EvaluatorsQuery
from scoring.boards.metrics.ranked import Compared, evaluators_by_ranking

#: Maximum number of scores for which saved judgements are computed (3 seconds).
MOST_SCORES = 3_000_000


def compute(data: Data, query: EvaluatorsQuery, progress: Progress | None = None) -> Table:
    """Return evaluators with their correlations; trivial baselines without scores have a row with the reason."""
    if query.people != "ratings":
        return _by_ranking(data, query)
    if query.level == "dialogue":
        return _by_dialogues(data, query, progress)
    aspect, people = load_people(data, query, otherwise=BY_COMPARISONS)
    sets = load_compared(data, query.select_sets(data, aspect.name), people.output)
    sets = replace(sets, unapplied=data.list_unapplied(query))
    table = evaluators_table(people, sets, _settings(data, query), aspect=aspect.name, progress=progress)
    if query.level == "segment" and table["rows"]:
        with side_figure(_("The judgements that evaluators save")):
            saved = _find_saved(data, query, aspect, people)
            table["rows"] = [{**row, "saved": saved.get(row["score_set"])} for row in table["rows"]]
    return table


def _find_saved(data: Data, query: EvaluatorsQuery, aspect: AspectInfo, people: People) -> dict[Any, float | None]:
    """Return for each score set the share of the judgements that it saves in means of systems, see
    `evalapp.stats.assisted.means`; None if outputs are in the evaluator's training data. Empty for too many scores."""
    outputs, cluster, system = data.load_outputs(query.systems)
    sets = query.select_sets(data, aspect.name)
    if len(outputs) * len(sets) > MOST_SCORES:
        return {}
    human = place_means(people.output, people.mean, outputs)
    result = {}
    for one in sets:
        scored = data.load_scored(one, outputs)
        is_learned = bool(scored.n_in_training) and bool(data.find_learned([one], outputs).any())
        rows = np.isfinite(scored.metric)
        columns = (human[rows], scored.metric[rows], cluster[rows], system[rows])
        result[scored.score_set] = None if is_learned or not rows.any() else find_saved(estimate_means(*columns))
    return result


def load_people(data: Data, query: Any, *, otherwise: str = "") -> tuple[AspectInfo, People]:
    """Return the aspect of the query and its human scores. `otherwise` is advice if outputs were only compared."""
    aspect = data.choose_aspect(query.aspect, "ratings", otherwise=otherwise)
    return aspect, People(data.load_ratings(aspect, query), method=query.ratings, subset=query.systems)


def load_comparisons(data: Data, query: Any, *, turing: bool) -> tuple[AspectInfo, Compared]:
    """Return the aspect of the query and its compared outputs: with each other, or (`turing`) with a reference."""
    aspect = data.choose_aspect(query.aspect, "turing" if turing else "pairs")
    comparisons = data.load_comparisons(aspect, query, turing=turing)
    return aspect, Compared(comparisons, subset=query.systems, turing=turing)


def load_compared(
    data: Data,
    score_sets: Sequence[Any],
    outputs: IntArray,
    *,
    find_outside: Callable[[Sequence[Any]], BoolArray] | None = None,
    is_left: Callable[[BoolArray], bool] = lambda outside: bool(outside.any()),
) -> ScoredSets:
    """Return the scores of judged outputs.

    `find_outside` says which judged units are in no training data of some evaluators (default: which outputs),
    `is_left` whether any of them can be compared.
    """
    find_outside = find_outside or (lambda some: ~data.find_learned(some, outputs))
    outside = find_outside(score_sets)
    scored = [data.load_scored(one, outputs) for one in score_sets]
    learned: dict[str, int] = {}
    if not is_left(outside):
        trained = [(one, row) for one, row in zip(score_sets, scored, strict=True) if row.n_in_training]
        learned = {row.evaluator: int((~find_outside([one])).sum()) for one, row in trained}
    return ScoredSets(scored, outside, learned)


def load_scored_on(data: Data, query: Query, aspect: AspectInfo, compared: Compared) -> ScoredSets:
    """Return the scores of compared outputs. An output outside of training data may be compared only with outputs in
    it, so comparisons decide whether anything is left."""
    score_sets = query.select_sets(data, aspect.name)
    return load_compared(data, score_sets, compared.output, is_left=lambda outside: len(compared.outside(outside)) > 0)


def _settings(data: Data, query: EvaluatorsQuery) -> dict[str, Any]:
    return {**query.params, **data.draws}


def _by_ranking(data: Data, query: EvaluatorsQuery) -> Table:
    aspect, compared = load_comparisons(data, query, turing=query.people == "m1")
    sets = replace(load_scored_on(data, query, aspect, compared), unapplied=data.list_unapplied(query))
    return evaluators_by_ranking(compared, sets, _settings(data, query), aspect=aspect.name)


def _by_dialogues(data: Data, query: EvaluatorsQuery, progress: Progress | None) -> Table:
    """Compare the mean score over the turns of a dialogue with ratings of the dialogue."""
    aspect = data.choose_aspect(query.aspect, "dialogues")
    people = People(data.load_dialogues(aspect, query), method=query.ratings, subset=query.systems)
    outputs, place = data.load_turns(people.output)
    turns = Turns(place, len(people))

    def find_outside(some: Sequence[Any]) -> BoolArray:
        return turns.outside(data.find_learned(some, outputs))

    sets = load_compared(data, query.select_sets(data, aspect.name), outputs, find_outside=find_outside)
    scored = [replace(one, metric=turns.mean(one.metric)) for one in sets.scored]
    sets = replace(sets, scored=scored, unapplied=data.list_unapplied(query))
    return dialogues_table(people, turns, sets, _settings(data, query), aspect=aspect.name, progress=progress)
