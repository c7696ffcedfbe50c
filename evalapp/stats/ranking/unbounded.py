"""Order of systems without finite ratings: one that never lost, one that never won, or groups between which all
verdicts agree. Finite ratings are fitted in `comparison_fit`.

Explained in docs/explanation/statistics/comparisons.md#connectivity."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray, encode
from evalapp.stats.ranking.bradley_terry import Design, fit_counts, inverse_information
from evalapp.stats.ranking.connectivity import classes_above
from evalapp.stats.ranking.judgements import Judgements

_ROUNDS, _DONE = 100, 1e-9
# Differences of theta below this are rounding.
_DIGITS = 9


@dataclass(frozen=True)
class ClassRatings:
    """Systems with finite ratings relative to each other: mask over all systems, `theta`, and the p of each
    difference."""

    systems: BoolArray
    theta: FloatArray
    p: FloatArray


@dataclass(frozen=True)
class Order:
    """Order of all systems, (n,) and (n, n). `better[i, j]`: j is better than i. `p` is two-sided, nan without
    evidence on the two. `ranked`: linked by comparisons. `is_unbounded`: the two belong to different classes."""

    ranked: BoolArray
    better: BoolArray
    p: FloatArray
    is_unbounded: bool = False

    @classmethod
    def without_ranks(cls, n: int) -> Order:
        """Return an order in which no system is ranked."""
        return cls(np.zeros(n, dtype=np.bool_), np.zeros((n, n), dtype=np.bool_), np.full((n, n), np.nan))

    def ranks(self, differs: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return rank, best and worst rank of every system; an unranked one may have any rank."""
        n, n_ranked = len(self.ranked), int(self.ranked.sum())
        rank = 1 + self.better.sum(axis=1)
        low = 1 + (differs & self.better).sum(axis=1)
        high = n_ranked - (differs & self.better.T).sum(axis=1)
        none = ~self.ranked
        rank[none], low[none], high[none] = n_ranked + 1, 1, n
        return rank, low, high


def order_systems(judged: Judgements, rated: Sequence[ClassRatings], *, by_value: bool = False) -> Order:
    """Return the order of all systems that comparisons link.

    Within a strongly connected class the fitted ratings decide (`rated`, one entry for each class that has them).
    Between two classes all verdicts agree, and the likelihood increases without bound as they move apart: the class
    that won, directly or through others, is above; classes without a chain of wins between them are not ordered. With
    `by_value` (a prior gives every system a finite rating) the single entry of `rated` orders all systems by value.

    The p of two systems of different classes is Wald's in a Bradley-Terry fit (a tie is half a win) with Firth's
    penalty (1993), which is finite: one win gives p = .63, ten wins without a loss .045. Judgements of the same
    pair of systems in the same cluster count as one, with full weight if they agree entirely."""
    n, ranked = len(judged.labels), judged.linked
    better = np.zeros((n, n), dtype=np.bool_)
    p = np.full((n, n), np.nan)
    for one in rated:
        theta = np.round(one.theta, _DIGITS)
        better[np.ix_(one.systems, one.systems)] = theta[None, :] > theta[:, None]
        p[np.ix_(one.systems, one.systems)] = one.p
    better &= ranked[:, None] & ranked[None, :]
    beats = judged.beats & ranked[:, None] & ranked[None, :]
    member, above = classes_above(beats)
    if not above.any():
        return Order(ranked, better, p)
    between = member[:, None] != member[None, :]
    if not by_value:
        better = np.where(between, above.T, better)
    # The penalised fit may rate a member of a higher class below one of a lower class; then nothing is significant.
    theta, chance = penalised_differences(judged, ranked)
    agrees = np.where(better, theta[None, :] > theta[:, None], theta[None, :] < theta[:, None])
    chance = np.where(agrees, chance, 1.0)
    p = np.where(between, np.where(above | above.T, chance, np.nan), p)
    return Order(ranked, better, p, is_unbounded=True)


