"""Compute the table of systems from columns: settings, counts and one row per system, best first."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalapp.side_figures import side_figure
from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.ranking.bias import Bias, length_bias, side_bias
from evalapp.stats.ranking.bradley_terry import ELO, MODELS, Model
from evalapp.stats.ranking.comparisons import COMPARISON_METHODS, GLICKO_RANKS, ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.fragility import fragility
from evalapp.stats.ranking.judgements import PairwiseComparisons
from evalapp.stats.ranking.own_values import DRAWN, places_by_ends
from evalapp.stats.ranking.separation import estimate_separation
from evalapp.stats.ranking.systems import Ranking, link_tiers, rank_by_m1, rank_by_mean, rank_by_win_rate
from evalapp.stats.resampling.bootstrap import Bootstrap
from evalapp.translation import gettext as _
from scoring.boards.data.columns import (
    Comparisons,
    Ratings,
    Scores,
    Unit,
    Units,
    persons,
    select_ratings,
    without_repeats,
)

#: Parameters of a query; defaults apply if `resamples` and `seed` are absent.
Settings = Mapping[str, Any]
Table = dict[str, Any]
SystemValues = Sequence[Mapping[str, Any]]

#: Covariates of a model of comparisons: the side shown first, the longer text, and each rater's preference for
#: the first side (relative to the common one).
COVARIATES = ("side", "length", "rater")
NEGATED = "Lower is better for this evaluator: its values are negated."
METEOR_MAXIMUM = "METEOR (2005) is below 1 for identical texts: with n words its maximum is 1 − gamma / n^beta."
SAME_LENGTH = "all compared texts have the same length"


def systems_by_ratings(
    ratings: Ratings, settings: Settings, *, aspect: str, low: float | None, high: float | None
) -> Table:
    """Return systems by mean rating of an aspect with the scale `low` to `high`. `settings`: ratings, systems."""
    kept, value, counted = select_ratings(ratings, settings["ratings"], settings["systems"])
    ranking = rank_by_mean(
        value, kept.item, kept.system, bootstrap=Bootstrap(cluster=kept.cluster, **read_draws(settings))
    )
    raters = len(np.unique(kept.rater[np.isfinite(value)]))
    table = systems_table(settings, ranking, kept.units, kept.simulated, kept.system, aspect=aspect, raters=raters)
    table["scale"] = [low, high] if settings["ratings"] == "raw" else [None, None]
    table["counted"] = counted
    return table


def systems_by_comparisons(comparisons: Comparisons, settings: Settings, *, aspect: str) -> Table:
    """Return systems by comparisons of an aspect: of two outputs, or with a reference if `method` is m1.

    `settings`: method (win-rate, m1, or one of `COMPARISON_METHODS`), ratings, systems, covariates (some of
    `COVARIATES`, joined by +).
    """
    method = settings["method"]
    turing = method == "m1"
    kept = compared_within(comparisons, settings["systems"], turing=turing)
    n_repeats = int(comparisons.repeat.sum())
    ranking = rank_systems(kept, settings)
    side, simulated = kept.system_a, kept.simulated
    if not turing:
        side = np.concatenate([kept.system_a, kept.system_b])
        simulated = np.concatenate([kept.simulated] * 2)
    raters = len(np.unique(persons(kept.rater, kept.raters)))
    table = systems_table(settings, ranking, comparisons.units, simulated, side, aspect=aspect, raters=raters)
    table["n_simulated"] = int(kept.simulated.sum())  # one judgement, not one per side
    table["scale"] = [None, None] if method in COMPARISON_METHODS else [0.0, 1.0]
    table["counted"] = without_repeats(n_repeats)
    if not turing:
        biases_and_findings(table, kept)
    if not ranking.systems:
        what = "compared with a reference (Turing M1)" if turing else "compared with another"
        table["note"] = f"No output has been {what} for {aspect}."
    return table


def compared_within(comparisons: Comparisons, subset: str, *, turing: bool) -> Comparisons:
    """Return the first comparison of each pair by a person, without systems outside of the subset."""
    comparisons = comparisons.only(~comparisons.repeat) if len(comparisons) else comparisons
    wanted = comparisons.units.wanted(subset)
    rows = wanted[comparisons.system_a] if len(comparisons) else np.zeros(0, dtype=bool)
    if not turing and len(comparisons):
        rows = rows & wanted[comparisons.system_b]
    return comparisons.only(rows)


def rank_systems(kept: Comparisons, settings: Settings) -> Ranking:
    """Rank systems (by code) from comparisons with the method of `settings`."""
    if settings["method"] == "m1":
        per: Any = settings.get("per") or "judgement"
        return rank_by_m1(
            kept.item,
            kept.system_a,
            kept.verdict,
            per=per,
            bootstrap=Bootstrap(cluster=kept.cluster, **read_draws(settings)),
        )
    return (
        _by_model(kept, settings) if settings["method"] in COMPARISON_METHODS else by_wins(kept, **read_draws(settings))
    )


def parse_covariates(settings: Settings) -> frozenset[str]:
    """Return the covariates of the model of comparisons. Raises `ValueError` for an unknown covariate."""
    named = settings.get("covariates") or "none"
    result = frozenset() if named == "none" else frozenset(named.split("+"))
    if result - set(COVARIATES):
        raise ValueError(f"covariates must be some of {', '.join(COVARIATES)} joined by +, or none; not '{named}'")
    return result


def biases_and_findings(table: Table, kept: Comparisons) -> None:
    """What a reader of the first rows has to know, as figures in `extras` and as sentences in `findings`: how many more
    comparisons would separate the first two, how few changed ones would swap them, whether the side or the length of a
    text decides. By the method's own model where it is one, else by Davidson's, which has ties; then they say so."""
    first_two = [row["label"] for row in table["rows"][:2] if row["rank"] is not None]
    table["findings"] = [GLICKO_RANKS] if table["method"] == "glicko2" else []
    if len(first_two) < 2:
        return
    labels = np.array([unit.label for unit in kept.units.units])
    sides: tuple[Any, Any, Any] = (labels[kept.system_a], labels[kept.system_b], kept.verdict)
    own = table["method"] in MODELS
    model: Model = table["method"] if own else "davidson"
    by = "" if own else " (by Davidson’s model)"
    where: dict[str, Any] = {"item": kept.item, "cluster": kept.cluster}
    # Other systems' sentences are left out: the model's order may be another than that of shares.
    with side_figure(_("How many more comparisons separate ranks 1 and 2")):
        columns = PairwiseComparisons(*sides, item=kept.item)
        apart = estimate_separation(columns, cluster=kept.cluster, model=model)
        if [apart.first, apart.second] == first_two and apart.sentence:
            table["findings"].append(f"{apart.sentence.removesuffix('.')}{by}.")
            table["extras"]["separation"] = {"model": model, "direct": apart.direct, "spread": apart.spread}
    with side_figure(_("How many changed judgements swap ranks 1 and 2")):
        weak = fragility(*sides, model=model)
        if [weak.first, weak.second] == first_two:
            table["findings"].append(f"{weak.sentence.removesuffix('.')}{by}.")
            table["extras"]["fragility"] = {"model": model, "flips": weak.n_flips, "at_least": weak.at_least}
    with side_figure(_("The bias of the side")):
        _add_bias(table, "side_bias", side_bias(*sides, **where))
    if kept.longer is not None and kept.longer.any():
        with side_figure(_("The bias of the length")):
            _add_bias(table, "length_bias", length_bias(*sides, length_difference=kept.longer, **where))


def _add_bias(table: Table, name: str, bias: Bias) -> None:
    table["findings"].append(bias.sentence)
    table["extras"][name] = {**bias.estimate.as_dict(), "p": bias.p}


def by_wins(kept: Comparisons, **draws: Any) -> Ranking:
    """Rank by win rate. Labels are passed because notes name systems; the result has codes."""
    labels = _labels(kept)
    first, second = labels[kept.system_a], labels[kept.system_b]
    bootstrap = Bootstrap(cluster=kept.cluster, **draws)
    return number_units(rank_by_win_rate(kept.item, first, second, kept.verdict, bootstrap=bootstrap), kept.units)


def _labels(kept: Comparisons) -> NDArray[Any]:
    return np.array([unit.label for unit in kept.units.units] or [""])


def number_units(ranking: Ranking, units: Units) -> Ranking:
    """Replace labels of units by their codes."""
    code = {unit.label: number for number, unit in enumerate(units.units)}
    return replace(ranking, systems=tuple(replace(row, system=code[str(row.system)]) for row in ranking.systems))


def _by_model(kept: Comparisons, settings: Settings) -> Ranking:
    """Rank by a model of comparisons. Labels are passed because notes name systems; the result has codes."""
    labels = _labels(kept)
    used = parse_covariates(settings)
    known = kept.longer is not None and bool(kept.longer.any())
    ranking = rank_by_comparisons(
        PairwiseComparisons(
            labels[kept.system_a],
            labels[kept.system_b],
            kept.verdict,
            item=kept.item,
            rater=persons(kept.rater, kept.raters) if "rater" in used else None,
            length_difference=kept.longer if "length" in used and known else None,
            weight=_weights(kept) if settings.get("weights") == "propensity" else None,
        ),
        bootstrap=Bootstrap(cluster=kept.cluster, **read_draws(settings)),
        model=ComparisonModel(method=settings["method"], side="side" in used),
    )
    if "length" in used and not known:
        ranking.extras["length"] = {**Estimate.undefined(SAME_LENGTH).as_dict(), "points": None}
    effects = ranking.extras.pop("raters", None)
    if effects is not None:
        ranking.extras["rater_effects"] = _describe_spread(effects)
    return number_units(ranking, kept.units)


def _describe_spread(effects: Sequence[Mapping[str, Any]]) -> Table:
    """Return the spread of raters' preferences for the first side, in points, without naming raters."""
    points = ELO * np.array([row["value"] for row in effects if row["value"] is not None])
    return {
        "n": len(points),
        "sd": float(points.std()) if len(points) else None,
        "low": float(points.min()) if len(points) else None,
        "high": float(points.max()) if len(points) else None,
    }


