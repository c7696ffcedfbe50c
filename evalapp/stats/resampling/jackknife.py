"""Jackknife intervals of correlations across few independent units, such as systems, on Fisher's z scale with Student's
t. There are no random draws, so the same data give the same ends.

Explained in docs/explanation/statistics/significance.md#jackknife-over-systems."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from evalapp.stats.core.estimate import NAN, Estimate
from evalapp.stats.resampling.bootstrap import DEFAULT_CONFIDENCE, too_few_note, with_ends

if TYPE_CHECKING:
    from evalapp.stats.core.coding import FloatArray

#: Name of jackknife intervals in signatures.
NAME = "jackknife-z"
PERFECT = "no interval: the order is the same for all systems, so leaving one out changes nothing"
UNDEFINED = "no interval: without one of the systems the value is undefined"

# Correlations closer to 1 than this count as 1.
_EDGE = 1e-12


def jackknife_ends(value: float, left_out: FloatArray, confidence: float = DEFAULT_CONFIDENCE) -> tuple[float, float]:
    """Return tanh(atanh(r) -+ t s / (1 - r^2)) with s^2 = (n - 1) / n sum (r_i - mean)^2 over the n leave-one-out
    values r_i and t the quantile of Student's t with n - 1 degrees of freedom.

    nan, nan where |r| is 1 or some r_i is undefined. Covers .93 to .96 (Pearson, 6 to 32 systems, also with heavy
    tails, where Fisher's own variance 1 / (n - 3) covers .83 to .95) and .94 to .99 (ranks): docs/results/intervals.md.
    """
    n = len(left_out)
    if abs(value) >= 1 - _EDGE or n < 2 or np.isnan(left_out).any():
        return NAN, NAN
    spread = math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))
    half = float(stdtrit(n - 1, 0.5 + confidence / 2)) * spread / (1 - value * value)
    return math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half)


def with_jackknife(point: Estimate, left_out: FloatArray, confidence: float = DEFAULT_CONFIDENCE) -> Estimate:
    """Return `point` with its interval over systems, under the conditions and with the notes of `with_interval`."""
    if not point.is_defined or left_out.size == 0:
        return point
    clusters = {"systems": len(left_out)}
    if too_few := too_few_note(clusters):
        return point.with_note(too_few)
    low, high = jackknife_ends(point.value, left_out, confidence)
    if math.isnan(low):
        return point.with_note(PERFECT if abs(point.value) >= 1 - _EDGE else UNDEFINED)
    return with_ends(point, low, high, clusters)


def difference_ends(
    one: float, two: float, left_one: FloatArray, left_two: FloatArray, confidence: float = DEFAULT_CONFIDENCE
) -> tuple[float, float]:
    """Return the interval of the difference of two correlations with the same third variable over the same units.

    From their own intervals (Zou 2007): d - sqrt((r1 - l1)^2 + (u2 - r2)^2 - 2 c (r1 - l1) (u2 - r2)) and its mirror
    image, with c the correlation of the two columns of leave-one-out values."""
    (l1, u1), (l2, u2) = jackknife_ends(one, left_one, confidence), jackknife_ends(two, left_two, confidence)
    if math.isnan(l1) or math.isnan(l2):
        return NAN, NAN
    a, b = left_one - left_one.mean(), left_two - left_two.mean()
    size = math.sqrt(float((a * a).sum() * (b * b).sum()))
    c = float((a * b).sum()) / size if size > 0 else 0.0
    reach = [
        math.sqrt(max(x * x + y * y - 2 * c * x * y, 0.0))
        for x, y in ((one - l1, u2 - two), (u1 - one, two - l2))
    ]  # fmt: skip
    return one - two - reach[0], one - two + reach[1]


def with_difference(
    one: Estimate, two: Estimate, left_one: FloatArray, left_two: FloatArray, confidence: float = DEFAULT_CONFIDENCE
) -> Estimate:
    """Return the difference of two correlations over the same systems, with its interval."""
    point = Estimate.point(one.value - two.value, one.n)
    clusters = {"systems": len(left_one)}
    if left_one.size == 0:
        return point
    if too_few := too_few_note(clusters):
        return point.with_note(too_few)
    low, high = difference_ends(one.value, two.value, left_one, left_two, confidence)
    if math.isnan(low):
        is_perfect = max(abs(one.value), abs(two.value)) >= 1 - _EDGE
        return point.with_note(PERFECT if is_perfect else UNDEFINED)
    return with_ends(point, low, high, clusters)
