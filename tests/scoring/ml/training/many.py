"""Trainings of every evaluator with a trainable encoder as one job, so that processes are started once for all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from scoring.ml.artefact import Artefact, weights_hash
from scoring.ml.catalogue import RECOMMENDED, Entry
from scoring.ml.errors import ScoringError
from scoring.ml.registry import get_entry
from scoring.ml.training import finetune
from scoring.ml.training.job import FitJob
from scoring.ml.training.options import FINETUNING
from scoring.ml.types import Aspect, Dataset, Rating
from tests.scoring.ml.training.toy import Toy, toy_data
from tests.scoring.ml.training.toy_entry import ENTRY as TOY

Parts = dict[str, tuple[str, dict[str, Any], bool]]
WEIGHTED = {"epochs": 1, "balance": "weight", "batch_size": 4}
#: name -> evaluator, its options, and whether there is held-out data. Without, the last weights are stored, which each
#: process has computed itself.
PARTS: Parts = {
    "pairs": (
        "comparative",
        # 7 rows are shares of 4 and 3, and the last batch of 22 pairs is one row, which leaves one process without any.
        {
            "pairs_per_epoch": 22,
            "batch_size": 7,
            "epochs": 2,
            "human_epochs": 1,
            "patience": 1,
            "stages": "together",
            "features": "joint",
        },
        True,
    ),
    "begun again": (
        "comparative",
        # At this rate nothing is learned, and the first token's vector is the same for all pairs: the first epoch
        # counts as collapsed.
        {
            "pairs_per_epoch": 8,
            "batch_size": 4,
            "epochs": 1,
            "human": "no",
            "learning_rate": 1e-12,
            "restarts": 1,
            "pooling": "cls",
            "stages": "together",
            "features": "joint",
        },
        True,
    ),
    "penalty": (
        "perception",
        {
            "batch_size": 5,
            "epochs": 1,
            "penalty": "pair",
            "penalty_every": 2,
            "confidence": False,
            "stages": "together",
        },
        False,
    ),
    "aspects": ("shared-bert", {"threshold": 3.0, "batch_size": 4, "epochs": 1, "max_references": 1}, False),
    "texts": ("adversarial", {**WEIGHTED}, False),
    "recomputed": ("adversarial", {**WEIGHTED, "gradient_checkpointing": True}, False),
    "half": ("adversarial", {**WEIGHTED, "train_dtype": "bf16"}, False),
}
#: As in production, with dropout and hints.
DRAWN: Parts = {
    # The confidence loss of two rows alternates above and below this budget.
    "confidence": (
        "perception",
        {"batch_size": 4, "epochs": 3, "penalty": "interpolate", "budget": 0.76, "learning_rate": 1e-5},
        False,
    )
}

MANY = Entry(
    name="many",
    kind="trained",
    summary="Several trainings in one.",
    scale=(None, None),
    profiles=(RECOMMENDED,),
    implementation="tests.scoring.ml.training.many:Many",
    train_options=FINETUNING,
)
OFTEN = replace(TOY, name="often", implementation="tests.scoring.ml.training.many:Often")
FAULTY = replace(TOY, name="faulty", implementation="tests.scoring.ml.training.many:Faulty")


def data() -> Dataset:
    """Eight items, too few for a held-out part by default; one aspect is unknown for half of the outputs."""
    found = toy_data(8)
    sense = [Rating("r1", "sense", 6 - one.value, one.item, one.system) for one in found.ratings[::2]]
    return replace(found, aspects=(*found.aspects, Aspect("sense", 1, 6)), ratings=(*found.ratings, *sense))


def make_job(entry: Entry, folder: Path, dev: Dataset | None = None, **options: Any) -> FitJob:
    aspect = "fluency" if entry.aspect == "one" else None
    parsed = entry.parse_train_options(RECOMMENDED, {"train_device": "cpu", **options})
    return FitJob(entry, data(), dev, RECOMMENDED, parsed, 13, folder, aspect)


def split_job(job: FitJob, parts: Parts) -> dict[str, FitJob]:
    """Each part as its own job, in its own folder."""
    common = {"encoder": job.options["encoder"], "processes": job.processes, "learning_rate": 0.01}
    return {
        name: make_job(get_entry(evaluator), job.folder / name, job.dev if held_out else None, **{**common, **own})
        for name, (evaluator, own, held_out) in parts.items()
    }


def uncut(job: FitJob) -> FitJob:
    """The training that other tests interrupt."""
    common = {"encoder": job.options["encoder"], "processes": job.processes}
    return make_job(OFTEN, job.folder / "uncut", epochs=3, learning_rate=1e-3, **common)


@contextmanager
def comparable() -> Iterator[None]:
    """Without dropout, and with plain gradient steps: AdamW and clipping treat a gradient and its double alike, and
    turn rounding into steps where a gradient is 0 (of a key's bias)."""
    arguments = finetune._Arguments
    plain = {"optim": "sgd", "max_grad_norm": 1e9}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.Dropout, "forward", lambda self, values: values)
        patch.setattr(finetune, "_Arguments", lambda **given: arguments(**{**given, **plain}))
        yield


class Many(Toy):
    @classmethod
    def train(cls, job: FitJob) -> Artefact:
        """Each process leaves the hashes of its weights."""
        rank = finetune.current_group().rank
        with comparable():
            for part in split_job(job, PARTS).values():
                note(part, rank)
        for part in (*split_job(job, DRAWN).values(), uncut(job)):
            last = note(part, rank)
        return last


def note(part: FitJob, rank: int) -> Artefact:
    found = part.entry.load_implementation().train(part)
    (part.folder / f"weights-{rank}").write_text(weights_hash(found.network))
    return found


class Often(Toy):
    """Saves a checkpoint at every step."""

    @classmethod
    def train(cls, job: FitJob) -> Artefact:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(finetune, "CHECKPOINT_SECONDS", 0.0)
            return super().train(job)


class Faulty(Toy):
    """In the second process it fails as the profile says; the first waits for that one."""

    @classmethod
    def train(cls, job: FitJob) -> Artefact:
        together = finetune.current_group()
        if together.first:
            together.wait()
        print("what a library printed")
        if job.profile == "refused":
            raise ScoringError("a text of 900 tokens does not fit into memory")
        raise ValueError("of the second process")
