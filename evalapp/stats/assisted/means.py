"""Means of systems from human judgements of a sample of outputs and an evaluator's scores of all.

The evaluator predicts, the judged sample corrects it: the difference estimator of survey sampling (Cochran 1977, ch. 7;
Särndal, Swensson and Wretman 1992), as prediction-powered inference with a tuned weight, PPI++ (Angelopoulos, Duchi and
Zrnic 2023). The judged outputs lie inside the scored ones; the published formulas are for two separate sets.

Explained in docs/explanation/statistics/assisted.md."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from evalapp.stats.core.coding import BoolArray, ColumnError, FloatArray, IntArray, encode, float_column, snap
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.core.options import refuse_options
from evalapp.stats.ranking.systems import NO_JUDGEMENT, Ranking, SystemScore, link_tiers, rank_intervals
from evalapp.stats.resampling.bootstrap import (
    DEFAULT_BOOTSTRAP,
    MIN_CLUSTERS,
    Bootstrap,
    resampled_sums,
    too_few_note,
    with_ends,
)

#: What the mean is of: items like the scored ones (the scored items are a sample), or only the scored items.
Target: TypeAlias = Literal["items-like-these", "these-items"]
TARGETS: tuple[Target, ...] = ("items-like-these", "these-items")
#: One weight of the evaluator for all systems, or one for each.
Sharing: TypeAlias = Literal["common", "system"]

#: Parts of the groups; map and weight of a part are fitted on the others.
FOLDS = 10


@dataclass(frozen=True)
class AssistedOptions:
    """How the evaluator is used.

    target: see `Target`. sharing: one weight for each system, or a common one, which can widen the interval of a
    system that the evaluator predicts worse than others (docs/decisions/one-weight-per-system.md). weight: a fixed
    weight of the scores as they are, instead of a fitted one: 0 is the human mean, 1 the difference estimator."""

    target: Target = "items-like-these"
    sharing: Sharing = "system"
    weight: float | None = None


DEFAULT_OPTIONS = AssistedOptions()


@dataclass(frozen=True)
class AssistedMeans:
    """Means of the systems `labels`, one entry per system; nan without a judged output.

    `value` (s,) and `covariance` (s, s) are assisted, `human` (s,) and `human_variance` (s,) by judgements only.
    `weight` (s,): share of the evaluator's prediction that is used, between 0 and 1. `n_judged`, `n_scored`: judged
    and all outputs; `n_groups`: groups with a judged output. `tables` (groups, 5, s) are the sums behind the means:
    number, ratings and predictions of judged outputs, number and predictions of the others."""

    labels: NDArray[np.generic]
    value: FloatArray
    covariance: FloatArray
    human: FloatArray
    human_variance: FloatArray
    weight: FloatArray
    n_judged: IntArray
    n_scored: IntArray
    n_groups: IntArray
    tables: FloatArray
    centre: float
    options: AssistedOptions
    #: Judged outputs are weighted by 1 / chance; the others in `tables` are then all outputs.
    is_weighted: bool = False

    @property
    def variance(self) -> FloatArray:
        """Variances of the assisted means, (s,)."""
        return np.asarray(np.diagonal(self.covariance))

    @property
    def effective(self) -> FloatArray:
        """Number of judgements that would give the same variance without the evaluator, (s,)."""
        ratio = np.divide(self.human_variance, self.variance, out=np.ones(len(self.value)), where=self.variance > 0)
        return np.asarray(self.n_judged * ratio)

    def estimate(self, k: int, confidence: float = 0.95, *, human: bool = False) -> Estimate:
        """Return the mean of system `k` with its t interval with `n_groups` - 1 degrees of freedom; with `human` the
        one by judgements only."""
        if not self.n_judged[k]:
            return Estimate.undefined(NO_JUDGEMENT)
        value, variance = (self.human[k], self.human_variance[k]) if human else (self.value[k], self.variance[k])
        point = Estimate.point(float(value), int(self.n_judged[k]))
        groups = {"items": int(self.n_groups[k])}
        if note := too_few_note(groups):
            return point.with_note(note)
        half = float(student.ppf(0.5 + confidence / 2, self.n_groups[k] - 1) * np.sqrt(variance))
        if self.options.target == "these-items" and self.n_judged[k] == self.n_scored[k]:
            return replace(point, low=point.value, high=point.value)
        return with_ends(point, point.value - half, point.value + half, groups)


def estimate_means(
    human: ArrayLike,
    score: ArrayLike,
    cluster: ArrayLike,
    system: ArrayLike,
    *,
    options: AssistedOptions = DEFAULT_OPTIONS,
    seed: int = 0,
    chance: ArrayLike | None = None,
) -> AssistedMeans:
    """Return the mean human rating of each system from ratings of a sample of outputs and scores of all.

    human: (n,) mean rating of each output in units of the scale, nan where it was not judged. score: (n,) scores by an
    evaluator that was not trained on these outputs, in any unit; higher is better. cluster: (n,) group of each output:
    groups are independent. system: (n,) system of each output. options: how the evaluator is used. seed: of the
    division of groups into folds.

    With n judged of N scored outputs, prediction f and weight w, the mean is w mean_all(f) + mean_judged(Y - w f). The
    prediction is linear in the score, fitted by least squares within systems to the judged outputs of the other folds;
    so is w, which minimises the variance and is clipped to [0, 1]. Variances are sandwich estimates over groups; for
    these items, times 1 - n / N, which is exact for groups judged whole and cautious for outputs drawn one by one. The
    judged outputs must be a random sample of the scored ones, or have known chances: then the mean of the judged is
    weighted by 1 / chance (normalised Horvitz-Thompson), and the estimate is w mean_all(f) + weighted mean(Y - w f).

    Raises `ColumnError` if a score is missing, if a chance is not above 0 and at most 1, and for chances with the
    target "these-items"."""
    judgement = float_column(human, "human")
    n = len(judgement)
    scores = float_column(score, "score", n)
    if not np.isfinite(scores).all():
        raise ColumnError("score", "every output needs a score")
    systems, labels = encode(system, "system", n)
    groups, _ = encode(cluster, "cluster", n)
    if chance is None:
        sums = collect_sums(judgement, scores, groups, systems, len(labels))
    else:
        if options.target == "these-items":
            raise ColumnError("chance", "outputs chosen with unequal chances have estimates for items like these only")
        weight = weigh_judged(float_column(chance, "chance", n), np.isfinite(judgement), systems)
        sums = collect_sums(judgement, scores, groups, systems, len(labels), weight)
    fold = deal_folds(sums.n_judged.sum(axis=1) > 0, seed)
    slope, share = fit_weights(sums, fold, options)
    return _combine(sums, (slope * share)[fold], share, labels, options)


def weigh_judged(chance: FloatArray, is_judged: BoolArray, system: IntArray) -> FloatArray:
    """Return the weight 1 / chance of each judged output, scaled to mean 1 over the chosen ones of its system; 1 for
    outputs without a chance, which come from a plain random sample."""
    chosen = is_judged & np.isfinite(chance)
    if not ((chance[chosen] > 0) & (chance[chosen] <= 1)).all():
        raise ColumnError("chance", "a chance must be above 0 and at most 1")
    weight = np.ones(len(chance))
    weight[chosen] = 1.0 / chance[chosen]
    counts = np.bincount(system[chosen], minlength=int(system.max(initial=-1)) + 1)
    sums = np.bincount(system[chosen], weights=weight[chosen], minlength=len(counts))
    weight[chosen] *= _divide(counts, sums)[system[chosen]]
    return weight


def find_saved(means: AssistedMeans) -> float | None:
    """Return the share of judgements that the evaluator saves, with variances summed over systems; None without one.

    `means`: of `estimate_means`."""
    known = means.n_groups > 1
    return share_saved(float(means.variance[known].sum()), float(means.human_variance[known].sum()))


def share_saved(assisted: float, human: float) -> float | None:
    """Return the share of judgements that an evaluator saves: 1 - `assisted` / `human` variance; None without one."""
    return 1.0 - assisted / human if human > 0 else None


def place_means(judged: IntArray, means: FloatArray, outputs: IntArray) -> FloatArray:
    """Return the mean of each of `outputs`, nan for those that were not judged.

    `judged`, `means`: judged outputs with their means; `outputs`: numbers of all outputs."""
    order = np.argsort(outputs)
    place = np.searchsorted(outputs[order], judged)
    is_known = place < len(outputs)
    is_known[is_known] = outputs[order[place[is_known]]] == judged[is_known]
    result = np.full(len(outputs), np.nan)
    result[order[place[is_known]]] = means[is_known]
    return result


def deal_folds(is_judged: BoolArray, seed: int) -> IntArray:
    """Return the fold of each group (g,): groups in random order are dealt in turn, first those with judgements."""
    shuffled = np.random.default_rng([seed, len(is_judged)]).permutation(len(is_judged))
    order = shuffled[np.argsort(~is_judged[shuffled], kind="stable")]
    fold = np.empty(len(order), dtype=np.int64)
    fold[order] = np.arange(len(order)) % max(min(FOLDS, int(is_judged.sum())), 1)
    return fold


@dataclass(frozen=True)
class GroupSums:
    """Sums over the outputs of each group and system, (groups, systems): of judged outputs their number, ratings Y,
    scores x, x^2 and x Y; of the others number and x. Ratings are relative to `centre`, scores to their system's
    mean. If outputs were chosen with unequal chances (`is_weighted`), those of judged outputs are weighted, and
    `n_rest` and `rest_score` are over all outputs. `counts`: judged outputs without weights, (groups, systems)."""

    n_judged: FloatArray
    rating: FloatArray
    judged_score: FloatArray
    square: FloatArray
    product: FloatArray
    n_rest: FloatArray
    rest_score: FloatArray
    centre: float
    counts: FloatArray
    is_weighted: bool = False

    @property
    def share(self) -> FloatArray:
        """By which the mean score of the rest minus that of the judged changes the mean, (systems,)."""
        n, n_rest = self.n_judged.sum(axis=0), self.n_rest.sum(axis=0)
        return find_share(n, n_rest, is_weighted=self.is_weighted)

    def only(self, rows: BoolArray) -> GroupSums:
        """Return the sums over a part of the groups."""
        names = ("n_judged", "rating", "judged_score", "square", "product", "n_rest", "rest_score", "counts")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})


def find_share(n: FloatArray, n_rest: FloatArray, *, is_weighted: bool) -> FloatArray:
    """Return the share of the rest among all outputs, 1 where the rest is everything."""
    return np.ones(np.shape(n)) if is_weighted else _divide(n_rest, n + n_rest)


def collect_sums(
    human: FloatArray, score: FloatArray, group: IntArray, system: IntArray, n_systems: int,
    weight: FloatArray | None = None,
) -> GroupSums:  # fmt: skip
    """Return the sums of (n,) columns of outputs; `human` is nan where an output was not judged. `weight`: of judged
    outputs that were chosen with unequal chances."""
    counts = np.maximum(np.bincount(system, minlength=n_systems), 1)
    score = score - (np.bincount(system, weights=score, minlength=n_systems) / counts)[system]
    is_judged = np.isfinite(human)
    centre = float(human[is_judged].mean()) if is_judged.any() else 0.0
    n_groups = int(group.max(initial=-1)) + 1
    cells, shape = group * n_systems + system, (n_groups, n_systems)

    def add(rows: BoolArray, column: FloatArray) -> FloatArray:
        table = np.bincount(cells[rows], weights=column[rows], minlength=n_groups * n_systems)
        return table.reshape(shape).astype(np.float64)

    ones, rating = np.ones(len(human)), human - centre
    by = ones if weight is None else weight
    rest = ~is_judged if weight is None else np.ones(len(human), dtype=np.bool_)
    return GroupSums(
        n_judged=add(is_judged, by), rating=add(is_judged, by * rating), judged_score=add(is_judged, by * score),
        square=add(is_judged, by * score**2), product=add(is_judged, by * score * rating), n_rest=add(rest, ones),
        rest_score=add(rest, score), centre=centre, counts=add(is_judged, ones), is_weighted=weight is not None,
    )  # fmt: skip


def fit_weights(sums: GroupSums, fold: IntArray, options: AssistedOptions) -> tuple[FloatArray, FloatArray]:
    """Return slope and weight of the prediction for every fold and system, (folds, systems), fitted without the fold.

    `fold`: (groups,) fold of each group. A negative slope becomes 0: then the evaluator does not count."""
    n_folds, n_systems = int(fold.max(initial=0)) + 1, sums.n_judged.shape[1]
    slope, weight = np.ones((n_folds, n_systems)), np.zeros((n_folds, n_systems))
    for k in range(n_folds):
        if options.weight is not None:
            weight[k] = options.weight
            continue
        others = sums.only(fold != k)
        slope[k] = _fit_slope(others)
        rating, score = _influences(others, options.target)
        product, square = -(rating * score).sum(axis=0), (score**2).sum(axis=0)
        if options.sharing == "common":
            product, square = product.sum(), square.sum()
        weight[k] = np.clip(_divide(product, square * slope[k]), 0.0, 1.0)
    return slope, weight


def _fit_slope(sums: GroupSums) -> float:
    """Return the slope of ratings on scores within systems, at least 0."""
    n, rating, score = (table.sum(axis=0) for table in (sums.n_judged, sums.rating, sums.judged_score))
    product = (sums.product.sum(axis=0) - _divide(score * rating, n)).sum()
    square = (sums.square.sum(axis=0) - _divide(score**2, n)).sum()
    return max(float(_divide(product, square)), 0.0) if square > 1e-12 * sums.square.sum() else 0.0


def _influences(sums: GroupSums, target: Target) -> tuple[FloatArray, FloatArray]:
    """Return the influence of each group on the human mean, and the change of the assisted mean by it for each unit of
    the weight of scores, (groups, systems) each."""
    rating, judged = _centre(sums.rating, sums.n_judged), _centre(sums.judged_score, sums.n_judged)
    if target == "these-items":
        return rating, -judged
    return rating, (_centre(sums.rest_score, sums.n_rest) - judged) * sums.share


def _centre(table: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the influence of each group on the mean: its sum relative to the mean of all, divided by their number."""
    n = counts.sum(axis=0)
    return np.asarray(_divide(table - counts * _divide(table.sum(axis=0), n), n))


