"""Replicates of a figure, such as one value per seed: mean and spread, analysis of variance, paired differences.

Explained in docs/explanation/statistics/significance.md#replicates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from evalapp.stats.core.coding import FloatArray
from evalapp.stats.core.estimate import NAN, Estimate


@dataclass(frozen=True, slots=True)
class Anova:
    """An analysis of variance: F with its degrees of freedom and p, or nan with a `note` if it is undefined."""

    f: float
    df_between: int
    df_within: int
    p: float
    note: str = ""

    def as_dict(self) -> dict[str, float | int | str | None]:
        """Return every field as JSON-safe values; an infinite F and nan become None."""
        f, p = (value if math.isfinite(value) else None for value in (self.f, self.p))
        return {"f": f, "df_between": self.df_between, "df_within": self.df_within, "p": p, "note": self.note}


def estimate_mean(values: ArrayLike, confidence: float = 0.95) -> tuple[Estimate, float]:
    """Return the mean of the defined `values` with Student's interval, and their standard deviation (n - 1).

    Both are nan where there are too few values; a note gives the reason. `confidence` is the level of the interval.

    >>> estimate, sd = estimate_mean([1, 2, 3])
    >>> round(estimate.value, 3), round(estimate.low, 3), round(sd, 3)
    (2.0, -0.484, 1.0)
    """
    known = _keep_defined(values)
    n = len(known)
    if n == 0:
        return Estimate.undefined("no value is defined"), NAN
    mean = float(known.mean())
    if n == 1:
        return Estimate.point(mean, 1), NAN
    sd = float(known.std(ddof=1))
    reach = float(stats.t.ppf(0.5 + confidence / 2, n - 1)) * sd / math.sqrt(n)
    return Estimate(mean, mean - reach, mean + reach, n), sd


def one_way_anova(groups: Sequence[ArrayLike]) -> Anova:
    """Return the one-way analysis of variance of `groups` of independent values; undefined values are left out.

    F = (SS_between / (k - 1)) / (SS_within / (n - k)) with k groups of n values in all (Fisher 1925). With two groups
    F is the square of the unpaired t.

    >>> one_way_anova([[1, 2, 3], [2, 3, 4]]).f
    1.5
    """
    known = [group for group in map(_keep_defined, groups) if len(group)]
    k, n = len(known), sum(map(len, known))
    if k < 2 or n <= k:
        return Anova(NAN, max(k - 1, 0), max(n - k, 0), NAN, "it takes two groups, and more values than groups")
    grand = float(np.concatenate(known).mean())
    between = sum(len(group) * (float(group.mean()) - grand) ** 2 for group in known)
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in known)
    return _make_anova(between, within, k - 1, n - k, abs(grand))


def blocked_anova(table: ArrayLike) -> Anova:
    """Return the analysis of variance with repeated measures: each row of the `table` (n, k) is a block, such as a
    seed, with one value per group. Rows with undefined values are left out.

    The error is what groups and blocks do not explain, with (n - 1) (k - 1) degrees of freedom (Girden 1992). With two
    groups F is the square of the paired t.

    >>> round(blocked_anova([[1, 2], [2, 4], [3, 6]]).f, 3)
    12.0
    """
    rows = np.asarray(table, dtype=np.float64)
    rows = rows[~np.isnan(rows).any(axis=1)] if rows.ndim == 2 else rows.reshape(0, 0)
    n, k = rows.shape
    if k < 2 or n < 2:
        return Anova(NAN, max(k - 1, 0), max(n - 1, 0) * max(k - 1, 0), NAN, "it takes two groups and two whole blocks")
    grand = float(rows.mean())
    between = n * float(((rows.mean(axis=0) - grand) ** 2).sum())
    blocks = k * float(((rows.mean(axis=1) - grand) ** 2).sum())
    error = max(0.0, float(((rows - grand) ** 2).sum()) - between - blocks)
    return _make_anova(between, error, k - 1, (n - 1) * (k - 1), abs(grand))


def paired_difference(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> tuple[Estimate, float]:
    """Return the mean of `second` - `first`, paired by place, with Student's interval at the level of `confidence`, and
    the two-sided p of the paired t-test. Pairs with an undefined value are left out; equal differences have p 1 (all 0)
    or 0.

    Raises ValueError for unequal lengths.

    >>> round(paired_difference([1, 2, 3], [2, 4, 6])[1], 4)
    0.0742
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape:
        raise ValueError(f"values are not paired: {a.size} and {b.size}")
    estimate, sd = estimate_mean(b - a, confidence)
    if math.isnan(sd):
        return estimate, NAN
    if sd <= 1e-12 * max(1.0, abs(estimate.value)):
        return estimate, 1.0 if abs(estimate.value) <= 1e-12 else 0.0
    t = estimate.value / (sd / math.sqrt(estimate.n))
    return estimate, 2 * float(stats.t.sf(abs(t), estimate.n - 1))


def _keep_defined(values: ArrayLike) -> FloatArray:
    known = np.asarray(values, dtype=np.float64).reshape(-1)
    return known[np.isfinite(known)]


def _make_anova(between: float, within: float, df_between: int, df_within: int, scale: float) -> Anova:
    rounding = 1e-24 * max(1.0, scale) ** 2
    if within <= rounding:
        same = between <= rounding
        return Anova(0.0 if same else math.inf, df_between, df_within, 1.0 if same else 0.0)
    f = (between / df_between) / (within / df_within)
    return Anova(f, df_between, df_within, float(stats.f.sf(f, df_between, df_within)))
