"""Pairs of generation and reference as the network reads them, and the batches of each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from scoring.ml.base import get_references
from scoring.ml.encoders.separate import (
    PLACES,
    UNITS,
    Inputs,
    ReadTexts,
    make_inputs,
    read_columns,
    read_last_turns,
)
from scoring.ml.encoders.tokenizing import Cut, PairTokenizer
from scoring.ml.encodings import Ints, TokenizedTexts
from scoring.ml.evaluators.perception.network import PerceptionNetwork
from scoring.ml.training.batches import length_grouped, read_features
from scoring.ml.training.head import HeadData
from scoring.ml.training.job import FitJob
from scoring.ml.types import Record

#: The confidence of the head alone is fitted to at most this many pairs.
MOST_CONFIDENCE_PAIRS = 2048


#: How a text is read: with its context in one input; alone; each alone; as if no item had a context.
BOTH, ALONE, APART, BARE = "both", "text", "apart", "bare"


@dataclass(frozen=True)
class Sides:
    """Generations and the references that each may be compared with: generation i is compared with `references[first[i]
    : first[i] + n[i]]`, except the one at `same[i]`, which is the same text (-1: none). `inputs` are those of all
    generations, then of all references."""

    inputs: Inputs
    first: Ints
    n: Ints
    same: Ints
    truncated: Any
    reference_truncated: Any

    @property
    def generated_lengths(self) -> Ints:
        """(n,) the tokens of the generations."""
        return self.inputs.lengths[: len(self.n)]

    @property
    def reference_lengths(self) -> Ints:
        """The tokens of the references."""
        return self.inputs.lengths[len(self.n) :]


def find_form(inputs: str, texts: int) -> str:
    """Return how texts are read by the option `inputs` and the number of `texts` that a network reads each alone."""
    return ALONE if inputs == "text" else {0: BOTH, 1: BARE, 2: APART}[texts]


def encode_sides(tokenizer: PairTokenizer, records: Sequence[Record], *, form: str) -> Sides:
    """Return the sides of `records` that have a reference each, tokenised by `tokenizer`; `form` says how each text,
    and each reference, is read with the context of its record."""
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
    numbers = np.array(first, dtype=np.int64), np.array(n, dtype=np.int64), np.full(len(n), -1)
    read = _read_records(tokenizer, [*records, *rows], form)
    return Sides(read.encodings, *numbers, read.truncated[: len(n)], read.truncated[len(n) :])


def _read_records(tokenizer: PairTokenizer, records: Sequence[Record], form: str) -> ReadTexts | TokenizedTexts:
    texts = [record.text for record in records]
    if form == ALONE:
        return tokenizer.texts(texts)
    if form == APART:
        contexts = [read_last_turns(record) for record in records]
        ends: list[Cut] = ["right"] * len(texts)
        return read_columns(tokenizer, [(texts, ends), ([text for text, _ in contexts], [cut for _, cut in contexts])])
    if form == BARE:
        records = [replace(record, context=(), source=None) for record in records]
    return tokenizer.records(records)


def encode_pool(tokenizer: PairTokenizer, records: Sequence[Record], pool: Sequence[str]) -> Sides:
    """Return the sides of `records`, tokenised by `tokenizer` without context; each may be compared with every distinct
    reference in `pool`."""
    n = len(records)
    read = tokenizer.texts([*(record.text for record in records), *pool])
    places = {text.strip(): place for place, text in enumerate(pool)}
    return Sides(
        read.encodings,
        np.zeros(n, dtype=np.int64),
        np.full(n, len(pool)),
        np.array([places.get(record.text.strip(), -1) for record in records], dtype=np.int64),
        read.truncated[:n],
        read.truncated[n:],
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
        lengths = self.sides.generated_lengths[generated] + self.sides.reference_lengths[references]
        groups = length_grouped(lengths, self.job.integer("batch_size"), rng)
        self.batches = [(generated[rows], references[rows]) for rows in groups]

    def head_data(self, network: PerceptionNetwork) -> HeadData:
        """Differences of features of the first epoch's pairs; the confidence is fitted to their sums."""
        pairs = [np.concatenate(side) for side in zip(*self.batches, strict=True)]
        used, places = self._join(*pairs)
        tick = self.job.report_phase("encoding")
        vectors = read_features(network, self.sides.inputs.take(used), self.pad_id, tick)
        generated, references = (vectors[torch.from_numpy(column)] for column in places.T)
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

    def _join(self, generated: Ints, references: Ints) -> tuple[Ints, Ints]:
        """The inputs of pairs, each once, and the places (pairs, 2) of both sides among them."""
        rows = np.stack([generated, references + len(self.sides.n)], axis=1)
        used, places = np.unique(rows, return_inverse=True)
        return used, places.reshape(rows.shape)

    def __getitem__(self, number: int) -> dict[str, Any]:
        used, places = self._join(*self.batches[number])
        inputs = make_inputs(self.sides.inputs.take(used), self.pad_id)
        if PLACES in inputs:
            inputs[UNITS] = inputs.pop(PLACES)
        return {PLACES: torch.from_numpy(places), **inputs}


def _repeated(rows: Ints, n: int, rng: np.random.Generator) -> Ints:
    """`n` of the rows: each as often as the other, the remainder at random."""
    rounds = [rng.permutation(rows) for _ in range(-(-n // len(rows)))]
    return np.concatenate(rounds)[:n]
