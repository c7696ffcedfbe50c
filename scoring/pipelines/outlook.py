"""How far a whole training is, and about how long it will still take: every model and every phase of it, where each
phase tells of itself alone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalapp.common.templatetags.evalapp import span

if TYPE_CHECKING:
    from scoring.ml import TrainingProgress

#: How a cross-fitting names the phases of its models; their counts are those of all models as if they were equal.
_FOLD = re.compile(r"fold (\d+) of (\d+), (.*)", re.DOTALL)
#: A speed is believed after so many seconds of a phase.
LEAST_SECONDS = 0.2


@dataclass
class Outlook:
    """What the dry check found, corrected by what was measured: the speed of the steps, the duration of whole models.
    Without either there is none. `is_new`: nothing of it was done by an earlier attempt, whose models are read in a
    moment and tell no duration."""

    models: int
    steps: int
    seconds: float | None
    #: Of the seconds, those after the last step: scores of the held-out part.
    afterwards: float = 0.0
    is_new: bool = True
    clock: Callable[[], float] = time.monotonic
    #: Where it stands: the model, its phase, and when each began.
    model: int = -1
    phase: str = ""
    model_began: float = 0.0
    phase_began: float = 0.0
    first: int = 0
    #: Steps of the model's phases before this one; whether this one takes steps, and of how many.
    steps_before: int = 0
    total_of_steps: int = 0
    durations: list[float] = field(default_factory=list)
    share: float = 0.0

    @classmethod
    def of(cls, plan: Mapping[str, Any], *, is_new: bool) -> Outlook:
        return cls(plan["models"], plan["steps"], plan["seconds"], plan.get("afterwards", 0.0), is_new)

    def tell(self, progress: TrainingProgress) -> tuple[float, float] | None:
        """The share that is done, which never gets less, and the seconds left; None where nobody knows."""
        number, phase, done, total = of_model(progress)
        now = self.clock()
        self._move(number, phase, done, now)
        whole = self._whole(now, done, total, takes_steps=progress.loss is not None, phase=phase)
        if not whole:
            return None
        left = max(0.0, whole - (now - self.model_began)) + max(0, self.models - 1 - number) * whole
        self.share = max(self.share, 1 - left / (whole * self.models))
        return self.share, left

    def _move(self, number: int, phase: str, done: int, now: float) -> None:
        if number != self.model:
            if self.model >= 0 and self.is_new:
                self.durations.append(now - self.model_began)
            self.is_new = self.is_new or self.model >= 0
            self.model, self.model_began, self.phase = number, now, ""
            self.steps_before = self.total_of_steps = 0
        if phase != self.phase or done < self.first:
            if phase != self.phase:
                self.steps_before += self.total_of_steps
                self.total_of_steps = 0
            self.phase, self.phase_began, self.first = phase, now, done

    def _whole(self, now: float, done: int, total: int | None, *, takes_steps: bool, phase: str) -> float | None:
        """Seconds of one model from its begin to its end."""
        spent, gained = now - self.phase_began, done - self.first
        each = spent / gained if gained > 0 and spent > LEAST_SECONDS else None
        so_far = now - self.model_began
        if takes_steps:
            self.total_of_steps = total or done
        present = so_far if each is None or total is None else so_far + (total - done) * each
        if takes_steps and each is not None and total is not None:
            later = max(0, self.steps // self.models - self.steps_before - total)
            measured = present + later * each + self.afterwards / self.models
            return measured if self.seconds is not None else self._mean(measured)
        if self.durations:
            return self._mean(present)
        if self.seconds is None:
            return None
        # After the steps what is left is known; before them the check says it.
        return present if self.steps_before and phase and each is not None else max(present, self.seconds / self.models)

    def _mean(self, least: float) -> float | None:
        return max(least, sum(self.durations) / len(self.durations)) if self.durations else None


def sum_ranges(ranges: Sequence[tuple[float, float] | None]) -> dict[str, Any]:
    """Shortest and longest time of all models together, as `seconds_range` and in words."""
    known = [one for one in ranges if one is not None]
    if len(known) < len(ranges):
        return {"seconds_range": None, "time": "cannot be known before it begins"}
    low, high = (sum(one[end] for one in known) for end in (0, 1))
    return {"seconds_range": [low, high], "time": f"{span(low)} to {span(high)}"}


def of_model(progress: TrainingProgress) -> tuple[int, str, int, int | None]:
    """Which model it is, from 0, its phase, and how much of the phase is done, of how much."""
    found = _FOLD.fullmatch(progress.phase)
    if found is None:
        return 0, progress.phase, progress.done, progress.total
    number, models = int(found[1]) - 1, int(found[2])
    if progress.total is None:
        return number, found[3], progress.done, None
    total = progress.total // models
    return number, found[3], progress.done - number * total, total
