"""Krippendorff's alpha with a bootstrap interval over units.

Long-form columns, one row per rating. The caller chooses the unit (an output under one aspect, a pair of outputs).
Coefficients that need the rater of each rating (kappa, ICC, percent agreement) are in `kappa` and `icc`.

Explained in docs/explanation/statistics/agreement.md#krippendorffs-alpha."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from evalapp.stats.agreement.coincidences import Coincidences, count_coincidences, rows_per_unit
from evalapp.stats.agreement.rating_columns import ALL_EQUAL, NO_PAIR
from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray, encode, float_column, identifiers, parents
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.resampling.bootstrap import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    ClusterDraws,
    chunk_sizes,
    with_interval,
)

Scale: TypeAlias = Literal["nominal", "ordinal", "interval", "ratio"]
SCALES: tuple[Scale, ...] = ("nominal", "ordinal", "interval", "ratio")

BELOW_ZERO = "the ratio scale needs values of at least 0"

# Expected disagreement below this share of the second moment is rounding error.
_FLOOR = 1e-12
# Units with the same ratings are resampled together if there are at least this many times more units than distinct
# kinds.
_COMPRESSION = 16
# A unit with more ratings than this is a kind of its own.
_LARGEST_KIND = 64
# Shorter columns are not looked at for their order; most ratings of a unit for which all pairs are compared.
_EVEN_ROWS, _MOST_EVEN = 1000, 8
# Cells per block of distances between values.
_BLOCK_CELLS = 1 << 20


def krippendorff_alpha(
    unit: ArrayLike,
    value: ArrayLike,
    *,
    scale: Scale = "interval",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Return Krippendorff's alpha = 1 - D_o / D_e (Krippendorff 2011) with a percentile interval over resampled units.

    `unit`: (n,) what was rated; `value`: (n,) numbers, or labels for the nominal scale; nan = missing. Units with fewer
    than 2 ratings are left out; `n` counts the units used. Over their N ratings, m_u in unit u:

    D_o = (1/N) sum_u 1/(m_u - 1) sum_{i != j in u} d(x_i, x_j),   D_e = 1/(N(N-1)) sum_{i != j} d(x_i, x_j), d = [x !=
    y] (nominal), (x - y)^2 (interval), (midrank(x) - midrank(y))^2 among the N ratings (ordinal; this is Krippendorff's
    sum of the marginals between x and y with half of each end), ((x - y) / (x + y))^2 (ratio, for values of at least 0;
    two zeros do not differ). For few distinct whole numbers both sums follow from the table of coincidences, otherwise,
    except on the ratio scale, from first and second moments per unit.

    `bootstrap.cluster`: the resampled groups (such as the unit's item), default the unit itself. Undefined, with the
    reason, if no unit has two ratings, all ratings are equal, or a value is negative on the ratio scale. Intervals
    of few units are too narrow: with 10 units they contained the true value in 90 % (interval scale) and 78 %
    (nominal) of 400 simulations, with 50 units in 93 % and 92 % (docs/results/intervals.md).

    >>> round(krippendorff_alpha(["x", "x", "y", "y"], [1, 2, 5, 5], bootstrap=Bootstrap(resamples=0)).value, 3)
    0.941
    """
    if scale not in SCALES:
        raise ValueError(f"scale is one of {', '.join(SCALES)}, not '{scale}'")
    raw = _values(value, scale)
    unit_column = identifiers(unit, "unit", len(raw))
    # Counting is skipped if a value is missing, so this may precede the search for missing values.
    if bootstrap.resamples == 0 and (counted := count_coincidences(unit_column, raw)) is not None:
        return _alpha_from_coincidences(counted, scale)
    rows = np.flatnonzero(_present(raw))
    unit_column = _pick(unit_column, rows, len(raw))
    if bootstrap.resamples == 0:
        value_column = _pick(raw, rows, len(raw))
        if len(rows) < len(raw) and (counted := count_coincidences(unit_column, value_column)) is not None:
            return _alpha_from_coincidences(counted, scale)
        if (even := _even(unit_column, value_column, scale)) is not None:
            return even
    units, unit_labels = encode(unit_column, "unit")
    sizes = np.bincount(units, minlength=len(unit_labels))
    if not len(sizes) or sizes.max() < 2:
        return Estimate.undefined(NO_PAIR)
    if sizes.min() < 2:
        used = sizes[units] >= 2
        rows = rows[used]
        units, unit_labels = encode(units[used], "unit")
        sizes = np.bincount(units)
    n_units = len(unit_labels)
    codes, labels = encode(_pick(raw, rows, len(raw)), "value")
    if len(labels) == 1:
        return Estimate.undefined(ALL_EQUAL, n_units)
    if scale == "ratio" and float(labels[0]) < 0:
        return Estimate.undefined(BELOW_ZERO, n_units)
    if bootstrap.resamples == 0:
        return Estimate.point(_point(units, sizes, codes, np.asarray(labels), scale), n_units)
    clusters = None
    if bootstrap.cluster is not None:
        result, names = encode(identifiers(bootstrap.cluster, "cluster", len(raw))[rows], "cluster")
        clusters = parents(units, result, n_units, "cluster"), len(names)
    value_, replicates = _resampled(units, n_units, codes, np.asarray(labels), scale, clusters, bootstrap)
    n_clusters = n_units if clusters is None else clusters[1]
    point = Estimate.point(value_, n_units)
    return with_interval(point, replicates, clusters={"units": n_clusters}, confidence=bootstrap.confidence)


