"""Win rates and Bradley-Terry or Davidson ratings from comparisons of a sample and an evaluator's scores of all.

PPI++ for M-estimators (Angelopoulos, Duchi and Zrnic 2023): the loss of the verdicts, plus w times the loss of the
predictions on all pairs of outputs, minus w times that on the judged pairs. Both models are linear in the outcomes, so
the predictions only change the counts of wins and losses.

Explained in docs/explanation/statistics/assisted.md#comparisons-of-assisted-systems."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import expit
from scipy.stats import t as student

from evalapp.stats.assisted.means import RankedValues, deal_folds, rank_values
from evalapp.stats.core.coding import BoolArray, ColumnError, FloatArray, IntArray, encode, float_column, snap
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.core.options import refuse_options
from evalapp.stats.ranking.bradley_terry import (
    ELO,
    fit_counts,
    inverse_information,
    outcome_scores,
    sandwich,
    sum_cluster_scores,
)
from evalapp.stats.ranking.comparison_fit import ComparisonFit, fit_judgements
from evalapp.stats.ranking.comparisons import rank_fitted
from evalapp.stats.ranking.connectivity import NEVER_COMPARED
from evalapp.stats.ranking.judgements import Judgements, PairwiseComparisons, read_judgements
from evalapp.stats.ranking.systems import NO_JUDGEMENT, Ranking
from evalapp.stats.resampling.bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, resampled_sums, too_few_note, with_ends

AssistedMethod: TypeAlias = Literal["win-rate", "bradley-terry", "davidson"]

#: Newton steps of the slope of the prediction.
_STEPS = 25


@dataclass(frozen=True, slots=True, eq=False)
class ScoredOutputs:
    """(n,) columns, one row per output: its item, the cluster of the item, its system, and its score by an evaluator
    that was not trained on these items; higher is better."""

    item: ArrayLike
    cluster: ArrayLike
    system: ArrayLike
    score: ArrayLike


@dataclass(frozen=True)
class AssistedComparisons:
    """A ranking with the evaluator's help (`assisted`) and without (`human`).

    `variance`, `human_variance`: by system, of values in units of the ranking. `weight`: share of the prediction that
    is used. `n_pairs`: pairs of outputs with predictions, `n_judged`: judged pairs."""

    assisted: Ranking
    human: Ranking
    variance: dict[Any, float]
    human_variance: dict[Any, float]
    weight: float
    n_pairs: int
    n_judged: int


@dataclass(frozen=True)
class JudgedPairs:
    """Judgements by kind, a pair of systems `first` < `second` of the rated ones: kind, outcome of the first and group,
    (m,). `fold` (groups,). `change` (groups, kinds): the wins that predictions with weight 1 add, centred by kind: over
    all pairs of outputs, as many as judgements, minus those of the judged pairs."""

    first: IntArray
    second: IntArray
    kind: IntArray
    outcome: IntArray
    group: IntArray
    fold: IntArray
    change: FloatArray
    n_pairs: int
    n_judged: int


def rank_by_assisted_comparisons(
    first: ArrayLike,
    second: ArrayLike,
    verdict: ArrayLike,
    outputs: ScoredOutputs,
    *,
    method: AssistedMethod = "bradley-terry",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> AssistedComparisons:
    """Rank systems by comparisons with an evaluator's help.

    first, second: (m,) rows in `outputs` of the two compared outputs, of the same item. verdict: (m,) among `VERDICTS`.
    outputs: all scored outputs. method: win rates or a model. bootstrap: confidence; for win rates also resamples and
    seed of the ranks; clusters are those of `outputs`.

    The predicted points of an output (1 for a win, 1/2 for a tie) are a logistic function of the difference of two
    scores, fitted, like the weight, to the judgements of the other folds of groups. A prediction counts relative to the
    mean of its pair of systems over all items that both answered, so that every pair of systems keeps its number of
    judgements. The judged pairs must be a random sample of all. There is one weight for all systems, because every
    comparison is about two.

    Models have sandwich intervals over groups and the rank sets of `rank_by_comparisons`; win rates have t intervals
    over groups, and ranks from resamples. Raises `ColumnError` for columns that do not fit."""
    refuse_options(bootstrap, "cluster")
    one, two = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    items, clusters, systems = encode(outputs.item, "item")[0], np.asarray(outputs.cluster), np.asarray(outputs.system)
    if (items[one] != items[two]).any():
        raise ColumnError("second", "both outputs of a comparison belong to the same item")
    columns = PairwiseComparisons(systems[one], systems[two], verdict, item=items[one])
    judged = read_judgements(columns, cluster=clusters[one])
    model: Any = "davidson" if method == "davidson" else "bradley-terry"
    human = fit_judgements(judged, model)
    rated = judged.linked if method == "win-rate" else human.rated
    pairs = collect_pairs(judged, rated, np.unique(items[one])[judged.item], outputs, bootstrap.seed)
    if method == "win-rate":
        return _by_win_rate(judged, pairs, bootstrap)
    return _by_model(judged, human, pairs, bootstrap)


def collect_pairs(
    judged: Judgements, rated: BoolArray, item: IntArray, outputs: ScoredOutputs, seed: int
) -> JudgedPairs:
    """Return the judgements among the `rated` systems with the predictions for all pairs of outputs. `item`: code of
    each judgement's item among the items of `outputs`."""
    items, item_labels = encode(outputs.item, "item")
    groups, labels = encode(outputs.cluster, "cluster", len(items))
    place = np.cumsum(rated) - 1
    known = {name: int(place[k]) for k, name in enumerate(np.asarray(judged.labels).tolist()) if rated[k]}
    column = np.array([known.get(name, -1) for name in np.asarray(outputs.system).tolist()], dtype=np.int64)
    scores = np.full((len(item_labels), len(known)), np.nan)
    rows = column >= 0
    values = float_column(outputs.score, "score", len(items))
    if not np.isfinite(values).all():
        raise ColumnError("score", "every output needs a score")
    scores[items[rows], column[rows]] = values[rows] / ((values.std() if len(values) else 0.0) or 1.0)
    group_of = np.zeros(len(item_labels), dtype=np.int64)
    group_of[items] = groups
    kept = rated[judged.a] & rated[judged.b]
    a, b, outcome = place[judged.a[kept]], place[judged.b[kept]], judged.outcome[kept]
    turned = a > b
    one, two = np.where(turned, b, a), np.where(turned, a, b)
    kind, kinds = encode(one * max(len(known), 1) + two, "kind")
    own = item[kept]
    outcome = np.where(turned, 2 - outcome, outcome)
    is_judged = np.zeros(len(labels), dtype=np.bool_)
    is_judged[group_of[own]] = True
    fold = deal_folds(is_judged, seed)
    difference = scores[own, one] - scores[own, two]
    slope = _fit_slopes(1.0 - outcome / 2, difference, fold[group_of[own]], int(fold.max(initial=0)) + 1)
    first, second = np.divmod(kinds.astype(np.int64), max(len(known), 1))
    change, n_pairs = np.zeros((len(labels), len(first))), 0
    counts = np.bincount(kind, minlength=len(first))
    for u in range(len(first)):
        apart = scores[:, first[u]] - scores[:, second[u]]
        answered = np.flatnonzero(np.isfinite(apart))
        points = expit(slope[fold[group_of[answered]]] * apart[answered])
        mean = points.mean()
        change[:, u] += np.bincount(group_of[answered], points - mean, len(labels)) * counts[u] / len(answered)
        mine = np.flatnonzero(kind == u)
        predicted = expit(slope[fold[group_of[own[mine]]]] * difference[mine])
        change[:, u] -= np.bincount(group_of[own[mine]], predicted - mean, len(labels))
        n_pairs += len(answered)
    n_judged = len(np.unique(own * max(len(first), 1) + kind))
    return JudgedPairs(first, second, kind, outcome, group_of[own], fold, change, n_pairs, n_judged)


