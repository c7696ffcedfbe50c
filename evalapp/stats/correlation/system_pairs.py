"""Pairwise accuracy of systems, hard and soft: agreement of a metric with the human order of pairs of systems.

Pairs of outputs are in `pairs`.

Explained in docs/explanation/statistics/correlation.md#accuracy-of-pairs-of-systems."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import ROUNDING, BoolArray, FloatArray, encode, float_column, identifiers, snap
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.core.options import refuse_options
from evalapp.stats.resampling.bootstrap import (
    DEFAULT_BOOTSTRAP,
    MIN_CLUSTERS,
    Bootstrap,
    ClusterDraws,
    chunk_sizes,
    with_interval,
)  # fmt: skip

#: Cells of pair differences by items that are held at once (float64: 32 MB).
_CELLS = 1 << 22


def system_pairwise_accuracy(
    metric: ArrayLike,
    human: ArrayLike,
    system: ArrayLike,
    *,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Return the share of system pairs that the metric's means order as the human means do (a tie of both is correct).

    Means over the outputs that have both scores; the note counts those without a metric score. n = pairs of systems.
    The interval is a bootstrap over systems; a system drawn twice makes no pair with itself."""
    refuse_options(bootstrap, "cluster")
    x = float_column(metric, "metric")
    y = float_column(human, "human", len(x))
    complete = np.isfinite(x) & np.isfinite(y)
    note = _left_out(x, y)
    codes, labels = encode(identifiers(system, "system", len(x))[complete], "system")
    if len(labels) < 2:
        return Estimate.undefined("fewer than 2 systems")
    sizes = np.bincount(codes)
    means = [snap(np.bincount(codes, weights=column[complete]) / sizes) for column in (x, y)]
    signs = [np.sign(mean[:, None] - mean[None, :]) for mean in means]
    right = (signs[0] == signs[1]).astype(np.float64)
    result = _over_system_pairs(right, bootstrap)
    return result.with_note(note) if note else result


