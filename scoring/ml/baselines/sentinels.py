"""Trivial baselines: scores that know nothing of quality. A metric that does not beat them adds no evidence.

Explained in docs/explanation/evaluators/trivial-baselines.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence

import numpy as np

from evalapp.words import split_words
from scoring.ml.base import Evaluator, Partial, Progress
from scoring.ml.catalogue import Entry
from scoring.ml.options import integer
from scoring.ml.signature import SignatureField
from scoring.ml.types import Record

WORDS = SignatureField("tok", "tok", "words")


class Length(Evaluator):
    """The number of words (`evalapp.words`, in every script: `[a-z0-9']+` of a lower-cased ASCII text)."""

    def signature_fields(self) -> list[SignatureField]:
        return [WORDS]

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        values = np.array([len(split_words(record.text)) for record in records], dtype=np.float64)
        progress(len(records), len(records))
        return Partial(values)


class Overlap(Evaluator):
    """The share of a text's distinct words (`evalapp.words`) that occur in its context or source, in 0..1.

    |W(text) & W(context turns and source)| / |W(text)|; 0 for a text without words, undefined without context and
    source.
    """

    def signature_fields(self) -> list[SignatureField]:
        return [WORDS]

    def undefined(self, record: Record) -> str:
        return "" if any(text.strip() for text in _given(record)) else "no context or source"

    def identity(self, record: Record) -> Hashable:
        return (record.text, record.context, record.source)

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        values = np.zeros(len(records))
        for row, record in enumerate(records):
            own = set(split_words(record.text))
            given = {token for text in _given(record) for token in split_words(text)}
            values[row] = len(own & given) / len(own) if own else 0.0
        progress(len(records), len(records))
        return Partial(values)


def _given(record: Record) -> tuple[str, ...]:
    return (*record.context, record.source or "")


class Random(Evaluator):
    """A number in [0, 1) from sha256 of seed, item, system, step and text: the same in any order."""

    def signature_fields(self) -> list[SignatureField]:
        return [SignatureField("seed", "seed", str(self.options["seed"]))]

    def identity(self, record: Record) -> Hashable:
        return (record.item, record.system, record.step, record.text)

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        seed = self.options["seed"]
        values = np.zeros(len(records))
        for row, record in enumerate(records):
            key = "\x1f".join((str(seed), record.item, record.system, str(record.step), record.text))
            digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
            values[row] = (int.from_bytes(digest[:8], "big") >> 11) / 2**53
        progress(len(records), len(records))
        return Partial(values)


ENTRIES = (
    Entry(
        name="length",
        kind="sentinel",
        papers=("perrella-etal-2024-guardians",),
        summary="Number of word tokens.",
        build=Length,
        scale=(0.0, None),
    ),
    Entry(
        name="overlap",
        kind="sentinel",
        papers=("perrella-etal-2024-guardians",),
        summary="Share of a text's words that occur in its context or source.",
        build=Overlap,
        scale=(0.0, 1.0),
        needs=("context",),
    ),
    Entry(
        name="random",
        kind="sentinel",
        papers=("perrella-etal-2024-guardians",),
        summary="A random number that depends on item, system and text only.",
        build=Random,
        scale=(0.0, 1.0),
        options=(integer("seed", 13, "Another seed gives other numbers."),),
    ),
)