def penalised_differences(judged: Judgements, ranked: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return Firth's estimates (n,) of the ranked systems and the two-sided p of their differences (n, n), nan for
    others."""
    counts = _independent_counts(judged)[np.ix_(ranked, ranked)]
    first, second = np.nonzero(np.triu(counts.any(axis=2), 1))
    fitted, covariance = fit_penalised(len(counts), first, second, counts[first, second])
    own = np.diag(covariance)
    variance = own[:, None] + own[None, :] - 2 * covariance
    z = np.abs(fitted[:, None] - fitted[None, :]) / np.sqrt(np.where(variance > 1e-18, variance, np.nan))
    n = len(ranked)
    theta, p = np.full(n, np.nan), np.full((n, n), np.nan)
    theta[ranked] = fitted
    p[np.ix_(ranked, ranked)] = 2 * ndtr(-z)
    return theta, p


def fit_penalised(n: int, first: IntArray, second: IntArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return theta (n,) that maximise the Bradley-Terry likelihood times the root of the determinant of its
    information, and their covariance (n, n), the inverse information. `counts` (u, 3): wins, ties and losses of `first`
    against `second`.

    The maximum solves the score equations of counts with h / 2 more wins and h / 2 more losses of each pair, h its
    leverage (Firth 1993; Heinze and Schemper 2002), iterated until the leverages converge. For two systems: half a
    win each."""
    design = Design.from_pairs(n, first, second)
    judgements = counts.sum(axis=1)
    half = np.full(len(first), (n - 1) / len(first) / 2)
    fit = None
    for _ in range(_ROUNDS):
        more = np.stack([half, np.zeros(len(half)), half], axis=1)
        fit = fit_counts("bradley-terry", design, counts + more, start=fit)
        curve = judgements * expit(fit.eta[0]) * expit(-fit.eta[0])
        information = (design.products @ curve).reshape(1, n, n)
        covariance = inverse_information(dataclasses.replace(fit, information=information))
        own = np.diag(covariance)
        leverage = curve * (own[first] + own[second] - 2 * covariance[first, second])
        moved = float(np.abs(leverage / 2 - half).max())
        half = leverage / 2
        if moved < _DONE:
            break
    assert fit is not None
    return fit.theta[0], covariance


def _independent_counts(judged: Judgements) -> FloatArray:
    """Return (systems, systems, 3) as `Judgements.outcomes`; judgements of the same pair in the same cluster share the
    weight 1."""
    if judged.cluster is None:
        return judged.outcomes
    n = len(judged.labels)
    pair = np.minimum(judged.a, judged.b) * n + np.maximum(judged.a, judged.b)
    unit = encode(judged.cluster * (n * n) + pair, "cluster")[0]
    weight = 1.0 / np.bincount(unit)[unit]
    cells = (judged.a * n + judged.b) * 3 + judged.outcome
    shown = np.bincount(cells, weights=weight, minlength=n * n * 3).reshape(n, n, 3)
    return np.asarray(shown + shown.transpose(1, 0, 2)[..., ::-1], dtype=np.float64)


def explain_unbounded(judged: Judgements, rated: BoolArray, number: int, above: BoolArray) -> str:
    """Return why a system linked with the rated ones has no finite rating; `above` comes from `classes_above`."""
    beats, others = judged.beats, rated.any()
    if not beats[:, number].any():
        return "won every comparison, so its rating has no upper end"
    if not beats[number].any():
        return "lost every comparison, so its rating has no lower end"
    if others and above[number, rated].any():
        return "won every link to the systems that have a rating, so its own has no upper end"
    if others and above[rated, number].any():
        return "lost every link to the systems that have a rating, so its own has no lower end"
    if others:
        return "no chain of wins or losses joins it with the systems that have a rating"
    return "won or lost every link to each other system, so it has no finite rating"
