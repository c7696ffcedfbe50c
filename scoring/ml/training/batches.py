"""Batches of tokenised inputs for training, drawn for each epoch, with inputs of similar length together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from scoring.ml.encodings import Encodings, Ints
from scoring.ml.engine import collate
from scoring.ml.training.job import FitJob

# Batches that are drawn together and sorted by length inside: little padding, almost the same randomness.
_POOL = 32


def length_grouped(lengths: Ints, batch_size: int, rng: np.random.Generator) -> list[Ints]:
    """Return all rows once, in random batches of `batch_size` drawn by `rng`, with rows of similar length together;
    `lengths` (rows,) are their numbers of tokens."""
    order = rng.permutation(len(lengths))
    batches: list[Ints] = []
    for start in range(0, len(order), batch_size * _POOL):
        pool = order[start : start + batch_size * _POOL]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[at : at + batch_size] for at in range(0, len(pool), batch_size)]
    return [batches[int(number)] for number in rng.permutation(len(batches))]


class RowBatches:
    """Epochs over fixed rows: one input and some values (name -> tensor with one row per input) each."""

    def __init__(
        self,
        encodings: Encodings,
        values: Mapping[str, torch.Tensor],
        batch_size: int,
        job: FitJob,
        *,
        pad_id: int,
        phase: str = "training",
        choose: Callable[[int], Ints] | None = None,
    ) -> None:
        """`choose(epoch)`: the rows of an epoch, always the same number; None is all rows."""
        self.encodings, self.values, self.batch_size = encodings, dict(values), batch_size
        self.job, self.pad_id, self.phase, self.choose = job, pad_id, phase, choose
        self.batches: list[Ints] = []
        self.set_epoch(0)

    def __len__(self) -> int:
        return len(self.batches)

    def set_epoch(self, epoch: int) -> None:
        """Draw the epoch's batches."""
        rows = np.arange(len(self.encodings)) if self.choose is None else self.choose(epoch)
        rng = self.job.rng(f"{self.phase}:batches:{epoch}")
        self.batches = [rows[batch] for batch in length_grouped(self.encodings.lengths[rows], self.batch_size, rng)]

    def __getitem__(self, number: int) -> dict[str, Any]:
        rows = self.batches[number]
        chosen = torch.from_numpy(rows)
        inputs: dict[str, Any] = collate(self.encodings.take(rows), self.pad_id, "cpu").inputs
        return inputs | {name: value[chosen] for name, value in self.values.items()}
