"""Glicko-2 ratings after a period or a single game, in plain numbers.

Every game is a rating period for its two players only; the deviations of other players do not grow. Source: Glickman
2012, Example of the Glicko-2 system; tie rule: Zhou and Xu 2020. Sequences of games as arrays are in `glicko2_games`,
rankings of systems in `skill`.

Explained in docs/explanation/statistics/comparisons.md#glicko-2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

TieRule: TypeAlias = Literal["half", "paper"]

RATING, DEVIATION, VOLATILITY = 1500.0, 350.0, 0.06
SCALE, TAU, EPSILON = 173.7178, 0.5, 1e-6
#: Share of a win or loss that a draw counts in the paper (Zhou and Xu 2020).
DRAW_SHARE = 0.1
#: g(phi) = 1 / sqrt(1 + this phi^2).
PER_PHI2 = 3 / math.pi**2
#: Limit of g (mu - mu_j), about 6,250 points: beyond it 1 - E underflows to 0 and v overflows.
FAR = 36.0
#: A player within a sequence as mu, phi^2, ln sigma^2, sigma^2, which saves most logarithms and roots.
Numbers: TypeAlias = tuple[float, float, float, float]
NUMBERS_OF_START: Numbers = (0.0, (DEVIATION / SCALE) ** 2, math.log(VOLATILITY**2), VOLATILITY**2)


@dataclass(frozen=True, slots=True)
class Player:
    """A rating with its deviation and volatility."""

    rating: float = RATING
    deviation: float = DEVIATION
    volatility: float = VOLATILITY


def update(player: Player, opponents: Sequence[tuple[Player, float]], *, tau: float = TAU) -> Player:
    """Return the player after one rating period with any number of games, each (opponent, score from 0 to 1).

    mu = (r - 1500) / 173.7178, phi = RD / 173.7178, g(phi) = 1 / sqrt(1 + 3 phi^2 / pi^2),
    E_j = 1 / (1 + exp(-g(phi_j) (mu - mu_j))), v = 1 / sum g_j^2 E_j (1 - E_j), d = v sum g_j (s_j - E_j);
    sigma' solves f(x) = 0 by the Illinois iteration to 1e-6 (see `solve_log_variance`);
    phi' = 1 / sqrt(1 / (phi^2 + sigma'^2) + 1 / v), mu' = mu + phi'^2 sum g_j (s_j - E_j).
    Without games nothing changes."""
    if not opponents:
        return player
    mu, phi = (player.rating - RATING) / SCALE, player.deviation / SCALE
    information = gain = 0.0
    for other, score in opponents:
        g = _g(other.deviation / SCALE)
        expected = _expected(g * (mu - (other.rating - RATING) / SCALE))
        information += g * g * expected * (1 - expected)
        gain += g * (score - expected)
    v = 1 / information
    sigma = _volatility(v * gain, phi, v, player.volatility, tau)
    new_phi = 1 / math.sqrt(1 / (phi * phi + sigma * sigma) + information)
    return Player(SCALE * (mu + new_phi * new_phi * gain) + RATING, SCALE * new_phi, sigma)


def play(
    a: Player, b: Player, score: float, *, tie: TieRule = "half", share: float = DRAW_SHARE, tau: float = TAU
) -> tuple[Player, Player]:
    """Return both players after one game.

    `score`: 1 = a won, 0.5 = draw, 0 = b won, or any expected score in between. tie "half": a draw is half a win.
    "paper": the lower rated player gains `share` of the gain of a win, the higher rated one loses `share` of the
    cost of a loss, equal ones keep their ratings; deviations follow from v, volatilities stay the same."""
    first, second = play_numbers(_number(a), _number(b), score, tie, share, tau)
    return _player(*first), _player(*second)


def _g(phi: float) -> float:
    return 1 / math.sqrt(1 + PER_PHI2 * phi * phi)


def _expected(advantage: float) -> float:
    return 1 / (1 + math.exp(min(FAR, max(-FAR, -advantage))))


def _volatility(delta: float, phi: float, v: float, sigma: float, tau: float) -> float:
    """Return sigma' from `solve_log_variance`."""
    return math.sqrt(solve_log_variance(delta * delta, phi * phi + v, math.log(sigma * sigma), sigma * sigma, tau)[1])


