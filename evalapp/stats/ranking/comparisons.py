"""Rank systems from pairwise judgements by Bradley-Terry, Davidson, Rao-Kupper or Glicko-2, with intervals and rank
sets.

Likelihoods are in `bradley_terry`, fits in `comparison_fit`, Glicko-2 games in `skill`. Explained in
docs/explanation/statistics/comparisons.md#intervals-and-ranks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from evalapp.stats.core.coding import BoolArray, ColumnError, FloatArray, IntArray
from evalapp.stats.core.estimate import NAN, Estimate
from evalapp.stats.core.multiple_tests import holm
from evalapp.stats.ranking.bradley_terry import ELO, ELO_ZERO, MODELS
from evalapp.stats.ranking.comparison_fit import ALL_TIES, ComparisonFit, fit_judgements
from evalapp.stats.ranking.connectivity import LARGEST_PART, NEVER_COMPARED, classes_above
from evalapp.stats.ranking.glicko2 import TieRule
from evalapp.stats.ranking.judgements import Judgements, PairwiseComparisons, read_judgements
from evalapp.stats.ranking.skill import SkillRatings, VerdictTable, rank_by_games
from evalapp.stats.ranking.systems import CannotDecide, Ranking, SystemScore, link_tiers
from evalapp.stats.ranking.unbounded import ClassRatings, Order, order_systems, penalised_differences
from evalapp.stats.resampling.bootstrap import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_CONFIDENCE,
    NO_WIDTH,
    Bootstrap,
    percentile_interval,
)

ComparisonMethod: TypeAlias = Literal["bradley-terry", "davidson", "rao-kupper", "glicko2"]
COMPARISON_METHODS: tuple[ComparisonMethod, ...] = (*MODELS, "glicko2")
Interval: TypeAlias = Literal["sandwich", "bootstrap"]
Adjust: TypeAlias = Literal["none", "holm"]

NO_TIES = "no interval: no comparison is tied"
SAME_LENGTH = "all texts of the systems that can be rated are equally long"
#: Note on the rank sets of Glicko-2, which stay wide for any number of judgements.
GLICKO_RANKS = (
    "Glicko-2’s deviation says how far a rating may still move with the next games, not how many judgements there are: "
    "it does not shrink with more comparisons, so these rank sets are wide. Nor does it grow with few comparisons: two "
    "systems differ in rank only where a Bradley-Terry fit with Firth’s penalty also finds a significant difference. "
    "Choose Bradley-Terry or Davidson for rank sets that depend on the number of judgements."
)
# Differences of theta below this are rounding.
_DIGITS = 9
# With fewer defined resamples an interval would be biased towards those that happen to be defined.
_MIN_DEFINED = 0.5


@dataclass(frozen=True, slots=True)
class ComparisonModel:
    """How systems are rated from judgements.

    method: one of `COMPARISON_METHODS`.
    side: estimate an advantage of the first side (not Glicko-2).
    cannot_decide: `drop` or `tie`.
    prior_sd: puts N(0, sd^2) on the theta; without it only the largest class of systems with finite ratings among
        themselves has values, and the rest says why not.
    seeds, tie_rule: simulations of Glicko-2, and how its games count ties."""

    method: ComparisonMethod = "bradley-terry"
    side: bool = False
    cannot_decide: CannotDecide = "drop"
    prior_sd: float | None = None
    seeds: int = 100
    tie_rule: TieRule = "half"


DEFAULT_MODEL = ComparisonModel()


def rank_by_comparisons(
    columns: PairwiseComparisons,
    *,
    model: ComparisonModel = DEFAULT_MODEL,
    interval: Interval = "sandwich",
    adjust: Adjust = "none",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Ranking:
    """Rank systems by pairwise judgements.

    Values are 1000 + 400 / ln 10 theta with the theta summing to 0 (Glicko-2: its own ratings, averaged over
    `model.seeds` simulations). `both_bad` counts as a tie, its share is in each system's `shares`. Covariates of the
    three models: `model.side`, `columns.rater` (each rater's own advantage of the first side, a normal effect of
    standard deviation 1 around the common one), `columns.length_difference` (in its root mean squares).

    Only the largest part of the systems that comparisons link is ranked (`is_ranked`). A system that never lost ranks
    above all systems that it beat, directly or through others, and one that never won ranks below
    (`unbounded.order_systems`); two systems without a chain of wins between them share ranks.

    Intervals: "sandwich" H^-1 G H^-1, G summed over clusters (`bootstrap.cluster`, else items, else judgements);
    "bootstrap" resamples the same units. Two systems differ if the interval of their difference excludes 0
    (`adjust="holm"`: with Holm's correction over all pairs); `rank_low` = 1 + systems that are significantly better,
    `rank_high` = systems minus those that are significantly worse. Glicko-2: the same with intervals r +- 1.96 RD that
    do not overlap and a p of `unbounded.penalised_differences` below 1 - `bootstrap.confidence`.

    `extras`: connectivity, tie (nu or kappa), side, length, raters (effects), groups (runs of systems without a
    significant difference), both_bad_share, tie_share, log_likelihood, n_units (independent ones), or Glicko-2's
    converged and games.

    Raises ValueError for unknown options, `ColumnError` for columns that do not fit.

    >>> columns = PairwiseComparisons(["bart"] * 4, ["t5"] * 4, ["a", "a", "b", "tie"])
    >>> [(str(row.system), round(row.estimate.value)) for row in rank_by_comparisons(columns).systems]
    [('bart', 1044), ('t5', 956)]
    """
    method, prior_sd, confidence = model.method, model.prior_sd, bootstrap.confidence
    if method not in COMPARISON_METHODS:
        raise ValueError(f"method is one of {', '.join(COMPARISON_METHODS)}, not '{method}'")
    if interval not in ("sandwich", "bootstrap") or adjust not in ("none", "holm"):
        raise ValueError("interval is 'sandwich' or 'bootstrap', adjust 'none' or 'holm'")
    judged = read_judgements(columns, cluster=bootstrap.cluster, cannot_decide=model.cannot_decide)
    covariates = [name for name in ("rater", "length_difference", "weight") if getattr(columns, name) is not None]
    weighted = "yes" if "weight" in covariates else "no"
    length = columns.length_difference
    if length is not None and np.size(length) and not np.any(length):
        raise ColumnError("length_difference", "all differences are 0, so there is nothing to adjust for")
    if method == "glicko2":
        if model.side or covariates:
            raise ValueError("Glicko-2 has no covariates and no weights; choose another method for them")
        return _by_glicko2(judged, model, bootstrap)
    settings = [f"{judged.settings}|covariates:{_covariates(model.side, columns.rater, columns.length_difference)}"]
    settings.append(f"prior:{f'{prior_sd:g}' if prior_sd else 'none'}|weights:{weighted}")
    unit = "cluster" if bootstrap.cluster is not None else "item" if columns.item is not None else "judgement"
    draws = f"|resamples:{bootstrap.resamples}|seed:{bootstrap.seed}" if interval == "bootstrap" else ""
    settings.append(f"interval:{interval}({unit}){draws}|adjust:{adjust}")
    if not len(judged.labels):
        return _empty(method, judged, "|".join(settings), confidence)
    options: dict[str, Any] = {"side": model.side, "raters": columns.rater is not None, "prior_sd": prior_sd}
    result = fit_judgements(judged, method, **options)

    def bound_spread(fit: ComparisonFit) -> _Spread:
        return _bootstrap(fit, bootstrap) if interval == "bootstrap" else _normal(fit, confidence)

    spread = bound_spread(result)
    others = [] if prior_sd is not None else _rate_other_classes(judged, result, options, bound_spread)
    rated = [ClassRatings(result.rated, result.theta, spread.p), *others]
    order = order_systems(judged, rated, by_value=prior_sd is not None)
    ranking = _rank_fit(judged, result, spread, order, "|".join(settings), bootstrap, adjust)
    return replace(ranking, resamples=bootstrap.resamples if interval == "bootstrap" else 0)


def rank_fitted(judged: Judgements, fit: ComparisonFit, settings: str, bootstrap: Bootstrap) -> Ranking:
    """Return the ranking of a fit with normal intervals from its covariance, and rank sets from tests of all pairs.

    `judged`: the judgements; `fit`: its values and covariance, which may have other sources than `judged`; `settings`:
    text for the signature; `bootstrap`: the confidence."""

    def bound_spread(one: ComparisonFit) -> _Spread:
        return _normal(one, bootstrap.confidence)

    spread = bound_spread(fit)
    rated = [ClassRatings(fit.rated, fit.theta, spread.p), *_rate_other_classes(judged, fit, {}, bound_spread)]
    ranking = _rank_fit(judged, fit, spread, order_systems(judged, rated), settings, bootstrap, "none")
    return replace(ranking, resamples=0)


def _rank_fit(
    judged: Judgements, result: ComparisonFit, spread: _Spread, order: Order, settings: str, bootstrap: Bootstrap,
    adjust: Adjust,
) -> Ranking:  # fmt: skip
    confidence = bootstrap.confidence
    if result.fit is None and result.note not in ("", ALL_TIES, result.connectivity.note):
        order = Order.without_ranks(len(judged.labels))  # without a fit there is no order
    differs = (order.p if adjust == "none" else _holm(order.p)) < 1 - confidence
    rows, groups = _rows(judged, result, spread, order, differs)
    settings += "|unbounded:firth" if order.is_unbounded else ""
    settings += "" if result.connectivity.connected else f"|{LARGEST_PART}"
    return Ranking(
        result.model, rows, judged.n_items, judged.n_clusters, bootstrap.resamples, bootstrap.seed, confidence,
        judged.totals, _extras(judged, result, spread, confidence) | {"groups": groups}, settings,
    )  # fmt: skip


def _rate_other_classes(
    judged: Judgements, result: ComparisonFit, options: dict[str, Any], bound_spread: Callable[[ComparisonFit], _Spread]
) -> list[ClassRatings]:
    """Return ratings within the other classes. They are finite and order a class, but share no zero with the others."""
    found = []
    for among in _other_classes(judged, result.rated):
        other = fit_judgements(judged, result.model, **options, among=among)
        if other.fit is not None:
            found.append(ClassRatings(among, other.theta, bound_spread(other).p))
    return found


def _other_classes(judged: Judgements, rated: BoolArray) -> list[BoolArray]:
    """Return masks of the strongly connected classes of at least two linked systems, except that of the rated ones."""
    linked = judged.linked
    member = classes_above(judged.beats)[0]
    sizes = np.bincount(member, weights=linked & ~rated)
    return [(member == code) & linked for code in np.flatnonzero(sizes > 1)]


@dataclass(frozen=True)
class _Spread:
    """Intervals of theta (2, k), two-sided p of each difference (k, k), and intervals of the other parameters."""

    theta: FloatArray
    p: FloatArray
    others: list[Estimate]
    other_p: list[float]
    note: str = ""


def _normal(found: ComparisonFit, confidence: float) -> _Spread:
    k = len(found.theta)
    z = float(ndtri(0.5 + confidence / 2))
    covariance = found.covariance
    variance = np.diag(covariance)
    sd = np.sqrt(np.maximum(variance, 0.0))
    beta = np.concatenate([found.theta, found.others])
    ends = np.stack([beta - z * sd, beta + z * sd])
    apart = found.theta[:, None] - found.theta[None, :]
    theta_cov = covariance[:k, :k]
    between = np.diag(theta_cov)[:, None] + np.diag(theta_cov)[None, :] - 2 * theta_cov
    p = _two_sided(apart, between)
    others = [_estimate(float(beta[place]), ends[:, place], found.n_judgements) for place in range(k, len(beta))]
    other_p = [float(value) for value in _two_sided(beta[k:], variance[k:])]
    return _Spread(ends[:, :k], p, others, other_p, found.note)


def _two_sided(distance: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the two-sided p; 1 where the distance is rounding, nan without a variance."""
    z = np.abs(distance) / np.sqrt(np.where(variance > 1e-18, variance, np.nan))
    return np.asarray(np.where(np.abs(distance) < 10.0**-_DIGITS, 1.0, 2 * ndtr(-z)))


def _bootstrap(found: ComparisonFit, bootstrap: Bootstrap) -> _Spread:
    k = len(found.theta)
    beta = np.concatenate([found.theta, found.others])
    drawn = found.resampled(bootstrap.resamples, bootstrap.seed)
    defined = ~np.isnan(drawn).any(axis=1)
    share = float(defined.mean()) if len(drawn) else 0.0
    note = found.note
    if not len(drawn) or share < _MIN_DEFINED:
        few = f"no interval: only {share:.0%} of the resamples give finite ratings"
        note = note if note.startswith("no interval") else few
        return _Spread(
            np.full((2, k), NAN), np.full((k, k), NAN),
            [Estimate.point(float(value), found.n_judgements, note) for value in beta[k:]],
            [NAN] * (len(beta) - k), note,
        )  # fmt: skip
    kept = drawn[defined]
    ends = np.array([percentile_interval(column, bootstrap.confidence) for column in kept.T]).T
    p = np.ones((k, k))
    for one in range(k):
        apart = kept[:, one, None] - kept[:, one + 1 : k]
        p[one, one + 1 :] = p[one + 1 :, one] = _add_one(apart)
    others = [_estimate(float(beta[place]), ends[:, place], found.n_judgements) for place in range(k, len(beta))]
    return _Spread(ends[:, :k], p, others, _add_one(kept[:, k:]).tolist(), note)


def _add_one(values: FloatArray) -> FloatArray:
    """Return the two-sided p of columns of resampled differences, each share (x + 1) / (n + 1)."""
    n = len(values) + 1
    below = ((values <= 10.0**-_DIGITS).sum(axis=0) + 1) / n
    above = ((values >= -(10.0**-_DIGITS)).sum(axis=0) + 1) / n
    return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above)))


