"""Agreement between raters: Krippendorff's alpha with a bootstrap interval over units.

Long-form columns, one row per rating. What a unit is (an output under one aspect, a pair of outputs) the caller says.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from evalapp.stats.coding import FloatArray, IntArray, encode, float_column, identifiers, parents
from evalapp.stats.estimate import Estimate
from evalapp.stats.resampling import (
    DEFAULT_CONFIDENCE,
    DEFAULT_RESAMPLES,
    ClusterDraws,
    chunk_sizes,
    with_interval,
)

Scale: TypeAlias = Literal["nominal", "ordinal", "interval"]
SCALES: tuple[Scale, ...] = ("nominal", "ordinal", "interval")

# Expected disagreement below this share of the second moment is rounding.
_FLOOR = 1e-12


def krippendorff_alpha(
    unit: ArrayLike,
    value: ArrayLike,
    *,
    scale: Scale = "interval",
    cluster: ArrayLike | None = None,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    confidence: float = DEFAULT_CONFIDENCE,
) -> Estimate:
    """Krippendorff's alpha = 1 - D_o / D_e (Krippendorff 2011), percentile interval from resampled units.

    `unit`: (n,) what was rated; `value`: (n,) numbers, or labels for the nominal scale; nan = missing. Units with fewer
    than 2 ratings are left out; `n` counts the units used. Over their N ratings, m_u in unit u:

    D_o = (1/N) sum_u 1/(m_u - 1) sum_{i != j in u} d(x_i, x_j),   D_e = 1/(N(N-1)) sum_{i != j} d(x_i, x_j),
    d = [x != y] (nominal), (x - y)^2 (interval), (midrank(x) - midrank(y))^2 among the N ratings (ordinal; this is
    Krippendorff's sum of the marginals between x and y with half of each end). Both sums follow from counts or from
    first and second moments per unit, never from pairs.

    `cluster`: (n,) identifier of what is drawn with replacement in the bootstrap (the item of the unit), default the
    unit itself. Undefined, with the reason, when no unit has two ratings or all ratings are equal.
    """
    if scale not in SCALES:
        raise ValueError(f"scale is one of {', '.join(SCALES)}, not '{scale}'")
    raw = identifiers(value, "value")
    if raw.dtype.kind in "OUS" and scale == "nominal":
        present = np.array([entry is not None and entry == entry for entry in raw.tolist()], dtype=np.bool_)
    else:
        raw = float_column(value, "value")
        present = np.isfinite(raw)
    units, _ = encode(identifiers(unit, "unit", len(raw))[present], "unit")
    sizes = np.bincount(units)
    used = sizes[units] >= 2
    if not used.any():
        return Estimate.undefined("no unit was rated twice")
    kept = np.flatnonzero(present)[used]
    codes, labels = encode(raw[kept], "value")
    units, unit_labels = encode(units[used], "unit")
    n_units = len(unit_labels)
    if len(labels) == 1:
        return Estimate.undefined("all ratings are equal", n_units)
    cluster_of_unit, n_clusters = np.arange(n_units), n_units
    if cluster is not None:
        cluster_codes, cluster_labels = encode(identifiers(cluster, "cluster", len(raw))[kept], "cluster")
        cluster_of_unit, n_clusters = parents(units, cluster_codes, n_units, "cluster"), len(cluster_labels)
    statistic = _Alpha(units, n_units, codes, np.asarray(labels), scale)
    point = Estimate.point(float(statistic(np.ones((n_units, 1)))[0]), n_units)
    if resamples == 0:
        return point
    draws = ClusterDraws(n_clusters, seed)
    sizes_of_chunks = chunk_sizes(resamples, max(n_units, n_clusters)) if n_clusters >= 2 else []
    parts = [statistic(draws.take(size)[cluster_of_unit]) for size in sizes_of_chunks]
    replicates = np.concatenate(parts) if parts else np.array([np.nan])
    return with_interval(point, replicates, clusters={"units": n_clusters}, confidence=confidence)


class _Alpha:
    """Alpha of fixed ratings under multiplicities of the units.

    With the marginals t_v (multiplicities times ratings of value v), N = sum t_v, and a score y_v per value (the value,
    or its midrank), the pairs of a unit give sum_{i != j} (y_i - y_j)^2 = 2 (m sum y^2 - (sum y)^2).
    """

    def __init__(self, unit: IntArray, n_units: int, codes: IntArray, labels: FloatArray, scale: Scale) -> None:
        self._scale = scale
        ones = np.ones(len(unit))
        self._counts = csr_array((ones, (unit, codes)), shape=(n_units, len(labels)))
        self._size = np.bincount(unit, minlength=n_units).astype(np.float64)
        self._per_pair = 1.0 / (self._size - 1.0)
        if scale == "nominal":
            squares = np.asarray(self._counts.power(2).sum(axis=1)).reshape(-1)
            self._observed = self._per_pair * (self._size**2 - squares)
        elif scale == "interval":
            # Centred, so that the moments of large values do not cancel.
            middle = float(labels[codes].mean())
            spread = float(np.abs(labels - middle).max())
            self._score = (labels - middle) / spread
            self._observed = self._disagreement(self._score[:, None])[:, 0]

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Alpha (b,) for multiplicities (n_units, b); nan where all resampled ratings are equal."""
        marginals = np.asarray(self._counts.T @ weights)
        total = marginals.sum(axis=0)
        if self._scale == "nominal":
            observed = self._observed @ weights
            expected = total**2 - np.einsum("vb,vb->b", marginals, marginals)
        elif self._scale == "interval":
            observed = self._observed @ weights
            expected = self._expected(marginals, self._score[:, None], total)
        else:
            # Twice the midrank, measured from the middle: sums of marginals below minus sums of marginals above.
            ranks = (2.0 * np.cumsum(marginals, axis=0) - marginals - total) / 2.0
            observed = np.einsum("ub,ub->b", self._disagreement(ranks), weights)
            expected = self._expected(marginals, ranks, total)
        ratio = np.full(total.shape, np.nan)
        np.divide(observed * (total - 1.0), expected, out=ratio, where=expected > 0)
        return 1.0 - ratio

    def _disagreement(self, score: FloatArray) -> FloatArray:
        """sum over pairs of a unit, over m - 1, for scores (values, b): (n_units, b)."""
        first = np.asarray(self._counts @ score)
        second = np.asarray(self._counts @ (score * score))
        pairs = 2.0 * (self._size[:, None] * second - first * first)
        return np.asarray(np.maximum(pairs, 0.0) * self._per_pair[:, None])

    @staticmethod
    def _expected(marginals: FloatArray, score: FloatArray, total: FloatArray) -> FloatArray:
        first = (marginals * score).sum(axis=0)
        second = (marginals * score * score).sum(axis=0)
        pairs = 2.0 * (total * second - first * first)
        return np.where(pairs > _FLOOR * total * second, pairs, 0.0)
