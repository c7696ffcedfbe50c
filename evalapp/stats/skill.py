"""Systems ranked by Glicko-2 from a table of verdicts: simulated games, the convergence rule, many seeds at once.

The rating of a game is in `glicko2.py`. Source: Zhou and Xu 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalapp.stats.coding import BoolArray, FloatArray, IntArray
from evalapp.stats.estimate import Estimate
from evalapp.stats.glicko2 import DRAW_SHARE, RATING, SCALE, TAU, GameState, TieRule, levels_of

#: Plays that every player has between two looks at the order.
WINDOW = 50
#: Without convergence a simulation ends after so many games for each pair of K^2.
GAMES_CAP = 200
Z95 = 1.959963984540054


@dataclass(frozen=True)
class VerdictTable:
    """All verdicts between systems: pair p is (first[p], second[p]); its verdicts, 1, 0 or -1 of the first, stand in
    `verdicts` from `starts[p]` to `starts[p + 1]`. Pairs without verdicts are not there."""

    systems: tuple[str, ...]
    first: IntArray
    second: IntArray
    starts: IntArray
    verdicts: NDArray[np.int8]

    @classmethod
    def of(cls, systems: Sequence[str], a: ArrayLike, b: ArrayLike, verdict: ArrayLike) -> VerdictTable:
        """From rows: system numbers a and b and the verdict 1 (a is better), 0 or -1; either order of a pair."""
        one, two = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
        signs = np.asarray(verdict, dtype=np.int8)
        if (one == two).any():
            raise ValueError("a system cannot be compared with itself")
        turned = one > two
        one, two = np.where(turned, two, one), np.where(turned, one, two)
        signs = np.where(turned, -signs, signs).astype(np.int8)
        keys = one * len(systems) + two
        order = np.argsort(keys, kind="stable")
        pairs, counts = np.unique(keys, return_counts=True)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(tuple(systems), pairs // len(systems), pairs % len(systems), starts, signs[order])

    @property
    def n_pairs(self) -> int:
        """Pairs of systems that have verdicts."""
        return len(self.first)

    def __len__(self) -> int:
        return len(self.verdicts)


@dataclass(frozen=True, slots=True)
class SystemSkill:
    """One system: `estimate` is its mean rating over the seeds with r +- 1.96 RD; `sd` how far the seeds differ."""

    system: str
    estimate: Estimate
    deviation: float
    sd: float
    volatility: float
    games: float
    rank: int

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        sd = None if np.isnan(self.sd) else self.sd
        return plain | {"estimate": self.estimate.as_dict(), "sd": sd}


@dataclass(frozen=True)
class SkillRatings:
    """Systems from best to worst. `converged` is the share of seeds whose order came to rest; `games` their mean
    number of games. `ratings` (seeds, systems in the order of the table) are the single simulations."""

    systems: tuple[SystemSkill, ...]
    ratings: FloatArray
    tie: TieRule
    seeds: int
    seed: int
    converged: float
    games: float

    @property
    def order(self) -> tuple[str, ...]:
        """Names from best to worst."""
        return tuple(row.system for row in self.systems)

    def rating_of(self, system: str) -> float:
        """The mean rating of a system; nan without games."""
        return next(row.estimate.value for row in self.systems if row.system == system)

    @property
    def signature(self) -> str:
        """The settings as one line."""
        return f"method:glicko2|tie:{self.tie}|tau:{TAU:g}|window:{WINDOW}|seeds:{self.seeds}|seed:{self.seed}"

    def as_dict(self) -> dict[str, Any]:
        """JSON-safe: systems, settings, signature."""
        return {
            "method": "glicko2",
            "signature": self.signature,
            "converged": self.converged,
            "games": self.games,
            "systems": [row.as_dict() for row in self.systems],
        }


def rank_by_games(
    table: VerdictTable,
    *,
    seeds: int = 100,
    seed: int = 13,
    tie: TieRule = "half",
    share: float = DRAW_SHARE,
    tau: float = TAU,
    max_games: int | None = None,
    fixed_games: int | None = None,
) -> SkillRatings:
    """Systems by Glicko-2, simulated `seeds` times from one table of verdicts.

    A game: a pair drawn uniformly among those with verdicts, then one of its verdicts. When every player has 50 plays
    the order is noted; games go on until every one has 50 more; an unchanged order ends the simulation, else the
    window repeats, up to `max_games` (default 200 K^2). `fixed_games` plays just so many instead. One seed alone
    gives the same as the same seed among others.
    """
    n = len(table.systems)
    if not table.n_pairs:
        raise ValueError("the table holds no verdict between two systems")
    cap = fixed_games if fixed_games is not None else max_games or GAMES_CAP * n * n
    state = GameState(n * seeds)
    streams = [_Stream(table, np.random.default_rng([seed, number]), cap, fixed_games is not None)
               for number in range(seeds)]  # fmt: skip
    plays = np.zeros(n * seeds, dtype=np.int64)
    orders: list[IntArray | None] = [None] * seeds
    converged, total = np.zeros(seeds, dtype=np.bool_), np.zeros(seeds, dtype=np.int64)
    running = list(range(seeds))
    while running:
        windows = [streams[number].window() for number in running]
        _play_windows(state, windows, running, n, tie, share, tau)
        still = []
        for number, (one, two, _) in zip(running, windows, strict=True):
            total[number] += len(one)
            own = slice(number * n, (number + 1) * n)
            plays[own] += np.bincount(one, minlength=n) + np.bincount(two, minlength=n)
            order = np.argsort(-state.mu[own], kind="stable")
            before, orders[number] = orders[number], order
            if not streams[number].ended:
                converged[number] = before is not None and np.array_equal(before, order)
                if not converged[number]:
                    still.append(number)
        running = still
    return _summary(table, state, plays, converged, total, tie, seed, seeds)


def _summary(
    table: VerdictTable,
    state: GameState,
    plays: IntArray,
    converged: BoolArray,
    total: IntArray,
    tie: TieRule,
    seed: int,
    seeds: int,
) -> SkillRatings:
    shape = (seeds, len(table.systems))
    ratings = (SCALE * state.mu + RATING).reshape(shape)
    deviations, volatilities = (SCALE * state.phi).reshape(shape).mean(0), state.sigma.reshape(shape).mean(0)
    games = plays.reshape(shape).mean(0)
    rating = ratings.mean(0)
    spread = ratings.std(0, ddof=1) if seeds > 1 else np.full(shape[1], np.nan)
    rows: list[SystemSkill] = []
    for place in np.lexsort((np.array(table.systems), -rating, games == 0)).tolist():
        if games[place] == 0:
            estimate = Estimate.undefined("never compared")
        else:
            reach = Z95 * float(deviations[place])
            value = float(rating[place])
            estimate = Estimate(value, value - reach, value + reach, round(float(games[place])))
        better = int(((rating > rating[place]) & (games > 0)).sum())
        rows.append(
            SystemSkill(
                table.systems[place], estimate, float(deviations[place]), float(spread[place]),
                float(volatilities[place]), float(games[place]), 1 + better,
            )
        )  # fmt: skip
    return SkillRatings(tuple(rows), ratings, tie, seeds, seed, float(converged.mean()), float(total.mean()))


class _Stream:
    """The games of one seed, drawn as they are needed; they do not depend on any result."""

    def __init__(self, table: VerdictTable, rng: np.random.Generator, cap: int, fixed: bool) -> None:
        self.table, self.rng, self.left, self.fixed = table, rng, cap, fixed
        self.players = np.unique(np.concatenate([table.first, table.second]))
        none = np.zeros(0, dtype=np.int64)
        self.one, self.two, self.score = none, none, np.zeros(0)

    @property
    def ended(self) -> bool:
        """Whether the games allowed are played."""
        return self.left == 0

    def window(self) -> tuple[IntArray, IntArray, FloatArray]:
        """The next games until every player has 50 more (or as many as are left): first, second, score."""
        if self.fixed:
            self._draw(self.left)
            size = self.left
        else:
            size = self._size()
        found = self.one[:size], self.two[:size], self.score[:size]
        self.one, self.two, self.score = self.one[size:], self.two[size:], self.score[size:]
        self.left -= size
        return found

    def _size(self) -> int:
        while True:
            # Numbers of 16 bits are sorted by counting.
            flat = np.stack([self.one, self.two], axis=1).ravel().astype(np.int16)
            order = np.argsort(flat, kind="stable")
            starts = np.searchsorted(flat[order], self.players)
            plays = np.diff(np.append(starts, len(flat)))
            if len(flat) and plays.min() >= WINDOW:
                return min(self.left, int(order[starts + WINDOW - 1].max()) // 2 + 1)
            if len(self.one) >= self.left:
                return self.left
            self._draw(2 * WINDOW * len(self.players))

    def _draw(self, n: int) -> None:
        table = self.table
        pair = self.rng.integers(table.n_pairs, size=n)
        counts = np.diff(table.starts)[pair]
        row = table.starts[pair] + np.minimum((self.rng.random(n) * counts).astype(np.int64), counts - 1)
        self.one = np.concatenate([self.one, table.first[pair]])
        self.two = np.concatenate([self.two, table.second[pair]])
        self.score = np.concatenate([self.score, (table.verdicts[row].astype(np.float64) + 1) / 2])


def _play_windows(
    state: GameState,
    windows: Sequence[tuple[IntArray, IntArray, FloatArray]],
    numbers: Sequence[int],
    n: int,
    tie: TieRule,
    share: float,
    tau: float,
) -> None:
    """All windows at once: games of different seeds, and of one seed without a common player, side by side."""
    longest = max(len(one) for one, _, _ in windows)
    firsts = np.full((len(windows), longest), -1, dtype=np.int64)
    seconds = np.full((len(windows), longest), -1, dtype=np.int64)
    scores = np.zeros((len(windows), longest))
    for row, (one, two, score) in enumerate(windows):
        firsts[row, : len(one)], seconds[row, : len(one)], scores[row, : len(one)] = one, two, score
    played = firsts >= 0
    levels = levels_of(firsts, seconds, n)
    shift = (np.asarray(numbers, dtype=np.int64) * n)[:, None]
    state.advance((firsts + shift)[played], (seconds + shift)[played], scores[played], levels[played], tie, share, tau)
