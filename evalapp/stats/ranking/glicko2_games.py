"""Glicko-2 over sequences of games, vectorised over all sequences. Single games are in `glicko2`.

Games without a common player are independent. The games of all sequences are therefore sorted into levels of games
that share no player, and each level is one vectorised step with the same result as playing in sequence. New states
are appended and read from there by the players' next games, so the state of any player after any game can be looked
up."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray
from evalapp.stats.ranking.glicko2 import (
    DRAW_SHARE,
    EPSILON,
    NUMBERS_OF_START,
    PER_PHI2,
    RATING,
    SCALE,
    TAU,
    Numbers,
    TieRule,
    play_numbers,
    solve_log_variance,
)

# With at least this many games per level arrays are faster than single numbers.
_WIDE = 12
# The slope of the first summand of f is at most 2 / 27 D with D = (delta^2 - phi^2 - v) / (phi^2 + v), that of the
# second 1 / tau^2: below D = 4 / tau^2 the slope of f stays within 30 %.
_GENTLE = 4.0


@dataclass(frozen=True)
class Ratings:
    """Rating, deviation, volatility and number of games of the players, (n,) each."""

    rating: FloatArray
    deviation: FloatArray
    volatility: FloatArray
    games: IntArray


@dataclass(frozen=True)
class States:
    """Players at moments of independent sequences: `numbers` (4, rows, moments, n) are mu, phi^2, ln sigma^2 and
    sigma^2; `plays` (rows, moments, n) counts each player's games so far."""

    numbers: FloatArray
    plays: IntArray


def play_games(
    n_players: int,
    first: ArrayLike,
    second: ArrayLike,
    score: ArrayLike,
    *,
    tie: TieRule = "half",
) -> Ratings:
    """Return n players after a sequence of games, all starting at 1500 / 350 / 0.06.

    `n_players`: number of players.
    `first`, `second`: (m,) player numbers, never the same; `score`: (m,) of the first, from 0 to 1; 0.5 is a draw
    (`tie`)."""
    one, two = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    if (one == two).any():
        raise ValueError("a player cannot play against itself")
    scores = np.asarray(score, dtype=np.float64)
    end = np.array([[len(one)]])
    result = play_sequences(start(1, n_players), one[None], two[None], scores[None], end, tie)
    mu, phi2, _, variance = result.numbers[:, 0, 0]
    return Ratings(SCALE * mu + RATING, SCALE * np.sqrt(phi2), np.sqrt(variance), result.plays[0, 0])


def start(rows: int, n: int) -> FloatArray:
    """Return (4, rows, n) players before their first game."""
    return np.broadcast_to(np.array(NUMBERS_OF_START)[:, None, None], (4, rows, n)).copy()


def play_sequences(
    states: FloatArray,
    first: IntArray,
    second: IntArray,
    score: FloatArray,
    ends: IntArray,
    tie: TieRule,
) -> States:
    """Play sequences of games, each with its own players, in parallel.

    `states` (4, rows, n): before the games; `first`, `second`, `score` (rows, games): -1 after the end of a shorter
    row; `ends` (rows, moments): numbers of games after which the players are returned, ascending, the last one all."""
    rows, n = states.shape[1:]
    played = first >= 0
    shift = (np.arange(rows) * n)[:, None]
    one, two, scores = (first + shift)[played], (second + shift)[played], score[played]
    plan = _Plan.of(one, two, find_levels(first, second, n)[played], rows * n)
    values = _play_all(states.reshape(4, -1), plan, scores, tie, DRAW_SHARE, TAU)
    # Moment of each game, and each player's number of plays by then.
    moment = np.repeat(np.arange(ends.size), np.diff(ends, axis=1, prepend=0).ravel())
    key = np.repeat(moment * n, 2) + plan.players % n
    plays = np.bincount(key, minlength=ends.size * n).reshape(*ends.shape, n).cumsum(axis=1)
    if not len(one):
        return States(np.repeat(states[:, :, None], ends.shape[1], axis=2), plays)
    place = plan.begins.reshape(rows, 1, n) + plays - 1
    idle = np.arange(rows * n).reshape(rows, 1, n)
    slots = np.where(plays > 0, plan.chain[np.maximum(place, 0)], idle)
    return States(values[:, slots], plays)


def find_levels(first: IntArray, second: IntArray, n: int) -> IntArray:
    """Return (rows, games): 1 + the highest level of an earlier game of either player. Games of the same level share no
    player.

    Rows are independent sequences; -1 is no game."""
    rows, games = first.shape
    levels = np.zeros((rows, games), dtype=np.int64)
    if rows == 1:
        last = [0] * n
        result = []
        for i, j in zip(first[0].tolist(), second[0].tolist(), strict=True):
            level = max(last[i], last[j]) + 1
            last[i] = last[j] = level
            result.append(level)
        levels[0] = result
        return levels
    # An extra column receives the entries that are no games.
    latest = np.zeros(rows * (n + 1), dtype=np.int64)
    base = (np.arange(rows) * (n + 1))[:, None]
    one, two = np.where(first < 0, n, first) + base, np.where(second < 0, n, second) + base
    ones, twos = np.ascontiguousarray(one.T), np.ascontiguousarray(two.T)
    by_game = np.ascontiguousarray(levels.T)
    for game in range(games):
        i, j = ones[game], twos[game]
        level = np.maximum(latest[i], latest[j])
        level += 1
        latest[i] = level
        latest[j] = level
        by_game[game] = level
    return np.ascontiguousarray(by_game.T)