def _divide(above: ArrayLike, below: ArrayLike) -> FloatArray:
    """Return above / below, 0 where `below` is 0."""
    above, below = np.broadcast_arrays(np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64))
    return np.divide(above, below, out=np.zeros(below.shape), where=below != 0)


def _combine(
    sums: GroupSums, coefficient: FloatArray, weight: FloatArray, labels: NDArray[np.generic], options: AssistedOptions
) -> AssistedMeans:
    """Return means and covariance with the coefficient (groups, systems) of scores in the prediction of each group."""
    sums = replace(sums, judged_score=coefficient * sums.judged_score, rest_score=coefficient * sums.rest_score)
    tables = np.stack([sums.n_judged, sums.rating, sums.judged_score, sums.n_rest, sums.rest_score], axis=1)
    n, counts = sums.n_judged.sum(axis=0), sums.counts.sum(axis=0)
    n_scored = sums.n_rest.sum(axis=0) + (0 if sums.is_weighted else counts)
    groups = np.count_nonzero(sums.counts, axis=0)
    rating, change = _influences(sums, options.target)
    drawn = sums.share if options.target == "these-items" else 1.0
    scale = np.sqrt(_divide(groups, groups - 1) * drawn)
    influence = (rating + change) * scale
    return AssistedMeans(
        labels=labels,
        value=_means_of_sums(tables.sum(axis=0), is_weighted=sums.is_weighted) + sums.centre,
        covariance=influence.T @ influence,
        human=np.where(n > 0, _divide(sums.rating.sum(axis=0), n) + sums.centre, np.nan),
        human_variance=((rating * scale) ** 2).sum(axis=0),
        weight=weight.mean(axis=0),
        n_judged=counts.astype(np.int64),
        n_scored=n_scored.astype(np.int64),
        n_groups=groups.astype(np.int64),
        tables=tables,
        centre=sums.centre,
        options=options,
        is_weighted=sums.is_weighted,
    )


