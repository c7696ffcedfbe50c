"""Report the progress of a training: the run's progress, its log, and the training curve."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalapp.common.runner import RunContext

from ..models import CurvePoint
from .shared import to_json
from .time_left import TimeLeft, read_progress

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
