"""Intraclass correlation of ratings on an interval scale, in six forms, for complete tables or missing ratings.

Agreement on categories is in `kappa` and `krippendorff`. Explained in docs/explanation/statistics/agreement.md#icc."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.agreement.icc_reml import reml_iccs
from evalapp.stats.agreement.rating_columns import ALL_EQUAL, NO_PAIR, RatingColumns, code_ratings
from evalapp.stats.core.coding import FloatArray
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.resampling.bootstrap import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    ClusterDraws,
    chunk_sizes,
    with_interval,
)

IccForm: TypeAlias = Literal["1", "1,k", "A,1", "A,k", "C,1", "C,k"]
ICC_FORMS: tuple[IccForm, ...] = ("1", "1,k", "A,1", "A,k", "C,1", "C,k")
IccInterval: TypeAlias = Literal["bootstrap", "exact"]

ONE_UNIT = "one unit only: units cannot differ"
BEYOND_POLE = (
    "negative variance component (units differ less than ratings of the same unit): below -1 or beyond the pole of the "
    "coefficient, where it says nothing; did a rater use the scale in reverse?"
)
NOTHING_LEFT = "no exact interval: the variance between units, or the remaining variance, is 0"
# Variance below this share of the total is rounding error.
_FLOOR = 1e-12


def icc(
    value: ArrayLike,
    unit: ArrayLike,
    rater: ArrayLike,
    *,
    form: IccForm = "A,1",
    interval: IccInterval = "bootstrap",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Return the intraclass correlation of a rating (forms ending in 1) or of the mean of a unit's ratings (k).

    x = mu + unit + rater + residual, variances U, R, E; W = R + E: `1` U / (U + W), raters nested in units; `A,1` U /
    (U + R + E), absolute agreement; `C,1` U / (U + E), consistency; the forms of means divide all but U by k, the
    number of raters of a complete table, else the harmonic mean of the ratings per unit (McGraw and Wong 1996).

    Variances of a complete table, and of the one-way forms, come from the analysis of variance, as McGraw and Wong,
    pingouin and irr compute them; a variance may be negative. The two-way forms of a table with missing ratings use
    restricted maximum likelihood (REML), whose variances are not negative, so that C,1 is never below A,1.

    Undefined without two units, without a unit rated twice, if all ratings are equal, for consistency if no rater rated
    two units, and if U is so negative that the formula gives less than -1 or, beyond its pole, more than 1. Values from
    -1 to 0 are reported: for units that do not differ, half of the estimates are negative (McGraw and Wong, pingouin
    and irr report them as well). No end of an interval is below -1.

    Interval: bootstrap over units (or `bootstrap.cluster`), for REML a jackknife (`reml_iccs`); `exact` is McGraw
    and Wong's from the F distribution, for complete tables only. `n` counts units with at least 2 ratings.

    >>> columns = [1, 2, 4, 5, 3, 3], ["x", "x", "y", "y", "z", "z"], ["ann", "bob"] * 3
    >>> round(icc(*columns, form="C,1", bootstrap=Bootstrap(resamples=0)).value, 3)
    0.929
    """
    if form not in ICC_FORMS:
        raise ValueError(f"form is one of {', '.join(ICC_FORMS)}, not '{form}'")
    return iccs(
        value,
        unit,
        rater,
        forms=(form,),
        interval=interval,
        bootstrap=bootstrap,
    )[form]


def step_up(single: float, ratings: float) -> float:
    """Return the reliability of the mean of `ratings` ratings from that of a single one, by the formula of Spearman
    (1910) and Brown (1910). Reliability below 0 counts as 0."""
    single = max(0.0, single)
    return ratings * single / (1 + (ratings - 1) * single)