def _holm(p: FloatArray) -> FloatArray:
    """Holm's correction over all pairs of a symmetric matrix."""
    one, two = np.triu_indices(len(p), 1)
    mended = holm([None if math.isnan(value) else float(value) for value in p[one, two]])
    result = np.ones_like(p)
    result[one, two] = result[two, one] = [NAN if value is None else value for value in mended]
    return result


def _rows(
    judged: Judgements, found: ComparisonFit, spread: _Spread, order: Order, differs: BoolArray
) -> tuple[tuple[SystemScore, ...], list[list[Any]]]:
    """Return rows of all systems, best first, and the runs of ranked systems without a significant difference."""
    n = len(judged.labels)
    value = np.full(n, NAN)
    value[found.rated] = np.round(found.theta, _DIGITS)
    ends = np.full((2, n), NAN)
    ends[:, found.rated] = spread.theta
    estimates = []
    n_outputs = judged.n_outputs
    for k in range(n):
        if math.isnan(value[k]):
            estimates.append(Estimate.undefined(found.reasons[k], int(n_outputs[k])))
            continue
        points = ELO_ZERO + ELO * ends[:, k]
        estimates.append(_estimate(ELO_ZERO + ELO * float(value[k]), points, int(n_outputs[k]), spread.note))
    return _score_rows(judged, estimates, value, order, differs)


