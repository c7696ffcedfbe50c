"""Correlation of system scores with a human ranking (Turing M1, mean, comparisons).

Explained in docs/explanation/statistics/correlation.md#rankings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import ndtri

from evalapp.stats.core.estimate import NAN, Estimate
from evalapp.stats.correlation.coefficients import VALUES, Coefficient, undefined_reason
from evalapp.stats.ranking.systems import Ranking
from evalapp.stats.resampling.bootstrap import DEFAULT_CONFIDENCE, too_few_note, with_ends
from evalapp.stats.resampling.jackknife import PERFECT

#: Minimum number of systems for a correlation.
MIN_SYSTEMS = 4


def correlate_with_ranking(
    scores: Mapping[Any, float],
    ranking: Ranking,
    *,
    coefficient: Coefficient = "pearson",
    confidence: float = DEFAULT_CONFIDENCE,
) -> Estimate:
    """Return the correlation across systems of `scores` (by the ranking's labels) with the values of `ranking`; n =
    systems.

    `coefficient`: see `correlate`; `confidence`: level of the interval.

    Interval by Fisher's z with variance 1 / (n - 3) for Pearson, (1 + r^2 / 2) / (n - 3) for Spearman (Bonett and
    Wright 2000), .437 / (n - 4) for Kendall (Fieller 1957), systems taken as a sample.
    Undefined below 4 systems, without an interval below 5."""
    pairs = [
        (float(scores[row.system]), row.estimate.value)
        for row in ranking.systems
        if row.system in scores and row.estimate.is_defined and math.isfinite(scores[row.system])
    ]
    n = len(pairs)
    if n < MIN_SYSTEMS:
        return Estimate.undefined(f"fewer than {MIN_SYSTEMS} systems have both values", n)
    x, y = np.array(pairs).T
    reason = undefined_reason(x, y)
    if reason:
        return Estimate.undefined(reason, n)
    value = VALUES[coefficient](x, y)
    clusters = {"systems": n}
    if too_few := too_few_note(clusters):
        return Estimate.point(value, n, too_few)
    low, high = _fisher(value, n, coefficient, confidence)
    if math.isnan(low):
        return Estimate.point(value, n, PERFECT)
    return with_ends(Estimate.point(value, n), low, high, clusters)


def _fisher(r: float, n: int, coefficient: Coefficient, confidence: float) -> tuple[float, float]:
    if abs(r) >= 1 or (coefficient.startswith("kendall") and n < 5):
        return NAN, NAN
    variance = 1 / (n - 3)
    if coefficient == "spearman":
        variance *= 1 + r * r / 2
    if coefficient.startswith("kendall"):
        variance = 0.437 / (n - 4)
    reach = float(ndtri(0.5 + confidence / 2)) * math.sqrt(variance)
    return math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach)