def _values(value: ArrayLike, scale: Scale) -> NDArray[Any]:
    """Return labels for the nominal scale, else numbers."""
    raw = identifiers(value, "value")
    return raw if raw.dtype.kind in "OUS" and scale == "nominal" else float_column(value, "value")


def _present(raw: NDArray[Any]) -> BoolArray:
    if raw.dtype.kind in "OUS":
        return np.array([entry is not None and entry == entry for entry in raw.tolist()], dtype=np.bool_)
    return np.isfinite(raw)


def _pick(column: NDArray[Any], rows: IntArray, n: int) -> NDArray[Any]:
    return column if len(rows) == n else column[rows]


def _alpha_from_coincidences(counted: Coincidences, scale: Scale) -> Estimate:
    """Return alpha of the counted ratings: D_o and D_e weight the same distances by the table and by its margins."""
    table, values, n_units = counted
    if n_units == 0:
        return Estimate.undefined(NO_PAIR)
    if len(values) == 1:
        return Estimate.undefined(ALL_EQUAL, n_units)
    marginals = np.rint(table.sum(axis=1))
    if scale == "ratio":
        if values[0] < 0:
            return Estimate.undefined(BELOW_ZERO, n_units)
        distances = _ratio_distance(values[:, None], values[None, :])
    elif scale == "nominal":
        distances = 1.0 - np.eye(len(values))
    else:
        score = _centred(values, marginals, scale)
        distances = (score[:, None] - score[None, :]) ** 2
    observed, expected = float((table * distances).sum()), float(marginals @ distances @ marginals)
    return Estimate.point(1.0 - observed * (float(marginals.sum()) - 1.0) / expected, n_units)


def _even(unit: NDArray[Any], value: NDArray[Any], scale: Scale) -> Estimate | None:
    """Return alpha of rows sorted by unit with m ratings each; D_o then needs only the sum of squares of the units'
    sums. None for other rows."""
    if unit.dtype.kind not in "iu" or value.dtype.kind != "f" or len(unit) < _EVEN_ROWS or scale == "ratio":
        return None
    m = rows_per_unit(unit)
    if not m or (scale == "nominal" and m > _MOST_EVEN):
        return None
    low, high, n, n_units = float(value.min()), float(value.max()), float(len(value)), len(value) // m
    if low == high:
        return Estimate.undefined(ALL_EQUAL, n_units)
    if scale == "interval":
        score = value - float(value.mean())
        score *= 1.0 / (high - low)
    else:
        codes, labels = encode(value, "value")
        marginals = np.bincount(codes).astype(np.float64)
        if scale == "nominal":
            columns = codes.reshape(-1, m)
            equal = sum(np.count_nonzero(columns[:, i] == columns[:, j]) for i in range(m) for j in range(i))
            observed = 1.0 - equal / (n_units * m * (m - 1) / 2)
            return Estimate.point(1.0 - observed * n * (n - 1) / (n * n - float(marginals @ marginals)), n_units)
        score = _centred(labels, marginals, scale)[codes]
    of_unit = score.reshape(-1, m) @ np.ones(m)
    first, second = float(of_unit.sum()), float(score @ score)
    observed = (m * second - float(of_unit @ of_unit)) / (m - 1)
    return Estimate.point(1.0 - observed * (n - 1) / (n * second - first * first), n_units)


def _centred(labels: NDArray[Any], marginals: FloatArray, scale: Scale) -> FloatArray:
    """Return the values, or their midranks, centred and in units of the largest deviation."""
    score = np.cumsum(marginals) - marginals / 2.0 if scale == "ordinal" else np.asarray(labels, dtype=np.float64)
    score = score - float(score @ marginals) / float(marginals.sum())
    return np.asarray(score / np.abs(score).max())


