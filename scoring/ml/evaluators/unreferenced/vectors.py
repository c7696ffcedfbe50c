"""One vector per text by a frozen encoder, and turns padded as the released MAUDE does. Keeping vectors in files is in
`encoders.kept`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from scoring.ml.encoders.forward import first_vectors, token_vectors
from scoring.ml.encoders.loading import load_model
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.encodings import Encodings, Ints, Tokenized, ragged_places
from scoring.ml.engine import Batch, Dtype, Engine

Pooling: TypeAlias = Literal["cls", "mean"]
Tick: TypeAlias = Callable[[int, int], object]


class UtteranceEncoder:
    """A frozen encoder that makes one vector of a text: its class token's, or the mean over all of its tokens."""

    def __init__(
        self,
        source: EncoderSource,
        *,
        pooling: Pooling = "mean",
        max_length: int | None = None,
        dtype: Dtype = "fp32",
        device: str = "auto",
        batch_tokens: int | None = None,
    ) -> None:
        self.source, self.pooling, self.dtype = source, pooling, dtype
        self.tokenizing = PairTokenizer(source, max_length=max_length)
        self._device, self._batch_tokens = device, batch_tokens

    @property
    def kept_as(self) -> str:
        """Settings that change its vectors besides weights and token numbers."""
        return f"{self.pooling}:{self.dtype}"

    @cached_property
    def engine(self) -> Engine:
        """The engine all batches go through."""
        return Engine(device=self._device, batch_tokens=self._batch_tokens, pad_id=self.tokenizing.pad_id)

    @cached_property
    def model(self) -> torch.nn.Module:
        """The encoder on the engine's device."""
        model: torch.nn.Module = load_model(self.source, dtype=self.dtype)
        return model.to(self.engine.device)

    def tokenize(self, texts: Sequence[str], left: Sequence[bool] | None = None) -> Tokenized:
        """Token numbers; long texts lose their end, or their beginning where `left`."""
        if left is None or not any(left):
            return self.tokenizing.texts(texts)
        return self.tokenizing.texts(texts, cut=["left" if from_left else "right" for from_left in left])

    def vectors(self, encodings: Encodings, tick: Tick = lambda done, total: None) -> npt.NDArray[np.float32]:
        """(texts, width) in the order of the inputs. `tick(done, total)` after each batch."""
        found = np.zeros((len(encodings), self.source.width), dtype=np.float32)
        done = 0
        for rows, vectors in self.batches(encodings):
            found[rows] = vectors
            done += len(rows)
            tick(done, len(encodings))
        return found

    def batches(self, encodings: Encodings) -> Iterator[tuple[Ints, npt.NDArray[np.float32]]]:
        """Rows and vectors of each batch."""
        for rows, vectors in self.engine.batches(encodings, self._pooled):
            yield rows, vectors.float().cpu().numpy()

    def _pooled(self, batch: Batch) -> torch.Tensor:
        if self.pooling == "cls":
            return first_vectors(self.model, batch)
        hidden = token_vectors(self.model, batch)
        lengths = torch.from_numpy(batch.lengths).to(hidden.device)
        owner = torch.repeat_interleave(torch.arange(len(lengths), device=hidden.device), lengths)
        sums = torch.zeros((len(lengths), hidden.shape[1]), dtype=torch.float32, device=hidden.device)
        return sums.index_add_(0, owner, hidden.float()) / lengths[:, None]


def pad_contexts(encodings: Encodings, rows: Ints, starts: Ints, lengths: Ints, pad_id: int) -> tuple[Encodings, Ints]:
    """Turns padded to the longest of their context, as the released MAUDE feeds them: padding counts as text.

    Context i owns `lengths[i]` of `rows` from `starts[i]`. Returns the distinct padded turns behind the encodings
    given, and for every turn of every context, end to end, its row among them.
    """
    flat = rows[ragged_places(starts, lengths)]
    begins = np.cumsum(lengths) - lengths
    sizes = encodings.lengths[flat]
    target = np.repeat(np.maximum.reduceat(sizes, begins), lengths) if len(flat) else sizes
    scale = int(encodings.lengths.max()) + 1 if len(encodings) else 1
    distinct, places = np.unique(flat * scale + target, return_inverse=True)
    source, wanted = distinct // scale, distinct % scale
    chosen = encodings.take(source)
    ids = np.full(int(wanted.sum()), pad_id, dtype=np.int32)
    types = None if chosen.type_ids is None else np.zeros(len(ids), dtype=np.int8)
    filled = ragged_places(np.cumsum(wanted) - wanted, chosen.lengths)
    ids[filled] = chosen.ids
    if types is not None and chosen.type_ids is not None:
        types[filled] = chosen.type_ids
    return Encodings.join([encodings, Encodings(ids, wanted, types)]), places + len(encodings)