def _estimate(value: float, ends: FloatArray, n: int, note: str = "") -> Estimate:
    """Return an estimate; an interval without width is left out (for example if each item has a win for either
    side)."""
    result = Estimate(value, float(ends[0]), float(ends[1]), n, note)
    if not result.has_interval or ends[1] - ends[0] > 1e-9:
        return result
    return Estimate.point(value, n, note).with_note(NO_WIDTH)


def _row_order(value: FloatArray, rank: IntArray, ranked: BoolArray) -> list[int]:
    """Return positions from best to worst, those without a rank last, then those without a value, ties by label."""
    missing = np.isnan(value)
    return sorted(
        range(len(value)), key=lambda k: (not ranked[k], int(rank[k]), bool(missing[k]), -np.nan_to_num(value[k]), k)
    )


def _runs(order: list[int], differs: BoolArray) -> list[list[int]]:
    """Return the longest runs of at least two neighbours in the order without a difference between any two."""
    runs: list[list[int]] = []
    reached = 0
    for begin in range(len(order)):
        end = begin + 1
        while end < len(order) and not differs[order[end], order[begin:end]].any():
            end += 1
        if end - begin > 1 and end > reached:
            runs.append(order[begin:end])
            reached = end
    return runs


def _score_rows(
    judged: Judgements, estimates: list[Estimate], value: FloatArray, order: Order, differs: BoolArray
) -> tuple[tuple[SystemScore, ...], list[list[Any]]]:
    """Return rows, best first, and the runs of ranked systems without a significant difference, by label."""
    rank, rank_low, rank_high = order.ranks(differs)
    places = _row_order(value, rank, order.ranked)
    ranked = [k for k in places if order.ranked[k]]
    tiers = link_tiers(ranked, rank_low, rank_high)
    last = max(tiers.values(), default=0) + 1
    shares, n_ratings = judged.shares, judged.n_ratings
    names = np.asarray(judged.labels).tolist()
    rows = tuple(
        SystemScore(
            system=names[k],
            estimate=estimates[k],
            n_outputs=int(judged.n_outputs[k]),
            n_ratings=int(n_ratings[k]),
            rank=int(rank[k]),
            rank_low=int(rank_low[k]),
            rank_high=int(rank_high[k]),
            tier=tiers.get(k, last),
            shares={name: float(share[k]) for name, share in shares.items() if n_ratings[k]},
            is_ranked=bool(order.ranked[k]),
        )
        for k in places
    )
    return rows, [[names[k] for k in run] for run in _runs(ranked, differs)]


