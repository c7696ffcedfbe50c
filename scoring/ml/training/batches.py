"""Batches of tokenised inputs for training, drawn for each epoch, with inputs of similar length together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from scoring.ml.encoders.separate import SEPARATE, Inputs, TextRows, join_vectors, make_inputs, map_inputs
from scoring.ml.encodings import Ints
from scoring.ml.engine import Engine
from scoring.ml.training.head import HeadData
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


def read_features(network: Any, inputs: Inputs, pad_id: int, tick: Callable[[int, int], object]) -> torch.Tensor:
    """Return what the head of a `network` reads of all `inputs`, (rows, k) on the CPU; `tick(done, total)` counts
    rows."""

    def report(share: float) -> None:
        tick(round(share * len(inputs)), len(inputs))

    engine = Engine(device=str(next(network.parameters()).device), pad_id=pad_id)
    return map_inputs(
        engine, inputs, network.read_features, network.read_texts, lambda features: features, report=report
    )


def count_texts(job: FitJob, *, contexts: bool, single: bool) -> int:
    """Return how many texts of a row a network of a `job` reads alone, 0 if it reads them together.

    `contexts`: whether there are any in its data. `single`: whether it judges one text, not two. A text alone has
    nothing to be read apart from.
    """
    if job.text("features") != SEPARATE:
        return 0
    contexts = contexts and job.text("inputs") == "both"
    if single:
        return 2 if contexts else int(job.text("inputs") == "both")
    return 4 if contexts else 2


class RowBatches:
    """Epochs over fixed rows: one input and some values (name -> tensor with one row per input) each."""

    def __init__(
        self,
        encodings: Inputs,
        values: Mapping[str, torch.Tensor],
        groups: Sequence[str],
        job: FitJob,
        *,
        pad_id: int,
        phase: str = "training",
        choose: Callable[[int], Ints] | None = None,
    ) -> None:
        """`groups`: the split group of each row. `choose(epoch)`: the rows of an epoch, always the same number; None is
        all rows."""
        self.encodings, self.values, self.groups = encodings, dict(values), groups
        self.job, self.pad_id, self.phase, self.choose = job, pad_id, phase, choose
        #: (texts, width) those of the frozen encoder, if somebody has read the texts already.
        self.vectors: torch.Tensor | None = None
        self.batch_size = job.integer("batch_size")
        self.batches: list[Ints] = []
        self.set_epoch(0)

    def __len__(self) -> int:
        return len(self.batches)

    def set_epoch(self, epoch: int) -> None:
        """Draw the epoch's batches."""
        rows = self._choose_rows(epoch)
        rng = self.job.rng(f"{self.phase}:batches:{epoch}")
        self.batches = [rows[batch] for batch in length_grouped(self.encodings.lengths[rows], self.batch_size, rng)]

    def _choose_rows(self, epoch: int) -> Ints:
        return np.arange(len(self.encodings)) if self.choose is None else self.choose(epoch)

    def head_data(self, network: Any) -> HeadData:
        """Features of the first epoch's rows."""
        rows = np.sort(self._choose_rows(0))
        chosen = torch.from_numpy(rows)
        if self.vectors is None:
            inputs = self.encodings.take(rows)
            features = read_features(network, inputs, self.pad_id, self.job.report_phase("encoding"))
        else:
            assert isinstance(self.encodings, TextRows)
            features = join_vectors(self.vectors, torch.from_numpy(self.encodings.places[rows]))
        values = {name: value[chosen] for name, value in self.values.items()}
        return HeadData(features, values, [self.groups[row] for row in rows.tolist()])

    def __getitem__(self, number: int) -> dict[str, Any]:
        rows = self.batches[number]
        chosen = torch.from_numpy(rows)
        return make_inputs(self.encodings.take(rows), self.pad_id) | {
            name: value[chosen] for name, value in self.values.items()
        }
