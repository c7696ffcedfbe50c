"""Features of an output from vectors of single texts. numpy only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scoring.ml.base import get_references
from scoring.ml.evaluators.unreferenced.conversations import flatten
from scoring.ml.evaluators.unreferenced.samples import TextTable
from scoring.ml.types import Record

Floats: TypeAlias = npt.NDArray[np.float64]
#: The texts that an output is compared with.
SIDES = ("context", "references", "source")
#: Turns of a context that are read, the last ones.
TURNS = 3


class Rows:
    """The distinct texts of records, and the places of each record's texts in them."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.table = TextTable()
        self.records = records
        self.outputs = [self.table.add(record.text) for record in records]
        self.sides = {
            "context": [self._add_context(record) for record in records],
            "references": [tuple(map(self.table.add, get_references(record))) for record in records],
            "source": [self._add_source(record) for record in records],
        }

    def _add_context(self, record: Record) -> tuple[int, ...]:
        turns = [turn for turn in record.context if turn.strip()][-TURNS:]
        return (self.table.add(flatten(turns), left=True),) if turns else ()

    def _add_source(self, record: Record) -> tuple[int, ...]:
        source = record.source or ""
        return (self.table.add(source),) if source.strip() else ()

    def list_sides(self) -> tuple[str, ...]:
        """The kinds of texts that at least one record has."""
        return tuple(name for name in SIDES if any(self.sides[name]))

    def list_texts(self, row: int, sides: Sequence[str]) -> list[int]:
        """The places of all texts of a record that are read."""
        return [self.outputs[row], *(place for name in sides for place in self.sides[name][row])]


def count_features(width: int, sides: Sequence[str]) -> int:
    """The number of columns of `build_features` for vectors of a `width`."""
    return width * (1 + len(sides)) + sum(2 if name == "references" else 1 for name in sides) + 2


def build_features(vectors: Floats, rows: Rows, sides: Sequence[str]) -> Floats:
    """Return the features (n, k) of each output; nan where it lacks a text.

    With y the vector of the output and v that of the context, the source or the nearest reference, all of length 1: y;
    for each of the `sides` the product v*y and the cosine (of references also the mean cosine); the number of words and
    the logarithm of the number of characters. `vectors` (texts, width) belong to the texts of `rows`.
    """
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(length > 0, length, 1.0)
    y = unit[rows.outputs]
    columns = [y]
    for name in sides:
        products = np.full(y.shape, np.nan)
        cosines = np.full((len(y), 2 if name == "references" else 1), np.nan)
        for row, places in enumerate(rows.sides[name]):
            if places:
                near = unit[list(places)] @ y[row]
                products[row] = unit[places[int(near.argmax())]] * y[row]
                cosines[row] = (near.max(), near.mean())[: cosines.shape[1]]
        columns += [products, cosines]
    texts = [record.text for record in rows.records]
    columns.append(np.array([[len(text.split()), np.log(max(len(text), 1))] for text in texts], dtype=np.float64))
    return np.concatenate(columns, axis=1)


def measure_columns(features: Floats) -> tuple[Floats, Floats]:
    """Return mean and spread of each column of the `features` (n, k), or 0 and 1 where all values are missing."""
    missing = np.isnan(features)
    n = np.maximum(len(features) - missing.sum(axis=0), 1)
    rest = np.where(missing, 0.0, features)
    mean = rest.sum(axis=0) / n
    rest -= mean
    rest[missing] = 0.0
    spread = np.sqrt(np.einsum("ij,ij->j", rest, rest) / n)
    return mean, np.where(spread > 1e-9, spread, 1.0)
