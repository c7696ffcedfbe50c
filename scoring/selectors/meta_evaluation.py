"""The leaderboard of evaluators: how well the scores of each follow people's ratings, and the points of one plot."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from annotation.models import Rating
from evalapp.accounts.models import Project

from ..models import Evaluator, Score, ScoreSet
from .aspects import choose_aspect
from .catalogue import entries
from .leaderboards import COEFFICIENTS, EvaluatorsQuery
from .people import CHUNK, Ratings, Units, load_ratings
from .score_sets import current_sets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evalapp.stats import Correlations

FEW_SYSTEMS = 6
FIXED = "the evaluator's own value of each system is held fixed in the resamples"


class People:
    """One human score per output of the wanted systems, with what the correlation needs to know about it."""

    def __init__(self, ratings: Ratings, *, method: str, subset: str) -> None:
        from evalapp.stats import normalise_ratings

        value = normalise_ratings(ratings.value, ratings.item, ratings.rater, method=method)  # type: ignore[arg-type]
        wanted = ratings.units.wanted(subset)[ratings.system] if len(ratings) else np.zeros(0, dtype=bool)
        kept = ratings.only(wanted)
        self.output, first, inverse = np.unique(kept.output, return_index=True, return_inverse=True)
        counts = np.bincount(inverse, minlength=len(self.output))
        means = np.bincount(inverse, weights=value[wanted], minlength=len(self.output)) / np.maximum(counts, 1)
        # Means that differ by rounding only are ties.
        self.mean: NDArray[np.float64] = np.round(means, 10)
        self.item, self.cluster, self.system = kept.item[first], kept.cluster[first], kept.system[first]
        self.units: Units = kept.units
        self.n_ratings = len(kept)
        self.n_raters = len(np.unique(kept.rater))
        self.n_simulated = int(kept.simulated.sum())

    def __len__(self) -> int:
        return len(self.output)

    def only(self, rows: NDArray[np.bool_]) -> People:
        """The same people's scores of some of the outputs; the counts of ratings stay those of all."""
        part = copy(self)
        for name in ("output", "mean", "item", "cluster", "system"):
            setattr(part, name, getattr(self, name)[rows])
        return part


def outside_training(sets: list[ScoreSet], people: People) -> NDArray[np.bool_]:
    """Which rated outputs no evaluator of these sets has learned from: what all of them can be compared on."""
    marked = [s.pk for s in sets if s.n_in_training]
    if not marked:
        return np.ones(len(people), dtype=bool)
    rows = Score.objects.filter(score_set__in=marked, in_training=True).order_by().values_list("output_id", flat=True)
    seen = np.fromiter(rows.distinct().iterator(chunk_size=CHUNK), dtype=np.int64)
    return ~np.isin(people.output, seen)


def load_people(project: Project, query: EvaluatorsQuery) -> tuple[Any, People]:
    """The aspect that is meant and its human scores."""
    aspect = choose_aspect(project, query.aspect, judged_by="ratings")
    return aspect, People(load_ratings(project, aspect), method=query.ratings, subset=query.systems)