def _fit_slopes(points: FloatArray, difference: FloatArray, fold: IntArray, n_folds: int) -> FloatArray:
    """Return for each fold the slope of a logistic function of the difference of scores, fitted to the other folds, at
    least 0. A weak prior keeps it finite."""
    slopes = np.zeros(n_folds)
    for k in range(n_folds):
        y, x = points[fold != k], difference[fold != k]
        for _ in range(_STEPS):
            p = expit(slopes[k] * x)
            step = ((y - p) @ x - 0.01 * slopes[k]) / ((p * (1 - p)) @ x**2 + 0.01)
            slopes[k] += float(np.clip(step, -1.0, 1.0))
    return np.maximum(slopes, 0.0)


def _fit_weights(pairs: JudgedPairs, human: FloatArray, change: FloatArray) -> FloatArray:
    """Return the weight (folds,) that minimises the sum of the systems' variances, fitted without the fold. `human` and
    `change`: influence of each group on the values (groups, s), and its change for weight 1."""
    products, squares = (human * change).sum(axis=1), (change**2).sum(axis=1)
    n_folds = int(pairs.fold.max(initial=0)) + 1
    weights = np.zeros(n_folds)
    for k in range(n_folds):
        below = squares[pairs.fold != k].sum()
        weights[k] = 0.0 if below <= 0 else np.clip(-products[pairs.fold != k].sum() / below, 0.0, 1.0)
    return weights


