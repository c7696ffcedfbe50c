"""Texts that an encoder reads each alone, in rows of one to four, and the features of a row from their vectors.

Explained in docs/explanation/evaluators/README.md#features. torch is imported when vectors are read, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scoring.ml.encoders.tokenizing import Cut, PairTokenizer, read_context
from scoring.ml.encodings import Encodings, Ints
from scoring.ml.engine import Engine, collate
from scoring.ml.types import Record

if TYPE_CHECKING:
    import torch

#: Values of the option `features`.
JOINT, SEPARATE = "joint", "separate"
#: The last turns of a context that are read.
TURNS = 3
#: Vectors of the encoder's width in the features of a row, by the number of its texts.
PARTS = {1: 1, 2: 4, 3: 7, 4: 6}
#: Of a batch: what each row reads, among the encoder's arguments or among units, which are rows of texts themselves.
PLACES, UNITS = "places", "units"
_TEXT_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# Rows whose features are in memory at a time.
_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class TextRows:
    """Rows of texts: `encodings` of the distinct texts, `places` (rows, texts of a row) among them, -1 for none."""

    encodings: Encodings
    places: Ints

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def lengths(self) -> Ints:
        """(rows,) the tokens of all texts of a row."""
        return np.asarray(np.append(self.encodings.lengths, 0)[self.places].sum(axis=1))

    def take(self, rows: Ints) -> TextRows:
        """Some of the rows, with their texts only."""
        chosen = self.places[rows]
        texts, numbers = np.unique(chosen[chosen >= 0], return_inverse=True)
        places = np.full(chosen.shape, -1, dtype=np.int64)
        places[chosen >= 0] = numbers
        return TextRows(self.encodings.take(texts), places)

    def make_inputs(self, pad_id: int) -> dict[str, Any]:
        """The arguments of a network's `forward`: `places`, and those of the encoder for the distinct texts."""
        import torch

        return {PLACES: torch.from_numpy(self.places), **collate(self.encodings, pad_id, "cpu").inputs}


#: Inputs of a network: one for each row, or rows of texts.
Inputs: TypeAlias = Encodings | TextRows


@dataclass(frozen=True, slots=True)
class ReadTexts:
    """Inputs, and which of their rows were truncated."""

    encodings: Inputs
    truncated: npt.NDArray[np.bool_]


def read_columns(tokenizer: PairTokenizer, columns: Sequence[tuple[Sequence[str], Sequence[Cut]]]) -> ReadTexts:
    """Return the rows of texts in `columns`; each has the texts of all rows, "" for none, and the end at which each is
    truncated."""
    number: dict[tuple[str, Cut], int] = {}
    places = np.full((len(columns[0][0]), len(columns)), -1, dtype=np.int64)
    for column, (texts, cuts) in enumerate(columns):
        for row, key in enumerate(zip(texts, cuts, strict=True)):
            # Only an output can be blank; a row without any text would have no vector.
            if key[0].strip() or not column:
                places[row, column] = number.setdefault(key, len(number))
    tokenized = tokenizer.texts([text for text, _ in number], cut=[cut for _, cut in number])
    cut = np.asarray(np.append(tokenized.truncated, False)[places].any(axis=1))
    return ReadTexts(TextRows(tokenized.encodings, places), cut)


def read_last_turns(record: Record) -> tuple[str, Cut]:
    """Return the last turns of the context of a `record`, after its source if it has both, as one text, and the end at
    which that is truncated; "" without a context."""
    context, cut = read_context(record)
    if isinstance(context, str):
        return context, cut
    turns = [turn for turn in record.context if turn.strip()][-TURNS:]
    return " ".join([*([record.source] if record.source else []), *turns]), cut


def make_inputs(inputs: Inputs, pad_id: int) -> dict[str, Any]:
    """Return the arguments of a network's `forward` for `inputs`, padded with `pad_id`."""
    if isinstance(inputs, TextRows):
        return inputs.make_inputs(pad_id)
    return collate(inputs, pad_id, "cpu").inputs


