"""The early-stopping rule of the comparative evaluator on plain counts of verdicts. Generating, comparing and
training are elsewhere: `evalapp.client.callback` uses the rule while a model trains, `scoring.ml` on finished runs.

Explained in docs/explanation/statistics/comparisons.md#early-stopping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: What names a checkpoint: its training step, or any name.
Checkpoint: TypeAlias = int | str

#: With how many earlier checkpoints the newest is compared, and how many checks in a row must be lost.
PREVIOUS = 2
PATIENCE = 5


def from_either_side(
    compare: Callable[[list[Any], list[Any]], ArrayLike], a: Sequence[Any], b: Sequence[Any], *, seed: int = 13
) -> NDArray[np.float64]:
    """(n,) verdicts of a[i] over b[i] as `compare` gives them, half of the pairs, drawn by seed, asked the other way
    round. A comparer that favours the first place would else always favour the newest, or hold it back."""
    turned = np.random.default_rng(seed).random(len(a)) < 0.5
    sides = [(y, x) if turn else (x, y) for x, y, turn in zip(a, b, turned.tolist(), strict=True)]
    verdicts = np.asarray(compare([x for x, _ in sides], [y for _, y in sides]), dtype=np.float64)
    if verdicts.shape != turned.shape:
        raise ValueError(f"compare gave verdicts of shape {verdicts.shape} for {len(a)} pairs")
    return np.where(turned, -verdicts, verdicts)


@dataclass(frozen=True)
class Check:
    """The newest checkpoint against its predecessors: how many comparisons it won, tied and lost, over all
    predecessors and all inputs together."""

    checkpoint: Checkpoint
    wins: int = 0
    ties: int = 0
    losses: int = 0

    @classmethod
    def from_verdicts(cls, checkpoint: Checkpoint, verdicts: ArrayLike) -> Check:
        """From verdicts of the newest over an earlier one: > 0 won, 0 tie, < 0 lost; of any shape, for example
        (k, n) for k predecessors and n inputs. nan is a comparison that was not decided and is left out."""
        signs = np.asarray(verdicts, dtype=np.float64).ravel()
        counts = (int((signs > 0).sum()), int((signs == 0).sum()), int((signs < 0).sum()))
        return cls(checkpoint, *counts)

    @property
    def n(self) -> int:
        return self.wins + self.ties + self.losses

    @property
    def win_rate(self) -> float:
        """wins / (wins + ties + losses); nan without comparisons."""
        return self.wins / self.n if self.n else float("nan")

    @property
    def lose_rate(self) -> float:
        """losses / (wins + ties + losses); nan without comparisons."""
        return self.losses / self.n if self.n else float("nan")

    @property
    def is_worse(self) -> bool:
        """Whether the win rate is smaller than the lose rate."""
        return self.wins < self.losses


class StoppingRule:
    """Stop when the newest checkpoint keeps losing against its predecessors.

    At each check the newest checkpoint is compared with each of the previous k = 2 on the same n inputs. With win
    rate w_t and lose rate l_t over these k n comparisons, training stops at the first t with

        w_s < l_s   for s = t - patience + 1, ..., t

    and the checkpoint preceding this run of `patience` checks, the one of t - patience, is kept. A check without
    comparisons (the first one; one whose evaluator did not answer in time) neither lengthens nor ends a run.
    Source: Zhou and Xu 2020, Learning to Compare for Better Training and Evaluation of Open Domain Natural Language
    Generation Models, with k = 2, n = 1000 and patience 5. The paper does not say how the k predecessors are
    joined; here their comparisons are counted together.
    """

    def __init__(self, patience: int = PATIENCE) -> None:
        if patience < 1:
            raise ValueError(f"patience must be at least 1, not {patience}")
        self.patience = patience
        self.checks: list[Check] = []
        self._kept: Checkpoint | None = None
        self._worse = 0

    def add(self, check: Check) -> bool:
        """Take the next check, in the order of training; returns whether to stop. Raises ValueError after the stop."""
        if self.should_stop:
            raise ValueError(f"the rule has stopped already; it keeps {self._kept!r}")
        self.checks.append(check)
        if check.is_worse:
            self._worse += 1
        elif check.n or not self._worse:
            self._worse, self._kept = 0, check.checkpoint
        return self.should_stop

    @property
    def should_stop(self) -> bool:
        return self._worse >= self.patience

    @property
    def run_length(self) -> int:
        """How many checks in a row have been lost so far."""
        return self._worse

    @property
    def best(self) -> Checkpoint | None:
        """The checkpoint preceding the present run of lost checks; the newest when there is no such run; None
        before the first check, or when the first was lost already."""
        return self._kept


@dataclass(frozen=True)
class Stop:
    """Where the rule ends: `best` is kept, `at` is the check that ended training, None if it never came to that."""

    best: Checkpoint | None
    at: Checkpoint | None
    checks: int


def early_stop(checks: Iterable[Check], *, patience: int = PATIENCE) -> Stop:
    """The rule of `StoppingRule` on the checks of a finished training, in order; later ones are not looked at."""
    rule = StoppingRule(patience)
    for check in checks:
        if rule.add(check):
            return Stop(rule.best, check.checkpoint, len(rule.checks))
    return Stop(rule.best, None, len(rule.checks))
