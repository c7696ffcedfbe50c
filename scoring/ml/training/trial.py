"""Trains on a small part of its own data, and computes from that how long a whole training will take.

For evaluators with a frozen encoder, whose short trainings have many different parts.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import torch

from scoring.ml.errors import TrainingDataError
from scoring.ml.training.job import FitJob, TrainingProgress
from scoring.ml.training.timing import KEPT_SECONDS, fit_line
from scoring.ml.types import Dataset

#: Items and dialogues that trials learn from: the line through two sizes gives the time of any number.
SIZES = (8, 32)
#: A trial's pass over the data ends after so many seconds; the rest of it is computed.
LONGEST = 4.0
#: Early stopping is expected after this number of times its patience.
STOPPED_AFTER = 2
#: Options that count passes over the data, by the phases in which these are reported; a trial makes one of each.
PASSES = {"contrast": "pretrain", "training": "epochs", "evaluating": "epochs"}
#: Trains by a job: `fit.run_job`.
RunJob: TypeAlias = Callable[[FitJob], Any]


class Trial(NamedTuple):
    """Processor seconds of a trial with `size` items and dialogues: `before` its passes, of a pass of each kind
    (`pretrain`, `epochs`), and `after` them. `slowed`: seconds by the clock for each of the processor; `steps` of a
    pass."""

    size: int
    before: float
    pretrain: float
    epochs: float
    after: float
    slowed: float
    steps: int


# The folds of a cross-fitting are checked one after another: the second begins with what was measured for the first.
recent: dict[object, tuple[float, list[Trial]]] = {}


def time_trials(job: FitJob, run_job: RunJob) -> tuple[float, float]:
    """Return the seconds of a training of a `job` by `run_job`, and those after its last step.

    Processor time is measured, and the ratio of the clock to it: load by other work changes the latter alone.
    """
    key = (job.name, job.profile, job.aspect, job.train.name, *sorted(map(str, job.options.items())))
    began, trials = recent.get(key, (0.0, []))
    if not trials or time.monotonic() - began > KEPT_SECONDS:
        trials = make_trials(job, run_job)
        recent[key] = time.monotonic(), trials
    size = _count(job.train)
    first, last = trials[0], trials[-1]

    def extend(name: str) -> float:
        fixed, by_row = fit_line(first.size, getattr(first, name), last.size, getattr(last, name))
        return (fixed + by_row * size) * last.slowed

    times = expect_passes(job)
    most = job.options.get("max_steps")
    if most is not None and last.steps:
        times["epochs"] = min(times["epochs"], float(str(most)) / (last.steps * max(1.0, size / last.size)))
    after = extend("after")
    return extend("before") + sum(n * extend(name) for name, n in times.items()) + after, after


def expect_passes(job: FitJob) -> dict[str, float]:
    """Return how many passes of each kind a `job` is expected to make."""
    found = {name: float(job.integer(name)) if name in job.options else 1.0 for name in ("pretrain", "epochs")}
    patience = job.options.get("patience")
    if patience is not None:
        found["epochs"] = min(found["epochs"], STOPPED_AFTER * (float(str(patience)) + 1))
    return found


def _count(data: Dataset) -> int:
    return len(data.items) + len(data.dialogues)


def make_trials(job: FitJob, run_job: RunJob) -> list[Trial]:
    """Return a trial for either size of `SIZES` of a `job`, trained by `run_job`."""
    with torch.random.fork_rng(range(torch.cuda.device_count())):
        small = _try_size(job, run_job, SIZES[0])  # the first one also loads the libraries
        return [_try_size(job, run_job, small.size), _try_size(job, run_job, max(SIZES[1], small.size))]


def _try_size(job: FitJob, run_job: RunJob, size: int) -> Trial:
    """A trial with about `size` items and dialogues, with more if these are too few."""
    whole = _count(job.train)
    while size < whole:
        part = _take(job.train, size / whole)
        dev = None if job.dev is None else _take(job.dev, size / whole)
        try:
            return run_trial(job, run_job, part, dev)
        except TrainingDataError:
            size *= 2
    return run_trial(job, run_job, job.train, job.dev)


def _take(data: Dataset, share: float) -> Dataset:
    """About a `share` of the groups of `data`."""
    groups = len(set(data.name_groups().values()))
    return data.split(shares=(share, 1 - share))[0] if groups > 1 else data


class LongPassError(Exception):
    """The pass takes longer than a trial may."""


class TrialClock:
    """Receives the reports of a trial: `seconds` by part, `steps` of a pass and the `share` that was made."""

    def __init__(self, job: FitJob) -> None:
        self.job = job
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.last, self.steps, self.share = time.perf_counter(), 0, 1.0

    def __call__(self, progress: TrainingProgress) -> None:
        part = "after" if progress.phase.startswith("held-out") else PASSES.get(progress.phase, "before")
        self.count(part)
        self.job.report_rows(0, 1)  # the caller may end the check here
        if part == "epochs" and progress.phase == "training":
            self.steps = progress.total or progress.done
            if self.seconds[part] > LONGEST and 0 < progress.done < self.steps and "epochs" in self.job.options:
                self.share = progress.done / self.steps
                raise LongPassError

    def count(self, part: str) -> None:
        """Add the time since the last report to a part."""
        now = time.perf_counter()
        self.seconds[part] += now - self.last
        self.last = now


def run_trial(job: FitJob, run_job: RunJob, train: Dataset, dev: Dataset | None) -> Trial:
    """Return the times of a trial of a `job` by `run_job` on the parts `train` and `dev`."""
    options: dict[str, Any] = {**job.options}
    options |= {name: min(1, job.integer(name)) for name in PASSES.values() if name in options}
    if "pool_size" in options:  # replies that a language model makes
        options["pool_size"] = max(10, round(job.integer("pool_size") * _count(train) / max(1, _count(job.train))))
    clock = TrialClock(job)
    used = time.process_time()
    began = clock.last
    seconds = clock.seconds
    with tempfile.TemporaryDirectory(prefix="evalapp-trial-") as folder:
        trial = replace(job, train=train, dev=dev, options=options, folder=Path(folder), shared=None, report=clock)
        try:
            record = run_job(trial).record
        except LongPassError:
            seconds["epochs"] /= clock.share
        else:
            clock.count("after" if seconds["after"] else "before")
            if any("epoch" in row for row in record.log):
                # The last evaluation is not reported.
                missed = max(0.0, record.seconds - seconds["pretrain"] - seconds["epochs"])
                seconds["epochs"] += missed
                seconds["before"] = max(0.0, seconds["before"] - missed)
        slowed = (clock.last - began) / max(time.process_time() - used, 1e-9)
    parts = {name: seconds[name] / slowed for name in ("before", "pretrain", "epochs", "after")}
    return Trial(_count(train), **parts, slowed=slowed, steps=clock.steps)