def _extras(judged: Judgements, found: ComparisonFit, spread: _Spread, confidence: float) -> dict[str, Any]:
    extras: dict[str, Any] = {"connectivity": found.connectivity.as_dict(), **judged.verdict_shares}
    extras["log_likelihood"] = found.log_likelihood
    if found.n_units is not None:
        extras["n_units"] = found.n_units
    raters = []
    for name, estimate, p in zip(found.names, spread.others, spread.other_p, strict=True):
        effect = estimate.as_dict() | {"p": None if math.isnan(p) else p}
        if name == "tie":
            extras["tie"] = {"parameter": "nu" if found.model == "davidson" else "kappa"} | _exponential(estimate)
        elif isinstance(name, tuple):
            raters.append({"rater": name[1]} | effect)
        else:
            extras[name] = effect | {"points": ELO * estimate.value}
    if judged.length is not None and "length" not in extras:
        extras["length"] = {**Estimate.undefined(found.note or SAME_LENGTH).as_dict(), "points": None}
    if raters:
        extras["raters"] = raters
    return extras


def _exponential(estimate: Estimate) -> dict[str, Any]:
    """Return nu or kappa from its logarithm; -700 represents nu = 0."""
    value, low, high = (0.0 if x < -600 else math.exp(x) for x in (estimate.value, estimate.low, estimate.high))
    note = estimate.note or ("" if estimate.has_interval else NO_TIES)
    return _estimate(value, np.array([low, high]), estimate.n, note).as_dict()


