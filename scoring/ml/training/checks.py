"""Checks before training that several evaluators share."""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from evalapp.translation import gettext as _
from scoring.ml.engine import absent_device, resolve_device
from scoring.ml.errors import InvalidOption, TrainingDataError
from scoring.ml.training.job import FitJob
from scoring.ml.types import Dataset

#: Texts whose words are looked up in the encoder's vocabulary.
LOOKED_AT = 2000


def refuse_nan(name: str, dataset: Dataset, aspects: Collection[str]) -> None:
    """Raise `TrainingDataError` for the evaluator `name` if ratings of the `aspects` in a `dataset` are nan or
    infinite, which only datasets made in memory can contain."""
    for aspect in aspects:
        absent = sum(row.aspect == aspect and not math.isfinite(row.value) for row in dataset.ratings)
        if absent:
            text = _("%(absent)s ratings of %(aspect)s are not numbers (nan or infinite): leave them out")
            raise TrainingDataError(name, text, absent=absent, aspect=aspect)


def describe_truncation(truncated: npt.NDArray[np.bool_], nouns: str, limit: str) -> list[str]:
    """Return a note for the dry check about `nouns` in the probe that are longer than `limit`; empty if none is
    `truncated`, which has a flag for each."""
    n = int(truncated.sum())
    text = _("%(n)s of %(total)s %(nouns)s examined are longer than %(limit)s and are truncated")
    return [text % {"n": f"{n:,}", "total": f"{len(truncated):,}", "nouns": nouns, "limit": limit}] if n else []


def describe_left_out(nouns: str, n_empty: int, n_alone: int) -> list[str]:
    """Notes on the texts that are left out: `n_empty` without a text, `n_alone` without a reference; `nouns` names
    them."""
    reasons = (
        (n_empty, _("%(n)s %(nouns)s are empty: left out")),
        (n_alone, _("%(n)s %(nouns)s have no reference: left out")),
    )
    return [text % {"n": f"{n:,}", "nouns": nouns} for n, text in reasons if n]


def describe_unknown_words(job: FitJob) -> list[str]:
    """Return a note about words that the encoder of a `job` does not know, from the first texts of the data; empty if
    there are none, or if its tokenizer cannot tell."""
    from scoring.ml.encoders.unknown import UnknownTokens

    if "encoder" not in job.entry.needs:
        return []
    reader = UnknownTokens.from_folder(job.encoder.short_name, job.encoder.folder)
    items = ((*item.context, *item.references) for item in job.train.items)
    texts = chain((row.text for row in job.train.outputs), chain.from_iterable(items))
    said = "" if reader is None else reader.describe(islice(texts, LOOKED_AT), "texts of the training data")
    return [said] if said else []


def check_train_device(job: FitJob) -> None:
    """Raise `InvalidOption` if this machine lacks the training device of a `job`."""
    asked = str(job.options.get("train_device", "auto"))
    if absent := absent_device(asked):
        raise InvalidOption(job.name, "train_device", _("is %(asked)r, but %(absent)s"), asked=asked, absent=absent)


def check_processes(job: FitJob) -> int:
    """Return the number of devices that a `job` takes.

    Raises `InvalidOption` if there are fewer GPUs than processes, if one device is named for several processes, or if a
    batch has fewer rows than processes.
    """
    if job.processes == 1:
        return 1
    rows = job.integer("batch_size")
    if rows < job.processes:
        text = _("is %(processes)s, but batch_size is %(rows)s: each needs a row of every batch")
        raise InvalidOption(job.name, "processes", text, processes=job.processes, rows=rows)
    asked = job.text("train_device")
    device = resolve_device(asked)
    if device == "cpu":
        return 1
    if ":" in asked:
        text = _("needs a GPU each, but %(asked)s is one: take train_device=cuda")
        raise InvalidOption(job.name, "processes", text, asked=asked)
    import torch

    there = torch.cuda.device_count()
    if there < job.processes:
        text = _(
            "needs a GPU each: %(processes)s are asked for, %(there)s can be seen here. Take at most "
            "%(there)s, or train_device=cpu"
        )
        raise InvalidOption(job.name, "processes", text, processes=job.processes, there=there)
    return job.processes
