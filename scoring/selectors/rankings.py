"""The leaderboard of systems: by people's ratings, comparisons or Turing judgements, or by an evaluator."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere

from ..models import Evaluator, Score, ScoreSet
from .aspects import choose_aspect
from .leaderboards import SystemsQuery
from .people import CHUNK, Labels, Unit, Units, get_units, load_comparisons, load_ratings
from .score_sets import get_current_set

if TYPE_CHECKING:
    from evalapp.stats import Ranking


def rank_systems(project: Project, query: SystemsQuery) -> dict[str, Any]:
    """The table as plain values: settings, counts and one row per system, best first."""
    if query.by:
        return _by_evaluator(project, query)
    if query.method == "mean":
        return _by_ratings(project, query)
    return _by_comparisons(project, query)


def _by_ratings(project: Project, query: SystemsQuery) -> dict[str, Any]:
    from evalapp.stats import normalise_ratings, rank_by_mean

    aspect = choose_aspect(project, query.aspect, judged_by="ratings")
    ratings = load_ratings(project, aspect)
    # Normalised over all ratings, so that a rating is worth the same in every subset of systems.
    value = normalise_ratings(ratings.value, ratings.item, ratings.rater, method=query.ratings)  # type: ignore[arg-type]
    rows = ratings.units.wanted(query.systems)[ratings.system] if len(ratings) else np.zeros(0, dtype=bool)
    kept = ratings.only(rows)
    ranking = rank_by_mean(value[rows], kept.item, kept.system, cluster=kept.cluster)
    raters = len(np.unique(kept.rater))
    table = _table(query, ranking, kept.units, kept.simulated, kept.system, aspect=aspect.name, raters=raters)
    table["scale"] = [aspect.low, aspect.high] if query.ratings == "raw" else [None, None]
    return table


def _by_comparisons(project: Project, query: SystemsQuery) -> dict[str, Any]:
    from evalapp.stats import rank_by_m1, rank_by_win_rate

    turing = query.method == "m1"
    aspect = choose_aspect(project, query.aspect, judged_by="comparisons")
    found = load_comparisons(project, aspect, turing=turing)
    wanted = found.units.wanted(query.systems)
    rows = wanted[found.system_a] if len(found.item) else np.zeros(0, dtype=bool)
    if not turing and len(found.item):
        rows = rows & wanted[found.system_b]
    item, cluster, verdict = found.item[rows], found.cluster[rows], found.verdict[rows]
    if turing:
        ranking = rank_by_m1(item, found.system_a[rows], verdict, cluster=cluster)
        side, simulated = found.system_a[rows], found.simulated[rows]
    else:
        ranking = rank_by_win_rate(item, found.system_a[rows], found.system_b[rows], verdict, cluster=cluster)
        side = np.concatenate([found.system_a[rows], found.system_b[rows]])
        simulated = np.concatenate([found.simulated[rows]] * 2)
    table = _table(query, ranking, found.units, simulated, side, aspect=aspect.name)
    table["scale"] = [0.0, 1.0]
    if not ranking.systems:
        what = "compared with a reference (Turing M1)" if turing else "compared with another"
        table["note"] = f"No output has been {what} for {aspect.name}."
    return table


def get_evaluator(project: Project, slug: str) -> Evaluator:
    found = Evaluator.objects.filter(project=project, slug=slug).first()
    if found is None:
        raise NotThere(
            f"No evaluator “{slug}” has been applied in {project.slug}. "
            f"Apply it first: manage.py score {slug} --project {project.slug}"
        )
    return found


def _by_evaluator(project: Project, query: SystemsQuery) -> dict[str, Any]:
    from evalapp.stats import rank_by_mean

    evaluator = get_evaluator(project, query.by)
    score_set = get_current_set(project, evaluator, query.references, query.aspect)
    if score_set is None:
        raise BadInput(
            f"{query.by} has no complete scores against “{query.references}” yet. See its run, or score again."
        )
    units = get_units(project)
    columns = _score_columns(score_set, units)
    item, cluster, system, value = columns
    rows = units.wanted(query.systems)[system] if len(system) else np.zeros(0, dtype=bool)
    ranking = rank_by_mean(value[rows], item[rows], system[rows], cluster=cluster[rows])
    table = _table(query, ranking, units, np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64), aspect=score_set.aspect)
    table["scale"] = [None, None]
    table["evaluator"] = {
        "slug": evaluator.slug,
        "signature": score_set.full_signature,
        "aspect": score_set.aspect,
        "n_in_training": score_set.n_in_training,
        "scored_at": score_set.scored_at.isoformat() if score_set.scored_at else None,
    }
    if score_set.systems:
        _use_system_scores(table, score_set)
    return table


def _score_columns(score_set: ScoreSet, units: Units) -> tuple[Any, Any, Any, Any]:
    rows = Score.objects.filter(score_set=score_set).order_by("output_id")
    fields = ("output__item_id", "output__item__group", "output__system_id", "output__step", "value")
    groups = Labels()
    columns = [array("q"), array("q"), array("q"), array("d")]
    for item, group, system, step, value in rows.values_list(*fields).iterator(chunk_size=CHUNK):
        code = (item, groups.code(group), units.code(system, step), np.nan if value is None else value)
        for column, cell in zip(columns, code, strict=True):
            column.append(cell)
    item, cluster, system, value = (np.array(column) for column in columns)
    return item, groups.sort()[cluster], units.sort()[system], value


def _use_system_scores(table: dict[str, Any], score_set: ScoreSet) -> None:
    """An evaluator that looks at all outputs of a system at once gives the value itself; then there is no interval."""
    own = {(row["system"], row["step"]): row for row in score_set.systems}
    for row in table["rows"]:
        found = own.get((row["system"], row["step"]))
        row.update(value=found["value"] if found else None, low=None, high=None)
        row["note"] = (
            "one value for all outputs of the system, without an interval"
            if row["value"] is not None
            else "the evaluator has no value for this system"
        )
    table["rows"].sort(key=lambda row: (row["value"] is None, -(row["value"] or 0.0), row["label"]))
    for row in table["rows"]:
        better = sum(other["value"] > row["value"] for other in table["rows"] if _both(other, row))
        row.update(rank=better + 1, rank_low=better + 1, rank_high=better + 1, tier=better + 1)
    table["signature"] = "method:evaluator|boot:none"


def _both(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return first["value"] is not None and second["value"] is not None


def _table(
    query: SystemsQuery,
    ranking: Ranking,
    units: Units,
    simulated: np.ndarray,
    side: np.ndarray,
    *,
    aspect: str,
    raters: int | None = None,
) -> dict[str, Any]:
    shares = _simulated_by_unit(simulated, side, len(units.units))
    rows = []
    for found in ranking.systems:
        unit: Unit = units.units[int(found.system)]
        estimate = found.estimate.as_dict()
        rows.append(
            {
                "rank": found.rank if estimate["value"] is not None else None,
                "rank_low": found.rank_low,
                "rank_high": found.rank_high,
                "tier": found.tier,
                "system": unit.name,
                "step": unit.step,
                "label": unit.label,
                "kind": unit.kind,
                "value": estimate["value"],
                "low": estimate["low"],
                "high": estimate["high"],
                "note": estimate["note"],
                "n": found.n_outputs,
                "n_ratings": found.n_ratings,
                "simulated": shares[int(found.system)],
                "shares": found.shares,
            }
        )
    method = "evaluator" if query.by else query.method
    people = f"|aspect:{aspect}|ratings:{query.ratings}" if not query.by else f"|by:{query.by}"
    return {
        "kind": "systems",
        "aspect": aspect,
        "method": method,
        "ratings": query.ratings,
        "systems": query.systems,
        "by": query.by or None,
        "signature": f"{ranking.signature}{people}|systems:{query.systems}",
        "n_items": ranking.n_items,
        "n_clusters": ranking.n_clusters,
        "n_raters": raters,
        "n_simulated": int(simulated.sum()),
        "totals": ranking.totals,
        "note": "" if rows else "No output of these systems has been judged for this aspect.",
        "rows": rows,
    }


def _simulated_by_unit(simulated: np.ndarray, side: np.ndarray, n_units: int) -> list[float]:
    totals = np.bincount(side, minlength=n_units)
    marked = np.bincount(side, weights=simulated.astype(float), minlength=n_units)
    return [float(m / t) if t else 0.0 for m, t in zip(marked, totals, strict=True)]