def _point(units: IntArray, sizes: IntArray, codes: IntArray, labels: NDArray[Any], scale: Scale) -> float:
    """Return alpha of all ratings; on numeric scales without a table of units by values."""
    if scale in ("nominal", "ratio"):
        statistic = _Alpha(units, len(sizes), codes, labels, scale)
        return float(statistic(np.ones((len(sizes), 1)))[0])
    marginals = np.bincount(codes, minlength=len(labels)).astype(np.float64)
    n = float(len(units))
    score = _centred(labels, marginals, scale)
    first = np.bincount(units, weights=score[codes], minlength=len(sizes))
    second = np.bincount(units, weights=(score * score)[codes], minlength=len(sizes))
    observed = float((1.0 / (sizes - 1.0)) @ np.maximum(2.0 * (sizes * second - first * first), 0.0))
    expected = 2.0 * (n * float((score * score) @ marginals) - float(score @ marginals) ** 2)
    return 1.0 - observed * (n - 1.0) / expected


def _resampled(
    units: IntArray,
    n_units: int,
    codes: IntArray,
    labels: NDArray[Any],
    scale: Scale,
    clusters: tuple[IntArray, int] | None,
    bootstrap: Bootstrap,
) -> tuple[float, FloatArray]:
    """Return alpha, and alpha of every resample (nan where undefined).

    Units with equal ratings are exchangeable. With few kinds of units their multiplicities are multinomial, so the
    cost does not grow with the units; otherwise the units themselves are resampled."""
    if clusters is None and n_units >= 2:
        first, counts = _kinds(units, n_units, codes, len(labels))
        if len(first) * _COMPRESSION <= n_units:
            place = np.full(n_units, -1, dtype=np.int64)
            place[first] = np.arange(len(first))
            rows = np.flatnonzero(place[units] >= 0)
            statistic = _Alpha(place[units[rows]], len(first), codes[rows], labels, scale)
            point = float(statistic(counts[:, None].astype(np.float64))[0])
            generator = np.random.default_rng([bootstrap.seed, 0])
            parts = [
                statistic(generator.multinomial(n_units, counts / n_units, size=size).T.astype(np.float64))
                for size in chunk_sizes(bootstrap.resamples, len(first))
            ]
            return point, np.concatenate(parts)
    statistic = _Alpha(units, n_units, codes, labels, scale)
    point = float(statistic(np.ones((n_units, 1)))[0])
    of_unit, n_clusters = (None, n_units) if clusters is None else clusters
    if n_clusters < 2:
        return point, np.array([np.nan])
    draws = ClusterDraws(n_clusters, bootstrap.seed)
    parts = []
    for size in chunk_sizes(bootstrap.resamples, max(n_units, n_clusters)):
        drawn = draws.take(size)
        parts.append(statistic(drawn if of_unit is None else drawn[of_unit]))
    return point, np.concatenate(parts)


def _kinds(units: IntArray, n_units: int, codes: IntArray, n_values: int) -> tuple[IntArray, IntArray]:
    """Return one unit of every kind (units with the same multiset of values), and the number of units of each kind."""
    order = np.sort(units * n_values + codes)
    sizes = np.bincount(units, minlength=n_units)
    starts = np.cumsum(sizes) - sizes
    values = order % n_values
    first, counts = [], []
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        if size > _LARGEST_KIND:
            first.append(members)
            counts.append(np.ones(len(members), dtype=np.int64))
            continue
        key = np.zeros(len(members), dtype=np.int64)
        bound = 1
        for place in range(int(size)):
            if bound * n_values >= 1 << 62:
                _, key = np.unique(key, return_inverse=True)
                bound = len(members)
            key = key * n_values + values[starts[members] + place]
            bound *= n_values
        _, rows, count = np.unique(key, return_index=True, return_counts=True)
        first.append(members[rows])
        counts.append(count)
    return np.concatenate(first), np.concatenate(counts)


