"""Agreement on categories with intervals over units: percent agreement, Fleiss' kappa, Cohen's kappa with weights.

Krippendorff's alpha is in `krippendorff`, the intraclass correlation in `icc`.

Explained in docs/explanation/statistics/agreement.md#kappa."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from evalapp.stats.agreement.rating_columns import ALL_EQUAL, NO_PAIR, RatingColumns, code_ratings
from evalapp.stats.core.coding import FloatArray, IntArray, encode, float_column, identifiers
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.resampling.bootstrap import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    ClusterDraws,
    chunk_sizes,
    resampled_sums,
    with_interval,
)

KappaWeights: TypeAlias = Literal["linear", "quadratic"]
KAPPA_WEIGHTS: tuple[KappaWeights, ...] = ("linear", "quadratic")

# Expected disagreement below this counts as 0.
_FLOOR = 1e-12


def percent_agreement(
    value: ArrayLike,
    unit: ArrayLike,
    rater: ArrayLike,
    *,
    tolerance: float = 0.0,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Return the mean over units of the share of rater pairs that agree, in [0, 1] (Fleiss' P-bar), not corrected for
    chance.

    (n,) columns, one row per rating; nan or None = missing. Numbers that differ by at most `tolerance` agree. Units
    with fewer than 2 ratings are left out; `n` counts the others. Bootstrap over units, or over `bootstrap.cluster`."""
    ratings = code_ratings(value, unit, rater, bootstrap.cluster).twice()
    if not ratings.n_units:
        return Estimate.undefined(NO_PAIR)
    shares = agreeing_shares(ratings, tolerance)
    return _estimate_from_sums(
        ratings, np.stack([shares, np.ones(ratings.n_units)], axis=1), lambda s: s[:, 0] / s[:, 1],
        bootstrap,
    )  # fmt: skip