def solve_log_variance(delta2: float, base: float, a: float, variance: float, tau: float) -> tuple[float, float]:
    """Return A and e^A = sigma'^2 where f(A) = 0, a = ln sigma^2, base = phi^2 + v and

        f(x) = e^x (delta^2 - phi^2 - v - e^x) / (2 (phi^2 + v + e^x)^2) - (x - a) / tau^2

    Illinois: A = a; B = ln(delta^2 - phi^2 - v) where that is defined, else a - k tau with the least k that makes f
    not negative; C = A + (A - B) f_A / (f_B - f_A); where f_C f_B <= 0, A = B, else f_A halves; B = C; until
    |B - A| <= 1e-6."""
    exp, per_tau2 = math.exp, 1 / (tau * tau)
    d = delta2 - base
    w = base + variance
    high, e_high, f_high = a, variance, variance * (d - variance) / (2 * w * w)
    if d > 0:
        low, e_low = math.log(d), d
        f_low = (a - low) * per_tau2
    else:
        low, f_low = a, -1.0
        while f_low < 0:
            low -= tau
            e_low = exp(low)
            w = base + e_low
            f_low = e_low * (d - e_low) / (2 * w * w) - (low - a) * per_tau2
    while abs(high - low) > EPSILON:
        middle = high + (high - low) * f_high / (f_low - f_high)
        e = exp(middle)
        w = base + e
        f = e * (d - e) / (2 * w * w) - (middle - a) * per_tau2
        if f * f_low <= 0:
            high, f_high, e_high = low, f_low, e_low
        else:
            f_high /= 2
        low, f_low, e_low = middle, f, e
    return high, e_high


def play_numbers(
    one: Numbers, two: Numbers, s: float, tie: TieRule, share: float, tau: float
) -> tuple[Numbers, Numbers]:
    """`play` on bare numbers."""
    if s == 0.5 and tie == "paper":
        apart = one[0] - two[0]
        return _draw(one, two, apart, share, tau), _draw(two, one, -apart, share, tau)
    return _after(one, two, s, tau), _after(two, one, 1 - s, tau)


def _after(me: Numbers, you: Numbers, s: float, tau: float) -> Numbers:
    mu, phi2, log_variance, variance = me
    g = 1 / math.sqrt(1 + PER_PHI2 * you[1])
    expected = _expected(g * (mu - you[0]))
    information = g * g * expected * (1 - expected)
    gain = g * (s - expected)
    new_log, new_variance = solve_log_variance(
        (gain / information) ** 2, phi2 + 1 / information, log_variance, variance, tau
    )
    new_phi2 = 1 / (1 / (phi2 + new_variance) + information)
    return mu + new_phi2 * gain, new_phi2, new_log, new_variance


def _draw(me: Numbers, you: Numbers, apart: float, share: float, tau: float) -> Numbers:
    """Apply the paper's draw: a share of the win of the lower rated or of the loss of the higher rated player."""
    mu, phi2, log_variance, variance = me
    change = 0.0 if apart == 0 else share * (_after(me, you, 1.0 if apart < 0 else 0.0, tau)[0] - mu)
    g = 1 / math.sqrt(1 + PER_PHI2 * you[1])
    expected = _expected(g * apart)
    information = g * g * expected * (1 - expected)
    return mu + change, 1 / (1 / (phi2 + variance) + information), log_variance, variance


def _number(player: Player) -> Numbers:
    variance = player.volatility**2
    return (player.rating - RATING) / SCALE, (player.deviation / SCALE) ** 2, math.log(variance), variance


def _player(mu: float, phi2: float, log_variance: float, variance: float) -> Player:
    return Player(SCALE * mu + RATING, SCALE * math.sqrt(phi2), math.sqrt(variance))