class _Alpha:
    """Alpha of fixed ratings under multiplicities of the units.

    With the marginals t_v (multiplicities times ratings of value v), N = sum t_v, and a score y_v per value (the value,
    or its midrank), the pairs of a unit give sum_{i != j} (y_i - y_j)^2 = 2 (m sum y^2 - (sum y)^2).
    """

    def __init__(self, unit: IntArray, n_units: int, codes: IntArray, labels: NDArray[Any], scale: Scale) -> None:
        self._scale = scale
        ones = np.ones(len(unit))
        self._counts = csr_array((ones, (unit, codes)), shape=(n_units, len(labels)))
        self._size = np.bincount(unit, minlength=n_units).astype(np.float64)
        self._per_pair = 1.0 / (self._size - 1.0)
        if scale == "nominal":
            squares = np.asarray(self._counts.power(2).sum(axis=1)).reshape(-1)
            self._observed = self._per_pair * (self._size**2 - squares)
        elif scale == "interval":
            # Centred to avoid cancellation in the moments of large values.
            middle = float(labels[codes].mean())
            spread = float(np.abs(labels - middle).max())
            score = (labels - middle) / spread
            first, second = self._counts @ score, self._counts @ (score * score)
            self._observed = self._per_pair * np.maximum(2.0 * (self._size * second - first * first), 0.0)
            self._moments = np.stack([self._size, first, second])
        elif scale == "ordinal":
            # Every rating times m / (m - 1): the part of the disagreement that is a sum over values.
            share = (self._size * self._per_pair)[unit]
            self._shared = csr_array((share, (unit, codes)), shape=(n_units, len(labels)))
        elif scale == "ratio":
            self._labels = labels / float(labels.max())
            self._observed = self._per_pair * _ratio_pairs(unit, n_units, self._labels[codes])

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Return alpha (b,) for multiplicities (n_units, b); nan where all resampled ratings are equal."""
        if self._scale == "interval":
            total, first, second = self._moments @ weights
            observed, expected = self._observed @ weights, _pairs(total, first, second)
        else:
            # The transpose stays compressed by units: that is read in order, and the few values stay in the cache.
            marginals = np.asarray(self._counts.T @ weights)
            total = marginals.sum(axis=0)
            if self._scale == "ordinal":
                # Twice the midrank, measured from the middle: sums of marginals below minus sums of marginals above.
                ranks = (2.0 * np.cumsum(marginals, axis=0) - marginals - total) / 2.0
                first = np.asarray(self._counts @ ranks)
                first *= first
                first *= self._per_pair[:, None]
                second = np.einsum("vb,vb->b", np.asarray(self._shared.T @ weights), ranks * ranks)
                observed = 2.0 * (second - np.einsum("ub,ub->b", first, weights))
                expected = _pairs(total, (marginals * ranks).sum(axis=0), (marginals * ranks * ranks).sum(axis=0))
            else:
                observed = self._observed @ weights
                if self._scale == "nominal":
                    expected = total**2 - np.einsum("vb,vb->b", marginals, marginals)
                else:
                    expected = _ratio_expected(self._labels, marginals)
        ratio = np.full(total.shape, np.nan)
        np.divide(observed * (total - 1.0), expected, out=ratio, where=expected > 0)
        return 1.0 - ratio


def _pairs(total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return sum over all pairs of (x - y)^2 from the count and the first two moments; 0 if it is rounding error."""
    pairs = 2.0 * (total * second - first * first)
    return np.where(pairs > _FLOOR * total * second, pairs, 0.0)


def _ratio_distance(x: FloatArray, y: FloatArray) -> FloatArray:
    total = x + y
    return np.asarray(np.divide(x - y, total, out=np.zeros(total.shape), where=total > 0) ** 2)


def _ratio_pairs(unit: IntArray, n_units: int, value: FloatArray) -> FloatArray:
    """Return sum_{i != j} of the ratio distance within each unit, (n_units,)."""
    order = np.argsort(unit, kind="stable")
    sizes = np.bincount(unit, minlength=n_units)
    starts = np.cumsum(sizes) - sizes
    result = np.zeros(n_units)
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        step = max(_BLOCK_CELLS // int(size * size), 1)
        for begin in range(0, len(members), step):
            part = members[begin : begin + step]
            rows = value[order[starts[part][:, None] + np.arange(size)]]
            result[part] = _ratio_distance(rows[:, :, None], rows[:, None, :]).sum(axis=(1, 2))
    return result


def _ratio_expected(labels: FloatArray, marginals: FloatArray) -> FloatArray:
    """Return sum_{v, w} t_v t_w d(v, w) for marginals (values, b), in blocks of rows of distances."""
    result = np.zeros(marginals.shape[1])
    step = max(_BLOCK_CELLS // len(labels), 1)
    for begin in range(0, len(labels), step):
        part = slice(begin, begin + step)
        distances = _ratio_distance(labels[part, None], labels[None, :])
        result += np.einsum("vb,vb->b", marginals[part], distances @ marginals)
    return result