def _by_model(
    judged: Judgements, human: ComparisonFit, pairs: JudgedPairs, bootstrap: Bootstrap
) -> AssistedComparisons:
    settings = f"{judged.settings}|interval:sandwich(cluster)"
    plain = rank_fitted(judged, human, settings, bootstrap)
    names = [name for name, is_rated in zip(np.asarray(judged.labels).tolist(), human.rated, strict=True) if is_rated]
    n = len(names)
    spread = dict(zip(names, (np.diag(human.covariance)[:n] * ELO**2).tolist(), strict=True)) if n else {}
    nothing = AssistedComparisons(plain, plain, spread, spread, 0.0, pairs.n_pairs, pairs.n_judged)
    if human.fit is None or not np.isfinite(human.covariance).all():
        return nothing
    n_groups, n_kinds = pairs.change.shape
    fit = human.fit
    cells = np.bincount(
        (pairs.group * n_kinds + pairs.kind) * 3 + pairs.outcome, minlength=n_groups * n_kinds * 3
    ).reshape(n_groups, n_kinds, 3)  # fmt: skip
    by_eta, by_tie = outcome_scores(fit.model, fit.eta[0], fit.tie[0])
    inverse = inverse_information(fit)
    score = np.asarray((cells * by_eta).sum(axis=2) @ fit.design.matrix)
    if fit.model != "bradley-terry":
        score = np.concatenate([score, (cells * by_tie).sum(axis=(1, 2))[:, None]], axis=1)
    # A win instead of a loss changes the score by 1, and that of the tie parameter by 0.
    influence = score @ inverse[:, :n]
    change = np.asarray(pairs.change @ fit.design.matrix) @ inverse[:n, :n]
    weights = _fit_weights(pairs, influence, change)
    adjusted = cells.astype(np.float64)
    moved = weights[pairs.fold][:, None] * pairs.change
    adjusted[:, :, 0] += moved
    adjusted[:, :, 2] -= moved
    again = fit_counts(fit.model, fit.design, adjusted.sum(axis=0), start=None)
    if not again.converged[0]:
        return nothing
    meat = sum_cluster_scores(again, csr_array(adjusted.reshape(n_groups, -1)))
    n_judged_groups = len(np.unique(pairs.group))
    # As many degrees of freedom as groups with judgements, as without the evaluator.
    meat *= (n_judged_groups / max(n_judged_groups - 1, 1)) / (n_groups / max(n_groups - 1, 1))
    others = human.others if fit.model == "bradley-terry" else np.array([again.tie[0]])
    assisted = replace(human, theta=again.theta[0], others=others, covariance=sandwich(again, meat), fit=again)
    variance = dict(zip(names, (np.diag(assisted.covariance)[:n] * ELO**2).tolist(), strict=True))
    ranking = rank_fitted(judged, assisted, settings, bootstrap)
    return replace(nothing, assisted=ranking, variance=variance, weight=float(weights.mean()))


