"""Bias-corrected and accelerated (BCa) bootstrap intervals, and the leave-one-out draws that they need."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from evalapp.stats.core.coding import FloatArray
from evalapp.stats.core.estimate import NAN, Estimate
from evalapp.stats.resampling.bootstrap import DEFAULT_CONFIDENCE, with_ends, with_interval

#: With more clusters than this, blocks of clusters are left out instead of single ones.
MOST_BLOCKS = 1000


class LeaveOneOut:
    """Leave-one-out draws instead of random ones: all clusters once except for a block (a single cluster up to
    `MOST_BLOCKS` clusters)."""

    def __init__(self, n_clusters: int) -> None:
        self._n = n_clusters
        self.n_blocks = min(n_clusters, MOST_BLOCKS)
        self._next = 0

    def take(self, size: int) -> FloatArray:
        """Return the next `size` blocks left out, as counts (n_clusters, size)."""
        blocks = np.arange(self._next, self._next + size)
        self._next += size
        return (np.arange(self._n)[:, None] % self.n_blocks != blocks).astype(np.float64)


def bca_interval(
    value: float, replicates: FloatArray, left_out: Sequence[FloatArray], confidence: float = DEFAULT_CONFIDENCE
) -> tuple[float, float]:
    """Return the interval of Efron (1987) from the value, its replicates, and its values with each unit left out.

    The percentiles are Phi(z0 + (z0 + z) / (1 - a (z0 + z))) for z = Phi^-1 of both tails, z0 = Phi^-1 of the share of
    replicates below the value (equal ones count half), and with d_i = (n - 1) (mean of left-out values - i-th one)
    a = sum d^3 / n^3 / (6 (sum d^2 / n^2)^(3/2)), sums over all `left_out` where several things are resampled.
    nan, nan where all replicates lie on one side or nothing varies."""
    defined = replicates[~np.isnan(replicates)]
    if defined.size == 0:
        return NAN, NAN
    below = (np.mean(defined < value - 1e-12) + np.mean(defined <= value + 1e-12)) / 2.0
    z0 = float(special.ndtri(below))
    cubes = squares = 0.0
    for values in left_out:
        known = values[~np.isnan(values)]
        if known.size > 1:
            d = (known.mean() - known) * (known.size - 1) / known.size
            cubes, squares = cubes + float((d**3).sum()), squares + float((d**2).sum())
    if not math.isfinite(z0) or squares <= 0:
        return NAN, NAN
    acceleration = cubes / (6.0 * squares**1.5)
    tail = round((1.0 - confidence) / 2.0, 12)
    ends = []
    for z in (z0 + special.ndtri(tail), z0 + special.ndtri(1.0 - tail)):
        if acceleration * z >= 1.0:
            return NAN, NAN
        ends.append(100.0 * float(special.ndtr(z0 + z / (1.0 - acceleration * z))))
    low, high = np.percentile(defined, ends)
    return float(low), float(high)


def with_bca_interval(
    point: Estimate,
    replicates: FloatArray,
    left_out: Sequence[FloatArray],
    *,
    clusters: dict[str, int],
    confidence: float = DEFAULT_CONFIDENCE,
) -> Estimate:
    """Return `point` with its BCa interval, under the conditions and with the notes of `with_interval`."""
    plain = with_interval(point, replicates, clusters=clusters, confidence=confidence)
    if not plain.has_interval:
        return plain
    low, high = bca_interval(point.value, replicates, left_out, confidence)
    if math.isnan(low):
        return point.with_note("no interval: the resamples lie on one side of the value")
    return with_ends(point, low, high, clusters)
