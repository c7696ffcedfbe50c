"""Which outputs people judge next, so that assisted means become precise with few judgements.

An output is drawn with a chance that grows with the predicted error of the evaluator, mixed with a uniform part (active
statistical inference, Zrnic and Candès 2024). The chance is stored with the judgement, and `estimate_means` weights by
1 / chance. Outputs are divided at random into as many parts as there are batches; a batch draws from its own part only,
so that every output has exactly one chance, although later batches learn from earlier judgements.

Explained in docs/explanation/statistics/assisted.md#choosing-what-people-judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.assisted.means import AssistedMeans, deal_folds
from evalapp.stats.core.coding import BoolArray, ColumnError, FloatArray, IntArray, encode, float_column

#: Share of each batch that is drawn uniformly. With less, single judgements could weigh too much.
FLOOR = 0.3
#: Judgements before errors are predicted; with fewer, chances are equal.
LEAST_JUDGED = 20
#: Predicted errors are at least and at most so many times their median.
_SPREAD = 4.0
#: Ridge penalty of the error model, in judgements: it shrinks predictions to their mean while judgements are few.
_PENALTY = 10.0


@dataclass(frozen=True)
class Drawn:
    """Drawn outputs, `rows` in ascending order, and their `chance` (rows,)."""

    rows: IntArray
    chance: FloatArray


def deal_parts(system: ArrayLike, n_parts: int, seed: int) -> IntArray:
    """Return the part (n,) of each output, 0 to `n_parts` - 1: the outputs of each system in random order are dealt in
    turn.

    system: (n,). seed: of the order. n_parts: the number of parts."""
    codes, labels = encode(system, "system")
    rng = np.random.default_rng([seed, len(codes)])
    part = np.empty(len(codes), dtype=np.int64)
    for k in range(len(labels)):
        rows = np.flatnonzero(codes == k)
        part[rng.permutation(rows)] = (np.arange(len(rows)) + k) % n_parts
    return part


def predict_errors(
    human: ArrayLike, score: ArrayLike, features: ArrayLike, cluster: ArrayLike, system: ArrayLike, *, seed: int = 0
) -> FloatArray:
    """Return the predicted absolute error (n,) of the evaluator for each output, in units of the ratings.

    human: (n,) mean ratings, nan where an output was not judged. score: (n,). features: (n, k) numbers that may tell
    where the evaluator errs, such as the length of the text; the score and its distance from the mean are added.
    cluster: (n,) group of each output. system: (n,). seed: of the division of groups into folds.

    The error is what a line through score and rating within systems leaves; its absolute value
    is a linear function of the features by ridge regression, fitted to the other folds of groups. With fewer than
    `LEAST_JUDGED` judgements all errors are 1."""
    y = float_column(human, "human")
    n = len(y)
    x = float_column(score, "score", n)
    codes, labels = encode(system, "system", n)
    groups, _ = encode(cluster, "cluster", n)
    is_judged = np.isfinite(y)
    if is_judged.sum() < LEAST_JUDGED:
        return np.ones(n)
    columns = np.column_stack([np.reshape(np.asarray(features, dtype=np.float64), (n, -1)), x])
    columns = _standardise(columns)
    columns = np.column_stack([columns, _standardise(np.abs(columns))])
    by_group = np.zeros(int(groups.max()) + 1, dtype=np.bool_)
    by_group[groups[is_judged]] = True
    fold = deal_folds(by_group, seed)[groups]
    result = np.empty(n)
    for k in range(int(fold.max()) + 1):
        learned, wanted = is_judged & (fold != k), fold == k
        if learned.sum() < LEAST_JUDGED // 2:
            learned = is_judged
        error = _find_errors(y[learned], x[learned], codes[learned], len(labels))
        result[wanted] = _fit_ridge(columns[learned], error, columns[wanted])
    middle = float(np.median(result))
    return np.clip(result, middle / _SPREAD, middle * _SPREAD) if middle > 0 else np.ones(n)


def _standardise(columns: FloatArray) -> FloatArray:
    known = np.nan_to_num(columns - np.nanmean(columns, axis=0), nan=0.0)
    spread = known.std(axis=0)
    return np.asarray(known / np.where(spread > 1e-12, spread, 1.0))


def _find_errors(y: FloatArray, x: FloatArray, system: IntArray, n_systems: int) -> FloatArray:
    """Return the absolute residuals of ratings from a common slope on scores and an intercept for each system."""
    counts = np.maximum(np.bincount(system, minlength=n_systems), 1)
    y = y - (np.bincount(system, y, n_systems) / counts)[system]
    x = x - (np.bincount(system, x, n_systems) / counts)[system]
    below = float(x @ x)
    return np.abs(y - (max(float(x @ y) / below, 0.0) if below > 0 else 0.0) * x)


def _fit_ridge(columns: FloatArray, error: FloatArray, wanted: FloatArray) -> FloatArray:
    mean = error.mean()
    inner = columns - columns.mean(axis=0)
    weights = np.linalg.solve(inner.T @ inner + _PENALTY * np.eye(columns.shape[1]), inner.T @ (error - mean))
    return np.asarray(mean + (wanted - columns.mean(axis=0)) @ weights)


def favour_first_systems(means: AssistedMeans, floor: float = FLOOR) -> dict[object, float]:
    """Return the share of the next judgements for each system with which the first system separates soonest from the
    others.

    means: of `estimate_means`, of the judgements so far. floor: share that is divided equally.

    With s the standard deviation of a judgement and d the distance from the first system, shares of the others are
    proportional to (s / d)^2, and that of the first system to its s times the root of the sum of their
    (share / s)^2 (optimal computing budget allocation; Chen, Lin, Yücesan and Chick 2000). A distance counts as its
    standard error at least, so that chance does not decide. While a system has judgements in fewer than two groups, all
    shares are equal."""
    n = len(means.labels)
    share = np.full(n, 1.0 / max(n, 1))
    if n > 1 and (means.n_groups > 1).all():
        first = int(np.argmax(means.value))
        spread = np.maximum(means.n_judged * means.variance, 1e-12)
        others = np.arange(n) != first
        error = means.variance + means.variance[first] - 2.0 * means.covariance[first]
        squared = np.maximum(np.maximum((means.value[first] - means.value) ** 2, error), 1e-12)
        wanted = np.where(others, spread / squared, 0.0)
        wanted[first] = np.sqrt(spread[first] * (wanted[others] ** 2 / spread[others]).sum())
        share = floor / n + (1.0 - floor) * wanted / wanted.sum()
    return dict(zip(means.labels.tolist(), share.tolist(), strict=True))


def draw_outputs(
    error: ArrayLike, system: ArrayLike, *, n: int, candidate: BoolArray | None = None, floor: float = FLOOR,
    seed: int = 0, share: Mapping[object, float] | None = None,
) -> Drawn:  # fmt: skip
    """Return `n` drawn outputs, with chances proportional to the predicted error within each system.

    error: (n,) positive, from `predict_errors`. system: (n,). candidate: (n,) which outputs may be drawn; None: all.
    floor: share drawn uniformly. n: outputs to draw, fewer if there are fewer candidates. seed: of the draw. share: of
    each system, from `favour_first_systems`; None: equally many of each.

    The chance of an output of a system with N candidates and budget b is
    floor b / N + (1 - floor) b error / sum(error), at most 1. The sample has these chances and a fixed size (systematic
    sampling in random order). Raises `ColumnError` for errors that are not positive."""
    errors = float_column(error, "error")
    if not (errors > 0).all():
        raise ColumnError("error", "a predicted error must be above 0")
    codes, labels = encode(system, "system", len(errors))
    may = np.ones(len(errors), dtype=np.bool_) if candidate is None else candidate
    sizes = np.bincount(codes[may], minlength=len(labels))
    rng = np.random.default_rng([seed, n])
    rows: list[int] = []
    chances: list[float] = []
    wanted = None if share is None else np.array([share[label] for label in labels.tolist()])
    for k, budget in enumerate(_share_out(n, sizes, rng, wanted)):
        own = rng.permutation(np.flatnonzero(may & (codes == k)))
        if budget:
            chance = _find_chances(errors[own], int(budget), floor)
            ends = np.cumsum(chance)
            ticks = rng.random() + np.arange(int(budget))
            # Rounding must not lose the last output.
            ends[-1] = max(ends[-1], budget)
            picked = np.unique(np.searchsorted(ends, ticks, side="right"))
            rows += own[picked].tolist()
            chances += chance[picked].tolist()
    order = np.argsort(rows)
    return Drawn(np.array(rows, dtype=np.int64)[order], np.array(chances)[order])


def _share_out(n: int, sizes: IntArray, rng: np.random.Generator, share: FloatArray | None) -> IntArray:
    """Return how many outputs each system gives, at most all it has: its share, or equally many; the remainder is from
    random systems."""
    budget = np.zeros(len(sizes), dtype=np.int64)
    if share is not None:
        budget = np.minimum(np.floor(n * share).astype(np.int64), sizes)
    left = min(n, int(sizes.sum())) - int(budget.sum())
    while left:
        for k in rng.permutation(np.flatnonzero(budget < sizes))[:left]:
            budget[k] += 1
            left -= 1
    return budget


def _find_chances(error: FloatArray, budget: int, floor: float) -> FloatArray:
    """Return the chances with sum `budget`, none above 1. What is above 1 is drawn for sure, and the others share what
    is left. `budget`: at most as many as outputs."""
    chance = np.ones(len(error))
    rest = np.ones(len(error), dtype=np.bool_)
    while rest.any():
        left = budget - int((~rest).sum())
        chance[rest] = left * (floor / rest.sum() + (1 - floor) * error[rest] / error[rest].sum())
        above = rest & (chance > 1.0 + 1e-12)
        if not above.any():
            break
        chance[above] = 1.0
        rest &= ~above
    return np.minimum(chance, 1.0)
