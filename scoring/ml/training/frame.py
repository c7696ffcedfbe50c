"""Steps that every training has in common: probe, number of steps, settings, record and artefact.

An evaluator brings its data, its network and its loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from scoring.ml.artefact import Artefact
from scoring.ml.network import Network
from scoring.ml.training.curve import FinetuneResult
from scoring.ml.training.estimate import Counts
from scoring.ml.training.finetune import TOGETHER, FinetuneSettings
from scoring.ml.training.head import HEAD, describe_stages
from scoring.ml.training.job import FitJob
from scoring.ml.training.loop import LoopSettings
from scoring.ml.training.record import TrainingRecord, data_hash, library_versions

#: Rows that the dry check tokenises to estimate length and truncation.
PROBE_ROWS = 64
#: Rows that the dry check makes batches of to time them.
TIMED_ROWS = 1024


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training that differs between evaluators; `make_artefact` adds the rest."""

    network: Network
    result: FinetuneResult
    examples: Mapping[str, int]
    groups: tuple[str, ...]
    dev_groups: tuple[str, ...]
    aspects: tuple[str, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    simulated: int = 0
    embedded: bool = True


def make_artefact(job: FitJob, learned: TrainingResult) -> Artefact:
    """Return the artefact of a finished training from its `job` and result (`learned`), with its record. `fit` adds
    agreement with people and fixtures."""
    result = learned.result
    record = TrainingRecord(
        dataset=job.train.name,
        data_hash=data_hash(job.train),
        examples=learned.examples,
        groups=learned.groups,
        dev_groups=learned.dev_groups,
        simulated_judgements=learned.simulated,
        seconds=result.seconds,
        steps=result.steps,
        metrics=result.metrics,
        notes=(*learned.notes, *describe_stages(result.log)),
        versions=library_versions(),
        log=result.log,
    )
    return Artefact(
        evaluator=job.name,
        profile=job.profile,
        seed=job.seed,
        aspects=learned.aspects,
        settings=job.options,
        state=learned.state,
        record=record,
        network=learned.network,
        encoder=job.encoder,
        embedded=learned.embedded,
    )


def probe_rows(n: int) -> list[int]:
    """Up to 64 of n rows, evenly spaced."""
    return np.linspace(0, n - 1, min(PROBE_ROWS, n)).astype(int).tolist()


def count_steps(job: FitJob, n_rows: int) -> int:
    """Return the optimiser steps of a `job`: all epochs over `n_rows` rows, at most `max_steps`."""
    steps = -(-n_rows // job.integer("batch_size")) * job.integer("epochs")
    most = job.options.get("max_steps")
    return steps if most is None else min(steps, int(most))


def count_readings(job: FitJob, steps: int, n_rows: int, n_dev: int) -> Counts:
    """Return what a training of a `job` reads, by the option `stages`.

    A training with its encoder takes `steps` steps; an epoch has `n_rows` rows and the held-out part `n_dev`.
    """
    stages = job.text("stages")
    evaluations = -(-steps // -(-n_rows // job.integer("batch_size")))
    if stages == TOGETHER:
        return Counts(steps, 0, n_dev * evaluations)
    if stages == HEAD:
        return Counts(0, n_rows, n_dev)
    return Counts(steps, n_rows, n_dev * (evaluations + 1))


def make_finetune_settings(job: FitJob, **changes: Any) -> FinetuneSettings:
    """The settings of `finetune` from the job's options."""
    head_rate = job.options["head_learning_rate"]
    settings = FinetuneSettings(
        stages=job.text("stages"),
        learning_rate=job.number("learning_rate"),
        head_learning_rate=None if head_rate is None else job.number("head_learning_rate"),
        epochs=job.integer("epochs"),
        patience=job.optional_integer("patience"),
        max_steps=job.optional_integer("max_steps"),
        bf16=job.text("train_dtype") == "bf16",
        gradient_checkpointing=bool(job.options.get("gradient_checkpointing", False)),
        device=job.text("train_device"),
    )
    return replace(settings, **changes)


def make_loop_settings(job: FitJob, **changes: Any) -> LoopSettings:
    """The settings of `train_loop` from the job's options."""
    most = job.options.get("max_steps")
    settings = LoopSettings(
        learning_rate=job.number("learning_rate"),
        max_epochs=job.integer("epochs"),
        patience=job.optional_integer("patience"),
        max_steps=None if most is None else int(most),
    )
    return replace(settings, **changes)
