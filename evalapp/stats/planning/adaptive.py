"""Adaptive choice of the next pair of systems, so that a ranking or its first place needs few judgements.

The choice uses counts only. `adaptive_simulation` measures the savings; the campaign assigns the texts. To estimate
ratings from such judgements use `rank_by_comparisons` with weight = 1 / propensity.

Explained in docs/explanation/statistics/comparisons.md#adaptive-pairs."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray

Goal: TypeAlias = Literal["ranking", "best"]
GOALS: tuple[Goal, ...] = ("ranking", "best")

#: Share of pairs drawn uniformly at random.
FLOOR = 0.2
#: Standard deviation of the ratings before any judgement, on the scale of theta.
PRIOR_SD = 2.0
# The probability of a pair is proportional to this power of its gain: 1 barely favours the best pairs, infinity takes
# only them.
_SHARPNESS = 12.0
# Newton converges quadratically: after a step below 1e-4 the error is below 1e-7.
_STEP_DONE, _ITERATIONS = 1e-4, 30


class NextPair(NamedTuple):
    """The next pair: system `a` (shown first), system `b`, and the propensity of this unordered pair."""

    a: int
    b: int
    propensity: float


class PairState:
    """Judgements of k systems so far: counts, ratings and their covariance, updated after each judgement.

    `points` (k, k): points of i against j, a tie counting half. Ratings are Bradley-Terry estimates with a normal
    prior, so they are finite from the first judgement on."""

    def __init__(self, n_systems: int, *, prior_sd: float = PRIOR_SD) -> None:
        if n_systems < 2:
            raise ValueError("two systems are needed")
        self.points: FloatArray = np.zeros((n_systems, n_systems))
        self.precision = prior_sd**-2.0
        self._theta: FloatArray = np.zeros(n_systems)
        self._covariance: FloatArray | None = None

    @classmethod
    def from_counts(
        cls,
        n_systems: int,
        first: ArrayLike,
        second: ArrayLike,
        wins: ArrayLike,
        ties: ArrayLike,
        losses: ArrayLike,
        *,
        prior_sd: float = PRIOR_SD,
    ) -> PairState:
        """Return the state for columns of equal length: how often `first` won, tied with and lost against `second`.
        Pairs may repeat."""
        state = cls(n_systems, prior_sd=prior_sd)
        one, two = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
        halves = np.asarray(ties, dtype=np.float64) / 2
        if (one == two).any():
            raise ValueError("a system cannot be compared with itself")
        np.add.at(state.points, (one, two), np.asarray(wins, dtype=np.float64) + halves)
        np.add.at(state.points, (two, one), np.asarray(losses, dtype=np.float64) + halves)
        return state

    def add(self, a: int, b: int, points: float) -> None:
        """Add one judgement; `points` of a are 1 (won), 0.5 (tie, both bad) or 0."""
        if a == b:
            raise ValueError("a system cannot be compared with itself")
        self.points[a, b] += points
        self.points[b, a] += 1 - points
        self._covariance = None

    @property
    def n_systems(self) -> int:
        return len(self.points)

    @property
    def n_judgements(self) -> int:
        """Number of judgements added so far."""
        return round(float(self.points.sum()))

    @property
    def theta(self) -> FloatArray:
        """Ratings (k,) on the logistic scale, centred at 0."""
        self._fit()
        return self._theta

    @property
    def covariance(self) -> FloatArray:
        """Covariance (k, k) of the ratings: the inverse information including the prior."""
        self._fit()
        assert self._covariance is not None
        return self._covariance

    @property
    def information(self) -> FloatArray:
        """Information (k, k) that another judgement of a pair gives about the difference of its ratings, p (1 - p)."""
        p = expit(self.theta[:, None] - self.theta[None, :])
        return np.asarray(p * (1 - p))

    def _fit(self) -> None:
        """Update the ratings by Newton's method from their last values; two or three steps suffice per judgement."""
        if self._covariance is not None:
            return
        counts, won = self.points + self.points.T, self.points.sum(axis=1)
        theta, own = self._theta.copy(), np.arange(self.n_systems)
        for _ in range(_ITERATIONS):
            p = expit(theta[:, None] - theta[None, :])
            curve = counts * p * (1 - p)
            matrix = -curve
            matrix[own, own] = curve.sum(axis=1) + self.precision
            inverse = np.linalg.inv(matrix)
            step = inverse @ (won - (counts * p).sum(axis=1) - self.precision * theta)
            step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
            theta += step
            if np.abs(step).max() < _STEP_DONE:
                break
        self._theta, self._covariance = theta, inverse