@dataclass(frozen=True)
class _Plan:
    """Slots from which each game reads its two players and to which it writes them.

    Slots: the players before all games, then level by level the first players of its games and the second ones.
    `sources` (2 games,) in the order of writing; `order` the games by level, `sizes` how many each level has.
    `players` (2 games,) in the order of time; `chain` all slots of a player after another in the order of time, from
    `begins` on."""

    order: IntArray
    sizes: IntArray
    sources: IntArray
    players: IntArray
    chain: IntArray
    begins: IntArray
    wide: bool

    @classmethod
    def of(cls, one: IntArray, two: IntArray, level: IntArray, n: int) -> _Plan:
        games = len(one)
        n_levels = int(level.max()) if games else 0
        wide = games >= _WIDE * n_levels
        if wide:
            order = _sorted(level, n_levels)
            sizes = np.bincount(level, minlength=n_levels + 1)[1:]
        else:
            order, sizes = np.arange(games), np.ones(games, dtype=np.int64)
        written = np.empty((games, 2), dtype=np.int64)
        written[order, 0] = n + np.repeat(np.cumsum(sizes) - sizes, sizes) + np.arange(games)
        written[order, 1] = written[order, 0] + np.repeat(sizes, sizes)
        slots = written.ravel()
        players = np.stack([one, two], axis=1).ravel()
        by_player = _sorted(players, n)
        chain = slots[by_player]
        counts = np.bincount(players, minlength=n)
        begins = np.cumsum(counts) - counts
        before = np.empty(2 * games, dtype=np.int64)
        before[1:] = chain[:-1]
        plays = np.flatnonzero(counts)
        before[begins[plays]] = plays
        sources = np.empty(2 * games, dtype=np.int64)
        sources[chain - n] = before
        return cls(order, sizes, sources, players, chain, begins, wide)


def _sorted(keys: IntArray, highest: int) -> IntArray:
    """Return the stable order; NumPy sorts 16-bit integers by counting."""
    return np.argsort(keys.astype(np.int16) if highest < 2**15 else keys, kind="stable")


def _play_all(states: FloatArray, plan: _Plan, score: FloatArray, tie: TieRule, share: float, tau: float) -> FloatArray:
    """Return (4, slots) of all players before and after all their games; `states` (4, n) before, `score` in order of
    time."""
    scores, n = score[plan.order], states.shape[1]
    if not plan.wide:
        numbers: list[Numbers] = list(zip(*states.tolist(), strict=True))
        sources = plan.sources.tolist()
        for i, j, s in zip(sources[::2], sources[1::2], scores.tolist(), strict=True):
            numbers += play_numbers(numbers[i], numbers[j], s, tie, share, tau)
        return np.array(numbers).T
    values = np.empty((4, n + len(plan.sources)))
    values[:, :n] = states
    begin = 0
    for end in np.cumsum(plan.sizes).tolist():
        written = values[:, n + 2 * begin : n + 2 * end]
        _play_level(values.take(plan.sources[2 * begin : 2 * end], axis=1), scores[begin:end], written, tie, share, tau)
        begin = end
    return values


def _play_level(
    before: FloatArray, score: FloatArray, after: FloatArray, tie: TieRule, share: float, tau: float
) -> None:
    """Play n games that share no player: `before` and `after` (4, 2 n) hold the first players, then the second ones."""
    n = len(score)
    mu, phi2, log_variance, variance = before
    apart = np.empty(2 * n)
    np.subtract(mu[:n], mu[n:], out=apart[:n])
    np.negative(apart[:n], out=apart[n:])
    own = phi2 * PER_PHI2
    own += 1
    np.sqrt(own, out=own)
    # These values are the opponent's.
    g = np.empty(2 * n)
    np.divide(1, own[n:], out=g[:n])
    np.divide(1, own[:n], out=g[n:])
    expected = g * apart
    np.negative(expected, out=expected)
    np.exp(expected, out=expected)
    expected += 1
    np.divide(1, expected, out=expected)
    drawn: BoolArray | None = None
    gain = np.empty(2 * n)
    gain[:n] = score
    np.subtract(1, score, out=gain[n:])
    if tie == "paper":
        drawn = gain == 0.5
        np.copyto(gain, apart < 0, where=drawn)
    gain -= expected
    gain *= g
    information = 1 - expected
    information *= expected
    information *= g
    information *= g
    base = 1 / information
    delta2 = base * gain
    delta2 *= delta2
    base += phi2
    new_log, new_variance = after[2], after[3]
    solve_log_variances(delta2, base, log_variance, variance, tau, new_log, new_variance)
    if drawn is not None:
        change = gain / (1 / (phi2 + new_variance) + information)
        np.copyto(new_log, log_variance, where=drawn)
        np.copyto(new_variance, variance, where=drawn)
    new_phi2 = np.add(phi2, new_variance, out=after[1])
    np.divide(1, new_phi2, out=new_phi2)
    new_phi2 += information
    np.divide(1, new_phi2, out=new_phi2)
    if drawn is None:
        gain *= new_phi2
    else:
        gain = np.where(drawn, share * np.where(apart == 0, 0.0, change), change)
    np.add(mu, gain, out=after[0])