def fleiss_kappa(
    value: ArrayLike,
    unit: ArrayLike,
    rater: ArrayLike,
    *,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Return Fleiss' kappa = (P - P_e) / (1 - P_e) for categories (Fleiss 1971), generalised to missing ratings.

    `value`, `unit`, `rater`: (n,) columns, one row per rating; values are categories, nan or None = missing.

    With n_uv of the m_u ratings of unit u in category v, over the U units with at least 2 ratings:

    P = (1/U) sum_u sum_v n_uv (n_uv - 1) / (m_u (m_u - 1)),   P_e = sum_v p_v^2,   p_v = (1/U) sum_u n_uv / m_u.

    With the same number of ratings per unit this is Fleiss' original. Raters are exchangeable. Undefined if all
    ratings are equal. `n` counts units; bootstrap over units, or over `bootstrap.cluster`."""
    ratings = code_ratings(value, unit, rater, bootstrap.cluster).twice()
    if not ratings.n_units:
        return Estimate.undefined(NO_PAIR)
    if len(ratings.labels) == 1:
        return Estimate.undefined(ALL_EQUAL, ratings.n_units)
    n = ratings.n_clusters
    units = np.bincount(ratings.cluster, minlength=n).astype(np.float64)
    equal = np.bincount(ratings.cluster, weights=agreeing_shares(ratings), minlength=n)
    # Open scales have thousands of values, but each unit has few, so the counts are sparse.
    cells = ratings.cluster[ratings.unit], ratings.value
    shares = csr_array((1.0 / ratings.sizes[ratings.unit], cells), shape=(n, len(ratings.labels)))

    def kappa(draws: FloatArray) -> FloatArray:
        total = units @ draws
        chance = np.asarray(shares.T @ draws) / total
        return _corrected(1.0 - equal @ draws / total, 1.0 - np.einsum("vb,vb->b", chance, chance))

    point = Estimate.point(float(kappa(np.ones((n, 1)))[0]), ratings.n_units)
    drawn = ClusterDraws(n, bootstrap.seed)
    rows = max(n, len(ratings.labels))
    parts = (
        [kappa(drawn.take(size)) for size in chunk_sizes(bootstrap.resamples, rows)]
        if bootstrap.resamples and n >= 2
        else []
    )
    replicates = np.concatenate(parts) if parts else np.full(min(bootstrap.resamples, 1), np.nan)
    return with_interval(point, replicates, clusters={"units": n}, confidence=bootstrap.confidence)


def cohen_kappa(
    a: ArrayLike,
    b: ArrayLike,
    *,
    weights: KappaWeights | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Return Cohen's kappa of two raters on the same units: 1 - sum w O / sum w E (Cohen 1960, 1968).

    `a`, `b`: (n,) numbers or labels; rows where one is missing are left out. O is the joint distribution, E that of
    independent raters with the same marginals. w = [x != y] without `weights`, |x - y| (linear), (x - y)^2
    (quadratic): distances of the values themselves, so weights need numbers, and an unused value changes nothing.
    Undefined if both raters give the same single value throughout. Bootstrap over rows, or over `bootstrap.cluster`.

    >>> cohen_kappa(["yes", "yes", "no", "no"], ["yes", "no", "no", "no"], bootstrap=Bootstrap(resamples=0)).value
    0.5
    """
    if weights is not None and weights not in KAPPA_WEIGHTS:
        raise ValueError(f"weights is None or one of {', '.join(KAPPA_WEIGHTS)}, not '{weights}'")
    first, second, labels, present = _pairs(a, b, numeric=weights is not None)
    n = len(first)
    if n == 0:
        return Estimate.undefined("the two have no unit in common")
    if len(labels) == 1:
        return Estimate.undefined(ALL_EQUAL, n)
    place = np.arange(len(labels), dtype=np.float64) if weights is None else labels.astype(np.float64)
    place = (place - place[0]) / (place[-1] - place[0])
    cells, cell_of = np.unique(first * len(labels) + second, return_inverse=True)
    row, column = cells // len(labels), cells % len(labels)
    apart = np.abs(place[row] - place[column])
    distance = {None: (apart > 0).astype(np.float64), "linear": apart, "quadratic": apart**2}[weights]

    def kappa(counts: FloatArray) -> FloatArray:
        total = counts.sum(axis=1)
        of_a = _summed(counts, row, len(labels))
        of_b = _summed(counts, column, len(labels))
        return _corrected(counts @ distance / total, _by_chance(of_a, of_b, place, weights) / total**2)

    totals = np.bincount(cell_of.reshape(-1), minlength=len(cells)).astype(np.float64)
    value = float(kappa(totals[None, :])[0])
    if np.isnan(value):
        return Estimate.undefined(ALL_EQUAL, n)
    point = Estimate.point(value, n)
    if bootstrap.resamples == 0:
        return point
    if bootstrap.cluster is None:
        # Rows with the same pair of values are exchangeable, so the cells of a resample are multinomial.
        generator = np.random.default_rng([bootstrap.seed, 0])
        drawn = generator.multinomial(n, totals / n, size=bootstrap.resamples).astype(np.float64)
        return with_interval(point, kappa(drawn), clusters={"units": n}, confidence=bootstrap.confidence)
    clusters, names = encode(identifiers(bootstrap.cluster, "cluster", len(present))[present], "cluster")
    columns = np.zeros((len(names), len(cells)))
    np.add.at(columns, (clusters, cell_of.reshape(-1)), 1.0)
    drawn = resampled_sums(
        columns, np.arange(len(names)), len(names), resamples=bootstrap.resamples, seed=bootstrap.seed
    )
    return with_interval(point, kappa(drawn), clusters={"units": len(names)}, confidence=bootstrap.confidence)


def agreeing_shares(found: RatingColumns, tolerance: float = 0.0) -> FloatArray:
    """Return the share (n_units,) of equal pairs of ratings in each unit (within `tolerance`); units need at least 2
    ratings."""
    sizes = found.sizes.astype(np.float64)
    if tolerance > 0:
        equal = np.zeros(found.n_units)
        numbers = found.numbers()
        order = np.lexsort((numbers, found.unit))
        numbers, unit = numbers[order], found.unit[order]
        for step in range(1, int(sizes.max())):
            near = (unit[step:] == unit[:-step]) & (numbers[step:] - numbers[:-step] <= tolerance)
            equal += np.bincount(unit[step:][near], minlength=found.n_units)
        return np.asarray(2.0 * equal / (sizes * (sizes - 1.0)))
    cells, counts = np.unique(found.unit * len(found.labels) + found.value, return_counts=True)
    pairs = np.bincount(cells // len(found.labels), weights=counts * (counts - 1.0), minlength=found.n_units)
    return np.asarray(pairs / (sizes * (sizes - 1.0)))


def _pairs(a: ArrayLike, b: ArrayLike, *, numeric: bool) -> tuple[IntArray, IntArray, NDArray[Any], NDArray[np.bool_]]:
    one, two = identifiers(a, "a"), identifiers(b, "b", len(identifiers(a, "a")))
    if numeric or (one.dtype.kind not in "OUS" and two.dtype.kind not in "OUS"):
        one, two = float_column(a, "a"), float_column(b, "b")
        present = np.isfinite(one) & np.isfinite(two)
    else:
        present = np.array(
            [x is not None and y is not None and x == x and y == y for x, y in zip(one, two, strict=True)],
            dtype=np.bool_,
        )
    codes, labels = encode(np.concatenate([one[present], two[present]]), "value")
    n = int(present.sum())
    return codes[:n], codes[n:], labels, present


def _summed(counts: FloatArray, code: IntArray, n_codes: int) -> FloatArray:
    """Return counts of cells (r, cells) summed by code: (r, n_codes)."""
    indicator = csr_array((np.ones(len(code)), (np.arange(len(code)), code)), shape=(len(code), n_codes))
    return np.asarray(counts @ indicator)


def _by_chance(a: FloatArray, b: FloatArray, place: FloatArray, weights: KappaWeights | None) -> FloatArray:
    """Return sum_ij a_i b_j w_ij for marginals (r, values), without the table of all pairs of values."""
    total = a.sum(axis=1)
    if weights is None:
        result = total**2 - np.einsum("rv,rv->r", a, b)
    elif weights == "quadratic":
        result = total * (a @ place**2 + b @ place**2) - 2.0 * (a @ place) * (b @ place)
    else:
        # |x - y| is the length of the part of the scale between the two.
        below_a, below_b = np.cumsum(a, axis=1)[:, :-1], np.cumsum(b, axis=1)[:, :-1]
        n = total[:, None]
        result = (below_a * (n - below_b) + below_b * (n - below_a)) @ np.diff(place)
    return np.asarray(result)


def _corrected(observed: FloatArray, expected: FloatArray) -> FloatArray:
    """Return 1 - observed / expected disagreement; nan if no disagreement is expected."""
    ratio = np.full(expected.shape, np.nan)
    np.divide(observed, expected, out=ratio, where=expected > _FLOOR)
    # A rater with constant answers agrees exactly at chance level: set 0 instead of a rounding error below it.
    result = 1.0 - ratio
    return np.where(np.abs(result) < _FLOOR, 0.0, result)


def _estimate_from_sums(
    found: RatingColumns,
    columns: FloatArray,
    statistic: Callable[[FloatArray], FloatArray],
    bootstrap: Bootstrap,
) -> Estimate:
    """Return a statistic of sums over units (n_units, k), with the interval of its resamples."""
    point = Estimate.point(float(statistic(columns.sum(axis=0)[None, :])[0]), found.n_units)
    if bootstrap.resamples == 0:
        return point
    drawn = resampled_sums(columns, found.cluster, found.n_clusters, resamples=bootstrap.resamples, seed=bootstrap.seed)
    clusters = {"units": found.n_clusters}
    return with_interval(point, statistic(drawn), clusters=clusters, confidence=bootstrap.confidence, is_share=True)
