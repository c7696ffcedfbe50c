"""Checks before training that several evaluators share."""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from scoring.ml.engine import absent_device, resolve_device
from scoring.ml.errors import InvalidOption, TrainingDataError
from scoring.ml.training.job import FitJob
from scoring.ml.types import Dataset

#: Texts whose words are looked up in the encoder's vocabulary.
LOOKED_AT = 2000


def refuse_nan(name: str, dataset: Dataset, aspects: Collection[str]) -> None:
    """Raises `TrainingDataError` if ratings of these aspects are nan or infinite, which only datasets made in memory
    can contain."""
    for aspect in aspects:
        absent = sum(row.aspect == aspect and not math.isfinite(row.value) for row in dataset.ratings)
        if absent:
            raise TrainingDataError(
                name, f"{absent} ratings of {aspect} are not numbers (nan or infinite): leave them out"
            )


def cut_note(truncated: npt.NDArray[np.bool_], nouns: str, limit: str) -> list[str]:
    """A note for the dry check about texts in the probe that are longer than `limit`; empty if there are none."""
    n = int(truncated.sum())
    return [f"{n:,} of {len(truncated):,} {nouns} examined are longer than {limit} and are truncated"] if n else []


def unknown_note(job: FitJob) -> list[str]:
    """A note about words that the encoder does not know, from the first texts of the data; empty if there are none, or
    if its tokenizer cannot tell."""
    from scoring.ml.encoders.unknown import UnknownTokens

    if "encoder" not in job.entry.needs:
        return []
    reader = UnknownTokens.from_folder(job.encoder.short_name, job.encoder.folder)
    items = ((*item.context, *item.references) for item in job.train.items)
    texts = chain((row.text for row in job.train.outputs), chain.from_iterable(items))
    said = "" if reader is None else reader.describe(islice(texts, LOOKED_AT), "texts of the training data")
    return [said] if said else []


def check_train_device(job: FitJob) -> None:
    """Raises `InvalidOption` if this machine lacks the training device."""
    asked = str(job.options.get("train_device", "auto"))
    if absent := absent_device(asked):
        raise InvalidOption(job.name, "train_device", f"is {asked!r}, but {absent}")


def check_processes(job: FitJob) -> int:
    """The number of devices that the training takes. Raises `InvalidOption` if there are fewer GPUs than processes, if
    one device is named for several processes, or if a batch has fewer rows than processes."""
    if job.processes == 1:
        return 1
    rows = job.integer("batch_size")
    if rows < job.processes:
        raise InvalidOption(
            job.name, "processes", f"is {job.processes}, but batch_size is {rows}: each needs a row of every batch"
        )
    asked = job.text("train_device")
    device = resolve_device(asked)
    if device == "cpu":
        return 1
    if ":" in asked:
        raise InvalidOption(job.name, "processes", f"needs a GPU each, but {asked} is one: take train_device=cuda")
    import torch

    there = torch.cuda.device_count()
    if there < job.processes:
        raise InvalidOption(
            job.name,
            "processes",
            f"needs a GPU each: {job.processes} are asked for, {there} can be seen here. Take at most {there}, or "
            "train_device=cpu",
        )
    return job.processes
