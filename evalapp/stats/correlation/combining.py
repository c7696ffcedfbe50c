"""Combinations of evaluators: the mean of their z-scores, or a ridge regression on human scores ("stacking").

Columns in, one score per output out. A stacked combination may only be evaluated on outputs whose group was not given
to `stack`; the caller ensures this.

Explained in docs/explanation/statistics/correlation.md#combinations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import BoolArray, ColumnError, FloatArray, IntArray, encode, float_column, is_constant

#: Candidate penalties of `stack`, as shares of the number of rows.
PENALTIES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
DEFAULT_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Stacking:
    """A fitted combination: `score = intercept + sum_k weights[k] (x_k - centre[k]) / spread[k]`.

    `penalty` is the ridge penalty as a share of the rows, `errors` the mean squared error of each of `PENALTIES` on
    held-out folds; `n` counts rows, `n_groups` groups. Weights are on the scale of z-scores, so their sizes are
    comparable."""

    weights: FloatArray
    intercept: float
    centre: FloatArray
    spread: FloatArray
    penalty: float
    errors: tuple[float, ...]
    n: int
    n_groups: int

    def predict(self, scores: ArrayLike) -> FloatArray:
        """Return (n,) combined scores of (n, k) columns; nan where a column is nan."""
        columns = _columns(scores)
        if columns.shape[1] != len(self.weights):
            raise ColumnError("scores", f"{len(self.weights)} columns are needed, there are {columns.shape[1]}")
        return np.asarray(self.intercept + ((columns - self.centre) / self.spread) @ self.weights)


def standardise(scores: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (n, k) columns as z-scores, with their centres and spreads (population SD over the defined values of
    each).

    A constant or undefined column has z-scores that are all nan, because it orders nothing."""
    columns = _columns(scores)
    defined = np.isfinite(columns)
    counts = np.maximum(defined.sum(axis=0), 1)
    filled = np.where(defined, columns, 0.0)
    centre = filled.sum(axis=0) / counts
    spread = np.sqrt((np.where(defined, columns - centre, 0.0) ** 2).sum(axis=0) / counts)
    pairs = zip(columns.T, defined.T, strict=True)
    flat = np.array([not rows.any() or is_constant(column[rows]) for column, rows in pairs])
    spread = np.where(flat, np.nan, spread)
    return np.where(defined, (columns - centre) / spread, np.nan), centre, spread


def mean_of_z(scores: ArrayLike) -> FloatArray:
    """Return the mean over columns (n, k) of their z-scores; nan where a column is nan.

    Every column counts equally on any scale: z = (x - mean) / SD over all its defined values."""
    z, _, _ = standardise(scores)
    return np.asarray(z.mean(axis=1))


def stack(
    scores: ArrayLike, human: ArrayLike, group: ArrayLike, *, folds: int = DEFAULT_FOLDS, seed: int = 13
) -> Stacking:
    """Fit a ridge regression of human scores on the z-scores of (n, k) columns, over the rows where all are defined.

    `scores`: (n, k), one column per evaluator; `human`: (n,) human scores; `group`: (n,) groups of dependent rows.

    Minimises |y - a - Zw|^2 + lambda n |w|^2 (the intercept is not penalised). lambda is the value in `PENALTIES` with
    the least squared error on held-out folds, the largest on ties; folds consist of whole groups, drawn by `seed`
    independently of the order of the rows.

    Raises ValueError for fewer than 3 complete rows or 2 groups, or if human scores or all columns are constant."""
    columns = _columns(scores)
    y = float_column(human, "human", len(columns))
    complete = np.isfinite(columns).all(axis=1) & np.isfinite(y)
    codes, labels = encode(np.asarray(group)[complete], "group")
    x, y = columns[complete], y[complete]
    n_groups = len(labels)
    if len(y) < 3 or n_groups < 2:
        raise ValueError(f"stacking needs 3 complete rows in 2 groups; there are {len(y)} in {n_groups}")
    if is_constant(y):
        raise ValueError("human scores are all equal, so no weights can be fitted")
    _, centre, spread = standardise(x)
    # A column without spread gets the weight 0.
    spread = np.where(np.isfinite(spread), spread, np.inf)
    if np.isinf(spread).all():
        raise ValueError("no column has different values: there is nothing to learn with")
    z = (x - centre) / spread
    fold = _folds(n_groups, min(folds, n_groups), seed)[codes]
    errors = _errors(z, y, fold)
    best = max(k for k in range(len(PENALTIES)) if errors[k] <= min(errors) * (1 + 1e-12))
    weights, intercept = _ridge(z, y, PENALTIES[best])
    return Stacking(weights, intercept, centre, spread, PENALTIES[best], tuple(errors), len(y), n_groups)


def _columns(scores: ArrayLike) -> FloatArray:
    columns = np.asarray(scores, dtype=np.float64)
    if columns.ndim != 2 or columns.shape[1] == 0:
        raise ColumnError("scores", "two dimensions are needed, (outputs, evaluators)")
    return columns


def _folds(n_groups: int, folds: int, seed: int) -> IntArray:
    """Return the fold of every group, as balanced as possible."""
    order = np.random.default_rng([seed, 0]).permutation(n_groups)
    fold = np.empty(n_groups, dtype=np.int64)
    fold[order] = np.arange(n_groups) % folds
    return fold


def _errors(z: FloatArray, y: FloatArray, fold: IntArray) -> list[float]:
    sums = np.zeros(len(PENALTIES))
    for number in range(int(fold.max()) + 1):
        out: BoolArray = fold == number
        for k, penalty in enumerate(PENALTIES):
            weights, intercept = _ridge(z[~out], y[~out], penalty)
            sums[k] += float(((y[out] - intercept - z[out] @ weights) ** 2).sum())
    return [float(value) / len(y) for value in sums]


def _ridge(z: FloatArray, y: FloatArray, penalty: float) -> tuple[FloatArray, float]:
    centre = z.mean(axis=0)
    inner = z - centre
    gram = inner.T @ inner / len(y) + penalty * np.eye(z.shape[1])
    weights = np.linalg.solve(gram, inner.T @ (y - y.mean()) / len(y))
    return np.asarray(weights), float(y.mean() - centre @ weights)
