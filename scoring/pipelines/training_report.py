"""Report a training: the run's progress and log, the training curve, the time left over all models and phases, and the
checkpoints that an earlier attempt left in the work folder (the training finds its checkpoints itself)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalapp.common.runner import RunContext
from evalapp.common.templatetags.evalapp import span

from ..models import CurvePoint
from .shared import to_json

if TYPE_CHECKING:
    from scoring.ml import TrainingProgress

#: Approximate number of points of a curve per phase.
CURVE_POINTS = 200
FLUSH_SECONDS = 1.0
#: Maximum number of figures of an evaluation in the log.
MAX_FIGURES = 6


@dataclass
class Reporter:
    """Callback of a training, called after every step. Points are written once per second and before a checkpoint: a
    retried training does not repeat the steps before it."""

    context: RunContext
    time_left: TimeLeft | None = None
    phase: str = ""
    epoch: int = -1
    losses: list[float] = field(default_factory=list)
    points: list[CurvePoint] = field(default_factory=list)
    written: float = 0.0
    last_step: int = 0

    def __call__(self, progress: TrainingProgress) -> None:
        if progress.phase != self.phase:
            self._flush_losses()
            self.phase, self.epoch = progress.phase, -1
            self.context.log(f"{progress.phase} …")
        self._record_loss(progress)
        self._log_evaluation(progress)
        if progress.saving or time.monotonic() - self.written > FLUSH_SECONDS:
            self.flush()
        self._show_progress(progress)

    def _show_progress(self, progress: TrainingProgress) -> None:
        """Show the progress of the whole run, and that of the phase in words; without an estimate only the phase's."""
        _model, _phase, done, total = read_progress(progress)
        unit = "steps" if progress.loss is not None else "texts"
        estimate = self.time_left.update(progress) if self.time_left is not None else None
        if estimate is None:
            self.context.progress(done, total, f"{unit} of this phase", progress.phase)
            return
        share, left = estimate
        counts = f"{done:,} of {total:,}" if total is not None else f"{done:,}"
        self.context.progress(int(100 * share), 100, "%", f"{progress.phase}: {counts} {unit}", left=left)

    def _record_loss(self, progress: TrainingProgress) -> None:
        if progress.loss is None:
            return
        self.losses.append(progress.loss)
        self.last_step = progress.done
        stride = max(1, (progress.total or progress.done) // CURVE_POINTS)
        if progress.done % stride == 0 or progress.done == progress.total:
            self._flush_losses()

    def _flush_losses(self) -> None:
        losses = [loss for loss in self.losses if to_json(loss) is not None]
        if losses:
            mean = sum(losses) / len(losses)
            self.points.append(
                CurvePoint(run=self.context.run, series=self.phase[:100], step=self.last_step, loss=mean)
            )
        self.losses.clear()

    def _log_evaluation(self, progress: TrainingProgress) -> None:
        """Log one line per epoch with the figures of its evaluation, except those that an earlier attempt logged."""
        epoch = int(progress.evaluated or 0)
        if epoch == self.epoch:
            return
        if self.epoch >= 0 and epoch and progress.metrics:
            self.context.log(f"{progress.phase}, after epoch {progress.evaluated:g}: {_format_figures(progress)}")
        self.epoch = epoch

    def flush(self) -> None:
        """Write the points, except those that an earlier attempt wrote."""
        CurvePoint.objects.bulk_create(self.points, ignore_conflicts=True)
        self.points.clear()
        self.written = time.monotonic()


def _format_figures(progress: TrainingProgress) -> str:
    """Format the foremost figures of an evaluation: with many aspects there are dozens."""
    metrics = progress.metrics
    names = [name for name in progress.foremost if name in metrics][:MAX_FIGURES]
    figures = ", ".join(f"{name} {metrics[name]:.4g}" for name in names)
    more = len(metrics) - len(names)
    return f"{figures}, and {more:,} more: see the card" if more else figures


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


RESTARTS = "No checkpoint was saved yet: {} starts from the beginning."


def describe_checkpoints(folder: Path, folds: int) -> list[str]:
    """Return a line for the completed folds, and one for each phase of the incomplete models."""
    from scoring.ml.base import ARTIFACT

    if folds < 2:
        return _describe_model(folder, "") or [RESTARTS.format("it")]
    models = [folder / f"fold-{number}" for number in range(folds)]
    done = [model for model in models if (model / "model" / ARTIFACT).is_file()]
    lines = []
    if done:
        lines.append(
            f"Fold 1 of {folds} is done." if len(done) == 1 else f"Folds 1 to {len(done)} of {folds} are done."
        )
    for number, model in enumerate(models, start=1):
        if model not in done and (model / "work").is_dir():
            name = f"fold {number} of {folds}"
            lines += _describe_model(model / "work", name) or ([RESTARTS.format(name)] if done else [])
    return lines or [RESTARTS.format("it")]


def _describe_model(work: Path, name: str) -> list[str]:
    """Return a line for each phase that has a checkpoint, in the order of writing."""
    marks = [(mark, phase) for phase in work.iterdir() if phase.is_dir() and (mark := _find_mark(phase)) is not None]
    marks.sort(key=lambda pair: (pair[0].stat().st_mtime_ns, pair[1].name))
    return [_describe_mark(mark, ", ".join(filter(None, (name, phase.name)))) for mark, phase in marks]


def _find_mark(phase: Path) -> Path | None:
    """Return the file with the progress of a phase."""
    from scoring.ml.training.curve import DONE
    from scoring.ml.training.finetune import COMPLETE
    from scoring.ml.training.loop import STATE

    complete = [path for path in phase.glob("checkpoint-*") if (path / COMPLETE).is_file()]
    newest = max(complete, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
    marks = (phase / DONE, phase / f"{STATE}.json", *([newest / "trainer_state.json"] if newest is not None else []))
    return next((path for path in marks if path.is_file()), None)


def _describe_mark(mark: Path, where: str) -> str:
    from scoring.ml.training.curve import DONE

    state: dict[str, Any] = json.loads(mark.read_text(encoding="utf-8"))
    if mark.name == DONE:
        return f"All {state['steps']:,} steps are done ({where})."
    # The keys of our loop, or of the Trainer of transformers; loops of version 0.1 have no total.
    step, total = state.get("steps", state.get("global_step", 0)), state.get("total", state.get("max_steps"))
    return f"Continues at step {step:,}{f' of {total:,}' if total else ''} ({where})."
