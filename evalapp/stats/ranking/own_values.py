"""Intervals and ranks of systems whose score is one value over all their texts, such as corpus BLEU or P_sys.

The evaluator computes the value; this module resamples groups of texts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import FloatArray, IntArray, encode
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.resampling.bootstrap import DEFAULT_CONFIDENCE, DEFAULT_RESAMPLES, resampled_sums, with_interval

#: Description of the resampling of `bootstrap_sums`, for signatures.
DRAWN = f"boot:inputs|resamples:{DEFAULT_RESAMPLES}|seed:0|conf:{DEFAULT_CONFIDENCE:g}|ranks:ends"


def bootstrap_sums(
    value: float, statistics: FloatArray, cluster: ArrayLike, from_sums: Callable[[FloatArray], FloatArray]
) -> Estimate:
    """Return a system's value with its interval, from (n, k) statistics of its texts whose sums determine the value.

    Groups `cluster` (n,) are resampled; `from_sums` maps (resamples, k) sums to (resamples,) values. Percentiles of
    1,000 resamples. A system with one group has no interval; with fewer than ten, a note warns."""
    n = len(statistics)
    if np.isnan(value):
        return Estimate.undefined("the evaluator has no value for this system", n)
    codes, labels = encode(cluster, "cluster", n)
    sums = resampled_sums(statistics, codes, len(labels), resamples=DEFAULT_RESAMPLES, seed=0)
    return with_interval(Estimate.point(value, n), from_sums(sums), clusters={"groups": len(labels)})


def places_by_ends(low: FloatArray, high: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the best and the worst rank (n,) of each system by the ends of its interval.

    `low`, `high`: (n,) ends of the intervals.

    A system ranks behind those whose lower end lies above its upper end, and before those whose upper end lies below
    its lower end. nan at both ends is no interval: any rank. These ranges are wider than ranks from paired draws,
    because they ignore that all systems answered the same items; systems with touching intervals never differ (as in
    the ranks of Chatbot Arena; Chiang et al. 2024)."""
    lower, upper = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    best = 1 + (lower[None, :] > upper[:, None]).sum(axis=1)
    worst = len(lower) - (upper[None, :] < lower[:, None]).sum(axis=1)
    return best.astype(np.int64), worst.astype(np.int64)
