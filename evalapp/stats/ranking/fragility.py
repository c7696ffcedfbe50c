"""Fragility of a ranking: the number of judgements that must change to swap the first two systems.

Explained in docs/explanation/statistics/comparisons.md#fragility."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import FloatArray, IntArray
from evalapp.stats.ranking.bradley_terry import MODELS, Design, Model, fit_counts
from evalapp.stats.ranking.comparison_fit import fit_judgements
from evalapp.stats.ranking.judgements import PairwiseComparisons, read_judgements
from evalapp.stats.ranking.systems import CannotDecide

# Keeps ratings finite if changed verdicts leave a system without a win; ratings move by less than rounding.
_PRECISION = 1e-6
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Fragility:
    """`n_flips` changed judgements make `second` better than `first`, verified by refitting the model.

    `at_least` is a proven lower bound; `exact` tells whether the two are equal. `direct` is the smallest number if
    only wins of the first over the second become losses, None if there are too few. `share` is n_flips over all
    judgements. nan and None with a `note` if there is no first and second."""

    first: Any
    second: Any
    n_flips: int | None
    at_least: int | None
    direct: int | None
    share: float
    n_judgements: int
    note: str = ""

    @property
    def exact(self) -> bool:
        """Whether no smaller number of changes can swap the two."""
        return self.n_flips is not None and self.n_flips == self.at_least

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        if self.n_flips is None:
            return f"No number of changed judgements can be given: {self.note}."
        if self.n_flips == 0:
            return f"{self.first} and {self.second} are equal."
        share = f"{100 * self.share:.2g} %"
        bound = f"; fewer than {self.at_least} cannot" if self.at_least and self.at_least > 1 else ""
        proof = "no fewer can" if self.exact else f"found by refitting{bound}"
        many = "judgement" if self.n_flips == 1 else "judgements"
        return (
            f"Changing {self.n_flips:,} {many} of {self.n_judgements:,} ({share}) swaps {self.first} and "
            f"{self.second} ({proof})."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON-safe values."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        share = None if math.isnan(self.share) else self.share
        return plain | {"share": share, "exact": self.exact, "sentence": self.sentence}


def fragility(
    system_a: ArrayLike,
    system_b: ArrayLike,
    verdict: ArrayLike,
    *,
    model: Model = "bradley-terry",
    cannot_decide: CannotDecide = "drop",
) -> Fragility:
    """Return the smallest number of verdicts of (n,) judgements to change (into any other) that swaps the first two
    systems.

    `system_a`, `system_b`, `verdict`, `cannot_decide`: as in `rank_by_comparisons`; `model`: one of its three models.

    Upper bound: verdicts in favour of the first system are changed in the order of their effect (points moved times
    the difference of potentials H^+ (e_1 - e_2) at their two ends); bisection finds the shortest prefix after which
    the refitted model ranks the second first.
    Lower bounds, for Bradley-Terry and Davidson, whose estimates depend on the verdicts by points s (and ties) only;
    the larger one counts (Rao-Kupper: 1):
    - Where theta_1 <= theta_2, s_1 - s_2 <= B = sum_j max(0, n_1j - n_2j), and one change lowers s_1 - s_2 by at most
      2 (a win of the first over the second), 1 or 1/2; as many changes are needed as bring it to B, and below if
      B = 0. When both have equally many comparisons with every other, B = 0 and this bound meets the upper one.
    - If m changes move the estimate by x with largest change r of a log odds between two verdicts of a pair, then
      m r >= x . (change of the statistics) >= x'Hx (1 - e^-r) / r, because the likelihood is generalised
      self-concordant (Bach 2010); and x'Hx >= g^2 / v_12 and >= r^2 / v_max with the gap g and the variances v = H^-1
      of such contrasts. So m >= (1 - e^-r) / v_max at r = g sqrt(v_max / v_12), where the two meet."""
    if model not in MODELS:
        raise ValueError(f"model is one of {', '.join(MODELS)}, not '{model}'")
    judged = read_judgements(PairwiseComparisons(system_a, system_b, verdict), cannot_decide=cannot_decide)
    fit = fit_judgements(judged, model)
    if fit.fit is None or len(fit.theta) < 2:
        note = fit.note or "fewer than two systems are rated"
        return Fragility(None, None, None, None, None, float("nan"), len(judged), note)
    names = np.asarray(judged.labels)[fit.rated].tolist()
    one, two = (int(k) for k in np.argsort(-np.round(fit.theta, 9), kind="stable")[:2])
    among = judged.outcomes[np.ix_(fit.rated, fit.rated)]
    wins, ties = among[..., 0], among[..., 1]
    n = round(float(np.triu(wins + wins.T + ties, 1).sum()))
    if fit.theta[one] - fit.theta[two] < _ROUNDING:
        return Fragility(names[one], names[two], 0, 0, 0, 0.0, n)
    potential = fit.model_covariance[: len(names), : len(names)]
    potential = potential[:, one] - potential[:, two]
    steps = _steps(wins, ties, one, two)
    effect = steps.points * np.abs(potential[steps.winner] - potential[steps.loser])
    best_first = steps.take(np.argsort(-effect, kind="stable"))
    only_direct = steps.take(np.flatnonzero(steps.points * (steps.loser == two) * (steps.winner == one) == 1))
    n_flips = _shortest(wins, ties, best_first, model, one, two)
    direct = _shortest(wins, ties, only_direct, model, one, two)
    if direct is not None and (n_flips is None or direct < n_flips):
        n_flips = direct
    at_least = 1
    if model != "rao-kupper":
        gap = float(fit.theta[one] - fit.theta[two])
        by_curvature = _bound_by_curvature(fit.model_covariance, wins + wins.T + ties, gap, one, two)
        at_least = max(_bound_by_points(wins, ties, steps, one, two), by_curvature)
    share = float("nan") if n_flips is None else n_flips / n
    note = "" if n_flips is not None else "the first would stay ahead whatever its judgements were"
    return Fragility(names[one], names[two], n_flips, at_least, direct, share, n, note)


@dataclass(frozen=True)
class _Steps:
    """Kinds of change: `count` verdicts gave `winner` against `loser` `points` more than after the change (1/2 from
    a tie, 1 from a win). `lowers` is the decrease of s_1 - s_2 for each."""

    winner: IntArray
    loser: IntArray
    points: FloatArray
    count: IntArray
    lowers: FloatArray

    def take(self, rows: IntArray) -> _Steps:
        return _Steps(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def _steps(wins: FloatArray, ties: FloatArray, one: int, two: int) -> _Steps:
    """Return all kinds of change against the first or for the second: wins of the first become losses, losses of the
    second wins, ties of either losses of the first or wins of the second."""
    rows: list[tuple[int, int, float, int, float]] = []
    for other in range(len(wins)):
        for winner, loser in ((one, other), (other, two)):
            if winner == loser or (other == one and winner == other):
                continue
            ends = 2.0 if (winner, loser) == (one, two) else 1.0
            rows.append((winner, loser, 1.0, int(wins[winner, loser]), ends))
            rows.append((winner, loser, 0.5, int(ties[winner, loser]), ends / 2))
    winner_, loser_, points, count, lowers = (np.array(column) for column in zip(*rows, strict=True))
    return _Steps(winner_, loser_, points.astype(np.float64), count.astype(np.int64), lowers.astype(np.float64))


def _changed(wins: FloatArray, ties: FloatArray, steps: _Steps, n: int) -> tuple[FloatArray, FloatArray]:
    """Return the tables after the first n changes in the order of `steps`."""
    wins, ties = wins.copy(), ties.copy()
    left = n
    for i, j, points, count in zip(steps.winner, steps.loser, steps.points, steps.count, strict=True):
        now = min(left, int(count))
        wins[j, i] += now
        if points == 1:
            wins[i, j] -= now
        else:
            ties[i, j] -= now
            ties[j, i] -= now
        left -= now
    return wins, ties


def _shortest(wins: FloatArray, ties: FloatArray, steps: _Steps, model: Model, one: int, two: int) -> int | None:
    """Return the fewest changes, in the order of `steps`, that put the second ahead; each change increases its lead."""
    most = int(steps.count.sum())
    if most == 0 or not _swapped(*_changed(wins, ties, steps, most), model, one, two):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if _swapped(*_changed(wins, ties, steps, middle), model, one, two):
            high = middle
        else:
            low = middle
    return high


def _swapped(wins: FloatArray, ties: FloatArray, model: Model, one: int, two: int) -> bool:
    first, second = np.triu_indices(len(wins), 1)
    counts = np.stack([wins[first, second], ties[first, second], wins[second, first]], axis=1)
    seen = counts.sum(axis=1) > 0
    design = Design.from_pairs(len(wins), first[seen], second[seen], _PRECISION)
    theta = fit_counts(model, design, counts[seen]).theta[0]
    return bool(theta[two] - theta[one] > _ROUNDING)


def _bound_by_points(wins: FloatArray, ties: FloatArray, steps: _Steps, one: int, two: int) -> int:
    points = wins.sum(axis=1) + ties.sum(axis=1) / 2
    compared = wins + wins.T + ties
    others = np.ones(len(wins), dtype=np.bool_)
    others[[one, two]] = False
    bound = float(np.maximum(compared[one] - compared[two], 0.0)[others].sum())
    left = float(points[one] - points[two]) - bound
    if left < 0:
        return 1
    strict = bound == 0
    needed = 0
    order = np.argsort(-steps.lowers, kind="stable")
    for lowers, count in zip(steps.lowers[order], steps.count[order], strict=True):
        # Equal points are not a swap yet if the bound is 0.
        most = math.floor(left / lowers + 1e-9) + 1 if strict else math.ceil(left / lowers - 1e-9)
        now = min(int(count), most)
        needed, left = needed + now, left - now * float(lowers)
        if left < 0 or (not strict and left <= 1e-9):
            break
    return max(needed, 1)


def _bound_by_curvature(covariance: FloatArray, compared: FloatArray, gap: float, one: int, two: int) -> int:
    """Return ceil((1 - e^-r) / v_max) with r = gap sqrt(v_max / v_12); contrasts are those of the compared pairs."""
    k = len(compared)
    theta, own = covariance[:k, :k], np.diag(covariance)[:k]
    between = own[:, None] + own[None, :] - 2 * theta
    largest = between
    if len(covariance) > k:
        # Between a win and a tie the log odds are eta / 2 - ln nu, between a tie and a loss eta / 2 + ln nu.
        with_tie = covariance[:k, k][:, None] - covariance[:k, k][None, :]
        largest = np.maximum(between, between / 4 + covariance[k, k] + np.abs(with_tie))
    most = float(largest[compared > 0].max())
    reach = gap * math.sqrt(most / float(between[one, two]))
    return max(1, math.ceil(-math.expm1(-reach) / most - 1e-9))
