"""Vectors of (query, reference) pairs, from a frozen or a trained encoder."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch

from scoring.ml.catalogue import OptionValue
from scoring.ml.encoders.frozen import VectorEncoder
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.encoders.tokenizing import read_context
from scoring.ml.encodings import TokenizedTexts
from scoring.ml.errors import EncoderError
from scoring.ml.layers.pooling import Pooling
from scoring.ml.types import Record

Vectors: TypeAlias = npt.NDArray[np.float32]
Tick: TypeAlias = Callable[[int, int], object]
CACHED_PAIRS = 20_000


def resolve_layer(source: EncoderSource, layer: int) -> int:
    """Return the `layer` of the encoder of `source` as 1 .. n_layers; -1 is the last. Raises `EncoderError` for any
    other number."""
    chosen = layer if layer > 0 else source.n_layers + 1 + layer
    if not 1 <= chosen <= source.n_layers:
        raise EncoderError(source.name, f"has layers 1 to {source.n_layers}, or -1 to -{source.n_layers}, not {layer}")
    return chosen


@dataclass(frozen=True)
class Reading:
    """The settings by which a pair of query and reference becomes a vector."""

    layer: int
    pooling: Pooling = "mean"
    max_length: int | None = None
    inputs: str = "both"

    @classmethod
    def from_options(cls, source: EncoderSource, options: Mapping[str, OptionValue]) -> Reading:
        """The settings of a training, by its options. Raises `EncoderError` for a layer that the encoder lacks."""
        return cls(
            resolve_layer(source, int(cast(int, options["layer"]))),
            cast(Pooling, options["pooling"]),
            cast("int | None", options["max_length"]),
            str(options["inputs"]),
        )


class PairEncoder(VectorEncoder):
    """x = the pooled hidden state of `[CLS] query [SEP] reference [SEP]` at one layer (eq 3).

    Vectors are cached by pair, so that an edited reference costs one pass of the encoder. `encoder` is a trained one
    to use instead of the source's.
    """

    def __init__(
        self, source: EncoderSource, reading: Reading, *, encoder: torch.nn.Module | None = None, **how: Any
    ) -> None:
        super().__init__(source, layer=reading.layer, max_length=reading.max_length, **how)
        self.pooling, self.inputs = reading.pooling, reading.inputs
        if encoder is not None:
            self.model = encoder
        self._cache: OrderedDict[tuple[object, str], tuple[Vectors, bool]] = OrderedDict()

    @property
    def kept_as(self) -> str:
        return f"{self.pooling}:layer {self.layer}"

    def knows(self, record: Record) -> bool:
        """Whether the pair is cached."""
        return ((record.context, record.source), record.text) in self._cache

    def tokenize(self, records: Sequence[Record]) -> TokenizedTexts:
        """`record.text` after its context, or only one of the two if `inputs` says so."""
        if self.inputs == "text":
            return self.tokenizing.texts([record.text for record in records])
        if self.inputs == "context":
            joined = [read_context(record)[0] for record in records]
            return self.tokenizing.texts([text if isinstance(text, str) else " ".join(text) for text in joined])
        return self.tokenizing.records(records)

    def vectors(self, records: Sequence[Record], tick: Tick | None = None) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """(n, width), and which pairs were truncated; cached pairs are not encoded again."""
        keys: list[tuple[object, str]] = [((record.context, record.source), record.text) for record in records]
        place: dict[tuple[object, str], int] = {}
        for row, key in enumerate(keys):
            if key not in self._cache:
                place.setdefault(key, row)
        if place:
            fresh = list(place)
            tokenized = self.tokenize([records[place[key]] for key in fresh])
            values = np.empty((len(fresh), self.source.width), dtype=np.float32)
            unique, where = tokenized.encodings.distinct()
            rows_of = np.empty((len(unique), self.source.width), dtype=np.float32)
            done = 0
            for rows, found_vectors in self.batches(unique):
                rows_of[rows] = found_vectors
                done += len(rows)
                if tick is not None:
                    tick(done, len(unique))
            values[:] = rows_of[where]
            for row, key in enumerate(fresh):
                self._cache[key] = (values[row], bool(tokenized.truncated[row]))
        both = [self._cache[key] for key in keys]
        for key in keys:
            self._cache.move_to_end(key)
        while len(self._cache) > CACHED_PAIRS:
            self._cache.popitem(last=False)
        if not both:
            return np.empty((0, self.source.width), dtype=np.float32), np.zeros(0, dtype=np.bool_)
        return np.stack([vector for vector, _ in both]), np.array([cut for _, cut in both])