def iccs(
    value: ArrayLike,
    unit: ArrayLike,
    rater: ArrayLike,
    *,
    forms: Sequence[IccForm] = ICC_FORMS,
    interval: IccInterval = "bootstrap",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> dict[IccForm, Estimate]:
    """Return several forms of `icc`; the variances are estimated once for all."""
    if interval not in ("bootstrap", "exact"):
        raise ValueError(f"interval is bootstrap or exact, not '{interval}'")
    ratings = code_ratings(value, unit, rater, bootstrap.cluster, numeric=True).twice()
    if ratings.n_units < 2 or len(ratings.labels) == 1:
        reason = NO_PAIR if not ratings.n_units else ALL_EQUAL if ratings.n_units > 1 else ONE_UNIT
        return dict.fromkeys(forms, Estimate.undefined(reason, ratings.n_units))
    sums = _Sums(ratings)
    k = float(ratings.n_raters) if sums.complete else ratings.n_units / float((1.0 / sums.size).sum())
    by_reml = [] if sums.complete else [form for form in forms if form not in ("1", "1,k")]
    with_draws = interval == "bootstrap" and bootstrap.resamples > 0
    likely = (
        reml_iccs(ratings, by_reml, k, intervals=with_draws, seed=bootstrap.seed, confidence=bootstrap.confidence)
        if by_reml
        else {}
    )
    estimates: dict[IccForm, Estimate] = {}
    for form in forms:
        if form in likely:
            estimates[form] = (
                likely[form]
                if interval == "bootstrap"
                else _exact(likely[form], ratings, sums, form, bootstrap.confidence)
            )
        else:
            estimates[form] = _by_anova(ratings, sums, form, k, interval, bootstrap)
    return estimates


def _by_anova(
    found: RatingColumns, sums: _Sums, form: IccForm, k: float, interval: str, bootstrap: Bootstrap
) -> Estimate:
    value = float(_coefficient(sums, np.ones((found.n_units, 1)), form, k)[0])
    if math.isnan(value) or value < -1 - _FLOOR:
        return Estimate.undefined(BEYOND_POLE, found.n_units)
    point = Estimate.point(value, found.n_units)
    if interval == "exact":
        return _exact(point, found, sums, form, bootstrap.confidence)
    if bootstrap.resamples == 0:
        return point
    replicates = np.array([np.nan])
    if found.n_clusters >= 2:
        draws = ClusterDraws(found.n_clusters, bootstrap.seed)
        replicates = np.concatenate(
            [
                np.maximum(_coefficient(sums, draws.take(size)[found.cluster], form, k), -1.0)
                for size in chunk_sizes(bootstrap.resamples, max(found.n_units, found.n_clusters))
            ]
        )
    estimate = with_interval(point, replicates, clusters={"units": found.n_clusters}, confidence=bootstrap.confidence)
    beyond = float(np.isnan(replicates).mean())
    return (
        estimate.with_note(f"{beyond:.0%} of the resamples are undefined")
        if beyond and estimate.has_interval
        else estimate
    )


class _Sums:
    """Moments per unit and the indicator of raters, from which all mean squared differences follow."""

    def __init__(self, found: RatingColumns) -> None:
        from scipy.sparse import csr_array

        numbers = found.numbers()
        numbers = numbers - numbers.mean()
        self.numbers = numbers / np.abs(numbers).max()
        n = found.n_units
        self.size = found.sizes.astype(np.float64)
        self.first = np.bincount(found.unit, weights=self.numbers, minlength=n)
        self.second = np.bincount(found.unit, weights=self.numbers**2, minlength=n)
        shape = (found.n_raters, n)
        rows = (found.rater, found.unit)
        self.by_rater = tuple(
            csr_array((column, rows), shape=shape) for column in (np.ones(len(numbers)), self.numbers, self.numbers**2)
        )
        self.complete = len(numbers) == n * found.n_raters


@dataclass(frozen=True, slots=True)
class _Variances:
    """Mean squared differences over 2, (b,): within units, within raters, between both; and the one-way variances."""

    within: FloatArray
    rater: FloatArray
    apart: FloatArray


def _coefficient(sums: _Sums, weights: FloatArray, form: IccForm, k: float) -> FloatArray:
    """Return the coefficient (b,) under multiplicities (n_units, b); nan where undefined."""
    divisor = k if form.endswith("k") else 1.0
    if form in ("1", "1,k"):
        unit, noise = _one_way(sums, weights)
    else:
        result = _symmetric(sums, weights)
        unit = result.apart - result.within
        residual = result.within + result.rater - result.apart
        # In a complete table the residual is a sum of squares, negative only by rounding.
        noise = np.maximum(residual, 0.0) if form.startswith("C") else result.within
    whole = unit + noise / divisor
    ratio = np.full(whole.shape, np.nan)
    np.divide(unit, whole, out=ratio, where=np.isfinite(whole) & (whole > _FLOOR))
    return ratio


def _one_way(sums: _Sums, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return between and within variance of the one-way analysis of variance, unequal sizes allowed."""
    groups = weights.sum(axis=0)
    n = sums.size @ weights
    total = sums.first @ weights
    inside = (sums.second - sums.first**2 / sums.size) @ weights
    between = (sums.first**2 / sums.size) @ weights - total**2 / n
    with np.errstate(divide="ignore", invalid="ignore"):
        within = inside / (n - groups)
        effective = (n - (sums.size**2) @ weights / n) / (groups - 1.0)
        return (between / (groups - 1.0) - within) / effective, within


def _symmetric(sums: _Sums, weights: FloatArray) -> _Variances:
    """Return half the mean squared differences of pairs of ratings, by whether they share a unit or a rater (Koch's
    symmetric sums; on a complete table the analysis of variance). A unit drawn twice counts as two units."""
    n, first, second = (column @ weights for column in (sums.size, sums.first, sums.second))
    unit_squares = (sums.size * sums.second - sums.first**2) @ weights
    unit_pairs = (sums.size * (sums.size - 1.0)) @ weights
    count, one, two = (np.asarray(matrix @ weights) for matrix in sums.by_rater)
    rater_squares = (count * two - one**2).sum(axis=0)
    rater_pairs = (count**2).sum(axis=0) - n
    apart_squares = n * second - first**2 - unit_squares - rater_squares
    apart_pairs = n * (n - 1.0) - unit_pairs - rater_pairs
    with np.errstate(divide="ignore", invalid="ignore"):
        return _Variances(unit_squares / unit_pairs, rater_squares / rater_pairs, apart_squares / apart_pairs)


def _exact(point: Estimate, found: RatingColumns, sums: _Sums, form: IccForm, confidence: float) -> Estimate:
    """Return McGraw and Wong's interval (1996, tables 4 and 7) of a complete table."""
    from scipy import stats

    if not sums.complete:
        return point.with_note("no exact interval: some raters did not rate every unit")
    n, k = found.n_units, found.n_raters
    table = sums.numbers.reshape(n, k)
    rows = k * float(((table.mean(axis=1) - table.mean()) ** 2).sum()) / (n - 1)
    columns = n * float(((table.mean(axis=0) - table.mean()) ** 2).sum()) / (k - 1)
    within = float(((table - table.mean(axis=1, keepdims=True)) ** 2).sum()) / (n * (k - 1))
    error = (within * n * (k - 1) - columns * (k - 1)) / ((n - 1) * (k - 1))
    tail = 0.5 + confidence / 2
    if form.startswith("A"):
        if error <= _FLOOR or rows <= _FLOOR:
            return point.with_note(NOTHING_LEFT)
        with np.errstate(all="ignore"):
            low, high = _absolute(n, k, rows, columns, error, tail)
        if not (math.isfinite(low) and math.isfinite(high)):
            return point.with_note(NOTHING_LEFT)
        if form == "A,k" and 1 + (k - 1) * low <= 0:
            return point.with_note("no exact interval: its lower end is beyond the pole of the coefficient")
        if form == "A,k":
            low, high = (k * end / (1 + (k - 1) * end) for end in (low, high))
        return Estimate(point.value, max(low, -1.0), high, point.n)
    noise, freedom = (within, n * (k - 1)) if form.startswith("1") else (error, (n - 1) * (k - 1))
    if noise <= _FLOOR or rows <= _FLOOR:
        return point.with_note(NOTHING_LEFT)
    ratio = rows / noise
    f_low, f_high = ratio / stats.f.ppf(tail, n - 1, freedom), ratio * stats.f.ppf(tail, freedom, n - 1)
    if form.endswith("k"):
        return Estimate(point.value, max(float(1 - 1 / f_low), -1.0), float(1 - 1 / f_high), point.n)
    low, high = ((f - 1) / (f + k - 1) for f in (f_low, f_high))
    return Estimate(point.value, max(float(low), -1.0), float(high), point.n)


def _absolute(n: int, k: int, rows: float, columns: float, error: float, tail: float) -> tuple[float, float]:
    from scipy import stats

    rho = (rows - error) / (rows + (k - 1) * error + k * (columns - error) / n)
    a, b = k * rho / (n * (1 - rho)), 1 + k * rho * (n - 1) / (n * (1 - rho))
    freedom = (a * columns + b * error) ** 2 / (
        (a * columns) ** 2 / (k - 1) + (b * error) ** 2 / ((n - 1) * (k - 1))
    )  # Satterthwaite
    f_low, f_high = stats.f.ppf(tail, n - 1, freedom), stats.f.ppf(tail, freedom, n - 1)
    spread = k * columns + (k * n - k - n) * error
    return (
        float(n * (rows - f_low * error) / (f_low * spread + n * rows)),
        float(n * (f_high * rows - error) / (spread + n * f_high * rows)),
    )
