"""Trains on a small part of its own data, and computes from that how long a whole training will take.

For evaluators with a frozen encoder, whose short trainings consist of many different parts.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from scoring.ml.errors import TrainingDataError
from scoring.ml.training.fit import run_job
from scoring.ml.training.job import FitJob, TrainingProgress
from scoring.ml.training.timing import KEPT_SECONDS, fit_line
from scoring.ml.types import Dataset

#: Items and dialogues that trials learn from: the line through two sizes gives the time of any number.
SIZES = (16, 64)
#: A trial makes this share of the expected passes over the data.
PASSES = 0.25
#: Early stopping is expected after this number of times its patience.
STOPPED_AFTER = 2
#: Options that count passes.
_PASSES = ("epochs", "pretrain")


class Trial(NamedTuple):
    """Processor seconds of a trial with `size` items and dialogues: its `passes`, and before and `after` them.
    `slowed`: seconds by the clock for each of the processor; `steps` that were made."""

    size: int
    before: float
    passes: float
    after: float
    slowed: float
    steps: int


# The folds of a cross-fitting are checked one after another: the second begins with what was measured for the first.
recent: dict[object, tuple[float, list[Trial]]] = {}


def time_trials(job: FitJob) -> tuple[float, float]:
    """Return the seconds of a training of a `job`, and those after its last step.

    Processor time is measured, and the ratio of the clock to it: load by other work changes the latter alone.
    """
    key = (job.name, job.profile, job.aspect, *sorted(map(str, job.options.items())), len(job.train.items))
    began, trials = recent.get(key, (0.0, []))
    if not trials or time.monotonic() - began > KEPT_SECONDS:
        trials = _make_trials(job)
        recent[key] = time.monotonic(), trials
    size = _count(job.train)
    first, last = trials[0], trials[-1]

    def extend(name: str) -> float:
        fixed, by_row = fit_line(first.size, getattr(first, name), last.size, getattr(last, name))
        return (fixed + by_row * size) * last.slowed

    expected, made = _count_passes(job, PASSES)
    times = expected / made
    most = job.options.get("max_steps")
    if most is not None and last.steps:
        times = min(times, float(str(most)) / (last.steps * max(1.0, size / last.size)))
    after = extend("after")
    return extend("before") + extend("passes") * times + after, after


def _count(data: Dataset) -> int:
    return len(data.items) + len(data.dialogues)


def _count_passes(job: FitJob, share: float) -> tuple[int, int]:
    """The passes over the data that are expected of a training, and those of a trial with a `share` of each kind."""
    expected = _expect_passes(job)
    return max(1, sum(expected.values())), max(1, sum(_cut(n, share) for n in expected.values()))


def _expect_passes(job: FitJob) -> dict[str, int]:
    found = {name: job.integer(name) for name in _PASSES if name in job.options}
    patience = job.options.get("patience")
    if patience is not None and "epochs" in found:
        found["epochs"] = min(found["epochs"], STOPPED_AFTER * (int(str(patience)) + 1))
    return found


def _cut(n: int, share: float) -> int:
    """At least one of `n`, if there is one."""
    return min(n, max(1, round(share * n)))


def _make_trials(job: FitJob) -> list[Trial]:
    with torch.random.fork_rng(range(torch.cuda.device_count())):
        small = _try_size(job, SIZES[0])  # the first one also loads the libraries
        return [_try_size(job, small.size), _try_size(job, max(SIZES[1], small.size))]


def _try_size(job: FitJob, size: int) -> Trial:
    """A trial with about `size` items and dialogues, with more if these are too few."""
    whole = _count(job.train)
    while size < whole:
        part = _take(job.train, size / whole)
        dev = None if job.dev is None else _take(job.dev, size / whole)
        try:
            return _run(job, part, dev)
        except TrainingDataError:
            size *= 2
    return _run(job, job.train, job.dev)


def _take(data: Dataset, share: float) -> Dataset:
    """About a `share` of the groups of `data`."""
    groups = len(set(data.name_groups().values()))
    return data.split(shares=(share, 1 - share))[0] if groups > 1 else data


def _run(job: FitJob, train: Dataset, dev: Dataset | None) -> Trial:
    ended: list[float] = []

    def report(progress: TrainingProgress) -> None:
        # The caller may end the check here.
        job.report_rows(0, 1)
        if progress.phase.startswith("held-out") and not ended:
            ended.append(time.perf_counter())

    options: dict[str, Any] = {**job.options}
    options |= {name: _cut(n, PASSES) for name, n in _expect_passes(job).items()}
    options |= {"patience": None} if "patience" in options else {}
    if "pool_size" in options:  # replies that a language model makes
        options["pool_size"] = max(10, round(job.integer("pool_size") * _count(train) / max(1, _count(job.train))))
    with tempfile.TemporaryDirectory(prefix="evalapp-trial-") as folder:
        began, used = time.perf_counter(), time.process_time()
        record = run_job(
            replace(job, train=train, dev=dev, options=options, folder=Path(folder), shared=None, report=report)
        ).record
        clock, processor = time.perf_counter() - began, time.process_time() - used
    rate = processor / clock
    after = began + clock - ended[0] if ended else 0.0
    # A regression with one solution has no passes.
    passes = record.seconds if any("epoch" in row for row in record.log) else 0.0
    before = max(0.0, clock - passes - after)
    return Trial(_count(train), before * rate, passes * rate, after * rate, 1 / rate, record.steps)