def take_rows(batch: Mapping[str, torch.Tensor], rows: slice) -> dict[str, torch.Tensor]:
    """Return some `rows` of a `batch`, with the units and texts that they read."""
    result = {name: values for name, values in batch.items() if name in _TEXT_INPUTS or name == UNITS}
    result = {name: values[rows] for name, values in batch.items() if name not in result} | result
    for places, names in ((PLACES, (UNITS,)), (UNITS, _TEXT_INPUTS)) if UNITS in batch else ((PLACES, _TEXT_INPUTS),):
        there = result[places] >= 0
        used, numbers = result[places][there].unique(return_inverse=True)
        result[places] = result[places].masked_scatter(there, numbers)
        result |= {name: result[name][used] for name in names if name in result}
    return result


def join_vectors(vectors: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Return (rows, parts * width) the features of rows from the `vectors` (texts, width) of the texts at `places`.

    Of two texts a, b: a, b, |a - b|, a * b. Of three texts a, b, c: the same and c, |a - c|, a * c, where c is the
    context of a. Of four texts a, b, c, d: those of a and b, a * c and b * d, where c and d are the contexts of a and
    b. Whatever a missing text takes part in is 0.
    """
    import torch

    padded = torch.cat([vectors, vectors.new_zeros(1, vectors.shape[1])])
    # -1 is the last row.
    texts = padded[places]
    there = (places >= 0).to(vectors.dtype)[:, :, None]
    first, n = texts[:, 0], places.shape[1]
    parts = [first]
    for other in range(1, 2 if n == 4 else n):
        second = texts[:, other]
        both = there[:, 0] * there[:, other]
        parts += [second, (first - second).abs() * both, first * second]
    if n == 4:
        parts += [texts[:, side] * texts[:, 2 + side] for side in range(2)]
    return torch.cat(parts, dim=1)


def find_nearest(vectors: torch.Tensor, places: Ints, owners: Ints) -> Ints:
    """Return, for each of the `owners` (rows,) in ascending order, its row whose first two texts at `places` have the
    largest cosine of their `vectors` (texts, width); of equal ones the first."""
    import torch

    unit = torch.nn.functional.normalize(vectors.double(), dim=1)
    first, second = (unit[torch.from_numpy(places[:, side])] for side in range(2))
    cosines = (first * second).sum(dim=1).cpu().numpy()
    order = np.lexsort((np.arange(len(owners)), -cosines, owners))
    return order[np.unique(owners[order], return_index=True)[1]]


def map_inputs(
    engine: Engine,
    inputs: Inputs,
    joint: Callable[..., torch.Tensor],
    read: Callable[..., torch.Tensor],
    finish: Callable[[torch.Tensor], torch.Tensor],
    *,
    report: Callable[[float], object] | None = None,
) -> torch.Tensor:
    """Return one result per row on the CPU: `joint(batch)` of inputs, `finish(features)` of rows of texts.

    `read(batch)` gives the vectors of texts; each distinct text is read once. `report(share)` receives progress.
    """
    if not isinstance(inputs, TextRows):
        return engine.map(inputs, joint, report=report)
    return map_rows(engine, engine.map(inputs.encodings, read, report=report), inputs.places, finish)


def map_rows(
    engine: Engine, vectors: torch.Tensor, places: Ints, finish: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return `finish(features)` of the rows of texts at `places`, on the CPU, from the `vectors` (texts, width)."""
    import torch

    rows = torch.from_numpy(places)
    with torch.inference_mode():
        parts = [
            finish(join_vectors(vectors, rows[start : start + _ROWS_AT_A_TIME]).to(engine.device)).float().cpu()
            for start in range(0, len(rows), _ROWS_AT_A_TIME)
        ]
    return torch.cat(parts) if parts else torch.empty(0)
