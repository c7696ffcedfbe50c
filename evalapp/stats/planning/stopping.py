"""The early-stopping rule of the comparative evaluator, on counts of verdicts.

`evalapp.client.callback` applies it while a model trains, `scoring.ml` to finished runs.

Explained in docs/explanation/statistics/comparisons.md#early-stopping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Identifies a checkpoint: its training step, or any name.
Checkpoint: TypeAlias = int | str

#: Number of earlier checkpoints the newest one is compared with, and number of consecutive lost checks that ends
#: training.
PREVIOUS = 2
PATIENCE = 5


def from_either_side(
    compare: Callable[[list[Any], list[Any]], ArrayLike], a: Sequence[Any], b: Sequence[Any], *, seed: int = 13
) -> NDArray[np.float64]:
    """Return (n,) verdicts of a[i] over b[i] as given by `compare`, which sees half of the pairs in reverse order.

    The reversed pairs are drawn by `seed`. A comparer with a preference for the first place would otherwise always
    favour the newest checkpoint, or always the older one."""
    turned = np.random.default_rng(seed).random(len(a)) < 0.5
    sides = [(y, x) if turn else (x, y) for x, y, turn in zip(a, b, turned.tolist(), strict=True)]
    verdicts = np.asarray(compare([x for x, _ in sides], [y for _, y in sides]), dtype=np.float64)
    if verdicts.shape != turned.shape:
        raise ValueError(f"compare gave verdicts of shape {verdicts.shape} for {len(a)} pairs")
    return np.where(turned, -verdicts, verdicts)


@dataclass(frozen=True)
class Check:
    """Comparison of the newest checkpoint with its predecessors: wins, ties and losses over all predecessors and
    inputs."""

    checkpoint: Checkpoint
    wins: int = 0
    ties: int = 0
    losses: int = 0

    @classmethod
    def from_verdicts(cls, checkpoint: Checkpoint, verdicts: ArrayLike) -> Check:
        """Count verdicts of the newest checkpoint over earlier ones: > 0 won, 0 tie, < 0 lost, nan undecided (left
        out).

        The array may have any shape, for example (k, n) for k predecessors and n inputs."""
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
        """Return whether the win rate is smaller than the lose rate."""
        return self.wins < self.losses


class StoppingRule:
    """Stop when the newest checkpoint keeps losing against its predecessors.

    At each check the newest checkpoint is compared with each of the previous k = 2 on the same n inputs. With win
    rate w_t and lose rate l_t over these k n comparisons, training stops at the first t with

        w_s < l_s   for s = t - patience + 1, ..., t

    and the checkpoint preceding this run of `patience` checks, that of t - patience, is selected. A check without
    comparisons (the first one; one whose evaluator did not answer in time) neither lengthens nor ends a run. Source:
    Zhou and Xu 2020, Learning to Compare for Better Training and Evaluation of Open Domain Natural Language Generation
    Models, with k = 2, n = 1000 and patience 5. The paper does not say how the k predecessors are combined; here their
    comparisons are pooled."""

    def __init__(self, patience: int = PATIENCE) -> None:
        if patience < 1:
            raise ValueError(f"patience must be at least 1, not {patience}")
        self.patience = patience
        self.checks: list[Check] = []
        self._kept: Checkpoint | None = None
        self._worse = 0

    def add(self, check: Check) -> bool:
        """Add the next check, in order of training, and return whether to stop.

        Raises ValueError after the stop."""
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
        """Number of consecutive lost checks so far."""
        return self._worse

    @property
    def best(self) -> Checkpoint | None:
        """The checkpoint before the current run of lost checks; the newest one if there is no such run; None before the
        first check, or if the first check was lost."""
        return self._kept


@dataclass(frozen=True)
class Stop:
    """Result of the rule: the selected checkpoint `best`, and the check `at` that ended training (None if none did)."""

    best: Checkpoint | None
    at: Checkpoint | None
    checks: int


def early_stop(checks: Iterable[Check], *, patience: int = PATIENCE) -> Stop:
    """Apply `StoppingRule` to the checks of a finished training, in order; checks after the stop are ignored.

    `checks`: measured on dev data; `patience`: number of checks without improvement after which training stops."""
    rule = StoppingRule(patience)
    for check in checks:
        if rule.add(check):
            return Stop(rule.best, check.checkpoint, len(rule.checks))
    return Stop(rule.best, None, len(rule.checks))