def _weights(kept: Comparisons) -> FloatArray | None:
    """Return 1 / propensity of comparisons from adaptive campaigns, scaled to mean 1, and 1 for all others; None if
    there are none."""
    if kept.propensity is None or not np.isfinite(kept.propensity).any():
        return None
    chosen = np.isfinite(kept.propensity)
    weight = np.ones(len(kept))
    weight[chosen] = 1.0 / kept.propensity[chosen]
    weight[chosen] /= weight[chosen].mean()
    return weight


def systems_by_evaluator(
    scores: Scores, settings: Settings, *, evaluator: Mapping[str, Any], own: SystemValues = ()
) -> Table:
    """Return systems by an evaluator's mean score. `evaluator` (slug, signature, aspect, ...) is part of the table;
    `own` are values of an evaluator that scores whole systems."""
    rows = scores.units.wanted(settings["systems"])[scores.system] if len(scores) else np.zeros(0, dtype=bool)
    ranking = rank_by_mean(
        scores.value[rows],
        scores.item[rows],
        scores.system[rows],
        unknown="no score of an output of this system",
        bootstrap=Bootstrap(cluster=scores.cluster[rows], **read_draws(settings)),
    )
    nobody, nothing = np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64)
    table = systems_table(settings, ranking, scores.units, nobody, nothing, aspect=str(evaluator["aspect"]))
    table["scale"] = [None, None]
    table["evaluator"] = dict(evaluator)
    table["totals"] = {"scores": int(rows.sum())}
    for row in table["rows"]:
        row["n_ratings"] = 0
    if str(evaluator.get("signature", "")).startswith("meteor|"):
        table["counted"] = [METEOR_MAXIMUM]
    if "|negated" in str(evaluator.get("signature", "")):
        table["counted"] = [NEGATED]
    if own:
        _use_system_scores(table, own)
    return table


