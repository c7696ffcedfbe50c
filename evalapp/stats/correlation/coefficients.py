"""Correlation of two vectors: Pearson, Spearman, Kendall tau-b and tau-c, with the reason if undefined.

Correlation with human scores over items and systems, with intervals, is in `meta_evaluation`.

Explained in docs/explanation/statistics/correlation.md#coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evalapp.stats.core.coding import FloatArray, IntArray, float_column, is_constant
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.weighted import dense_ranks, kendall_inversions

Coefficient: TypeAlias = Literal["pearson", "spearman", "kendall", "kendall-c"]
#: Coefficients shown by default.
COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall")
ALL_COEFFICIENTS: tuple[Coefficient, ...] = (*COEFFICIENTS, "kendall-c")

# Minimum number of pairs: two points always lie on a line.
MIN_PAIRS = 3

TOO_FEW = "fewer than 3 pairs"
CONSTANT_METRIC = "the metric is constant"
CONSTANT_HUMAN = "the human scores are constant"


def pearson(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Return Pearson's r = cov(x, y) / (sd(x) sd(y)) over the complete pairs, without an interval.

    `x`, `y`: (n,) metric and human scores; nan and infinite values are missing. Undefined, with the reason, for fewer
    than 3 pairs or a constant side. Raises `ColumnError` for columns that do not fit.

    >>> round(pearson([1, 2, 3], [1, 3, 2]).value, 3)
    0.5
    """
    return _coefficient(x, y, pearson_value)


def spearman(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Return Spearman's rho of `x` and `y`: Pearson's r of the midranks. Otherwise as `pearson`."""
    return _coefficient(x, y, spearman_value)


def kendall(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Return Kendall's tau-b = (C - D) / sqrt((P - T_x)(P - T_y)) in O(n log n) (Knight 1966). Otherwise as `pearson`.

    P all pairs, C concordant, D discordant, T_x and T_y pairs tied in x and in y (pairs tied in both count in each)."""
    return _coefficient(x, y, kendall_value)


def kendall_c(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Return Stuart's tau-c = 2 (C - D) / (n^2 (m - 1) / m), m the smaller number of distinct values. Otherwise as
    `pearson`.

    For rectangular tables: a metric with many values against few human ones (Stuart 1953)."""
    return _coefficient(x, y, kendall_c_value)


def fisher_interval(r: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return tanh(atanh(r) -+ q / sqrt(n - 3)), q the normal quantile, for a plain Pearson r of n independent pairs
    only.

    All other intervals come from the bootstrap. (-1, 1) below 4 pairs; (r, r) if |r| = 1."""
    if n < 4:
        return -1.0, 1.0
    if abs(r) >= 1:
        return r, r
    half = float(special.ndtri((1 + confidence) / 2)) / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def critical_correlation(n: int, alpha: float = 0.05) -> float:
    """Return the smallest |r| of n independent pairs that differs from 0 at `alpha`, two-sided: t / sqrt(n - 2 +
    t^2) with t the quantile of Student's t on n - 2 degrees of freedom. nan below 3 pairs."""
    if n < MIN_PAIRS:
        return math.nan
    t = float(special.stdtrit(n - 2, 1 - alpha / 2))
    return t / math.sqrt(n - 2 + t * t)


def pearson_value(x: FloatArray, y: FloatArray) -> float:
    """Return Pearson's r of two complete vectors, neither constant."""
    # Scaling by the largest deviation first keeps squares of huge or tiny values finite.
    first, second = x - x.mean(), y - y.mean()
    first, second = first / np.abs(first).max(), second / np.abs(second).max()
    r = float(first @ second) / float(np.sqrt(first @ first) * np.sqrt(second @ second))
    return min(max(r, -1.0), 1.0)


def spearman_value(x: FloatArray, y: FloatArray) -> float:
    """Return Spearman's rho of two complete vectors, neither constant."""
    return pearson_value(midranks(x), midranks(y))


def kendall_value(x: FloatArray, y: FloatArray) -> float:
    """Return Kendall's tau-b of two complete vectors, neither constant."""
    surplus, tied_x, tied_y, _ = _pair_counts(x, y)
    pairs = len(x) * (len(x) - 1) // 2
    tau = surplus / (float(np.sqrt(float(pairs - tied_x))) * float(np.sqrt(float(pairs - tied_y))))
    return min(max(tau, -1.0), 1.0)


def kendall_c_value(x: FloatArray, y: FloatArray) -> float:
    """Return Stuart's tau-c of two complete vectors, neither constant."""
    surplus, _, _, levels = _pair_counts(x, y)
    tau = 2.0 * surplus * levels / (len(x) ** 2 * (levels - 1))
    return min(max(tau, -1.0), 1.0)


def _pair_counts(x: FloatArray, y: FloatArray) -> tuple[int, int, int, int]:
    """Return C - D, pairs tied in x, pairs tied in y, and the smaller number of distinct values."""
    ranks_x, n_x = dense_ranks(x)
    ranks_y, n_y = dense_ranks(y)
    n = len(x)
    order = np.lexsort((ranks_y, ranks_x))
    by_y = np.lexsort((np.arange(n), ranks_y[order]))
    place = np.empty(n, dtype=np.int64)
    place[by_y] = np.arange(n)
    tied_x, tied_y = _tied_pairs(ranks_x), _tied_pairs(ranks_y)
    tied_both = _tied_pairs(ranks_x * n_y + ranks_y)
    surplus = n * (n - 1) // 2 - tied_x - tied_y + tied_both - 2 * kendall_inversions(place)
    return surplus, tied_x, tied_y, min(n_x, n_y)


def midranks(values: FloatArray) -> FloatArray:
    """Return ranks 1..n in ascending order, tied values sharing the mean of their positions."""
    ranks, n_levels = dense_ranks(values)
    sizes = np.bincount(ranks, minlength=n_levels)
    return np.asarray((np.cumsum(sizes) - (sizes - 1) / 2.0)[ranks])


def undefined_reason(metric: FloatArray, human: FloatArray) -> str:
    """Return why these complete vectors have no correlation; "" if they have one."""
    if len(metric) < MIN_PAIRS:
        return TOO_FEW
    if is_constant(metric):
        return CONSTANT_METRIC
    if is_constant(human):
        return CONSTANT_HUMAN
    return ""


VALUES: dict[Coefficient, Callable[[FloatArray, FloatArray], float]] = {
    "pearson": pearson_value,
    "spearman": spearman_value,
    "kendall": kendall_value,
    "kendall-c": kendall_c_value,
}


def _coefficient(x: ArrayLike, y: ArrayLike, value: Callable[[FloatArray, FloatArray], float]) -> Estimate:
    metric = float_column(x, "x")
    human = float_column(y, "y", len(metric))
    complete = np.isfinite(metric) & np.isfinite(human)
    metric, human = metric[complete], human[complete]
    reason = undefined_reason(metric, human)
    if reason:
        return Estimate.undefined(reason, len(metric))
    return Estimate.point(value(metric, human), len(metric))


def _tied_pairs(codes: IntArray) -> int:
    _, sizes = np.unique(codes, return_counts=True)
    return int((sizes * (sizes - 1) // 2).sum())
