"""Rank systems by Glicko-2 from a table of verdicts: simulated games, convergence rule, many seeds at once.

The rating of a game is in `glicko2`. Source: Zhou and Xu 2020."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.ranking.connectivity import NEVER_COMPARED, largest_component
from evalapp.stats.ranking.glicko2 import RATING, SCALE, TAU, TieRule
from evalapp.stats.ranking.glicko2_games import play_sequences, start

#: Plays of every player between two checks of the order.
WINDOW = 50
#: Without convergence a simulation ends after this many games per K^2 pairs.
GAMES_CAP = 200
# Limit on the windows per seed and step, if all seeds together play no more games than that.
_MOST_WINDOWS, _MOST_GAMES = 8, 400_000
Z95 = 1.959963984540054


@dataclass(frozen=True)
class VerdictTable:
    """All verdicts between systems, by pair p = (first[p], second[p]) with verdicts.

    `verdicts[starts[p]:starts[p + 1]]` are 1, 0 or -1 for the first. `scores`, if given, are what games count for
    the first instead, from 0 to 1; None: the verdicts count 1, 0.5 or 0."""

    systems: tuple[str, ...]
    first: IntArray
    second: IntArray
    starts: IntArray
    verdicts: NDArray[np.int8]
    scores: FloatArray | None = None

    @classmethod
    def of(
        cls, systems: Sequence[str], a: ArrayLike, b: ArrayLike, verdict: ArrayLike, score: ArrayLike | None = None
    ) -> VerdictTable:
        """From rows: system numbers a and b and the verdict 1 (a is better), 0 or -1; either order of a pair. `score`
        is what a game counts for a instead of the verdict. Raises ValueError for one outside 0 to 1."""
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
        scores = None if score is None else np.asarray(score, dtype=np.float64)
        if scores is not None:
            if not ((scores >= 0) & (scores <= 1)).all():
                raise ValueError("the score of a game lies between 0 and 1")
            scores = np.where(turned, 1 - scores, scores)[order]
        return cls(tuple(systems), pairs // len(systems), pairs % len(systems), starts, signs[order], scores)

    def linked_part(self) -> tuple[VerdictTable, BoolArray]:
        """Return the table of the largest part of the systems that verdicts link, and the mask of its systems."""
        n = len(self.systems)
        beats = np.zeros((n, n), dtype=np.bool_)
        beats[self.first, self.second] = True
        counts = np.diff(self.starts)
        judgements = np.bincount(self.first, counts, n) + np.bincount(self.second, counts, n)
        kept = largest_component(beats, judgements)
        if kept.all():
            return self, kept
        pairs, place = kept[self.first], np.cumsum(kept) - 1
        rows = np.repeat(pairs, counts)
        starts = np.concatenate([[0], np.cumsum(counts[pairs])]).astype(np.int64)
        names = tuple(name for name, inside in zip(self.systems, kept.tolist(), strict=True) if inside)
        scores = None if self.scores is None else self.scores[rows]
        part = VerdictTable(
            names, place[self.first[pairs]], place[self.second[pairs]], starts, self.verdicts[rows], scores
        )
        return part, kept

    def equal_records(self) -> IntArray:
        """Return class numbers (systems,): systems in the same class have the same results against opponents of the
        same classes, so that only the randomness of the simulated games distinguishes them."""
        met: list[list[tuple[int, bytes]]] = [[] for _ in self.systems]
        scores = (self.verdicts + 1) / 2 if self.scores is None else self.scores
        for pair, (one, two) in enumerate(zip(self.first.tolist(), self.second.tolist(), strict=True)):
            values = np.sort(scores[self.starts[pair] : self.starts[pair + 1]])
            met[one].append((two, values.tobytes()))
            met[two].append((one, (1 - values[::-1]).tobytes()))
        classes, n_classes = [0] * len(met), 0
        while len(set(classes)) > n_classes:
            n_classes = len(set(classes))
            records = [
                (own, tuple(sorted((result, classes[other]) for other, result in opponents)))
                for own, opponents in zip(classes, met, strict=True)
            ]
            numbers = {record: number for number, record in enumerate(dict.fromkeys(records))}
            classes = [numbers[record] for record in records]
        return np.array(classes, dtype=np.int64)

    @property
    def n_pairs(self) -> int:
        """Number of pairs of systems with verdicts."""
        return len(self.first)

    def __len__(self) -> int:
        return len(self.verdicts)


@dataclass(frozen=True, slots=True)
class SystemSkill:
    """One system: `estimate` is its mean rating over the seeds with r +- 1.96 RD; `sd` is the standard deviation
    over seeds."""

    system: str
    estimate: Estimate
    deviation: float
    sd: float
    volatility: float
    games: float
    rank: int

    def as_dict(self) -> dict[str, Any]:
        """Return the row as JSON-safe values."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        sd = None if np.isnan(self.sd) else self.sd
        return plain | {"estimate": self.estimate.as_dict(), "sd": sd}


