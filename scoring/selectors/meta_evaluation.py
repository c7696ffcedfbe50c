"""The leaderboard of evaluators: reads what people said and the scores, and hands them to `scoring.boards`, which
computes; and the points of one plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from annotation.models import Aspect, Comparison, Rating
from evalapp.accounts.models import Project
from scoring.boards.metrics.compute import People, Progress, Scored, evaluators_table, find_common_outputs
from scoring.boards.metrics.dialogues import dialogues_table
from scoring.boards.metrics.ranked import Compared, evaluators_by_ranking
from scoring.boards.pairs.compute import pairs_table

from ..models import Score, ScoreSet
from .aspects import choose_aspect, list_judged
from .catalogue import entries
from .columns import find_columns, load_columns
from .compared import compared_sets
from .dialogues import load_dialogue_people, load_turns
from .leaderboards import BY_COMPARISONS, EvaluatorsQuery, PairsQuery, chosen_evaluators
from .people import CHUNK, load_comparisons, load_ratings

if TYPE_CHECKING:
    from numpy.typing import NDArray


def outside_training(sets: Sequence[ScoreSet], people: People | Compared) -> NDArray[np.bool_]:
    """Which rated outputs no evaluator of these sets has learned from: what all of them can be compared on."""
    marked = [s.pk for s in sets if s.n_in_training]
    if not marked:
        return np.ones(len(people), dtype=bool)
    rows = Score.objects.filter(score_set__in=marked, in_training=True).order_by().values_list("output_id", flat=True)
    seen = np.fromiter(rows.distinct().iterator(chunk_size=CHUNK), dtype=np.int64)
    return ~np.isin(people.output, seen)


def learned_most(sets: Sequence[ScoreSet], outside_of: Callable[[list[ScoreSet]], NDArray[np.bool_]]) -> dict[str, int]:
    """By evaluator, how much of what people judged it has learned from: who leaves nothing over. `outside_of` says of
    sets what none of them has learned from; it is asked once for each, so only where nothing is left."""
    return {s.evaluator.slug: int((~outside_of([s])).sum()) for s in sets if s.n_in_training}


def load_people(project: Project, query: EvaluatorsQuery, *, otherwise: str = "") -> tuple[Any, People]:
    """The aspect that is meant and its human scores. `otherwise`: what to do where outputs were only compared."""
    aspect = choose_aspect(project, query.aspect, judged_by="ratings", otherwise=otherwise)
    ratings = load_ratings(project, aspect, filter=query.filter)
    return aspect, People(ratings, method=query.ratings, subset=query.systems)


def load_scores(score_set: ScoreSet, aspect: Any, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
    """The scores of rated outputs in the order given, nan where there is none."""
    kept = find_columns(score_set)
    if kept is not None:
        return kept.of(outputs)
    rated = Rating.objects.filter(aspect=aspect, output__isnull=False).values("output")
    rows = Score.objects.filter(score_set=score_set, value__isnull=False, output__in=rated)
    found = dict(rows.values_list("output_id", "value").iterator(chunk_size=CHUNK))
    return np.array([found.get(int(output), np.nan) for output in outputs], dtype=np.float64)


def load_scored(score_set: ScoreSet, aspect: Any, people: People) -> Scored:
    """A set of scores as the tables take it, over the outputs that people rated."""
    return describe_set(score_set, load_scores(score_set, aspect, people.output))


def describe_set(score_set: ScoreSet, metric: NDArray[np.float64]) -> Scored:
    """What the tables tell of a set, with its scores of whatever outputs they are about."""
    evaluator = score_set.evaluator
    return Scored(
        evaluator=evaluator.slug,
        name=evaluator.name,
        kind=evaluator.kind,
        signature=score_set.full_signature,
        metric=metric,
        aspect=score_set.aspect,
        references=score_set.references,
        short_signature=score_set.full_short_signature,
        scored_at=score_set.scored_at.isoformat() if score_set.scored_at else None,
        n_in_training=score_set.n_in_training,
        score_set=score_set.pk,
        own=score_set.systems,
    )


def rank_evaluators(project: Project, query: EvaluatorsQuery, progress: Progress | None = None) -> dict[str, Any]:
    """The table as plain values: settings, counts and one row per evaluator; sentinels that nobody has applied
    stand in it, too, with the reason in place of figures."""
    if query.people != "ratings":
        return _by_ranking(project, query)
    if query.level == "dialogue":
        return _by_dialogues(project, query, progress)
    aspect, people = load_people(project, query, otherwise=BY_COMPARISONS)
    sets = compared_sets(project, query, aspect.name)
    outside = outside_training(sets, people)
    return evaluators_table(
        people,
        [load_scored(score_set, aspect, people) for score_set in sets],
        asdict(query),
        aspect=aspect.name,
        outside=outside,
        learned={} if outside.any() else learned_most(sets, lambda some: outside_training(some, people)),
        unapplied=_unapplied(project, query),
        progress=progress,
    )


def _unapplied(project: Project, query: EvaluatorsQuery) -> dict[str, str]:
    """What stands in the row of a sentinel that nobody applied; of chosen evaluators only in theirs."""
    sentinels = [entry.name for entry in entries() if entry.kind == "sentinel"]
    chosen = chosen_evaluators(query) or sentinels
    wanted = [name for name in sentinels if name in chosen]
    return {name: f"not applied yet: manage.py score {name} --project {project.slug}" for name in wanted}


def _by_dialogues(project: Project, query: EvaluatorsQuery, progress: Progress | None) -> dict[str, Any]:
    """The same table over whole dialogues: an evaluator's mean over the turns against people's ratings of the whole."""
    aspect, people = load_dialogue_people(project, query)
    found = load_turns(project, people)
    sets = compared_sets(project, query, aspect.name)
    outside = found.outside_training(sets)
    return dialogues_table(
        people,
        found.turns,
        [describe_set(score_set, found.mean(score_set)) for score_set in sets],
        asdict(query),
        aspect=aspect.name,
        outside=outside,
        learned={} if outside.any() else learned_most(sets, found.outside_training),
        unapplied=_unapplied(project, query),
        progress=progress,
    )


def _by_ranking(project: Project, query: EvaluatorsQuery) -> dict[str, Any]:
    """The same table against a ranking of the systems that people's comparisons give."""
    aspect, compared = load_compared(project, query, turing=query.people == "m1")
    return evaluators_by_ranking(
        compared, settings=asdict(query), aspect=aspect.name, unapplied=_unapplied(project, query),
        **_scored_on(project, query, aspect, compared),
    )  # fmt: skip


