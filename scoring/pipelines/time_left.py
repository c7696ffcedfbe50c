"""Estimate how much of a training is done and how long the rest takes, over all models and phases."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalapp.common.templatetags.evalapp import span

if TYPE_CHECKING:
    from scoring.ml import TrainingProgress

#: The phase of a model in cross-fitting. Its counts are multiples, as if all models were equal.
_FOLD = re.compile(r"fold (\d+) of (\d+), (.*)", re.DOTALL)
#: Seconds of a phase before its speed is used.
MIN_SECONDS = 0.2


@dataclass
class TimeLeft:
    """Starts with the estimate of the dry check and corrects it by measured speeds and durations of whole models."""

    models: int
    steps: int
    seconds: float | None
    #: The part of `seconds` after the last step, in which the held-out part is scored.
    afterwards: float = 0.0
    #: False if an earlier attempt has completed models: they load at once, so their duration says nothing.
    is_new: bool = True
    clock: Callable[[], float] = time.monotonic
    #: The current model and phase, and their start.
    model: int = -1
    phase: str = ""
    model_start: float = 0.0
    phase_start: float = 0.0
    first_done: int = 0
    #: Steps in earlier phases of this model, and in this phase.
    earlier_steps: int = 0
    phase_steps: int = 0
    durations: list[float] = field(default_factory=list)
    share: float = 0.0

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any], *, is_new: bool) -> TimeLeft:
        return cls(plan["models"], plan["steps"], plan["seconds"], plan.get("afterwards", 0.0), is_new)

    def update(self, progress: TrainingProgress) -> tuple[float, float] | None:
        """Return the share done, which never decreases, and the seconds left; None if they are unknown."""
        number, phase, done, total = read_progress(progress)
        now = self.clock()
        self._move(number, phase, done, now)
        whole = self._estimate_model(now, done, total, takes_steps=progress.loss is not None, phase=phase)
        if not whole:
            return None
        left = max(0.0, whole - (now - self.model_start)) + max(0, self.models - 1 - number) * whole
        self.share = max(self.share, 1 - left / (whole * self.models))
        return self.share, left

    def _move(self, number: int, phase: str, done: int, now: float) -> None:
        if number != self.model:
            if self.model >= 0 and self.is_new:
                self.durations.append(now - self.model_start)
            self.is_new = self.is_new or self.model >= 0
            self.model, self.model_start, self.phase = number, now, ""
            self.earlier_steps = self.phase_steps = 0
        if phase != self.phase:
            self.earlier_steps += self.phase_steps
            self.phase_steps = 0
        if phase != self.phase or done < self.first_done:
            self.phase, self.phase_start, self.first_done = phase, now, done

    def _estimate_model(
        self, now: float, done: int, total: int | None, *, takes_steps: bool, phase: str
    ) -> float | None:
        """Return the seconds of a model from start to end."""
        spent, gained = now - self.phase_start, done - self.first_done
        per_unit = spent / gained if gained > 0 and spent > MIN_SECONDS else None
        so_far = now - self.model_start
        if takes_steps:
            self.phase_steps = total or done
        to_phase_end = so_far if per_unit is None or total is None else so_far + (total - done) * per_unit
        if takes_steps and per_unit is not None and total is not None:
            later_steps = max(0, self.steps // self.models - self.earlier_steps - total)
            measured = to_phase_end + later_steps * per_unit + self.afterwards / self.models
            return measured if self.seconds is not None else self._mean_duration(measured)
        if self.durations:
            return self._mean_duration(to_phase_end)
        if self.seconds is None:
            return None
        # The phases after the steps are measured; before the steps only the check has an estimate.
        is_after_steps = self.earlier_steps and phase and per_unit is not None
        return to_phase_end if is_after_steps else max(to_phase_end, self.seconds / self.models)

    def _mean_duration(self, least: float) -> float | None:
        return max(least, sum(self.durations) / len(self.durations)) if self.durations else None


def sum_ranges(ranges: Sequence[tuple[float, float] | None]) -> dict[str, Any]:
    """Return the shortest and longest time of all models together, in seconds and in words."""
    known = [one for one in ranges if one is not None]
    if len(known) < len(ranges):
        return {"seconds_range": None, "time": "unknown before the start"}
    low, high = (sum(one[end] for one in known) for end in (0, 1))
    return {"seconds_range": [low, high], "time": f"{span(low)} to {span(high)}"}


def read_progress(progress: TrainingProgress) -> tuple[int, str, int, int | None]:
    """Return the number of the model from 0, its phase, and how much of the phase is done, of how much."""
    fold = _FOLD.fullmatch(progress.phase)
    if fold is None:
        return 0, progress.phase, progress.done, progress.total
    number, models = int(fold[1]) - 1, int(fold[2])
    if progress.total is None:
        return number, fold[3], progress.done, None
    total = progress.total // models
    return number, fold[3], progress.done - number * total, total
