"""Pairwise accuracy on outputs: agreement of a metric with the human order of pairs, ties, and tie calibration.

Pairs of systems are in `system_pairs`, comparisons of metrics in `significance`.

Explained in docs/explanation/statistics/correlation.md#accuracy-of-pairs-with-ties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import (
    ROUNDING,
    BoolArray,
    ColumnError,
    FloatArray,
    IntArray,
    encode,
    float_column,
    identifiers,
    parents,
)  # fmt: skip
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.meta_evaluation import NanRule
from evalapp.stats.resampling.bootstrap import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    resampled_sums,
    with_interval,
)  # fmt: skip

NO_PAIR = "no item has two outputs with both scores"
#: Largest number of pairs, which are held in memory at about 60 bytes each.
MOST_PAIRS = 30_000_000
_FOLD_STREAM = 3


@dataclass(frozen=True, slots=True)
class TieCalibration:
    """Threshold below which a metric's difference counts as a tie, with the resulting accuracy.

    `epsilon` maximises `accuracy` on the data themselves; `cross_validated` is the accuracy of items whose threshold
    was fitted on the other folds, None without folds. The interval of `accuracy` treats `epsilon` as known.
    `n_pairs` counts the pairs within items."""

    epsilon: float
    accuracy: Estimate
    cross_validated: Estimate | None
    n_pairs: int

    def as_dict(self) -> dict[str, Any]:
        """Return the calibration as JSON-safe values."""
        return {
            "epsilon": None if np.isnan(self.epsilon) else self.epsilon,
            "accuracy": self.accuracy.as_dict(),
            "cross_validated": None if self.cross_validated is None else self.cross_validated.as_dict(),
            "n_pairs": self.n_pairs,
        }


@dataclass(frozen=True, slots=True)
class PairTable:
    """All pairs of outputs within items, (p,), with human order and metric difference.

    `first`, `second` are rows; `group` numbers the items that have pairs, `size` counts their pairs, `weight` of a
    pair is 1 / (size of its item x number of items), so that sums over pairs are averages over items. `distance` is
    |m_i - m_j|, infinite where a score is missing; `agrees` says whether the signs of both differences are the same."""

    group: IntArray
    size: IntArray
    cluster: IntArray
    n_clusters: int
    weight: FloatArray
    distance: FloatArray
    agrees: BoolArray
    human_tied: BoolArray
    tolerance: float
    note: str = ""

    @property
    def n_items(self) -> int:
        return len(self.size)

    def correct(self, epsilon: float) -> BoolArray:
        """Return which pairs are correct if differences up to `epsilon` are ties."""
        return np.where(self.distance <= epsilon + self.tolerance, self.human_tied, self.agrees)

    def by_item(self, epsilon: float) -> FloatArray:
        """Return the share of correct pairs of every item."""
        right = np.bincount(self.group, weights=self.correct(epsilon), minlength=self.n_items)
        return np.asarray(right / self.size)


#: Default of `calibrate_ties`, whose folds are drawn with the same seed.
CALIBRATION = Bootstrap(seed=13)


def acc_eq(
    metric: ArrayLike,
    human: ArrayLike,
    item: ArrayLike,
    *,
    epsilon: float = 0.0,
    nan_rule: NanRule = "drop",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Return the accuracy with ties, (C + T_hm) / (C + D + T_h + T_m + T_hm) of each item's pairs of outputs, averaged
    over items.

    `metric`, `human`, `item`: (n,) one row per output. C concordant, D discordant, T_h tied only in human scores, T_m
    only by the metric, T_hm by both; the metric ties where |m_i - m_j| <= `epsilon` (Deutsch et al. 2023). One value in
    `item` for all rows compares all outputs with each other.

    Rows without a human score are left out. Rows without a metric score are left out (`nan_rule` "drop"), or their
    pairs count as wrong ("zero"); the note counts them. n = items averaged; the interval is a bootstrap over
    `bootstrap.cluster` (default the item)."""
    if epsilon < 0:
        raise ValueError(f"epsilon is a distance, so at least 0, not {epsilon}")
    pairs = pair_table(metric, human, item, cluster=bootstrap.cluster, nan_rule=nan_rule)
    return _average(pairs, pairs.by_item(epsilon), bootstrap)


