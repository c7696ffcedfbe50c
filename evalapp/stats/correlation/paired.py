"""Difference of two correlations with human scores on the same outputs: Williams' test and a paired bootstrap.

The correlations themselves are in `meta_evaluation`.

Explained in docs/explanation/statistics/significance.md#williams-test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalapp.stats.core.coding import FloatArray, encode, float_column, identifiers, snap
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.core.options import refuse_options
from evalapp.stats.correlation.coefficients import Coefficient, pearson_value, undefined_reason
from evalapp.stats.correlation.exchanges import EXACT, MIN_SYSTEMS, exchange_systems, few_systems
from evalapp.stats.correlation.meta_evaluation import (
    DEFAULT_SETTINGS,
    CorrelationSettings,
    left_out_systems,
    resample_correlation,
)
from evalapp.stats.resampling.bootstrap import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_CONFIDENCE,
    Bootstrap,
    resampled_sums,
    with_interval,
)
from evalapp.stats.resampling.jackknife import with_difference

#: Differences smaller than this are rounding.
_ROUNDING = 1e-12
WILLIAMS_FOR = "Williams' test is for Pearson over all outputs together"


@dataclass(frozen=True, slots=True)
class Difference:
    """corr(a, human) - corr(b, human) with its interval.

    `p` is two-sided from the paired bootstrap (at the system level from exchanges of systems), `williams` two-sided
    from Williams' test; None if a test does not apply, with the reason in `note`."""

    estimate: Estimate
    p: float | None
    williams: float | None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the difference as JSON-safe values."""
        return {**self.estimate.as_dict(), "p": self.p, "williams": self.williams, "test_note": self.note}


def williams(r_a: float, r_b: float, r_ab: float, n: int) -> float:
    """Return the one-sided p of Williams' test that r_a > r_b, two Pearson correlations with the same third variable.

    t = (r_a - r_b) sqrt((n-1)(1+r_ab)) / sqrt(2 (n-1)/(n-3) k + rbar^2 (1-r_ab)^3), df = n - 3, with k = 1 - r_a^2 -
    r_b^2 - r_ab^2 + 2 r_a r_b r_ab and rbar = (r_a + r_b) / 2 (Williams 1959). nan below 4 pairs or if the three
    correlations leave no residual variance."""
    from scipy import stats

    if n < 4:
        return math.nan
    k = 1 - r_a**2 - r_b**2 - r_ab**2 + 2 * r_a * r_b * r_ab
    mean = (r_a + r_b) / 2
    below = 2 * (n - 1) / (n - 3) * max(k, 0.0) + mean**2 * (1 - r_ab) ** 3
    if below <= 0:
        return math.nan
    t = (r_a - r_b) * math.sqrt((n - 1) * (1 + r_ab)) / math.sqrt(below)
    return float(stats.t.sf(t, n - 3))


def compare(
    a: ArrayLike,
    b: ArrayLike,
    human: ArrayLike,
    item: ArrayLike,
    system: ArrayLike,
    *,
    settings: CorrelationSettings = DEFAULT_SETTINGS,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Difference:
    """Return the difference of two metrics' correlations with human scores over the outputs that have all three values.

    `a`, `b`: scores by the two metrics; `human`, `item`, `system`, `settings`, `bootstrap`: as in `correlate`, with the
    first coefficient.

    Segments: both are computed on the same resamples of clusters (items, or `bootstrap.cluster`); p = 2 min(share <=
    0, share >= 0), each share (x + 1) / (resamples + 1). Williams' test is added where it is valid (Pearson,
    segments, no grouping); it treats outputs as independent, although outputs of the same item are not. System level:
    the interval of `jackknife.difference_ends`, the p of PERM-SYSTEMS (`exchanges`), None below 6 systems."""
    refuse_options(settings, "interval")
    (x, y), h, columns, drawn = _select_whole([a, b], human, item, system, bootstrap)
    if settings.level == "system":
        return _compare_systems((x, y), h, columns, settings.coefficient, bootstrap)
    result = _resample([x], y, h, columns, settings, drawn)
    if not result.estimate.is_defined:
        return result
    if (settings.coefficient, settings.level, settings.grouping) != ("pearson", "segment", "none"):
        return replace(result, note=WILLIAMS_FOR)
    return replace(result, williams=_two_sided(x, y, h))


def compare_replicates(
    replicates: Sequence[ArrayLike],
    rival: ArrayLike,
    human: ArrayLike,
    item: ArrayLike,
    system: ArrayLike,
    *,
    settings: CorrelationSettings = DEFAULT_SETTINGS,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Difference:
    """Return the mean of corr(replicate, human) over `replicates` of a metric, such as trainings with other seeds,
    minus corr(rival, human), over the outputs that have all values.

    Columns (n,), `item`, `system`, `settings` and `bootstrap` as in `compare`, for segments only. The interval
    generalises to other items for these replicates: all coefficients are computed on the same resamples of clusters.
    Raises ValueError for another level than segments."""
    if settings.level != "segment":
        raise ValueError(f"replicates are compared over segments, not at the level {settings.level}")
    (*own, other), h, columns, drawn = _select_whole([*replicates, rival], human, item, system, bootstrap)
    return _resample(own, other, h, columns, settings, drawn)


def compare_shares(a: ArrayLike, b: ArrayLike, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> Difference:
    """Return mean(a) - mean(b) over the rows (n,) that have both, such as the correctness of two evaluators on each
    pair of outputs (0 to 1), with interval and p from resamples of clusters; `bootstrap` as in `compare`."""
    difference = float_column(a, "a") - float_column(b, "b")
    used = np.isfinite(difference)
    n = int(used.sum())
    if not n:
        return Difference(Estimate.undefined("no row has both values"), None, None)
    cluster = (
        np.arange(len(used)) if bootstrap.cluster is None else identifiers(bootstrap.cluster, "cluster", len(used))
    )
    codes, labels = encode(cluster[used], "cluster")
    columns = np.stack([difference[used], np.ones(n)], axis=1)
    sums = resampled_sums(columns, codes, len(labels), resamples=bootstrap.resamples, seed=bootstrap.seed)
    point = Estimate.point(float(difference[used].mean()), n)
    return add_interval(point, sums[:, 0] / sums[:, 1], {"groups of items": len(labels)}, bootstrap.confidence)


def _select_whole(
    scores: Sequence[ArrayLike], human: ArrayLike, item: ArrayLike, system: ArrayLike, bootstrap: Bootstrap
) -> tuple[list[FloatArray], FloatArray, list[NDArray[Any]], Bootstrap]:
    """Return scores of each metric, human ones, items and systems, and the clusters, of outputs with all values."""
    h = float_column(human, "human")
    metrics = [float_column(column, "scores", len(h)) for column in scores]
    whole = np.isfinite(np.stack([*metrics, h])).all(axis=0)
    columns = [identifiers(column, name, len(h))[whole] for column, name in ((item, "item"), (system, "system"))]
    clusters = None if bootstrap.cluster is None else identifiers(bootstrap.cluster, "cluster", len(h))[whole]
    return [column[whole] for column in metrics], h[whole], columns, bootstrap.with_cluster(clusters)


def _resample(
    own: Sequence[FloatArray],
    rival: FloatArray,
    human: FloatArray,
    columns: Sequence[NDArray[Any]],
    settings: CorrelationSettings,
    bootstrap: Bootstrap,
) -> Difference:
    """Return the mean of corr(own, human) minus corr(rival, human) with interval and p, if all are defined."""
    result = [
        resample_correlation(metric, human, *columns, settings=settings, bootstrap=bootstrap)
        for metric in (*own, rival)
    ]  # fmt: skip
    for estimate, _drawn, _n in result:
        if not estimate.is_defined:
            return Difference(Estimate.undefined(estimate.note, estimate.n), None, None)
    *firsts, (last, last_drawn, n_clusters) = result
    point = Estimate.point(float(np.mean([one.value for one, _drawn, _n in firsts])) - last.value, last.n)
    drawn = [one for _estimate, one, _n in result]
    same = len({len(one) for one in drawn}) == 1
    values = np.mean(drawn[:-1], axis=0) - last_drawn if same else np.empty(0)
    return add_interval(point, values, n_clusters, bootstrap.confidence)


def add_interval(
    point: Estimate, values: FloatArray, clusters: dict[str, int], confidence: float = DEFAULT_CONFIDENCE
) -> Difference:
    """Return the difference `point` with interval and p (as in `compare`) from its `values` (resamples,) in resamples
    of `clusters`, their number by name, at a level of `confidence`."""
    estimate = with_interval(point, values, clusters=clusters, confidence=confidence)
    # Resamples without variance are informative only if both are equal in each.
    known = estimate.has_interval or (values.size and not values.any())
    return Difference(estimate, _bootstrap_p(values) if known else None, None)


def _compare_systems(
    metrics: tuple[FloatArray, FloatArray],
    human: FloatArray,
    columns: Sequence[NDArray[Any]],
    coefficient: Coefficient,
    bootstrap: Bootstrap,
) -> Difference:
    item, system = columns
    (one, left_one), (two, left_two) = (
        left_out_systems(metric, human, item, system, coefficient) for metric in metrics
    )  # fmt: skip
    for estimate in (one, two):
        if not estimate.is_defined:
            return Difference(Estimate.undefined(estimate.note, estimate.n), None, None)
    none = np.empty(0)
    pairs = (left_one, left_two) if bootstrap.resamples else (none, none)
    result = with_difference(one, two, *pairs, bootstrap.confidence)
    systems, labels = encode(system, "system")
    if not bootstrap.resamples or len(labels) < MIN_SYSTEMS:
        why = f"not tested: {few_systems(len(labels))}" if bootstrap.resamples else ""
        return Difference(result, None, None, why)
    means = [snap(np.bincount(systems, weights=column) / np.bincount(systems)) for column in (*metrics, human)]
    p, _ = exchange_systems(np.stack(means[:2], axis=1), means[2], coefficient, k=EXACT, seed=bootstrap.seed)
    return Difference(result, min(1.0, 2 * min(float(p[0, 1]), float(p[1, 0]))), None, WILLIAMS_FOR)


def _two_sided(x: FloatArray, y: FloatArray, h: FloatArray) -> float | None:
    if undefined_reason(x, y):
        return None
    r_x, r_y, between = pearson_value(x, h), pearson_value(y, h), pearson_value(x, y)
    if between > 1 - _ROUNDING:
        return 1.0
    p = williams(max(r_x, r_y), min(r_x, r_y), between, len(h))
    return None if math.isnan(p) else min(1.0, 2 * p)


def _bootstrap_p(values: FloatArray) -> float:
    defined = values[~np.isnan(values)]
    below = (int((defined <= _ROUNDING).sum()) + 1) / (len(defined) + 1)
    above = (int((defined >= -_ROUNDING).sum()) + 1) / (len(defined) + 1)
    return min(1.0, 2 * min(below, above))