@dataclass(frozen=True)
class SkillRatings:
    """Systems from best to worst. `converged` is the share of seeds whose order converged, `games` their mean number of
    games.

    `ratings` (seeds, systems in the order of the table) are the single simulations. `tie` is None if games counted
    expected scores, which have no draws."""

    systems: tuple[SystemSkill, ...]
    ratings: FloatArray
    tie: TieRule | None
    seeds: int
    seed: int
    converged: float
    games: float

    @property
    def order(self) -> tuple[str, ...]:
        """Names from best to worst."""
        return tuple(row.system for row in self.systems)

    def get_rating(self, system: str) -> float:
        """Return the mean rating of a system; nan without games."""
        return next(row.estimate.value for row in self.systems if row.system == system)

    @property
    def signature(self) -> str:
        """Settings as one line."""
        counts = "outcome:expected" if self.tie is None else f"tie:{self.tie}"
        return f"method:glicko2|{counts}|tau:{TAU:g}|window:{WINDOW}|seeds:{self.seeds}|seed:{self.seed}"

    def as_dict(self) -> dict[str, Any]:
        """Return systems, settings and signature as JSON-safe values."""
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
    max_games: int | None = None,
    fixed_games: int | None = None,
) -> SkillRatings:
    """Rank systems by Glicko-2, simulated `seeds` times from one table of verdicts. Systems with equal records
    (`VerdictTable.equal_records`) get the mean of their ratings, because they differ only by chance.

    `tie`: how a game counts a tie.

    A game draws a pair uniformly among those with verdicts, then one of its verdicts. The order is recorded when
    every player has 50 plays; games continue until every player has 50 more; an unchanged order ends the simulation,
    otherwise the window repeats, up to `max_games` (default 200 K^2). `fixed_games` plays exactly that number
    instead. A seed gives the same result alone and among others. Systems outside the largest part that verdicts link
    have no rating: games cannot compare them. Where the table has scores of its own, games count these and there are
    no draws. Raises ValueError without verdicts, or games to play, or for scores with the paper's rule of draws."""
    if table.scores is not None and tie == "paper":
        raise ValueError("games that count expected scores have no draws, so no rule of draws either")
    if not table.n_pairs:
        raise ValueError("the table holds no verdict between two systems")
    whole, (table, kept) = table, table.linked_part()
    n = len(table.systems)
    cap = next((games for games in (fixed_games, max_games) if games is not None), GAMES_CAP * n * n)
    if cap < 1:
        raise ValueError(f"at least one game must be played, not {cap}")
    states = start(seeds, n)
    streams = [_Stream(table, np.random.default_rng([seed, number]), cap, fixed_games is not None)
               for number in range(seeds)]  # fmt: skip
    plays = np.zeros((seeds, n), dtype=np.int64)
    orders = np.full((seeds, n), -1)
    converged = np.zeros(seeds, dtype=np.bool_)
    running, ahead = np.arange(seeds), 1
    while len(running):
        block = _Block.of([streams[number] for number in running.tolist()], ahead)
        result = play_sequences(states[:, running], *block.games, block.ends, tie)
        # The order at the end of each window, behind the one before the block.
        seen = np.concatenate([orders[running][:, None], np.argsort(-result.numbers[0], axis=2, kind="stable")], axis=1)
        rests = (seen[:, 1:] == seen[:, :-1]).all(axis=2) & ~block.last & (fixed_games is None)
        stops = rests | block.last
        last = np.where(stops.any(axis=1), stops.argmax(axis=1), -1)
        rows = np.arange(len(running))
        states[:, running] = result.numbers[:, rows, last]
        plays[running] += result.plays[rows, last]
        orders[running] = seen[rows, last]
        converged[running] = rests[rows, last]
        games = int(block.ends[:, -1].sum())
        running = running[last < 0]
        ahead = min(2 * ahead, _MOST_WINDOWS, max(1, ahead * _MOST_GAMES // games))
    if not kept.all():
        linked, states = states, start(seeds, len(kept))
        states[:, :, kept] = linked
        linked_plays, plays = plays, np.zeros((seeds, len(kept)), dtype=np.int64)
        plays[:, kept] = linked_plays
    return _summary(whole, states, plays, converged, tie, seed, seeds)


def _summary(
    table: VerdictTable,
    states: FloatArray,
    plays: IntArray,
    converged: BoolArray,
    tie: TieRule,
    seed: int,
    seeds: int,
) -> SkillRatings:
    compared = np.isin(np.arange(len(table.systems)), [table.first, table.second])
    mu, phi2, _, variance = states
    ratings = SCALE * mu + RATING
    deviations, volatilities = (SCALE * np.sqrt(phi2)).mean(0), np.sqrt(variance).mean(0)
    games = plays.mean(0)
    rating = ratings.mean(0)
    spread = ratings.std(0, ddof=1) if seeds > 1 else np.full(len(rating), np.nan)
    # Systems with equal records differ only by the randomness of the games.
    alike = np.unique(np.stack([table.equal_records(), games > 0]), axis=1, return_inverse=True)[1].reshape(-1)
    size = np.bincount(alike)
    rating, spread, deviations, volatilities = (
        (np.bincount(alike, weights=column) / size)[alike] for column in (rating, spread, deviations, volatilities)
    )
    rows: list[SystemSkill] = []
    for place in np.lexsort((np.array(table.systems), -rating, games == 0)).tolist():
        if games[place] == 0:
            estimate = Estimate.undefined(NEVER_COMPARED if compared[place] else "never compared")
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
    return SkillRatings(
        tuple(rows), ratings, tie if table.scores is None else None, seeds, seed, float(converged.mean()),
        float(plays.sum(axis=1).mean() / 2),
    )  # fmt: skip


class _Stream:
    """Games drawn on demand from a seed; they do not depend on any result."""

    def __init__(self, table: VerdictTable, rng: np.random.Generator, cap: int, fixed: bool) -> None:
        self.table, self.rng, self.left, self.fixed = table, rng, cap, fixed
        self.players = np.unique(np.concatenate([table.first, table.second]))
        none = np.zeros(0, dtype=np.int64)
        self.one, self.two, self.score = none, none, np.zeros(0)

    def take(self, windows: int) -> tuple[IntArray, IntArray, FloatArray, list[int]]:
        """Return first, second and score of the games of `windows` windows, and their sizes; fewer at the limit of
        games.

        A window ends when every player has 50 more plays; with a fixed number of games it has no meaning."""
        sizes = self._parts(windows) if self.fixed else self._sizes(windows)
        n = sum(sizes)
        result = self.one[:n], self.two[:n], self.score[:n], sizes
        self.one, self.two, self.score = self.one[n:], self.two[n:], self.score[n:]
        self.left -= n
        return result

    def _parts(self, windows: int) -> list[int]:
        if not len(self.one):
            self._draw(self.left)
        size = WINDOW * len(self.players)
        return [min(size, self.left - done) for done in range(0, min(self.left, windows * size), size)]

    def _sizes(self, windows: int) -> list[int]:
        sizes: list[int] = []
        seen, begin, order = np.zeros(len(self.players), dtype=np.int64), 0, None
        while len(sizes) < windows and begin < self.left:
            if order is None:
                flat = np.stack([self.one, self.two], axis=1).ravel()
                # NumPy sorts 16-bit integers by counting.
                order = np.argsort(flat.astype(np.int16), kind="stable")
                counts = np.bincount(flat, minlength=len(self.table.systems))[self.players]
                starts = np.cumsum(counts) - counts
            if len(flat) and (counts - seen).min() >= WINDOW:
                end = min(self.left, int(order[starts + seen + WINDOW - 1].max()) // 2 + 1)
            elif len(self.one) >= self.left:
                end = self.left
            else:
                for _ in range(1 + (windows - len(sizes)) // 3):
                    self._draw(2 * WINDOW * len(self.players))
                order = None
                continue
            seen += np.bincount(flat[2 * begin : 2 * end], minlength=len(self.table.systems))[self.players]
            sizes.append(end - begin)
            begin = end
        return sizes

    def _draw(self, n: int) -> None:
        table = self.table
        pair = self.rng.integers(table.n_pairs, size=n)
        begins = table.starts[pair]
        counts = table.starts[pair + 1] - begins
        row = begins + np.minimum((self.rng.random(n) * counts).astype(np.int64), counts - 1)
        self.one = np.concatenate([self.one, table.first[pair]])
        self.two = np.concatenate([self.two, table.second[pair]])
        drawn = (table.verdicts[row].astype(np.float64) + 1) / 2 if table.scores is None else table.scores[row]
        self.score = np.concatenate([self.score, drawn])


@dataclass(frozen=True)
class _Block:
    """The next windows for a set of seeds: `games` are first, second and score (rows, games), -1 behind the end of a
    row; `ends` (rows, windows) where each window ends; `last` whether the games allowed end with it."""

    games: tuple[IntArray, IntArray, FloatArray]
    ends: IntArray
    last: BoolArray

    @classmethod
    def of(cls, streams: Sequence[_Stream], windows: int) -> _Block:
        parts = [stream.take(windows) for stream in streams]
        sizes = np.array([own + [0] * (windows - len(own)) for *_, own in parts])
        ends = sizes.cumsum(axis=1)
        left = np.array([[stream.left] for stream in streams])
        # After the last window all allowed games are played.
        last = (ends == ends[:, -1:]) & (left == 0)
        shape = (len(streams), int(ends[:, -1].max()))
        one, two, score = np.full(shape, -1), np.full(shape, -1), np.zeros(shape)
        for number, (own_one, own_two, own_score, _) in enumerate(parts):
            size = len(own_one)
            one[number, :size], two[number, :size], score[number, :size] = own_one, own_two, own_score
        return cls((one, two, score), ends, last)
