"""Which outputs people judge next, so that assisted means become precise with few judgements.

An output is drawn with a chance that grows with the predicted error of the evaluator, mixed with a uniform part (active
statistical inference, Zrnic and Candès 2024). The chance is stored with the judgement, and `estimate_means` weights by
1 / chance. Outputs are divided at random into as many parts as there are batches; a batch draws from its own part only,
so that every output has exactly one chance, although later batches learn from earlier judgements.

Explained in docs/explanation/statistics/assisted.md#choosing-what-people-judge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.assisted.means import deal_folds
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


def draw_outputs(
    error: ArrayLike, system: ArrayLike, *, n: int, candidate: BoolArray | None = None, floor: float = FLOOR,
    seed: int = 0,
) -> Drawn:  # fmt: skip
    """Return `n` drawn outputs, equally many of each system, with chances proportional to the predicted error.

    error: (n,) positive, from `predict_errors`. system: (n,). candidate: (n,) which outputs may be drawn; None: all.
    floor: share drawn uniformly. n: outputs to draw, fewer if there are fewer candidates. seed: of the draw.

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
    for k, budget in enumerate(_share_out(n, sizes, rng)):
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


def _share_out(n: int, sizes: IntArray, rng: np.random.Generator) -> IntArray:
    """Return how many outputs each system gives: equally many, the remainder to random ones, at most all it has."""
    budget = np.zeros(len(sizes), dtype=np.int64)
    left = min(n, int(sizes.sum()))
    while left:
        for k in rng.permutation(np.flatnonzero(budget < sizes))[:left]:
            budget[k] += 1
            left -= 1
    return budget


def _find_chances(error: FloatArray, budget: int, floor: float) -> FloatArray:
    """Return the chances with sum `budget`, none above 1."""
    chance = np.zeros(len(error))
    is_sure = np.zeros(len(error), dtype=np.bool_)
    while True:
        left = budget - int(is_sure.sum())
        rest = ~is_sure
        chance[is_sure] = 1.0
        if not rest.any() or left <= 0:
            return np.asarray(np.clip(chance, 0.0, 1.0))
        chance[rest] = left * (floor / rest.sum() + (1 - floor) * error[rest] / error[rest].sum())
        above = rest & (chance > 1.0 + 1e-12)
        if not above.any():
            return np.asarray(np.minimum(chance, 1.0))
        is_sure |= above