def read_draws(settings: Settings) -> dict[str, Any]:
    """Return the options of the bootstrap in `settings`."""
    return {name: int(settings[name]) for name in ("resamples", "seed") if settings.get(name) is not None}


def _use_system_scores(table: Table, own: SystemValues) -> None:
    """Replace mean scores by values of an evaluator that scores whole systems. Ranks follow from the intervals; a
    system without an interval may have any rank."""
    values = {(row["system"], row["step"]): row for row in own}
    for row in table["rows"]:
        result = values.get((row["system"], row["step"]), {})
        row.update({name: result.get(name) for name in ("value", "low", "high")})
        row["note"] = "the evaluator has no value for this system"
        if row["value"] is not None:
            row["note"] = result.get("note", "one value for the whole system, without an interval")
    table["rows"].sort(key=lambda row: (row["value"] is None, -(row["value"] or 0.0), row["label"]))
    low, high = (np.array([row[end] for row in table["rows"]], dtype=np.float64) for end in ("low", "high"))
    best, worst = places_by_ends(low, high)
    tiers = link_tiers(list(range(len(low))), best, worst)
    known = [row["value"] for row in table["rows"] if row["value"] is not None]
    for place, row in enumerate(table["rows"]):
        rank = None if row["value"] is None else 1 + sum(value > row["value"] for value in known)
        row.update(rank=rank, rank_low=int(best[place]), rank_high=int(worst[place]), tier=tiers[place])
    table["groups"] = _groups(table["rows"])
    drawn = not np.isnan(low).all()
    table["extras"] = {**table["extras"], "ranks": "ends"} if drawn else table["extras"]
    table["n_clusters"] = table["n_clusters"] if drawn else 0
    table["signature"] = (
        f"method:evaluator|{DRAWN if drawn else 'boot:none'}|by:{table['by']}|systems:{table['systems']}"
    )