def solve_log_variances(
    delta2: FloatArray,
    base: FloatArray,
    a: FloatArray,
    variance: FloatArray,
    tau: float,
    found: FloatArray,
    grown: FloatArray,
) -> None:
    """Write A and e^A of `glicko2.solve_log_variance` for many players into `found` and `grown`; (n,) each: delta^2,
    phi^2 + v, ln sigma^2, sigma^2.

    The same iteration, for the two ways it nearly always goes. Where f has at a new point C the sign it has at B,
    f_A halves; so the next point lies at twice the distance from C to the root, f changes its sign between the two,
    and where they are less than 1e-6 apart C is the answer, which needs no f at the next point. That is the first C,
    or, where f changes its sign before it, the second. All other cases are solved one by one."""
    d = delta2 - base
    low, f_low = _lower_ends(d, base, a, variance, tau)
    f_high = _tau2_f(variance, d, base, tau)
    x = _secant(a, f_high, low, f_low)
    e = np.exp(x)
    f = _tau2_f(e, d, base, tau)
    f -= x
    f += a
    same = f * f_low > 0
    near = np.abs(a - x) <= EPSILON
    near &= same
    found[:], grown[:] = x, e
    if near.any():
        np.copyto(found, a, where=near)
        np.copyto(grown, variance, where=near)
    near |= _is_next_near(a, f_high, x, f) & same
    # Elsewhere f may be less than half as steep as on average, so that its sign may stay; or B is farther away.
    plain = d < base * (_GENTLE / (tau * tau))
    plain &= (d > 0) | (f_low >= 0)
    near &= plain
    rest = (~near).nonzero()[0]
    if not len(rest):
        return
    d, base, a, low, f_low, x, e, f = (column.take(rest) for column in (d, base, a, low, f_low, x, e, f))
    second = _secant(low, f_low, x, f)
    e_second = np.exp(second)
    f_second = _tau2_f(e_second, d, base, tau)
    f_second -= second
    f_second += a
    stays = f_second * f > 0
    # Where f changes its sign again, within 1e-6 of the first C, that is the answer. (Less than that from A the sign of
    # f may be one of rounding.)
    ends = np.abs(x - second) <= EPSILON
    ends &= ~stays
    ends &= np.abs(a - x) > EPSILON
    found[rest], grown[rest] = np.where(ends, x, second), np.where(ends, e, e_second)
    plain = plain[rest]
    plain &= stays
    plain &= _is_next_near(low, f_low, second, f_second)
    plain |= ends
    plain &= np.abs(low - second) > EPSILON
    plain &= ~same[rest]
    odd = (~plain).nonzero()[0]
    if len(odd):
        places = rest[odd]
        rows = zip(delta2[places].tolist(), base[odd].tolist(), a[odd].tolist(), variance[places].tolist(), strict=True)
        for place, row in zip(places.tolist(), rows, strict=True):
            found[place], grown[place] = solve_log_variance(*row, tau)


def _lower_ends(
    d: FloatArray, base: FloatArray, a: FloatArray, variance: FloatArray, tau: float
) -> tuple[FloatArray, FloatArray]:
    """B, or a - tau where k had to be higher than 1, and tau^2 f there, which is negative only then or for d > 0."""
    low, f = a - tau, _tau2_f(variance * math.exp(-tau), d, base, tau)
    f += tau
    far = (d > 0).nonzero()[0]
    if len(far):
        logs = np.log(d[far])
        low[far] = logs
        # Here f has no other summand.
        f[far] = a[far] - logs
    return low, f


def _tau2_f(e: FloatArray, d: FloatArray, base: FloatArray, tau: float) -> FloatArray:
    """The first summand of tau^2 f: e (d - e) tau^2 / (2 (base + e)^2)."""
    whole = base + e
    whole *= whole
    whole *= 2 / (tau * tau)
    value = d - e
    value *= e
    value /= whole
    return value


def _secant(high: FloatArray, f_high: FloatArray, low: FloatArray, f_low: FloatArray) -> FloatArray:
    """C = A + (A - B) f_A / (f_B - f_A)"""
    x = high - low
    x *= f_high
    x /= f_low - f_high
    x += high
    return x


def _is_next_near(high: FloatArray, f_high: FloatArray, x: FloatArray, f: FloatArray) -> BoolArray:
    """Whether the point after C is less than 1e-6 from it when f_A halves: C = `x`, A = `high`."""
    step = high - x
    step *= f
    half = 0.5 * f_high
    half -= f
    step /= half
    return np.abs(step, out=step) <= EPSILON
