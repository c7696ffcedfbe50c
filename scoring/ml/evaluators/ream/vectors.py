"""Vectors of (query, reference) pairs, from a frozen or a trained encoder: of both texts together, or of each alone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch

from scoring.ml.catalogue import OptionValue
from scoring.ml.encoders.frozen import VectorEncoder
from scoring.ml.encoders.kept import cached_vectors
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.encoders.tokenizing import read_context
from scoring.ml.encodings import Encodings, TokenizedTexts
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
    pairing: str = "joint"

    @classmethod
    def from_options(cls, source: EncoderSource, options: Mapping[str, OptionValue]) -> Reading:
        """The settings of a training, by its options. Raises `EncoderError` for a layer that the encoder lacks."""
        return cls(
            resolve_layer(source, int(cast(int, options["layer"]))),
            cast(Pooling, options["pooling"]),
            cast("int | None", options["max_length"]),
            str(options["inputs"]),
            # Artefacts from before there was a choice read both texts together.
            str(options.get("pairing", "joint")),
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

    def find_truncated(self, records: Sequence[Record]) -> npt.NDArray[np.bool_]:
        """(n,) whether a pair is longer than the encoder reads."""
        return self.tokenize(records).truncated

    def stored_vectors(self, records: Sequence[Record], folder: Path, tick: Tick) -> Vectors:
        """(n, width) vectors of pairs, kept in files in `folder` that trainings share."""
        unique, where = self.tokenize(records).encodings.distinct()
        return np.asarray(cached_vectors(self, unique, folder, "fp32", tick), dtype=np.float32)[where]

    def _encode(self, records: Sequence[Record], tick: Tick | None) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """As `vectors`, without cache."""
        tokenized = self.tokenize(records)
        unique, where = tokenized.encodings.distinct()
        return self._read(unique, tick)[where], tokenized.truncated

    def _read(self, encodings: Encodings, tick: Tick | None) -> Vectors:
        values = np.empty((len(encodings), self.source.width), dtype=np.float32)
        done = 0
        for rows, found_vectors in self.batches(encodings):
            values[rows] = found_vectors
            done += len(rows)
            if tick is not None:
                tick(done, len(encodings))
        return values

    def vectors(self, records: Sequence[Record], tick: Tick | None = None) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """(n, width), and which pairs were truncated; cached pairs are not encoded again."""
        keys: list[tuple[object, str]] = [((record.context, record.source), record.text) for record in records]
        place: dict[tuple[object, str], int] = {}
        for row, key in enumerate(keys):
            if key not in self._cache:
                place.setdefault(key, row)
        if place:
            fresh = list(place)
            values, truncated = self._encode([records[place[key]] for key in fresh], tick)
            for row, key in enumerate(fresh):
                self._cache[key] = (values[row], bool(truncated[row]))
        both = [self._cache[key] for key in keys]
        for key in keys:
            self._cache.move_to_end(key)
        while len(self._cache) > CACHED_PAIRS:
            self._cache.popitem(last=False)
        if not both:
            return np.empty((0, self.source.width), dtype=np.float32), np.zeros(0, dtype=np.bool_)
        return np.stack([vector for vector, _ in both]), np.array([cut for _, cut in both])


class SeparateEncoder(PairEncoder):
    """x = sqrt(width) u v, element by element, with u and v the vectors of query and reference, each encoded alone and
    of length 1.

    Encoders that were trained to embed single texts, as sentence-transformers are, hold the relation of two texts in
    this product, hardly in one vector of both. Without query or reference (`inputs`) its vector has equal elements.
    """

    def __init__(self, source: EncoderSource, reading: Reading, **how: Any) -> None:
        super().__init__(source, reading, **how)
        self._texts: OrderedDict[tuple[str, bool], tuple[Vectors, bool]] = OrderedDict()

    @property
    def kept_as(self) -> str:
        return f"text:{self.pooling}:layer {self.layer}"

    def find_truncated(self, records: Sequence[Record]) -> npt.NDArray[np.bool_]:
        """(n,) whether query or reference is longer than the encoder reads."""
        texts, sides = self._list_texts(records)
        return np.asarray(self._tokenize(texts).truncated[sides].any(axis=1))

    def stored_vectors(self, records: Sequence[Record], folder: Path, tick: Tick) -> Vectors:
        """(n, width) vectors of pairs; those of single texts are kept in files in `folder` that trainings share."""
        texts, sides = self._list_texts(records)
        unique, where = self._tokenize(texts).encodings.distinct()
        return self._multiply(np.asarray(cached_vectors(self, unique, folder, "fp32", tick))[where], sides)

    def _encode(self, records: Sequence[Record], tick: Tick | None) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        texts, sides = self._list_texts(records)
        fresh = [text for text in texts if text not in self._texts]
        if fresh:
            tokenized = self._tokenize(fresh)
            values = self._read(tokenized.encodings, tick)
            self._texts |= zip(fresh, zip(values, tokenized.truncated.tolist(), strict=True), strict=True)
        known = [self._texts[text] for text in texts]
        while len(self._texts) > CACHED_PAIRS:
            self._texts.popitem(last=False)
        cut = np.array([truncated for _, truncated in known])
        return self._multiply(np.stack([vector for vector, _ in known]), sides), np.asarray(cut[sides].any(axis=1))

    def _list_texts(self, records: Sequence[Record]) -> tuple[list[tuple[str, bool]], npt.NDArray[np.int64]]:
        """Distinct texts with whether they lose their beginning if too long; and (n, 2) places of query and reference.
        A context loses its beginning."""
        place: dict[tuple[str, bool], int] = {}
        sides = np.empty((len(records), 2), dtype=np.int64)
        for row, record in enumerate(records):
            context, cut = read_context(record)
            query = context if isinstance(context, str) else " ".join(context)
            for side, text in enumerate(((query, cut == "left"), (record.text, False))):
                sides[row, side] = place.setdefault(text, len(place))
        return list(place), sides

    def _tokenize(self, texts: Sequence[tuple[str, bool]]) -> TokenizedTexts:
        return self.tokenizing.texts(
            [text for text, _ in texts], cut=["left" if left else "right" for _, left in texts]
        )

    def _multiply(self, vectors: Vectors, sides: npt.NDArray[np.int64]) -> Vectors:
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        # In place of a text that is not read there is a vector of ones.
        unit = vectors / np.where(length > 0, length, 1.0) * self.source.width**0.5
        u, v = unit[sides[:, 0]], unit[sides[:, 1]]
        if self.inputs == "both":
            return np.asarray(u * v / self.source.width**0.5, dtype=np.float32)
        return np.asarray(u if self.inputs == "context" else v, dtype=np.float32)


def make_encoder(source: EncoderSource, reading: Reading, **how: Any) -> PairEncoder:
    """Return the encoder of pairs that `reading` names; `how` are its further arguments."""
    return (SeparateEncoder if reading.pairing == "separate" else PairEncoder)(source, reading, **how)
