"""Glicko-2: a player's rating after a period, a game, or a given sequence of games.

Every game is a rating period of its own for its two players; nobody's uncertainty grows while others play. Source:
Glickman 2012, Example of the Glicko-2 system; tie rule: Zhou and Xu 2020. Systems ranked by it: `skill.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.coding import FloatArray, IntArray

TieRule: TypeAlias = Literal["half", "paper"]

RATING, DEVIATION, VOLATILITY = 1500.0, 350.0, 0.06
SCALE, TAU, EPSILON = 173.7178, 0.5, 1e-6
#: The paper's share of a win or loss that a draw is worth.
DRAW_SHARE = 0.1
_MU_OF_START, _PHI_OF_START = 0.0, DEVIATION / SCALE
# From so many games side by side arrays are faster than single numbers.
_WIDE = 12


@dataclass(frozen=True, slots=True)
class Player:
    """A rating with its deviation and volatility."""

    rating: float = RATING
    deviation: float = DEVIATION
    volatility: float = VOLATILITY


def update(player: Player, opponents: Sequence[tuple[Player, float]], *, tau: float = TAU) -> Player:
    """The player after one rating period with any number of games, each (opponent, score 1, 0.5 or 0).

    mu = (r - 1500) / 173.7178, phi = RD / 173.7178, g(phi) = 1 / sqrt(1 + 3 phi^2 / pi^2),
    E_j = 1 / (1 + exp(-g(phi_j) (mu - mu_j))), v = 1 / sum g_j^2 E_j (1 - E_j), d = v sum g_j (s_j - E_j);
    sigma' solves f(x) = 0 by the Illinois iteration to 1e-6 (see `_volatility`);
    phi' = 1 / sqrt(1 / (phi^2 + sigma'^2) + 1 / v), mu' = mu + phi'^2 sum g_j (s_j - E_j).
    Without games nothing changes.
    """
    if not opponents:
        return player
    mu, phi = (player.rating - RATING) / SCALE, player.deviation / SCALE
    information = gain = 0.0
    for other, score in opponents:
        g = _g(other.deviation / SCALE)
        expected = 1 / (1 + math.exp(-g * (mu - (other.rating - RATING) / SCALE)))
        information += g * g * expected * (1 - expected)
        gain += g * (score - expected)
    v = 1 / information
    sigma = _volatility(v * gain, phi, v, player.volatility, tau)
    new_phi = 1 / math.sqrt(1 / (phi * phi + sigma * sigma) + information)
    return Player(SCALE * (mu + new_phi * new_phi * gain) + RATING, SCALE * new_phi, sigma)


def play(
    a: Player, b: Player, score: float, *, tie: TieRule = "half", share: float = DRAW_SHARE, tau: float = TAU
) -> tuple[Player, Player]:
    """Both players after one game; `score` 1 = a won, 0.5 = draw, 0 = b won; both from their ratings before it.

    tie "half": a draw is half a win. "paper": the lower rated gains `share` of what a win would have given it, the
    higher rated loses `share` of what a loss would have cost it, equals stay; deviations follow from v, volatilities
    stay.
    """
    numbers = [_number(a), _number(b)]
    _game(numbers, 0, 1, score, tie, share, tau)
    first, second = (_player(*number) for number in numbers)
    return first, second


@dataclass(frozen=True)
class Ratings:
    """(n,) each: rating, deviation, volatility and games of the players."""

    rating: FloatArray
    deviation: FloatArray
    volatility: FloatArray
    games: IntArray


def play_games(
    n_players: int,
    first: ArrayLike,
    second: ArrayLike,
    score: ArrayLike,
    *,
    tie: TieRule = "half",
    share: float = DRAW_SHARE,
    tau: float = TAU,
) -> Ratings:
    """n players after a sequence of games, all beginning at 1500 / 350 / 0.06.

    `first`, `second`: (m,) player numbers, never the same; `score`: (m,) of the first: 1, 0.5 or 0. Games without a
    common player do not touch each other, so they are computed side by side; the result is that of the sequence.
    """
    one, two = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    scores = np.asarray(score, dtype=np.float64)
    if (one == two).any():
        raise ValueError("a player cannot play against itself")
    state = GameState(n_players)
    state.advance(one, two, scores, levels_of(one[None], two[None], n_players)[0], tie, share, tau)
    games = np.bincount(one, minlength=n_players) + np.bincount(two, minlength=n_players)
    return Ratings(SCALE * state.mu + RATING, SCALE * state.phi, state.sigma, games)


def levels_of(first: IntArray, second: IntArray, n: int) -> IntArray:
    """(rows, games): 1 + the highest level of an earlier game of either player. Games of one level share nobody.

    Rows are sequences of their own; -1 is no game.
    """
    rows, games = first.shape
    levels = np.zeros((rows, games), dtype=np.int64)
    if rows == 1:
        last = [0] * n
        found = []
        for i, j in zip(first[0].tolist(), second[0].tolist(), strict=True):
            level = max(last[i], last[j]) + 1
            last[i] = last[j] = level
            found.append(level)
        levels[0] = found
        return levels
    # A column more takes the games that are none.
    latest = np.zeros(rows * (n + 1), dtype=np.int64)
    base = (np.arange(rows) * (n + 1))[:, None]
    one, two = np.where(first < 0, n, first) + base, np.where(second < 0, n, second) + base
    ones, twos = np.ascontiguousarray(one.T), np.ascontiguousarray(two.T)
    foundlevels_of = np.ascontiguousarray(levels.T)
    for game in range(games):
        i, j = ones[game], twos[game]
        level = np.maximum(latest[i], latest[j])
        level += 1
        latest[i] = level
        latest[j] = level
        foundlevels_of[game] = level
    return np.ascontiguousarray(foundlevels_of.T)


class GameState:
    """Players as arrays: mu, phi, sigma."""

    def __init__(self, n: int) -> None:
        self.mu = np.full(n, _MU_OF_START)
        self.phi = np.full(n, _PHI_OF_START)
        self.sigma = np.full(n, VOLATILITY)

    def advance(
        self,
        first: IntArray,
        second: IntArray,
        score: FloatArray,
        level: IntArray,
        tie: TieRule,
        share: float,
        tau: float,
    ) -> None:
        """Play games level by level; where levels are narrow, one by one."""
        if not len(first):
            return
        nlevels_of = int(level.max())
        if len(first) < _WIDE * nlevels_of:
            order = np.argsort(level, kind="stable")
            numbers = list(zip(self.mu.tolist(), self.phi.tolist(), self.sigma.tolist(), strict=True))
            played = zip(first[order].tolist(), second[order].tolist(), score[order].tolist(), strict=True)
            for i, j, s in played:
                _game(numbers, i, j, s, tie, share, tau)
            self.mu, self.phi, self.sigma = (np.array(column) for column in zip(*numbers, strict=True))
            return
        for places in _by_level(level, nlevels_of):
            self._play(first[places], second[places], score[places], tie, share, tau)

    def _play(self, one: IntArray, two: IntArray, score: FloatArray, tie: TieRule, share: float, tau: float) -> None:
        me, you = np.concatenate([one, two]), np.concatenate([two, one])
        s = np.concatenate([score, 1 - score])
        mu, phi, sigma = self.mu[me], self.phi[me], self.sigma[me]
        apart = mu - self.mu[you]
        phi2 = phi * phi
        g = 1 / np.sqrt(1 + (3 / math.pi**2) * phi2)
        g = np.concatenate([g[len(one) :], g[: len(one)]])
        expected = 1 / (1 + np.exp(-g * apart))
        information = g * g * expected * (1 - expected)
        drawn = None
        if tie == "paper":
            drawn = s == 0.5
            s = np.where(drawn, (apart < 0).astype(np.float64), s)
        gain = g * (s - expected)
        v = 1 / information
        new_sigma = _volatilities(v * gain, phi2, v, sigma, tau)
        new_phi2 = 1 / (1 / (phi2 + new_sigma * new_sigma) + information)
        change = new_phi2 * gain
        if drawn is not None:
            change = np.where(drawn, share * np.where(apart == 0, 0.0, change), change)
            new_sigma = np.where(drawn, sigma, new_sigma)
            new_phi2 = np.where(drawn, 1 / (1 / (phi2 + sigma * sigma) + information), new_phi2)
        self.mu[me] = mu + change
        self.phi[me] = np.sqrt(new_phi2)
        self.sigma[me] = new_sigma


def _by_level(level: IntArray, nlevels_of: int) -> Iterator[IntArray]:
    order = np.argsort(level, kind="stable")
    ends = np.cumsum(np.bincount(level, minlength=nlevels_of + 1)[1:])
    start = 0
    for end in ends.tolist():
        yield order[start:end]
        start = end


def _volatilities(delta: FloatArray, phi2: FloatArray, v: FloatArray, sigma: FloatArray, tau: float) -> FloatArray:
    """`_volatility` for many at once; each ends after the iterations it needs alone."""
    a = np.log(sigma * sigma)
    base = phi2 + v
    d = delta * delta - base
    per_tau2 = 1 / (tau * tau)

    def f(x: FloatArray, d: FloatArray, base: FloatArray, a: FloatArray) -> FloatArray:
        grown = np.exp(x)
        whole = base + grown
        whole *= whole
        whole *= 2
        value = d - grown
        value *= grown
        value /= whole
        rise = x - a
        rise *= per_tau2
        value -= rise
        return value

    far = d > 0
    low = a - tau
    low[far] = np.log(d[far])
    f_low = f(low, d, base, a)
    step = 1
    bad = np.flatnonzero(~far & (f_low < 0))
    while len(bad):
        step += 1
        low[bad] = a[bad] - step * tau
        f_low[bad] = f(low[bad], d[bad], base[bad], a[bad])
        bad = bad[f_low[bad] < 0]
    high, f_high = a, f(a, d, base, a)
    found, active = a.copy(), np.ones(len(a), dtype=np.bool_)
    # What has ended runs along until all have; what it then divides by 0 is not looked at.
    with np.errstate(divide="ignore", invalid="ignore"):
        while True:
            width = high - low
            ended = (np.abs(width) <= EPSILON) & active
            np.copyto(found, high, where=ended)
            active ^= ended
            if not active.any():
                return np.asarray(np.exp(found / 2))
            width *= f_high
            width /= f_low - f_high
            middle = high + width
            f_middle = f(middle, d, base, a)
            crossed = f_middle * f_low <= 0
            high = np.where(crossed, low, high)
            f_high = np.where(crossed, f_low, f_high * 0.5)
            low, f_low = middle, f_middle


def _g(phi: float) -> float:
    return 1 / math.sqrt(1 + (3 / math.pi**2) * phi * phi)


def _volatility(delta: float, phi: float, v: float, sigma: float, tau: float) -> float:
    """sigma' = exp(A / 2) where f(A) = 0, a = ln sigma^2 and

        f(x) = e^x (delta^2 - phi^2 - v - e^x) / (2 (phi^2 + v + e^x)^2) - (x - a) / tau^2

    Illinois: A = a; B = ln(delta^2 - phi^2 - v) where that is defined, else a - k tau with the least k that makes f
    not negative; C = A + (A - B) f_A / (f_B - f_A); where f_C f_B <= 0, A = B, else f_A halves; B = C; until
    |B - A| <= 1e-6.
    """
    exp = math.exp
    a = math.log(sigma * sigma)
    d, base, tau2 = delta * delta - phi * phi - v, phi * phi + v, tau * tau
    e = exp(a)
    w = base + e
    high, f_high = a, e * (d - e) / (2 * w * w)
    if d > 0:
        low = math.log(d)
    else:
        k = 1
        while True:
            low = a - k * tau
            e = exp(low)
            w = base + e
            if e * (d - e) / (2 * w * w) - (low - a) / tau2 >= 0:
                break
            k += 1
    e = exp(low)
    w = base + e
    f_low = e * (d - e) / (2 * w * w) - (low - a) / tau2
    while abs(low - high) > EPSILON:
        middle = high + (high - low) * f_high / (f_low - f_high)
        e = exp(middle)
        w = base + e
        f_middle = e * (d - e) / (2 * w * w) - (middle - a) / tau2
        if f_middle * f_low <= 0:
            high, f_high = low, f_low
        else:
            f_high /= 2
        low, f_low = middle, f_middle
    return exp(high / 2)


def _game(
    numbers: list[tuple[float, float, float]], i: int, j: int, s: float, tie: TieRule, share: float, tau: float
) -> None:
    """One game between two of the (mu, phi, sigma)."""
    one, two = numbers[i], numbers[j]
    if s == 0.5 and tie == "paper":
        apart = one[0] - two[0]
        numbers[i] = _draw(one, two, apart, share, tau)
        numbers[j] = _draw(two, one, -apart, share, tau)
        return
    numbers[i], numbers[j] = _after(one, two, s, tau), _after(two, one, 1 - s, tau)


def _after(
    me: tuple[float, float, float], you: tuple[float, float, float], s: float, tau: float
) -> tuple[float, float, float]:
    mu, phi, sigma = me
    g = _g(you[1])
    expected = 1 / (1 + math.exp(-g * (mu - you[0])))
    information = g * g * expected * (1 - expected)
    gain = g * (s - expected)
    v = 1 / information
    new_sigma = _volatility(v * gain, phi, v, sigma, tau)
    new_phi2 = 1 / (1 / (phi * phi + new_sigma * new_sigma) + information)
    return mu + new_phi2 * gain, math.sqrt(new_phi2), new_sigma


def _draw(
    me: tuple[float, float, float], you: tuple[float, float, float], apart: float, share: float, tau: float
) -> tuple[float, float, float]:
    """The paper's draw: a share of the win of the lower or the loss of the higher rated."""
    mu, phi, sigma = me
    change = 0.0 if apart == 0 else share * (_after(me, you, 1.0 if apart < 0 else 0.0, tau)[0] - mu)
    g = _g(you[1])
    expected = 1 / (1 + math.exp(-g * apart))
    information = g * g * expected * (1 - expected)
    return mu + change, 1 / math.sqrt(1 / (phi * phi + sigma * sigma) + information), sigma


def _number(player: Player) -> tuple[float, float, float]:
    return (player.rating - RATING) / SCALE, player.deviation / SCALE, player.volatility


def _player(mu: float, phi: float, sigma: float) -> Player:
    return Player(SCALE * mu + RATING, SCALE * phi, sigma)