def load_scores(score_set: ScoreSet, aspect: Any, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
    """The scores of rated outputs in the order given, nan where there is none."""
    rated = Rating.objects.filter(aspect=aspect, output__isnull=False).values("output")
    rows = Score.objects.filter(score_set=score_set, value__isnull=False, output__in=rated)
    found = dict(rows.values_list("output_id", "value").iterator(chunk_size=CHUNK))
    return np.array([found.get(int(output), np.nan) for output in outputs], dtype=np.float64)


def rank_evaluators(project: Project, query: EvaluatorsQuery) -> dict[str, Any]:
    """The table as plain values: settings, counts and one row per evaluator; sentinels that nobody has applied
    stand in it, too, with the reason in place of figures."""
    aspect, people = load_people(project, query)
    sets = current_sets(project, query.references, aspect.name)
    common = outside_training(sets, people)
    compared = people if common.all() else people.only(common)
    rows = []
    settings = ""
    for score_set in sets:
        found, note = _correlate(score_set, aspect, compared, query)
        settings = found.signature
        whole = None if compared is people else _correlate(score_set, aspect, people, query)[0]
        rows.append(_row(score_set, found, note, whole))
    applied = {row["name"] for row in rows}
    sentinels = [entry for entry in entries() if entry.kind == "sentinel"]
    rows += [_unapplied(project, entry) for entry in sentinels if entry.name not in applied]
    n_systems = len(np.unique(compared.system)) if len(compared) else 0
    of_people = f"aspect:{aspect.name}|ratings:{query.ratings}|systems:{query.systems}"
    return {
        "kind": "evaluators",
        "aspect": aspect.name,
        "level": query.level,
        "grouping": query.grouping,
        "systems": query.systems,
        "references": query.references,
        "ratings": query.ratings,
        "signature": f"{settings or 'level:' + query.level}|{of_people}",
        "n_outputs": len(compared),
        "n_excluded": len(people) - len(compared),
        "n_ratings": people.n_ratings,
        "n_raters": people.n_raters,
        "n_systems": n_systems,
        "n_items": len(np.unique(compared.item)),
        "n_simulated": people.n_simulated,
        "note": _note(query, len(people), len(compared), n_systems),
        "rows": sorted(rows, key=_order),
    }


def _note(query: EvaluatorsQuery, n: int, n_compared: int, n_systems: int) -> str:
    if n == 0:
        return "No output of these systems has been rated for this aspect."
    if n_compared == 0:
        return (
            "Some evaluator learned from every rated output, so there is nothing left to compare on. Train with folds, "
            "delete that evaluator, or have further outputs rated."
        )
    if query.level == "system" and n_systems < FEW_SYSTEMS:
        return f"With {n_systems} systems the system level ranks nothing: see the intervals."
    return ""


def _order(row: dict[str, Any]) -> tuple[bool, float, str]:
    value = row["pearson"]["value"]
    return (value is None, -(value or 0.0), row["evaluator"])


def _correlate(score_set: ScoreSet, aspect: Any, people: People, query: EvaluatorsQuery) -> tuple[Correlations, str]:
    from evalapp.stats import correlate

    metric = load_scores(score_set, aspect, people.output)
    note = ""
    if query.level == "system" and score_set.systems:
        own = {(row["system"], row["step"]): row["value"] for row in score_set.systems}
        of_unit = [own.get((unit.name, unit.step)) for unit in people.units.units]
        values = np.array([np.nan if value is None else value for value in of_unit], dtype=np.float64)
        metric, note = values[people.system] if len(people) else metric, FIXED
    found = correlate(
        metric,
        people.mean,
        people.item,
        people.system,
        level=query.level,  # type: ignore[arg-type]
        grouping=query.grouping,  # type: ignore[arg-type]
        cluster=people.cluster,
    )
    return found, note


def _row(score_set: ScoreSet, found: Correlations, note: str, whole: Correlations | None) -> dict[str, Any]:
    evaluator: Evaluator = score_set.evaluator
    return {
        "evaluator": evaluator.slug,
        "name": evaluator.name,
        "kind": evaluator.kind,
        "is_sentinel": evaluator.kind == Evaluator.Kind.SENTINEL,
        "score_set": score_set.pk,
        "signature": score_set.full_signature,
        "short_signature": score_set.full_short_signature,
        "scored_at": score_set.scored_at.isoformat() if score_set.scored_at else None,
        **{name: found[name].as_dict() for name in COEFFICIENTS},  # type: ignore[index]
        "n": found.n_pairs,
        "n_missing": found.n_missing_metric,
        "n_items": found.n_items,
        "n_systems": found.n_systems,
        "undefined_groups": found.undefined_groups,
        "n_in_training": score_set.n_in_training,
        "whole": None if whole is None else _whole(whole),
        "note": note,
    }


def _whole(found: Correlations) -> dict[str, Any]:
    figures: dict[str, Any] = {name: found[name].as_dict() for name in COEFFICIENTS}  # type: ignore[index]
    return {**figures, "n": found.n_pairs}


def _unapplied(project: Project, entry: Any) -> dict[str, Any]:
    reason = f"not applied yet: manage.py score {entry.name} --project {project.slug}"
    undefined = {"value": None, "low": None, "high": None, "n": 0, "note": reason}
    return {
        "evaluator": entry.name,
        "name": entry.name,
        "kind": entry.kind,
        "is_sentinel": True,
        "score_set": None,
        "signature": "",
        "short_signature": "",
        "scored_at": None,
        **{name: dict(undefined) for name in COEFFICIENTS},
        "n": 0,
        "n_missing": 0,
        "n_items": 0,
        "n_systems": 0,
        "undefined_groups": {},
        "n_in_training": 0,
        "whole": None,
        "note": reason,
    }


def load_points(project: Project, query: EvaluatorsQuery, score_set: ScoreSet) -> list[dict[str, Any]]:
    """Metric and people for the outputs that have both (or the systems' means), for a scatter plot."""
    aspect, people = load_people(project, query)
    people = people.only(outside_training(current_sets(project, query.references, aspect.name), people))
    metric = load_scores(score_set, aspect, people.output)
    both = np.isfinite(metric) & np.isfinite(people.mean)
    labels = np.array([unit.label for unit in people.units.units], dtype=object)
    if query.level == "system":
        return _system_points(score_set, people, metric, both, labels)
    return [
        {"metric": float(m), "people": float(h), "system": str(labels[s])}
        for m, h, s in zip(metric[both], people.mean[both], people.system[both], strict=True)
    ]


def _system_points(
    score_set: ScoreSet, people: People, metric: NDArray[Any], both: NDArray[Any], labels: NDArray[Any]
) -> list[dict[str, Any]]:
    own = {(row["system"], row["step"]): row["value"] for row in score_set.systems}
    points = []
    for code in np.unique(people.system[both]):
        rows = both & (people.system == code)
        unit = people.units.units[int(code)]
        value = own.get((unit.name, unit.step)) if own else float(metric[rows].mean())
        if value is not None:
            points.append({"metric": value, "people": float(people.mean[rows].mean()), "system": str(labels[code])})
    return points
