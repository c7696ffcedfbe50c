"""Refusals that several evaluators share, before any training. What each needs beyond them stands with it."""

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

#: Texts of the data whose words are looked up in the encoder's vocabulary.
LOOKED_AT = 2000


def refuse_nan(name: str, dataset: Dataset, aspects: Collection[str]) -> None:
    """Raises `TrainingDataError` where ratings of these aspects are nan or infinite: files hold none, but a dataset
    that was made in memory may."""
    for aspect in aspects:
        absent = sum(row.aspect == aspect and not math.isfinite(row.value) for row in dataset.ratings)
        if absent:
            raise TrainingDataError(
                name, f"{absent} ratings of {aspect} are not numbers (nan or infinite): leave them out"
            )


def cut_note(truncated: npt.NDArray[np.bool_], nouns: str, limit: str) -> list[str]:
    """What a dry check says of texts that are longer than what is read, by those it looked at; nothing if none is."""
    n = int(truncated.sum())
    return [f"{n:,} of {len(truncated):,} {nouns} that were looked at are longer than {limit}: cut"] if n else []


def unknown_note(job: FitJob) -> list[str]:
    """What is said of texts whose words the encoder does not know, by the first of the data; nothing where it knows
    them, or where its tokenizer is of a kind that cannot tell."""
    from scoring.ml.encoders.unknown import UnknownTokens

    if "encoder" not in job.entry.needs:
        return []
    reader = UnknownTokens.of_folder(job.encoder.short_name, job.encoder.folder)
    items = ((*item.context, *item.references) for item in job.train.items)
    texts = chain((row.text for row in job.train.outputs), chain.from_iterable(items))
    said = "" if reader is None else reader.describe(islice(texts, LOOKED_AT), "texts of the training data")
    return [said] if said else []


def check_train_device(job: FitJob) -> None:
    """Raises `InvalidOption` where this machine does not have the device that it is to be trained on."""
    asked = str(job.options.get("train_device", "auto"))
    if absent := absent_device(asked):
        raise InvalidOption(job.name, "train_device", f"is {asked!r}, but {absent}")


def check_processes(job: FitJob) -> int:
    """How many devices the training takes. Raises `InvalidOption` where there are fewer GPUs than processes, where one
    device is named for several, and where a batch has fewer rows than there are processes."""
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
