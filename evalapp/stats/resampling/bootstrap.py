"""Cluster bootstrap: resampled multiplicities of clusters, resampled sums, percentile intervals.

Clusters (items, groups of items, systems) are resampled, never rows.

Explained in docs/explanation/statistics/significance.md#cluster-bootstrap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import FloatArray, IntArray
from evalapp.stats.core.estimate import NAN, Estimate

DEFAULT_RESAMPLES = 1000
DEFAULT_CONFIDENCE = 0.95

# Cells per chunk of multiplicities: 2 MB of float64, so that the few arrays of this size fit the cache.
_CHUNK_CELLS = 1 << 18
# Columns below which the cost per chunk outweighs that.
_MIN_CHUNK = 8

#: Below this many clusters an interval carries a warning. Percentiles of resamples correspond to a normal distribution
#: with (n - 1) / n of the sample variance, so for n normal values a nominal 95 % interval misses their mean with
#: probability 2 T(-1.96 sqrt((n - 1) / n)), T with n - 1 degrees of freedom: .071 for 20, .096 for 10, .102 for 9, .155
#: for 5. Below 10 the error rate is at least twice the nominal one. Cameron, Gelbach and Miller (2008) found over-
#: rejection of that order with 5 to 10 clusters; skewed means and unequal clusters do worse.
FEW_CLUSTERS = 10
#: Below this many clusters there is no interval: percentiles of resamples of 2 to 4 clusters miss the mean of normal
#: values in 48 to 19 % of all cases (formula above), and may not even contain the estimate.
MIN_CLUSTERS = 5

# Stream of random numbers of `spread_shares_of_all`.
_ALIKE_STREAM = 2
# With fewer defined resamples an interval would be biased towards the resamples that happen to be defined.
_MIN_DEFINED = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """Settings of a bootstrap interval.

    cluster: (n,) group of each row; groups are resampled whole, with replacement. None: each unit of the statistic is a
        group of its own.
    resamples: number of resamples; 0 gives no interval.
    seed: of the draws; two statistics over the same groups are paired under the same seed.
    confidence: level of the interval, between 0 and 1."""

    cluster: ArrayLike | None = None
    resamples: int = DEFAULT_RESAMPLES
    seed: int = 0
    confidence: float = DEFAULT_CONFIDENCE

    def with_cluster(self, cluster: ArrayLike | None) -> Bootstrap:
        """Return the same settings with other groups of rows."""
        return replace(self, cluster=cluster)


DEFAULT_BOOTSTRAP = Bootstrap()


def chunk_sizes(resamples: int, rows: int) -> list[int]:
    """Return sizes of chunks of resamples that keep a (rows, chunk) array small; they sum to `resamples`."""
    size = min(max(_CHUNK_CELLS // max(rows, 1), _MIN_CHUNK), max(resamples, 1))
    whole, rest = divmod(resamples, size)
    return [size] * whole + ([rest] if rest else [])


class Draws(Protocol):
    """Protocol: returns the next `size` resamples as counts (n_clusters, size)."""

    def take(self, size: int) -> FloatArray: ...


class ClusterDraws:
    """Multiplicities of `n_clusters` clusters; each resample draws `n_clusters` clusters with replacement.

    The same seed gives the same draws for any chunk size, so two statistics over the same clusters are paired. `stream`
    separates draws that must be independent under one seed (items and systems)."""

    def __init__(self, n_clusters: int, seed: int, stream: int = 0) -> None:
        self.n_clusters = n_clusters
        self._generator = np.random.default_rng([seed, stream])

    def take(self, size: int) -> FloatArray:
        """Return the next `size` resamples as counts (n_clusters, size)."""
        # NumPy draws int64 one by one, but smaller types in packs, which would make results depend on the chunk size.
        drawn = self._generator.integers(0, self.n_clusters, size=(size, self.n_clusters), dtype=np.int64)
        drawn += np.arange(size, dtype=np.int64)[:, None] * self.n_clusters
        counts = np.bincount(drawn.ravel(), minlength=size * self.n_clusters)
        return np.ascontiguousarray(counts.reshape(size, self.n_clusters).T, dtype=np.float64)


def resampled_sums(columns: FloatArray, cluster: IntArray, n_clusters: int, *, resamples: int, seed: int) -> FloatArray:
    """Return the sums of columns (n, k) in every resample of the clusters, (resamples, k).

    `columns`: rows to be summed; `cluster`: (n,) code of each row's cluster, below `n_clusters`; `resamples`: their
    number; `seed`: seed of the draws.

    Only the sums per cluster (n_clusters, k) are resampled, so the cost does not grow with the rows."""
    if not columns.size:
        return np.zeros((resamples, columns.shape[1]))
    sums = np.stack([np.bincount(cluster, weights=column, minlength=n_clusters) for column in columns.T], axis=1)
    draws = ClusterDraws(n_clusters, seed)
    parts = [draws.take(size).T @ sums for size in chunk_sizes(resamples, n_clusters)]
    return np.concatenate(parts) if parts else np.empty((0, columns.shape[1]))


def tails(confidence: float) -> tuple[float, float]:
    """Return the two percentiles that enclose the central `confidence` share: 2.5 and 97.5 for 0.95."""
    # Rounded, because 1 - 0.95 is not quite 0.05.
    tail = round(50.0 * (1.0 - confidence), 9)
    return tail, 100.0 - tail


def percentile_interval(replicates: FloatArray, confidence: float = DEFAULT_CONFIDENCE) -> tuple[float, float]:
    """Return the central `confidence` share of the defined replicates (linear percentiles); nan, nan if there are
    none."""
    defined = replicates[~np.isnan(replicates)]
    if defined.size == 0:
        return NAN, NAN
    low, high = np.percentile(defined, tails(confidence))
    return float(low), float(high)


def few_note(clusters: Mapping[str, int]) -> str:
    """Return the warning of an interval from fewer than `FEW_CLUSTERS` clusters of any kind, else ""."""
    few = [f"{count} {what}" for what, count in clusters.items() if count < FEW_CLUSTERS]
    return f"the interval rests on {' and '.join(few)} only" if few else ""


def too_few_note(clusters: Mapping[str, int]) -> str:
    """Return why there is no interval from fewer than `MIN_CLUSTERS` clusters of any kind, else ""."""
    few = [f"{count} {what}" for what, count in clusters.items() if count < MIN_CLUSTERS]
    return f"no interval: {' and '.join(few)} only, at least {MIN_CLUSTERS} are needed" if few else ""


#: Reason for no interval where all resamples are equal.
NO_WIDTH = "no interval: all parts of the data give the same value, so they say nothing of its uncertainty"
#: Note on the interval of a share of 0 or 1.
ALL_ALIKE = "all came out the same: exact interval (Clopper-Pearson)"
#: Note on an interval that does not contain its own estimate.
OUTSIDE = "the value lies outside the interval of its resamples: do not rely on either end"


def with_interval(
    point: Estimate,
    replicates: FloatArray,
    *,
    clusters: dict[str, int],
    confidence: float = DEFAULT_CONFIDENCE,
    is_share: bool = False,
) -> Estimate:
    """Return `point` with the percentile interval of `replicates`, or with a note on why it has none.

    `confidence`: level of the interval.
    `clusters`: number of resampled units by name ({"items": 60}). There is no interval with fewer than `MIN_CLUSTERS`
    of any, or if less than half of the replicates are defined. Without replicates (none requested) nothing is added. A
    note marks an interval from fewer than `FEW_CLUSTERS`, and an interval that does not contain the estimate. Resamples
    that are all equal give no interval, except for a share (`is_share`) of 0 or 1, see `with_share_of_all`."""
    if not point.is_defined or replicates.size == 0:
        return point
    if too_few := too_few_note(clusters):
        return point.with_note(too_few)
    if is_share and point.value in (0.0, 1.0):
        return with_share_of_all(point, clusters, confidence)
    share = float(np.mean(~np.isnan(replicates)))
    if share < _MIN_DEFINED:
        return point.with_note(f"no interval: only {share:.0%} of the resamples give a defined value")
    low, high = percentile_interval(replicates, confidence)
    if not np.isfinite((low, high)).all():
        return point.with_note("no interval: the values are too large to compute with")
    return with_ends(point, low, high, clusters)


def with_ends(point: Estimate, low: float, high: float, clusters: Mapping[str, int]) -> Estimate:
    """Return `point` with the interval [low, high] and its notes: few clusters, or an estimate outside the interval (by
    more than rounding). An interval without width is left out."""
    rounding = 1e-9 * max(1.0, abs(point.value))
    if not high - low > rounding * 1e-3:
        return point.with_note(NO_WIDTH)
    estimate = Estimate(point.value, low, high, point.n, point.note)
    is_outside = not low - rounding <= point.value <= high + rounding
    for note in (few_note(clusters), OUTSIDE if is_outside else ""):
        estimate = estimate.with_note(note) if note else estimate
    return estimate


def with_share_of_all(point: Estimate, clusters: Mapping[str, int], confidence: float) -> Estimate:
    """Return a share of 0 or 1 with its exact interval (Clopper and Pearson 1934), counting each of the n clusters as
    one trial with the same outcome: 1 has [(a / 2)^(1 / n), 1] with a = 1 - confidence, which is [0.69, 1] for 10
    clusters."""
    end = (0.5 - confidence / 2) ** (1.0 / min(clusters.values()))
    low, high = (end, 1.0) if point.value == 1 else (0.0, 1.0 - end)
    return with_ends(point.with_note(ALL_ALIKE), low, high, clusters)


def spread_shares_of_all(replicates: FloatArray, shares: FloatArray, n_clusters: IntArray, seed: int) -> None:
    """Replace the replicates (resamples, k) of shares (k,) of 0 and 1, which resampling cannot vary.

    They become 1 - u^(1 / n) and u^(1 / n) with u uniform and the same for all, whose percentiles are the ends of
    `with_share_of_all`. For two systems that were compared only with each other, the better one is then certainly first
    from 6 clusters on, as in a two-sided sign test."""
    n = len(replicates)
    u = (np.random.default_rng([seed, _ALIKE_STREAM]).permutation(n)[:, None] + 0.5) / max(n, 1)
    for end in (0.0, 1.0):
        alike = np.flatnonzero((shares == end) & (n_clusters > 0))
        spread = u ** (1.0 / n_clusters[alike])
        replicates[:, alike] = spread if end else 1.0 - spread


def iterate_draws(
    items: Draws | None, systems: Draws | None, resamples: int, rows: int
) -> Iterator[tuple[int, FloatArray | None, FloatArray | None]]:
    """Yield chunks (size, counts of item clusters or None, counts of systems or None) that add up to `resamples`."""
    for size in chunk_sizes(resamples, rows):
        yield size, items.take(size) if items else None, systems.take(size) if systems else None
