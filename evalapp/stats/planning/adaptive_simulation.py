"""Simulated savings of adaptive pair choice: judgements drawn with and without it, from a model or a replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import FloatArray, IntArray
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.planning.adaptive import FLOOR, Goal, PairState, draw_pair, pair_chances
from evalapp.stats.ranking.bradley_terry import ELO, probabilities
from evalapp.stats.resampling.bootstrap import percentile_interval

#: Returns the points (1, 0.5, 0) of the first of two systems.
Judge: TypeAlias = Callable[[int, int, np.random.Generator], float]
_RESAMPLES = 1000


@dataclass(frozen=True)
class Trace:
    """Judgements in the order of the requests: systems, points of the first, propensity of the pair. `ratings` (looks,
    k) are the estimated theta after the numbers of judgements in `looks`."""

    first: IntArray
    second: IntArray
    points: FloatArray
    propensity: FloatArray
    looks: tuple[int, ...]
    ratings: FloatArray


@dataclass(frozen=True)
class Saving:
    """Errors of random and adaptive choice after the numbers of judgements in `looks`, averaged over `runs`.

    `saved` is the share of judgements that adaptive choice saves to reach the final error of random choice."""

    goal: Goal
    floor: float
    looks: tuple[int, ...]
    random: tuple[float, ...]
    adaptive: tuple[float, ...]
    saved: Estimate
    runs: int
    seed: int

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON-safe values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"saved": self.saved.as_dict()}

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        if not self.saved.is_defined:
            return f"The saving of adaptive choice is undefined: {self.saved.note}."
        low, high = (f"{100 * end:.0f}" for end in (self.saved.low, self.saved.high))
        return (
            f"Adaptive choice needed {100 * self.saved.value:.0f} % fewer judgements ({low} to {high}) than random "
            f"choice to reach the error that random choice has after {self.looks[-1]} ({self.runs} simulated runs)."
        )


@dataclass(frozen=True, slots=True)
class PairChoice:
    """Settings of the choice of the next pair: `floor` 1 is random choice. Probabilities are recomputed after `every`
    judgements, as when several annotators work at the same time."""

    goal: Goal = "ranking"
    floor: float = FLOOR
    every: int = 1


DEFAULT_CHOICE = PairChoice()


def simulate_choice(
    n_systems: int,
    judge: Judge,
    n_judgements: int,
    *,
    choice: PairChoice = DEFAULT_CHOICE,
    looks: Sequence[int] = (),
    seed: int = 13,
) -> Trace:
    """Simulate one run: pairs are chosen one after another and judged by `judge`; ratings are recorded at `looks`."""
    rng, answers = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    state, ratings = PairState(n_systems), []
    pairs = np.empty((n_judgements, 2), dtype=np.int64)
    points, propensity = np.empty(n_judgements), np.empty(n_judgements)
    for number in range(n_judgements):
        if number % choice.every == 0:
            chances = pair_chances(state, floor=choice.floor, goal=choice.goal)
        chosen = draw_pair(*chances, rng)
        pairs[number], propensity[number] = chosen[:2], chosen.propensity
        points[number] = judge(chosen.a, chosen.b, answers)
        state.add(chosen.a, chosen.b, float(points[number]))
        if number + 1 in looks:
            ratings.append(state.theta.copy())
    return Trace(pairs[:, 0], pairs[:, 1], points, propensity, tuple(looks), np.array(ratings))


def simulate_saving(
    theta: ArrayLike,
    n_judgements: int,
    *,
    choice: PairChoice = DEFAULT_CHOICE,
    log_nu: float = -1.0,
    n_looks: int = 12,
    runs: int = 20,
    seed: int = 13,
) -> Saving:
    """Compare random and adaptive choice on systems of true strength `theta`, with verdicts from Davidson's model with
    tie parameter e^log_nu.

    `n_judgements`: length of a run, with the error measured at `n_looks` points; `choice`: settings of the adaptive
    choice; `runs`: number of runs; `seed`: seed of the first run.

    The error for "ranking" is the share of system pairs in the wrong order; for "best" it is the points (400 / ln 10
    theta) by which the top-ranked system is worse than the best. The interval of the saving comes from resampled runs.
    """
    true = np.asarray(theta, dtype=np.float64)
    looks = tuple(sorted({max(1, round(n_judgements * k / n_looks)) for k in range(1, n_looks + 1)}))

    def judge(a: int, b: int, rng: np.random.Generator) -> float:
        win, tie, _ = probabilities("davidson", np.array(true[a] - true[b]), np.array(log_nu))
        drawn = rng.random()
        return 1.0 if drawn < win else 0.5 if drawn < win + tie else 0.0

    errors = np.empty((2, runs, len(looks)))
    for run in range(runs):
        for way, share in enumerate((1.0, choice.floor)):
            trace = simulate_choice(
                len(true),
                judge,
                n_judgements,
                looks=looks,
                seed=seed + 1000 * run,
                choice=replace(choice, floor=share),
            )
            errors[way, run] = [_error(row, true, choice.goal) for row in trace.ratings]
    random, adaptive = errors.mean(axis=1)
    value = saved_share(looks, random, adaptive)
    drawn = np.random.default_rng([seed, 2]).integers(runs, size=(_RESAMPLES, runs))
    again = np.array([saved_share(looks, *errors[:, rows].mean(axis=1)) for rows in drawn])
    if np.isnan(value):
        saved = Estimate.undefined("the error of adaptive choice never came down to that of random choice", runs)
    else:
        # In a resample where adaptive choice never reached the error, it saved nothing.
        saved = Estimate(value, *percentile_interval(np.nan_to_num(again, nan=0.0)), runs)
    return Saving(choice.goal, choice.floor, looks, tuple(random.tolist()), tuple(adaptive.tolist()), saved, runs, seed)


def saved_share(looks: Sequence[int], random: FloatArray, adaptive: FloatArray) -> float:
    """Return 1 - n / N, where n adaptive judgements reach the error that random choice has after all N.

    The error is interpolated linearly between two looks. nan if adaptive choice never reaches it."""
    target = float(random[-1])
    reached = np.flatnonzero(adaptive <= target)
    if not len(reached):
        return float("nan")
    place = int(reached[0])
    if place == 0:
        return 1 - looks[0] / looks[-1]
    above, below = float(adaptive[place - 1]), float(adaptive[place])
    part = (above - target) / (above - below)
    return float(1 - (looks[place - 1] + part * (looks[place] - looks[place - 1])) / looks[-1])


def _error(found: FloatArray, true: FloatArray, goal: Goal) -> float:
    if goal == "best":
        return float(ELO * (true.max() - true[found.argmax()]))
    one, two = np.triu_indices(len(true), 1)
    distinct = true[one] != true[two]
    wrong = np.sign(found[one] - found[two]) != np.sign(true[one] - true[two])
    return float(wrong[distinct].mean()) if distinct.any() else 0.0
