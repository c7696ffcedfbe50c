"""Tokenised inputs: a single one, or up to millions as flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias, overload

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
TokenIds: TypeAlias = npt.NDArray[np.int32]
TypeIds: TypeAlias = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Encoding:
    """One tokenised input; `type_ids` for encoders that distinguish two texts."""

    ids: tuple[int, ...]
    type_ids: tuple[int, ...] | None = None


class Encodings(Sequence[Encoding]):
    """Many inputs end to end: input i owns `lengths[i]` tokens from `starts[i]`; 4 or 5 bytes a token.

    Reads like a list of `Encoding`. `type_ids` is None or as long as `ids`.
    """

    def __init__(self, ids: TokenIds, lengths: Ints, type_ids: TypeIds | None = None) -> None:
        self.ids = ids
        self.lengths = lengths
        self.starts: Ints = np.cumsum(lengths) - lengths
        self.type_ids = type_ids

    @classmethod
    def of(cls, encodings: Sequence[Encoding]) -> Encodings:
        """The same inputs in arrays."""
        if isinstance(encodings, Encodings):
            return encodings
        lengths = np.array([len(encoding.ids) for encoding in encodings], dtype=np.int64)
        total = int(lengths.sum())
        ids = np.fromiter(chain.from_iterable(e.ids for e in encodings), np.int32, total)
        if not encodings or encodings[0].type_ids is None:
            return cls(ids, lengths)
        return cls(ids, lengths, np.fromiter(chain.from_iterable(e.type_ids or () for e in encodings), np.int8, total))

    @classmethod
    def join(cls, parts: Iterable[Encodings]) -> Encodings:
        """Several collections as one, in their order."""
        result = list(parts)
        if not result:
            return cls(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64))
        types = [part.type_ids for part in result if part.type_ids is not None]
        return cls(
            np.concatenate([part.ids for part in result]),
            np.concatenate([part.lengths for part in result]),
            np.concatenate(types) if types else None,
        )

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, index: int) -> Encoding: ...
    @overload
    def __getitem__(self, index: slice) -> Encodings: ...
    def __getitem__(self, index: int | slice) -> Encoding | Encodings:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        start = int(self.starts[index])
        end = start + int(self.lengths[index])
        types = None if self.type_ids is None else tuple(self.type_ids[start:end].tolist())
        return Encoding(tuple(self.ids[start:end].tolist()), types)

    def __iter__(self) -> Iterator[Encoding]:
        return (self[row] for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def n_tokens(self) -> int:
        """All tokens together."""
        return len(self.ids)

    def take(self, rows: Sequence[int] | Ints) -> Encodings:
        """Some of the inputs, in the order asked for."""
        chosen = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[chosen]
        places = ragged_places(self.starts[chosen], lengths)
        return Encodings(self.ids[places], lengths, None if self.type_ids is None else self.type_ids[places])

    def distinct(self) -> tuple[Encodings, Ints]:
        """The distinct inputs in order of first appearance, and the place of each input among them."""
        number: dict[bytes, int] = {}
        first: list[int] = []
        places = np.empty(len(self), dtype=np.int64)
        ends = np.cumsum(self.lengths).tolist()
        for row, (start, end) in enumerate(zip(self.starts.tolist(), ends, strict=True)):
            key = self.ids[start:end].tobytes()
            if self.type_ids is not None:
                key += self.type_ids[start:end].tobytes()
            place = number.setdefault(key, len(first))
            if place == len(first):
                first.append(row)
            places[row] = place
        if len(first) == len(self):
            return self, places
        return self.take(first), places


@dataclass(frozen=True, slots=True)
class TokenizedTexts:
    """Texts as token numbers; `truncated` marks the truncated ones."""

    encodings: Encodings
    truncated: npt.NDArray[np.bool_]


def ragged_places(starts: Ints, lengths: Ints) -> Ints:
    """The places `starts[i]` to `starts[i] + lengths[i] - 1` of every i, end to end."""
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