def choose_pair(
    state: PairState,
    rng: np.random.Generator,
    *,
    floor: float = FLOOR,
    goal: Goal = "ranking",
    available: BoolArray | None = None,
) -> NextPair:
    """Return the next pair of systems to judge, with its propensity.

    `state`: current ratings; `rng`: source of random numbers; `goal`: the whole ranking or the best system.

    With probability `floor` a pair is drawn uniformly among the `available` pairs (a (k, k) mask, either triangle;
    default all), otherwise with a probability that increases with its gain (see `gains`):

        propensity = floor / m + (1 - floor) gain^12 / sum gain^12      over the m available pairs.

    No pair is less likely than floor / m, so weights 1 / propensity are at most 1 / floor times those of random choice.
    `floor` = 1 is random choice. The side shown first is random."""
    return draw_pair(*pair_chances(state, floor=floor, goal=goal, available=available), rng)


def draw_pair(chances: FloatArray, first: IntArray, second: IntArray, rng: np.random.Generator) -> NextPair:
    """Draw one pair with the probabilities from `pair_chances`; the side shown first is random.

    `chances`, `first`, `second`: (m,) from `pair_chances`; `rng`: source of random numbers."""
    ends = chances.cumsum()
    place = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
    place = min(place, len(chances) - 1)
    a, b = int(first[place]), int(second[place])
    if rng.random() < 0.5:
        a, b = b, a
    return NextPair(a, b, float(chances[place]))


def pair_chances(
    state: PairState, *, floor: float = FLOOR, goal: Goal = "ranking", available: BoolArray | None = None
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the propensities of the available pairs (they sum to 1), and their first and second systems.

    `state`, `floor`, `goal`, `available`: as in `choose_pair`."""
    if not 0 <= floor <= 1:
        raise ValueError(f"floor is between 0 and 1, not {floor}")
    if goal not in GOALS:
        raise ValueError(f"goal is one of {', '.join(GOALS)}, not '{goal}'")
    first, second = np.triu_indices(state.n_systems, 1)
    if available is not None:
        open_pairs = available[first, second] | available[second, first]
        first, second = first[open_pairs], second[open_pairs]
    if not len(first):
        raise ValueError("no pair of systems is available any more")
    even = np.full(len(first), 1 / len(first))
    if floor == 1:
        return even, first, second
    gain = gains(state, goal)[first, second]
    top = float(gain.max())
    if not top > 0:
        return even, first, second
    favoured = (gain / top) ** _SHARPNESS
    return floor * even + (1 - floor) * favoured / favoured.sum(), first, second


def gains(state: PairState, goal: Goal = "ranking") -> FloatArray:
    """Return the expected information (k, k) that a judgement of each pair gives about the order of systems, in nats to
    first order.

    A judgement of i, j lowers the variance s_kl^2 of the difference of k and l by

        d_kl = ((V x_ij)_k - (V x_ij)_l)^2 w / (1 + w s_ij^2),      w = p (1 - p),  x_ij = e_i - e_j,  V the covariance,

    so the chance Phi(z_kl), z = difference / s, that k is better moves by a standard deviation sqrt(d_kl) phi(z) / s,
    which tells d_kl phi(z)^2 / (2 s^2 Phi(z) Phi(-z)) nats about which of the two is better. The gain is the sum of it
    over all pairs k, l for "ranking", over the pairs of the leader for "best"."""
    theta, covariance = state.theta, state.covariance
    variance = np.diag(covariance)
    between = np.maximum(variance[:, None] + variance[None, :] - 2 * covariance, 1e-12)
    apart = np.abs(theta[:, None] - theta[None, :]) / np.sqrt(between)
    wrong = np.maximum(ndtr(-apart), 1e-300)
    doubt = np.exp(-(apart**2)) / (4 * np.pi * between * wrong * (1 - wrong))
    if goal == "best":
        leader = int(theta.argmax())
        kept = np.zeros_like(doubt)
        kept[leader], kept[:, leader] = doubt[leader], doubt[:, leader]
        doubt = kept
    np.fill_diagonal(doubt, 0.0)
    laplacian = np.diag(doubt.sum(axis=1)) - doubt
    spread = covariance @ laplacian @ covariance
    told = np.diag(spread)[:, None] + np.diag(spread)[None, :] - 2 * spread
    information = state.information
    return np.asarray(np.maximum(told, 0.0) * information / (1 + information * between))