def tau_eq(
    metric: ArrayLike,
    human: ArrayLike,
    item: ArrayLike,
    *,
    epsilon: float = 0.0,
    nan_rule: NanRule = "drop",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Return (C + T_hm - D - T_h - T_m) / all pairs = 2 acc_eq - 1; otherwise as `acc_eq`."""
    estimate = acc_eq(
        metric,
        human,
        item,
        epsilon=epsilon,
        nan_rule=nan_rule,
        bootstrap=bootstrap,
    )
    return Estimate(2 * estimate.value - 1, 2 * estimate.low - 1, 2 * estimate.high - 1, estimate.n, estimate.note)


def calibrate_ties(
    metric: ArrayLike,
    human: ArrayLike,
    item: ArrayLike,
    *,
    folds: int | None = None,
    nan_rule: NanRule = "drop",
    bootstrap: Bootstrap = CALIBRATION,
) -> TieCalibration:
    """Return the smallest epsilon with the highest `acc_eq` over all pairs (tie calibration; Deutsch et al. 2023).

    `metric`, `human`, `item`, `nan_rule`, `bootstrap`: as in `acc_eq`.

    The pairs are sorted by |m_i - m_j| and become ties one after the other; after each distinct difference the
    accuracy is a candidate. O(p log p) for p pairs. `folds` adds a cross-validation by clusters (default the item):
    clusters are assigned to folds at random, and each fold is evaluated with the threshold of the others. Columns,
    missing scores and intervals as in `acc_eq`."""
    pairs = pair_table(metric, human, item, cluster=bootstrap.cluster, nan_rule=nan_rule)
    return calibrate_table(pairs, folds, bootstrap)


def calibrate_table(
    pairs: PairTable, folds: int | None, bootstrap: Bootstrap, *, absent: str = NO_PAIR
) -> TieCalibration:
    """Return `calibrate_ties` of existing pairs; `absent` is the reason if there are none."""
    if pairs.n_items == 0:
        missing = Estimate.undefined(absent)
        return TieCalibration(float("nan"), missing, None if folds is None else missing, 0)
    order = by_distance(pairs)
    epsilon = best_epsilon(pairs, order=order)
    accuracy = _average(pairs, pairs.by_item(epsilon), bootstrap)
    validated = None
    if folds is not None:
        validated = _cross_validated(pairs, order, folds, bootstrap)
    return TieCalibration(epsilon, accuracy, validated, len(pairs.group))


def pair_table(
    metric: ArrayLike,
    human: ArrayLike,
    item: ArrayLike,
    *,
    cluster: ArrayLike | None = None,
    nan_rule: NanRule = "drop",
) -> PairTable:
    """Return all pairs within items of the rows that count.

    Raises `ColumnError` for columns that do not fit."""
    if nan_rule not in ("drop", "zero"):
        raise ValueError(f"nan_rule is one of drop, zero, not '{nan_rule}'")
    x = float_column(metric, "metric")
    y = float_column(human, "human", len(x))
    known = np.isfinite(x)
    kept = np.isfinite(y) & (known | (nan_rule == "zero"))
    n_missing = int((np.isfinite(y) & ~known).sum())
    what = "left out" if nan_rule == "drop" else "counted as wrong"
    note = f"{n_missing} outputs without a metric score are {what}" if n_missing else ""
    codes, labels = encode(identifiers(item, "item", len(x))[kept], "item")
    cluster_of_item, n_clusters = np.arange(len(labels)), len(labels)
    if cluster is not None:
        cluster_codes, cluster_labels = encode(identifiers(cluster, "cluster", len(x))[kept], "cluster")
        cluster_of_item = parents(codes, cluster_codes, len(labels), "cluster")
        n_clusters = len(cluster_labels)
    x, y, known = x[kept], y[kept], known[kept]
    first, second, of = within(codes, len(labels))
    items, group = np.unique(of, return_inverse=True)
    size = np.bincount(group, minlength=len(items))
    x = np.where(known, x, 0.0)
    difference, human_difference = x[first] - x[second], y[first] - y[second]
    tolerance = ROUNDING * float(np.abs(x).max(initial=0.0))
    human_sign = np.sign(human_difference) * (np.abs(human_difference) > ROUNDING * np.abs(y).max(initial=0.0))
    sign = np.sign(difference) * (np.abs(difference) > tolerance)
    both = known[first] & known[second]
    return PairTable(
        group=group.astype(np.int64), size=size, cluster=cluster_of_item[items], n_clusters=n_clusters,
        weight=1.0 / (size[group] * max(len(items), 1)),
        distance=np.where(both, np.abs(difference), np.inf), agrees=(sign == human_sign) & both,
        human_tied=human_sign == 0, tolerance=tolerance, note=note,
    )  # fmt: skip


def within(codes: IntArray, n_codes: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return all pairs of rows that share a code: first rows, second rows, and the code; ordered by code for codes
    with the same number of rows, then by rows."""
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes, minlength=n_codes)
    starts = np.cumsum(sizes) - sizes
    n_pairs = int((sizes * (sizes - 1) // 2).sum())
    if n_pairs > MOST_PAIRS:
        raise ColumnError("item", f"{n_pairs:,} pairs are more than {MOST_PAIRS:,}: compare outputs within items")
    parts = []
    for size in np.unique(sizes[sizes >= 2]):
        chosen = np.flatnonzero(sizes == size)
        rows = order[starts[chosen, None] + np.arange(size)]
        one, two = np.triu_indices(int(size), 1)
        parts.append((rows[:, one].ravel(), rows[:, two].ravel(), np.repeat(chosen, len(one))))
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        return empty, empty, empty
    first, second, of = (np.concatenate(column) for column in zip(*parts, strict=True))
    return first, second, of


def by_distance(pairs: PairTable) -> IntArray:
    """Return the pairs that a threshold can make ties, in ascending order of their distance."""
    open_ = np.isfinite(pairs.distance) & (pairs.distance > pairs.tolerance)
    return np.flatnonzero(open_)[np.argsort(pairs.distance[open_], kind="stable")]


def best_epsilon(pairs: PairTable, chosen: BoolArray | None = None, order: IntArray | None = None) -> float:
    """Return the smallest threshold with the highest accuracy over the pairs `chosen` (default all). `order`: the
    result of `by_distance`, if known, because sorting dominates the cost."""
    distance, tied, agrees, weight = pairs.distance, pairs.human_tied, pairs.agrees, pairs.weight
    order = by_distance(pairs) if order is None else order
    if chosen is not None:
        order = order[chosen[order]]
    if len(order) == 0:
        return 0.0
    change = (tied[order].astype(np.float64) - agrees[order]) * weight[order]
    gained = np.round(np.cumsum(change), 12)
    rising = distance[order]
    last = np.append(np.diff(rising) > pairs.tolerance, True)
    candidates = np.flatnonzero(last)
    best = candidates[int(np.argmax(gained[candidates]))]
    return float(rising[best]) if gained[best] > 0 else 0.0


def _cross_validated(pairs: PairTable, order: IntArray, folds: int, bootstrap: Bootstrap) -> Estimate:
    present = np.unique(pairs.cluster)
    if not 2 <= folds <= len(present):
        return Estimate.undefined(f"{folds} folds of {len(present)} clusters: from 2 to as many as there are clusters")
    dealt = np.random.default_rng([bootstrap.seed, _FOLD_STREAM]).permutation(len(present))
    fold_of_item = (dealt % folds)[np.searchsorted(present, pairs.cluster)]
    fold = fold_of_item[pairs.group]
    values = np.empty(pairs.n_items)
    for number in range(folds):
        held = fold_of_item == number
        values[held] = pairs.by_item(best_epsilon(pairs, fold != number, order))[held]
    return _average(pairs, values, bootstrap)


def _average(pairs: PairTable, values: FloatArray, bootstrap: Bootstrap) -> Estimate:
    if pairs.n_items == 0:
        return Estimate.undefined(NO_PAIR)
    point = Estimate.point(float(values.mean()), pairs.n_items, pairs.note)
    if bootstrap.resamples == 0:
        return point
    clusters, codes = np.unique(pairs.cluster, return_inverse=True)
    columns = np.stack([values, np.ones_like(values)], axis=1)
    sums = resampled_sums(columns, codes, len(clusters), resamples=bootstrap.resamples, seed=bootstrap.seed)
    drawn, groups = sums[:, 0] / sums[:, 1], {"items": len(clusters)}
    return with_interval(point, drawn, clusters=groups, confidence=bootstrap.confidence, is_share=True)
