"""Number of further comparisons needed for a significant difference between the first two systems of a ranking.

Explained in docs/explanation/statistics/comparisons.md#separation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from evalapp.stats.core.estimate import Estimate
from evalapp.stats.ranking.bradley_terry import ELO, Model, information_per_comparison
from evalapp.stats.ranking.comparison_fit import ComparisonFit, fit_judgements
from evalapp.stats.ranking.judgements import PairwiseComparisons, read_judgements
from evalapp.stats.ranking.systems import CannotDecide
from evalapp.stats.resampling.bootstrap import DEFAULT_CONFIDENCE

DEFAULT_POWER = 0.8
# Larger plans are not informative.
_ENDLESS = 1_000_000


@dataclass(frozen=True, slots=True)
class Separation:
    """The first two systems: `difference` of their ratings in points with interval, its two-sided `p`.

    `direct` more comparisons of just these two, or `spread` more over all pairs in the present proportions, detect
    the difference at its present size with probability `power` (p < 1 - confidence). 0 if they differ already; None
    if there is no number, with the reason in `difference.note` or `sentence`."""

    first: Any
    second: Any
    difference: Estimate
    p: float | None
    direct: int | None
    spread: int | None
    power: float
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON-safe values."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return plain | {"difference": self.difference.as_dict()}


def estimate_separation(
    columns: PairwiseComparisons,
    *,
    cluster: ArrayLike | None = None,
    model: Model = "bradley-terry",
    cannot_decide: CannotDecide = "drop",
    prior_sd: float | None = None,
    power: float = DEFAULT_POWER,
    confidence: float = DEFAULT_CONFIDENCE,
) -> Separation:
    """Return the number of further comparisons that separate ranks 1 and 2 (arguments as in `rank_by_comparisons`).

    `columns`, `cluster`, `model`, `cannot_decide`, `prior_sd`: as in `rank_by_comparisons`; `power`: probability of a
    significant difference; `confidence`: 1 less the level of its test.

    With difference g, sandwich variance v and model variance m of it, the variance needed is v* = (g / (z_a +
    z_b))^2. A comparison of just these two adds its information i to 1 / m, and the ratio v / m stays the same:
    direct = ((v / m) / v* - 1 / m) / i. In the present proportions v decreases as 1 / n: spread = n (v / v* - 1)."""
    judged = read_judgements(
        columns,
        cluster=cluster,
        cannot_decide=cannot_decide,
    )
    fit = fit_judgements(judged, model, prior_sd=prior_sd)
    names = np.asarray(judged.labels)[fit.rated].tolist()
    if fit.fit is None or len(names) < 2:
        reason = fit.note or "fewer than two systems are rated"
        return Separation(None, None, Estimate.undefined(reason), None, None, None, power, "")
    one, two = np.argsort(-np.round(fit.theta, 9), kind="stable")[:2]
    variance, of_model = _variances(fit, int(one), int(two))
    gap = float(fit.theta[one] - fit.theta[two])
    first, second = names[one], names[two]
    if math.isnan(variance) or variance <= 0:
        difference = Estimate.point(ELO * gap, fit.n_judgements, fit.note or "no interval: no variance")
        return Separation(first, second, difference, None, None, None, power, "")
    reach = float(ndtri(0.5 + confidence / 2))
    sd = math.sqrt(variance)
    difference = Estimate(ELO * gap, ELO * (gap - reach * sd), ELO * (gap + reach * sd), fit.n_judgements)
    p = float(2 * ndtr(-gap / sd))
    if p < 1 - confidence:
        sentence = f"Ranks 1 and 2 differ (p {_shown(p)})."
        return Separation(first, second, difference, p, 0, 0, power, sentence)
    needed = (gap / (reach + float(ndtri(power)))) ** 2
    if needed * _ENDLESS < variance:
        sentence = "Ranks 1 and 2 are equal so far; no number of comparisons can be foreseen that separates them."
        return Separation(first, second, difference, p, None, None, power, sentence)
    tie = np.array(float(fit.fit.tie[0]))
    gain = float(information_per_comparison(model, np.array(gap), tie))
    direct = math.ceil((variance / of_model / needed - 1 / of_model) / gain)
    spread = math.ceil(fit.n_judgements * (variance / needed - 1))
    if min(direct, spread) > _ENDLESS:
        sentence = "More than a million more comparisons would be needed to separate ranks 1 and 2."
    else:
        fewest, way = (direct, "if all are between these two") if direct <= spread else (spread, "spread as so far")
        other = f"; about {_about(spread)} spread over all pairs as so far" if direct < spread else ""
        many = "comparison" if fewest == 1 else "comparisons"
        sentence = f"About {_about(fewest)} more {many} would separate ranks 1 and 2 ({way}{other})."
    return Separation(first, second, difference, p, direct, spread, power, sentence)


def _variances(found: ComparisonFit, one: int, two: int) -> tuple[float, float]:
    """Return sandwich and model variance of the difference."""
    contrast = np.zeros(len(found.covariance))
    contrast[one], contrast[two] = 1.0, -1.0
    return float(contrast @ found.covariance @ contrast), float(contrast @ found.model_covariance @ contrast)


def _about(number: int) -> str:
    """Return the number rounded to two significant digits: 143 becomes 140, 1,377 becomes 1,400."""
    digits = max(len(str(number)) - 2, 0)
    return f"{round(number, -digits):,}"


def _shown(p: float) -> str:
    return "< .001" if p < 0.001 else f"= {p:.3f}".replace("0.", ".")
