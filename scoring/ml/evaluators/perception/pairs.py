"""Pairs of generation and reference as the network reads them, and the batches of each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from scoring.ml.base import get_references
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.encodings import Encodings, Ints
from scoring.ml.engine import collate
from scoring.ml.evaluators.perception.network import PerceptionNetwork
from scoring.ml.training.batches import length_grouped, read_features
from scoring.ml.training.head import HeadData
from scoring.ml.training.job import FitJob
from scoring.ml.types import Record

#: The confidence of the head alone is fitted to at most this many pairs.
MOST_CONFIDENCE_PAIRS = 2048


@dataclass(frozen=True)
class Sides:
    """Generations and the references that each may be compared with: generation i is compared with `references[first[i]
    : first[i] + n[i]]`, except the one at `same[i]`, which is the same text (-1: none)."""

    generated: Encodings
    references: Encodings
    first: Ints
    n: Ints
    same: Ints
    truncated: Any
    reference_truncated: Any


def encode_sides(tokenizer: PairTokenizer, records: Sequence[Record], *, with_context: bool) -> Sides:
    """Return the sides of `records` that have a reference each, tokenised by `tokenizer`.

    `with_context` reads each text, and each reference, after the context of its record.
    """
    rows: list[Record] = []
    place: dict[tuple[Any, ...], int] = {}
    first, n = [], []
    for record in records:
        references = get_references(record)
        key = (record.context, record.source, references)
        if key not in place:
            place[key] = len(rows)
            rows += [replace(record, text=text) for text in references]
        first.append(place[key])
        n.append(len(references))

    def tokenized(some: Sequence[Record]) -> Any:
        return tokenizer.records(some) if with_context else tokenizer.texts([record.text for record in some])

    generated, references_read = tokenized(records), tokenized(rows)
    return Sides(
        generated.encodings,
        references_read.encodings,
        np.array(first, dtype=np.int64),
        np.array(n, dtype=np.int64),
        np.full(len(n), -1),
        generated.truncated,
        references_read.truncated,
    )


def encode_pool(tokenizer: PairTokenizer, records: Sequence[Record], pool: Sequence[str]) -> Sides:
    """Return the sides of `records`, tokenised by `tokenizer` without context; each may be compared with every distinct
    reference in `pool`."""
    generated, references = tokenizer.texts([record.text for record in records]), tokenizer.texts(list(pool))
    places = {text.strip(): place for place, text in enumerate(pool)}
    n = len(records)
    return Sides(
        generated.encodings,
        references.encodings,
        np.zeros(n, dtype=np.int64),
        np.full(n, len(pool)),
        np.array([places.get(record.text.strip(), -1) for record in records], dtype=np.int64),
        generated.truncated,
        references.truncated,
    )


def count_meetings(job: FitJob) -> int:
    """Return the number of references that each generation is compared with in an epoch of a `job`."""
    return 1 if job.flag("conditional") else job.integer("n_references")


class PairBatches:
    """In each epoch every generation is compared with a random reference of its item, or in an unconditional model with
    `n_references` of any item; systems have equal numbers of pairs."""

    def __init__(
        self, sides: Sides, systems: Sequence[str], groups: Sequence[str], job: FitJob, *, pad_id: int, phase: str
    ) -> None:
        """`systems` and `groups`: the system and the split group of each generation."""
        self.sides, self.groups, self.job, self.pad_id, self.phase = sides, groups, job, pad_id, phase
        self.times = count_meetings(job)
        codes = np.unique(np.asarray(systems, dtype=object).astype(str), return_inverse=True)[1]
        self.select_system = [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]
        self.batches: list[tuple[Ints, Ints]] = []
        self.set_epoch(0)

    def __len__(self) -> int:
        return len(self.batches)

    def set_epoch(self, epoch: int) -> None:
        """Draw generations, references and batches."""
        rng = self.job.rng(f"{self.phase}:pairs:{epoch}")
        most = max(len(rows) for rows in self.select_system)
        generated = np.concatenate([_repeated(rows, most, rng) for rows in self.select_system])
        generated = np.repeat(generated, self.times)
        first, same = self.sides.first[generated], self.sides.same[generated]
        references = first + rng.integers(0, self.sides.n[generated] - (same >= 0))
        references += (same >= 0) & (references >= same)
        lengths = self.sides.generated.lengths[generated] + self.sides.references.lengths[references]
        groups = length_grouped(lengths, self.job.integer("batch_size"), rng)
        self.batches = [(generated[rows], references[rows]) for rows in groups]

    def head_data(self, network: PerceptionNetwork) -> HeadData:
        """Differences of features of the first epoch's pairs; the confidence is fitted to their sums."""
        pairs = [np.concatenate(side) for side in zip(*self.batches, strict=True)]
        sides = []
        for encodings, rows in zip((self.sides.generated, self.sides.references), pairs, strict=True):
            places, of_row = np.unique(rows, return_inverse=True)
            tick = self.job.report_phase("encoding")
            vectors = read_features(network, encodings.take(places), self.pad_id, tick)
            sides.append(vectors[torch.from_numpy(of_row)])
        generated, references = sides
        differences, some = references - generated, slice(MOST_CONFIDENCE_PAIRS)

        def finish() -> None:
            if not network.settings["confidence"]:
                return
            weight = network.head_layer.weight
            chosen = [part[some].to(weight.device, weight.dtype) for part in (differences, references + generated)]
            p_ref = torch.sigmoid(torch.nn.functional.linear(chosen[0], weight).squeeze(-1)).detach()
            network.fit_confidence(p_ref, chosen[1], self.job.number("budget"))

        groups = [self.groups[row] for row in pairs[0].tolist()]
        return HeadData(differences, {}, groups, centred=True, finish=finish)

    def __getitem__(self, number: int) -> dict[str, Any]:
        generated, references = self.batches[number]
        result: dict[str, torch.Tensor] = {}
        sides = ((self.sides.generated, generated, "gen_"), (self.sides.references, references, "ref_"))
        for encodings, rows, prefix in sides:
            inputs = collate(encodings.take(rows), self.pad_id, "cpu").inputs
            result |= {prefix + name: value for name, value in inputs.items()}
        return result


def _repeated(rows: Ints, n: int, rng: np.random.Generator) -> Ints:
    """`n` of the rows: each as often as the other, the remainder at random."""
    rounds = [rng.permutation(rows) for _ in range(-(-n // len(rows)))]
    return np.concatenate(rounds)[:n]