def _by_win_rate(judged: Judgements, pairs: JudgedPairs, bootstrap: Bootstrap) -> AssistedComparisons:
    labels = np.asarray(judged.labels)
    linked = np.flatnonzero(judged.linked)
    n_groups, n = len(pairs.change), len(linked)
    points = 1.0 - pairs.outcome / 2
    sides = np.concatenate([pairs.first[pairs.kind], pairs.second[pairs.kind]])
    cell = np.concatenate([pairs.group] * 2) * max(n, 1) + sides
    counts = np.bincount(cell, minlength=n_groups * n).reshape(n_groups, n).astype(np.float64)
    won = np.bincount(cell, np.concatenate([points, 1.0 - points]), n_groups * n).reshape(n_groups, n)
    moved = np.zeros((n_groups, n))
    for u in range(pairs.change.shape[1]):
        moved[:, pairs.first[u]] += pairs.change[:, u]
        moved[:, pairs.second[u]] -= pairs.change[:, u]
    total = np.maximum(counts.sum(axis=0), 1.0)
    rate = won.sum(axis=0) / total
    influence = (won - counts * rate) / total
    weights = _fit_weights(pairs, influence, moved / total)
    moved = weights[pairs.fold][:, None] * moved
    in_groups = np.count_nonzero(counts, axis=0)
    scale = np.sqrt(in_groups / np.maximum(in_groups - 1, 1))
    result = []
    for added in (moved, np.zeros_like(moved)):
        value = rate + added.sum(axis=0) / total
        own = scale * (influence + added / total)
        sums = resampled_sums(
            np.concatenate([won + added, counts], axis=1), np.arange(n_groups), n_groups,
            resamples=bootstrap.resamples, seed=bootstrap.seed,
        )  # fmt: skip
        above, below = np.split(sums, 2, axis=1)
        drawn = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
        result.append((value, (own**2).sum(axis=0), drawn))
    rankings, variances = [], []
    for value, variance, drawn in result:
        rankings.append(_rank_rates(judged, linked, value, variance, in_groups, drawn, bootstrap))
        variances.append(dict(zip(labels[linked].tolist(), variance.tolist(), strict=True)))
    return AssistedComparisons(
        assisted=rankings[0], human=rankings[1], variance=variances[0], human_variance=variances[1],
        weight=float(weights.mean()), n_pairs=pairs.n_pairs, n_judged=pairs.n_judged,
    )  # fmt: skip


def _rank_rates(
    judged: Judgements, linked: IntArray, value: FloatArray, variance: FloatArray, in_groups: IntArray,
    drawn: FloatArray, bootstrap: Bootstrap,
) -> Ranking:  # fmt: skip
    """Return the ranking of all systems by the win rates of the linked ones."""
    n = len(judged.labels)
    values, groups = np.full(n, np.nan), np.zeros(n, dtype=np.int64)
    values[linked], groups[linked] = snap(value), in_groups
    replicates = np.full((len(drawn), n), np.nan)
    replicates[:, linked] = snap(drawn)
    estimates = [Estimate.undefined(NEVER_COMPARED if seen else NO_JUDGEMENT) for seen in judged.n_ratings]
    for place, k in enumerate(linked.tolist()):
        point = Estimate.point(float(value[place]), int(judged.n_outputs[k]))
        units = {"items": int(in_groups[place])}
        if note := too_few_note(units):
            estimates[k] = point.with_note(note)
            continue
        half = float(student.ppf(0.5 + bootstrap.confidence / 2, in_groups[place] - 1) * np.sqrt(variance[place]))
        low, high = max(point.value - half, 0.0), min(point.value + half, 1.0)
        estimates[k] = with_ends(point, low, high, units)
    ranked = RankedValues(
        "win-rate", judged.labels, values, tuple(estimates), replicates, groups, judged.n_outputs, judged.n_ratings
    )
    ranking = rank_values(ranked, bootstrap)
    shares = judged.shares
    places = {name: k for k, name in enumerate(np.asarray(judged.labels).tolist())}
    rows = tuple(
        replace(row, shares={name: float(part[places[row.system]]) for name, part in shares.items() if row.n_ratings})
        for row in ranking.systems
    )
    return replace(
        ranking, systems=rows, n_items=judged.n_items, n_clusters=judged.n_clusters, totals=judged.totals,
        extras={"connectivity": judged.connectivity.parts_only().as_dict()},
    )  # fmt: skip