def _covariates(side: bool, rater: ArrayLike | None, length: ArrayLike | None) -> str:
    given = (("side", side), ("rater", rater is not None), ("length", length is not None))
    return ",".join(name for name, used in given if used) or "none"


def _empty(method: str, judged: Judgements, settings: str, confidence: float) -> Ranking:
    return Ranking(method, (), 0, 0, 0, 0, confidence, judged.totals, {}, settings)


def _by_glicko2(judged: Judgements, model: ComparisonModel, bootstrap: Bootstrap) -> Ranking:
    """Rank by Glicko-2 over simulated games; ranks follow from intervals that do not overlap and
    `build_games_ranking`."""
    seed, confidence = bootstrap.seed, bootstrap.confidence
    settings = f"{judged.settings}|tie:{model.tie_rule}|seeds:{model.seeds}|seed:{seed}|ranks:firth"
    if not len(judged.labels):
        return _empty("glicko2", judged, settings, confidence)
    if not len(judged):
        n = len(judged.labels)
        nobody = [Estimate.undefined("no judgement of this system")] * n
        nothing = np.zeros((n, n), dtype=np.bool_)
        order = Order.without_ranks(n)
        rows, _ = _score_rows(judged, nobody, np.full(n, NAN), order, nothing)
        return Ranking("glicko2", rows, 0, 0, 0, seed, confidence, judged.totals, {}, settings)
    settings += "" if judged.connectivity.connected else f"|{LARGEST_PART}"
    played = rank_by_games(build_verdict_table(judged), seeds=model.seeds, seed=seed, tie=model.tie_rule)
    return build_games_ranking(judged, played, settings, confidence)


