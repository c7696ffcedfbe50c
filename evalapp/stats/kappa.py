"""Agreement on categories: percent agreement, Fleiss' kappa, Cohen's kappa with weights; intervals over units.

Krippendorff's alpha is in `agreement`, the intraclass correlation in `icc`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalapp.stats.coding import FloatArray, IntArray, encode, float_column, identifiers
from evalapp.stats.estimate import Estimate
from evalapp.stats.rating_columns import ALL_EQUAL, NO_PAIR, RatingColumns, of_columns
from evalapp.stats.resampling import DEFAULT_CONFIDENCE, DEFAULT_RESAMPLES, resampled_sums, with_interval

KappaWeights: TypeAlias = Literal["linear", "quadratic"]
KAPPA_WEIGHTS: tuple[KappaWeights, ...] = ("linear", "quadratic")

# The expected disagreement below which nothing is left to chance.
_FLOOR = 1e-12


def percent_agreement(
    value: ArrayLike,
    unit: ArrayLike,
    rater: ArrayLike,
    *,
    tolerance: float = 0.0,
    cluster: ArrayLike | None = None,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    confidence: float = DEFAULT_CONFIDENCE,
) -> Estimate:
    """Mean over units of the share of pairs of raters that agree, in [0, 1] (Fleiss' P-bar); not corrected for chance.

    (n,) columns, one row per rating; nan or None = missing. Numbers that differ by at most `tolerance` agree. Units
    with fewer than 2 ratings are left out; `n` counts the others. Bootstrap over units, or over `cluster`.
    """
    found = of_columns(value, unit, rater, cluster).twice()
    if not found.n_units:
        return Estimate.undefined(NO_PAIR)
    shares = agreeing_shares(found, tolerance)
    return _of_sums(
        found, np.stack([shares, np.ones(found.n_units)], axis=1), lambda s: s[:, 0] / s[:, 1],
        resamples=resamples, seed=seed, confidence=confidence,
    )  # fmt: skip


def fleiss_kappa(
    value: ArrayLike,
    unit: ArrayLike,
    rater: ArrayLike,
    *,
    cluster: ArrayLike | None = None,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    confidence: float = DEFAULT_CONFIDENCE,
) -> Estimate:
    """Fleiss' kappa = (P - P_e) / (1 - P_e) for categories (Fleiss 1971), with its generalisation to missing ratings.

    With n_uv of the m_u ratings of unit u in category v, over the U units with at least 2 ratings:

    P = (1/U) sum_u sum_v n_uv (n_uv - 1) / (m_u (m_u - 1)),   P_e = sum_v p_v^2,   p_v = (1/U) sum_u n_uv / m_u.

    With equally many ratings per unit this is Fleiss' own. Who rated does not enter: raters are exchangeable.
    Undefined when all ratings are equal. `n` counts units; bootstrap over units, or over `cluster`.
    """
    found = of_columns(value, unit, rater, cluster).twice()
    if not found.n_units:
        return Estimate.undefined(NO_PAIR)
    if len(found.labels) == 1:
        return Estimate.undefined(ALL_EQUAL, found.n_units)
    shares = counts_of(found) / found.sizes[:, None]
    columns = np.column_stack([np.ones(found.n_units), agreeing_shares(found), shares])

    def kappa(sums: FloatArray) -> FloatArray:
        means = sums[:, 1:] / sums[:, :1]
        chance = (means[:, 1:] ** 2).sum(axis=1)
        return _corrected(1.0 - means[:, 0], 1.0 - chance)

    return _of_sums(found, columns, kappa, resamples=resamples, seed=seed, confidence=confidence)


def cohen_kappa(
    a: ArrayLike,
    b: ArrayLike,
    *,
    weights: KappaWeights | None = None,
    cluster: ArrayLike | None = None,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    confidence: float = DEFAULT_CONFIDENCE,
) -> Estimate:
    """Cohen's kappa of two raters on the same units, row by row: 1 - sum w O / sum w E (Cohen 1960, 1968).

    `a`, `b`: (n,) numbers or labels; rows where one is missing are left out. O is the joint distribution, E that of
    independent raters with the same marginals. w = [x != y] without `weights`, |x - y| (linear), (x - y)^2 (quadratic):
    distances of the values themselves, so weights need numbers, and a value nobody chose changes nothing.
    Undefined when both raters give one and the same value throughout. Bootstrap over rows, or over `cluster`.
    """
    if weights is not None and weights not in KAPPA_WEIGHTS:
        raise ValueError(f"weights is None or one of {', '.join(KAPPA_WEIGHTS)}, not '{weights}'")
    first, second, labels, present = _pairs(a, b, numeric=weights is not None)
    n = len(first)
    if n == 0:
        return Estimate.undefined("the two have no unit in common")
    if len(labels) == 1:
        return Estimate.undefined(ALL_EQUAL, n)
    if weights is None:
        distance = 1.0 - np.eye(len(labels))
    else:
        numbers = labels.astype(np.float64)
        distance = np.abs(numbers[:, None] - numbers[None, :]) ** (2 if weights == "quadratic" else 1)
        distance /= distance.max()
    cells, cell_of = np.unique(first * len(labels) + second, return_inverse=True)
    row, column = cells // len(labels), cells % len(labels)

    def kappa(counts: FloatArray) -> FloatArray:
        total = counts.sum(axis=1)
        of_a = _summed(counts, row, len(labels))
        of_b = _summed(counts, column, len(labels))
        observed = counts @ distance[row, column]
        expected = np.einsum("ri,ij,rj->r", of_a, distance, of_b, optimize=True)
        return _corrected(observed * total, expected)

    totals = np.bincount(cell_of.reshape(-1), minlength=len(cells)).astype(np.float64)
    value = float(kappa(totals[None, :])[0])
    if np.isnan(value):
        return Estimate.undefined(ALL_EQUAL, n)
    point = Estimate.point(value, n)
    if resamples == 0:
        return point
    if cluster is None:
        # Rows with the same pair of values are exchangeable: the cells of a resample are multinomial.
        generator = np.random.default_rng([seed, 0])
        drawn = generator.multinomial(n, totals / n, size=resamples).astype(np.float64)
        return with_interval(point, kappa(drawn), clusters={"units": n}, confidence=confidence)
    clusters, names = encode(identifiers(cluster, "cluster", len(present))[present], "cluster")
    columns = np.zeros((len(names), len(cells)))
    np.add.at(columns, (clusters, cell_of.reshape(-1)), 1.0)
    drawn = resampled_sums(columns, np.arange(len(names)), len(names), resamples=resamples, seed=seed)
    return with_interval(point, kappa(drawn), clusters={"units": len(names)}, confidence=confidence)


def counts_of(found: RatingColumns) -> FloatArray:
    """How many ratings of every unit have every value, (n_units, n_values)."""
    cells = np.bincount(found.unit * len(found.labels) + found.value, minlength=found.n_units * len(found.labels))
    return cells.reshape(found.n_units, len(found.labels)).astype(np.float64)


def agreeing_shares(found: RatingColumns, tolerance: float = 0.0) -> FloatArray:
    """The share of pairs of ratings of each unit that are equal (within `tolerance`), (n_units,); 2 ratings or more."""
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
    counts = counts_of(found)
    return np.asarray((counts * (counts - 1.0)).sum(axis=1) / (sizes * (sizes - 1.0)))


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
    indicator = np.zeros((len(code), n_codes))
    indicator[np.arange(len(code)), code] = 1.0
    return counts @ indicator


def _corrected(observed: FloatArray, expected: FloatArray) -> FloatArray:
    """1 - observed / expected disagreement; nan where nothing is left to chance."""
    ratio = np.full(expected.shape, np.nan)
    np.divide(observed, expected, out=ratio, where=expected > _FLOOR)
    return 1.0 - ratio


def _of_sums(
    found: RatingColumns,
    columns: FloatArray,
    statistic: Callable[[FloatArray], FloatArray],
    *,
    resamples: int,
    seed: int,
    confidence: float,
) -> Estimate:
    """A statistic of sums over units (n_units, k), with the interval of its resamples."""
    point = Estimate.point(float(statistic(columns.sum(axis=0)[None, :])[0]), found.n_units)
    if resamples == 0:
        return point
    drawn = resampled_sums(columns, found.cluster, found.n_clusters, resamples=resamples, seed=seed)
    return with_interval(point, statistic(drawn), clusters={"units": found.n_clusters}, confidence=confidence)