def _means_of_sums(sums: FloatArray, *, is_weighted: bool) -> FloatArray:
    """Return the assisted means for sums (..., 5, systems) as in `AssistedMeans.tables`, nan without judgements."""
    n, rating, judged, n_rest, rest = np.moveaxis(sums, -2, 0)
    share = find_share(n, n_rest, is_weighted=is_weighted)
    value = _divide(rating, n) + share * (_divide(rest, n_rest) - _divide(judged, n))
    return np.where(n > 0, value, np.nan)


def rank_by_assisted_mean(means: AssistedMeans, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> Ranking:
    """Return the systems ranked by their assisted means, with t intervals, and ranks from resampled groups with the
    same draws for all systems (as `rank_by_mean`). Fitted weights stay as they are in the resamples.

    means: of `estimate_means`. bootstrap: resamples, seed and confidence; groups are those of `means`."""
    refuse_options(bootstrap, "cluster")
    values, n_groups, n_systems = snap(means.value), len(means.tables), len(means.labels)
    sums = resampled_sums(
        means.tables.reshape(n_groups, 5 * n_systems), np.arange(n_groups), n_groups,
        resamples=bootstrap.resamples, seed=bootstrap.seed,
    ).reshape(bootstrap.resamples, 5, n_systems)  # fmt: skip
    n_judged_groups = int(np.count_nonzero(means.tables[:, 0].sum(axis=1)))
    ranked = RankedValues(
        method="assisted-mean", labels=means.labels, value=values,
        estimates=tuple(means.estimate(k, bootstrap.confidence) for k in range(n_systems)),
        replicates=snap(_replicate(means, sums) + means.centre), n_groups=means.n_groups, n_outputs=means.n_judged,
        n_ratings=means.n_judged,
    )  # fmt: skip
    totals = {"judged": int(means.n_judged.sum()), "scored": int(means.n_scored.sum())}
    return replace(rank_values(ranked, bootstrap), n_items=n_judged_groups, n_clusters=n_groups, totals=totals)


@dataclass(frozen=True)
class RankedValues:
    """Values of systems, nan without one, with estimates and resamples `replicates` (resamples, s). `n_groups`: groups
    with judgements of each system."""

    method: str
    labels: NDArray[np.generic]
    value: FloatArray
    estimates: tuple[Estimate, ...]
    replicates: FloatArray
    n_groups: IntArray
    n_outputs: IntArray
    n_ratings: IntArray


def rank_values(ranked: RankedValues, bootstrap: Bootstrap) -> Ranking:
    """Return the systems by value, with rank intervals from the replicates. A system with judgements in fewer than
    `MIN_CLUSTERS` groups may have any rank.

    `ranked`: the systems; `bootstrap`: confidence, and settings for the signature."""
    values, defined = ranked.value, ~np.isnan(ranked.value)
    ranks = np.where(defined, 1 + (values[None, :] > values[:, None]).sum(axis=1), 1 + defined.sum())
    for_ranks = np.where(ranked.n_groups >= MIN_CLUSTERS, ranked.replicates, np.nan)
    low, high = rank_intervals(values, ranks, for_ranks, bootstrap.confidence)
    order = sorted(range(len(values)), key=lambda k: (not defined[k], -np.nan_to_num(values[k]), k))
    tiers = link_tiers(order, low, high)
    names = np.asarray(ranked.labels).tolist()
    rows = tuple(
        SystemScore(
            system=names[k], estimate=ranked.estimates[k], n_outputs=int(ranked.n_outputs[k]),
            n_ratings=int(ranked.n_ratings[k]), rank=int(ranks[k]), rank_low=int(low[k]), rank_high=int(high[k]),
            tier=tiers[k], is_ranked=bool(defined[k]),
        )
        for k in order
    )  # fmt: skip
    return Ranking(ranked.method, rows, 0, 0, bootstrap.resamples, bootstrap.seed, bootstrap.confidence)


def _replicate(means: AssistedMeans, sums: FloatArray) -> FloatArray:
    """Return the means of resamples, (resamples, systems). With "these-items", only the judged sample varies."""
    if means.options.target == "items-like-these":
        return _means_of_sums(sums, is_weighted=means.is_weighted)
    whole = means.tables.sum(axis=0)
    residual = _divide(sums[:, 1] - sums[:, 2], sums[:, 0]) - _divide(whole[1] - whole[2], whole[0])
    drawn = np.sqrt(1.0 - _divide(means.n_judged, means.n_scored))
    return np.where(sums[:, 0] > 0, means.value - means.centre + drawn * residual, np.nan)
