"""Intervals and places of systems whose score is one value of all their texts, such as corpus BLEU or P_sys.

What the value is made of is the evaluator's to say; here are the draws of groups and what ends of intervals tell.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import FloatArray, IntArray, encode
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.resampling.bootstrap import DEFAULT_CONFIDENCE, DEFAULT_RESAMPLES, resampled_sums, with_interval

#: How `interval_of_sums` draws, for signatures.
DRAWN = f"boot:inputs|resamples:{DEFAULT_RESAMPLES}|seed:0|conf:{DEFAULT_CONFIDENCE:g}|ranks:ends"


def interval_of_sums(
    value: float, statistics: FloatArray, cluster: ArrayLike, from_sums: Callable[[FloatArray], FloatArray]
) -> Estimate:
    """A system's value with its interval, from (n, k) statistics of its texts whose sums make the value: groups
    `cluster` (n,) are drawn anew, `from_sums` gives (resamples,) values of (resamples, k) sums.

    Percentiles of 1,000 resamples. A system of one group has no interval; of fewer than ten it says so.
    """
    n = len(statistics)
    if np.isnan(value):
        return Estimate.undefined("the evaluator has no value for this system", n)
    codes, labels = encode(cluster, "cluster", n)
    sums = resampled_sums(statistics, codes, len(labels), resamples=DEFAULT_RESAMPLES, seed=0)
    return with_interval(Estimate.point(value, n), from_sums(sums), clusters={"groups": len(labels)})


def places_by_ends(low: FloatArray, high: FloatArray) -> tuple[IntArray, IntArray]:
    """The best and the worst place (n,) of each system by the ends of its interval: behind those whose lower end lies
    above its upper one, before those whose upper end lies below its lower one. nan at both ends is no interval: any
    place.

    Wider than places from paired draws, since it does not know that all systems answered the same items; it never tells
    two apart whose intervals touch (as the ranks of Chatbot Arena do; Chiang et al. 2024).
    """
    lower, upper = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    best = 1 + (lower[None, :] > upper[:, None]).sum(axis=1)
    worst = len(lower) - (upper[None, :] < lower[:, None]).sum(axis=1)
    return best.astype(np.int64), worst.astype(np.int64)