def systems_table(
    settings: Settings,
    ranking: Ranking,
    units: Units,
    simulated: BoolArray,
    side: IntArray,
    *,
    aspect: str,
    raters: int | None = None,
) -> Table:
    """Return a ranking of units (by code) as a table. `simulated` and `side` describe the judgements: whether they are
    simulated, and the unit they are about."""
    shares = _simulated_by_unit(simulated, side, len(units.units))
    rows = []
    for ranked in ranking.systems:
        unit: Unit = units.units[int(ranked.system)]
        estimate = ranked.estimate.as_dict()
        rows.append(
            {
                "rank": ranked.rank if ranked.is_ranked else None,
                "rank_low": ranked.rank_low,
                "rank_high": ranked.rank_high,
                "tier": ranked.tier,
                "system": unit.name,
                "step": unit.step,
                "label": unit.label,
                "kind": unit.kind,
                **{name: estimate[name] for name in ("value", "low", "high", "note")},
                "n": ranked.n_outputs,
                "n_ratings": ranked.n_ratings,
                "simulated": shares[int(ranked.system)],
                "shares": ranked.shares,
            }
        )
    by = settings["by"]
    people = f"|aspect:{aspect}|ratings:{settings['ratings']}" if not by else f"|by:{by}"
    people += f"|campaign:{settings['campaign']}" if settings.get("campaign") else ""
    return {
        "kind": "systems",
        "aspect": aspect,
        "method": "evaluator" if by else settings["method"],
        "ratings": settings["ratings"],
        "systems": settings["systems"],
        "by": by or None,
        **{name: settings[name] for name in ("campaign", "per") if settings.get(name, "") not in ("", "judgement")},
        "signature": f"{ranking.signature}{people}|systems:{settings['systems']}",
        "n_items": ranking.n_items,
        "n_clusters": ranking.n_clusters,
        "n_raters": raters,
        "n_simulated": int(simulated.sum()),
        "totals": ranking.totals,
        "extras": ranking.extras,
        "groups": ranking.extras["groups"] if "groups" in ranking.extras else _groups(rows),
        "note": "" if rows else "No output of these systems has been judged for this aspect.",
        "rows": rows,
    }


def _groups(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the longest runs of adjacent systems whose rank ranges all overlap."""
    rated = [row for row in rows if row["value"] is not None]
    runs: list[list[str]] = []
    reached = 0
    for begin in range(len(rated)):
        end = begin + 1
        while end < len(rated) and all(_overlap(rated[end], row) for row in rated[begin:end]):
            end += 1
        if end - begin > 1 and end > reached:
            runs.append([row["label"] for row in rated[begin:end]])
            reached = end
    return runs


def _overlap(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    return bool(first["rank_low"] <= second["rank_high"] and second["rank_low"] <= first["rank_high"])


def _simulated_by_unit(simulated: BoolArray, side: IntArray, n_units: int) -> list[float]:
    totals = np.bincount(side, minlength=n_units)
    marked = np.bincount(side, weights=simulated.astype(float), minlength=n_units)
    return [float(m / t) if t else 0.0 for m, t in zip(marked, totals, strict=True)]