def build_verdict_table(judged: Judgements, score: ArrayLike | None = None) -> VerdictTable:
    """Return the verdicts by pair of systems, numbered as in `labels`. `score` (n,) is what a game counts for system
    a instead of the verdict.

    `judged`: coded judgements."""
    n = len(judged.labels)
    places = [str(number).zfill(len(str(n))) for number in range(n)]
    return VerdictTable.of(places, judged.a, judged.b, 1 - judged.outcome, score)


def build_games_ranking(
    judged: Judgements, played: SkillRatings, settings: str, confidence: float = DEFAULT_CONFIDENCE
) -> Ranking:
    """Return the ranking from games simulated with `build_verdict_table(judged)`.

    `judged`: coded judgements; `played`: ratings from the games; `settings`: text for the signature; `confidence`:
    level of the intervals."""
    n = len(judged.labels)
    value, low, high = np.full(n, NAN), np.full(n, NAN), np.full(n, NAN)
    estimates = [
        Estimate.undefined(NEVER_COMPARED if seen else "no judgement of this system") for seen in judged.n_ratings
    ]
    z = float(ndtri(0.5 + confidence / 2))
    for row in played.systems:
        if row.estimate.is_defined:
            k, reach = int(row.system), z * row.deviation
            value[k], low[k], high[k] = row.estimate.value, row.estimate.value - reach, row.estimate.value + reach
            estimates[k] = Estimate(float(value[k]), float(low[k]), float(high[k]), int(judged.n_outputs[k]))
    differs = (low[None, :] > high[:, None]) | (high[None, :] < low[:, None])
    # The deviation does not reflect the number of judgements that games are drawn from: after a single win it is as
    # small.
    differs &= penalised_differences(judged, judged.linked)[1] < 1 - confidence
    order = Order(~np.isnan(value), value[None, :] > value[:, None], np.full((n, n), NAN))
    rows, groups = _score_rows(judged, estimates, value, order, differs)
    extras = {
        "connectivity": judged.connectivity.parts_only().as_dict(), **judged.verdict_shares,
        "converged": played.converged, "games": played.games, "groups": groups,
    }  # fmt: skip
    return Ranking(
        "glicko2", rows, judged.n_items, judged.n_clusters, 0, played.seed, confidence, judged.totals, extras, settings
    )