def soft_pairwise_accuracy(
    metric: ArrayLike,
    human: ArrayLike,
    item: ArrayLike,
    system: ArrayLike,
    *,
    permutations: int = 1000,
    seed: int = 4,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Return SPA = 1 - mean over pairs of systems of |p^h - p^m| (Thompson et al. 2024).

    `metric`, `human`, `item`, `system`: (n,) columns, one row per output; `seed`: seed of the permutations;
    `bootstrap`: settings of the interval, without clusters.

    p is the one-sided p-value of a paired permutation test that the first of two systems (by name) is better: the
    share of `permutations` random signs over the items, the same for all pairs, whose summed signed difference
    reaches the observed one. Only items where both systems have both scores count for a pair; rows with the same
    item and system are averaged first. Signs are drawn item by item in the order of the items' identifiers. n = pairs
    of systems; the interval is a bootstrap over systems."""
    refuse_options(bootstrap, "cluster")
    if permutations < 1:
        raise ValueError(f"permutations must be at least 1, not {permutations}")
    x = float_column(metric, "metric")
    y = float_column(human, "human", len(x))
    complete = np.isfinite(x) & np.isfinite(y)
    items, item_labels = encode(identifiers(item, "item", len(x))[complete], "item")
    systems, labels = encode(identifiers(system, "system", len(x))[complete], "system")
    if len(labels) < 2:
        return Estimate.undefined("fewer than 2 systems")
    shape = (len(item_labels), len(labels))
    cells = items * shape[1] + systems
    counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    tables = [
        np.bincount(cells, weights=column[complete], minlength=counts.size).reshape(shape) / np.maximum(counts, 1)
        for column in (x, y)
    ]
    p_metric, p_human = (_system_p(table, counts > 0, permutations, seed) for table in tables)
    shared = ~np.isnan(p_metric)
    result = _over_system_pairs(1.0 - np.abs(p_human - p_metric), bootstrap)
    lost = int((~shared).sum() - len(labels)) // 2
    notes = [f"{lost} pairs of systems share no item"] if lost and result.is_defined else []
    for note in (*notes, _left_out(x, y)):
        result = result.with_note(note) if note else result
    return result


def _left_out(metric: FloatArray, human: FloatArray) -> str:
    missing = int((np.isfinite(human) & ~np.isfinite(metric)).sum())
    return f"{missing} outputs without a metric score are left out" if missing else ""


def _system_p(table: FloatArray, present: BoolArray, permutations: int, seed: int) -> FloatArray:
    """Return p of every pair (row better than column) of systems, upper triangle; nan if they share no item."""
    n_items, n_systems = table.shape
    table = table - table.sum() / max(int(present.sum()), 1)
    table = np.where(present, table, 0.0)
    one, two = np.triu_indices(n_systems, 1)
    tolerance = ROUNDING * max(float(np.abs(table).sum(axis=0).max()), 1e-300)
    if present.all():
        # Without missing values the signed sum of a difference is the difference of the signed sums.
        sums = table.sum(axis=0)
        observed = sums[one] - sums[two] - tolerance
        reached = np.zeros(len(one))
        for signs in _signs(permutations, n_items, len(one), seed):
            signed = signs @ table
            reached += (signed[:, one] - signed[:, two] >= observed).sum(axis=0)
    else:
        # Chunks of pairs, all with the same signs: the differences of all pairs would not fit in memory.
        step = max(_CELLS // max(n_items, 1), 1)
        parts = []
        for start in range(0, len(one), step):
            first, second = one[start : start + step], two[start : start + step]
            differences = (table[:, first] - table[:, second]) * (present[:, first] & present[:, second])
            observed = differences.sum(axis=0) - tolerance
            chunks = _signs(permutations, n_items, len(first), seed)
            parts.append(sum(((signs @ differences >= observed).sum(axis=0) for signs in chunks), np.zeros(len(first))))
        reached = np.concatenate(parts)
    p = np.full((n_systems, n_systems), np.nan)
    p[one, two] = reached / permutations
    shared = present.T.astype(np.float64) @ present
    p[shared == 0] = np.nan
    np.fill_diagonal(p, np.nan)
    lower = np.tril_indices(n_systems, -1)
    p[lower] = p.T[lower]
    return p


def _signs(permutations: int, n_items: int, width: int, seed: int) -> Iterator[FloatArray]:
    """Yield the random signs of the items in chunks that add up to `permutations`; the signs do not depend on the
    chunk size."""
    draws = np.random.default_rng(seed)
    for size in chunk_sizes(permutations, max(n_items, width)):
        yield 2.0 * np.rint(draws.random((size, n_items))) - 1.0


def _over_system_pairs(values: FloatArray, bootstrap: Bootstrap) -> Estimate:
    """Return the mean of a symmetric table (s, s) over the pairs of systems, without nan, with a bootstrap over
    systems."""
    counted = ~np.isnan(values)
    np.fill_diagonal(counted, False)
    n_pairs = int(counted.sum()) // 2
    if n_pairs == 0:
        return Estimate.undefined("no two systems share an item")
    filled = np.where(counted, values, 0.0)
    point = Estimate.point(float(filled.sum() / counted.sum()), n_pairs)
    draws = ClusterDraws(len(values), bootstrap.seed, 1)
    parts = []
    for size in chunk_sizes(bootstrap.resamples, len(values)):
        times = draws.take(size)
        above = np.einsum("sb,sb->b", times, filled @ times)
        below = np.einsum("sb,sb->b", times, counted.astype(np.float64) @ times)
        parts.append(np.divide(above, below, out=np.full(size, np.nan), where=below > 0))
    replicates = np.concatenate(parts) if parts else np.empty(0)
    known = replicates[~np.isnan(replicates)]
    if known.size and len(values) >= MIN_CLUSTERS and np.ptp(known) <= ROUNDING:
        return point.with_note("no interval: all pairs of systems are alike, so that no resample differs")
    return with_interval(point, replicates, clusters={"systems": len(values)}, confidence=bootstrap.confidence)
