"""Records what reaches the optimiser during a training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook


@dataclass(frozen=True)
class Step:
    """One step: rate and decay of each parameter group, and the norm of all gradients as used."""

    rates: tuple[float, ...]
    decays: tuple[float, ...]
    norm: float

    @property
    def rate(self) -> float:
        """The one rate of all groups."""
        (rate,) = set(self.rates)
        return rate


@contextmanager
def steps_taken() -> Iterator[list[Step]]:
    """Collects the steps of all optimisers within the context."""
    found: list[Step] = []

    def note(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        groups = [group for group in optimizer.param_groups if group["params"]]
        gradients = [p.grad for group in groups for p in group["params"] if p.grad is not None]
        norm = float(torch.stack([gradient.norm() for gradient in gradients]).norm())
        rates, decays = (tuple(float(group[name]) for group in groups) for name in ("lr", "weight_decay"))
        found.append(Step(rates, decays, norm))

    handle = register_optimizer_step_pre_hook(note)
    try:
        yield found
    finally:
        handle.remove()