def tabulate_pairs(project: Project, query: PairsQuery) -> dict[str, Any]:
    """Every evaluator on the pairs of outputs that people compared."""
    aspect, compared = load_compared(project, query, turing=False)
    found = _scored_on(project, query, aspect, compared)
    return pairs_table(compared, settings=asdict(query), aspect=aspect.name, **found)


def load_compared(project: Project, query: EvaluatorsQuery | PairsQuery, *, turing: bool) -> tuple[Aspect, Compared]:
    """The aspect that is meant and the outputs that people compared for it, with each other or with a reference."""
    aspect = choose_compared_aspect(project, query.aspect, turing=turing)
    found = load_comparisons(project, aspect, turing=turing, filter=query.filter)
    return aspect, Compared(found, subset=query.systems, turing=turing)


def _scored_on(
    project: Project, query: EvaluatorsQuery | PairsQuery, aspect: Aspect, compared: Compared
) -> dict[str, Any]:
    """Of compared outputs every evaluator's scores, what none has learned from, and who leaves nothing over."""
    sets = compared_sets(project, query, aspect.name)
    outside = outside_training(sets, compared)
    # An output that nobody learned from may have been compared only with such as somebody has.
    is_left = len(compared.outside(outside)) > 0
    return {
        "scored": [describe_set(one, load_columns(one).of(compared.output)) for one in sets],
        "outside": outside,
        "learned": {} if is_left else learned_most(sets, lambda some: outside_training(some, compared)),
    }


def choose_compared_aspect(project: Project, name: str, *, turing: bool) -> Aspect:
    """The aspect of this name; without one the first that people compared, with each other or with a reference."""
    if name:
        return choose_aspect(project, name, judged_by="comparisons")
    rows = Comparison.objects.filter(output_b__isnull=turing)
    found = next((aspect for aspect, ways in list_judged(project, {"compared": rows}) if ways), None)
    return found or choose_aspect(project, "", judged_by="comparisons")


def load_points(
    project: Project, query: EvaluatorsQuery, score_set: ScoreSet, table: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Metric and people for the outputs that have both (or the systems' means), for a scatter plot. Against a ranking
    both stand in the table, which is computed where it is not given."""
    if query.people != "ratings":
        return _ranked_points(rank_evaluators(project, query) if table is None else table, score_set)
    aspect, people = load_people(project, query)
    sets = compared_sets(project, query, aspect.name)
    used = outside_training(sets, people)
    if query.level == "system":
        scored = [load_scored(one, aspect, people) for one in sets]
        used, _ = find_common_outputs(people, scored, asdict(query), used)
    people = people.only(used)
    metric = load_scores(score_set, aspect, people.output)
    both = np.isfinite(metric) & np.isfinite(people.mean)
    labels = np.array([unit.label for unit in people.units.units], dtype=object)
    if query.level == "system":
        return _system_points(score_set, people, metric, both, labels)
    return [
        {"metric": float(m), "people": float(h), "system": str(labels[s])}
        for m, h, s in zip(metric[both], people.mean[both], people.system[both], strict=True)
    ]


def _ranked_points(table: dict[str, Any], score_set: ScoreSet) -> list[dict[str, Any]]:
    values = next((row["values"] for row in table["rows"] if row["score_set"] == score_set.pk), [])
    people = [row for row in table["scores"] if row["value"] is not None]
    return [
        {"metric": value, "people": row["value"], "system": row["label"]}
        for value, row in zip(values, people, strict=False)
        if value is not None
    ]


def _system_points(
    score_set: ScoreSet, people: People, metric: NDArray[Any], both: NDArray[Any], labels: NDArray[Any]
) -> list[dict[str, Any]]:
    # As `Scored.has_own` of the table has it.
    counted = () if score_set.n_in_training else score_set.systems
    own = {(row["system"], row["step"]): row["value"] for row in counted}
    points = []
    for code in np.unique(people.system[both]):
        rows = both & (people.system == code)
        unit = people.units.units[int(code)]
        value = own.get((unit.name, unit.step)) if own else float(metric[rows].mean())
        if value is not None:
            points.append({"metric": value, "people": float(people.mean[rows].mean()), "system": str(labels[code])})
    return points
