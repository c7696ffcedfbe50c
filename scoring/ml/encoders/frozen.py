"""A frozen encoder with its tokenizer and its engine: one vector per text from it, or one per token."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scoring.ml.encoders.forward import pooled_vectors, token_vectors
from scoring.ml.encoders.loading import load_model
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.encodings import Encoding, Encodings, Ints, TokenizedTexts, ragged_places
from scoring.ml.engine import Batch, Dtype, Engine
from scoring.ml.errors import EncoderError
from scoring.ml.layers.pooling import Pooling

if TYPE_CHECKING:
    import torch


class FrozenEncoder:
    """Tokenizer, engine and model of a source, each loaded on first use from local files; code from the model's folder
    is never run. `layer` counts from 1, 0 is the embedding layer; layers above it are not computed."""

    def __init__(
        self,
        source: EncoderSource,
        *,
        layer: int | None = None,
        max_length: int | None = None,
        dtype: Dtype = "fp32",
        device: str = "auto",
        batch_tokens: int | None = None,
    ) -> None:
        self.source, self.dtype = source, dtype
        self.layer = source.n_layers if layer is None else layer
        if not 0 <= self.layer <= source.n_layers:
            raise EncoderError(source.name, f"has layers 0 to {source.n_layers}, not {self.layer}")
        self.max_length = source.max_length(max_length)
        self._device, self._batch_tokens = device, batch_tokens

    @cached_property
    def tokenizing(self) -> PairTokenizer:
        """Tokenises texts and pairs of texts."""
        return PairTokenizer(self.source, max_length=self.max_length)

    @cached_property
    def engine(self) -> Engine:
        """The engine that runs all batches."""
        return Engine(device=self._device, batch_tokens=self._batch_tokens, pad_id=self.tokenizing.pad_id)

    @cached_property
    def model(self) -> torch.nn.Module:
        """The encoder up to `layer`, in evaluation mode on the engine's device."""
        # Some architectures need at least one layer, so embeddings come from a model with one.
        model: torch.nn.Module = load_model(self.source, dtype=self.dtype, layer=max(self.layer, 1))
        return model.to(self.engine.device)


class VectorEncoder(FrozenEncoder):
    """One vector per text: that of its class token, or the mean over its tokens."""

    pooling: Pooling

    @property
    @abstractmethod
    def kept_as(self) -> str:
        """Everything that a vector depends on besides weights and token numbers: pooling, layer, number format."""

    def batches(self, encodings: Encodings) -> Iterator[tuple[Ints, npt.NDArray[np.float32]]]:
        """Rows and vectors of each batch of the `encodings`."""
        for rows, vectors in self.engine.batches(encodings, self.pool):
            yield rows, vectors.float().cpu().numpy()

    def pool(self, batch: Batch) -> torch.Tensor:
        """(rows, width) the vectors of a `batch`."""
        return pooled_vectors(self.model, batch, self.pooling)


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """Token vectors of texts laid end to end: text i owns rows `starts[i]` to `starts[i] + lengths[i]`."""

    vectors: torch.Tensor  # (tokens, width) float32
    ids: Ints  # (tokens,) token numbers
    starts: Ints  # (texts,)
    lengths: Ints  # (texts,)

    def rows(self, texts: Sequence[int]) -> Ints:
        """The row numbers of the texts, concatenated."""
        return ragged_places(self.starts[list(texts)], self.lengths[list(texts)])


class TextEncoder(FrozenEncoder):
    """Hidden states of a layer for every token of a text, including special tokens."""

    @property
    def tokenizer(self) -> Any:
        """The encoder's own tokenizer."""
        return self.tokenizing.tokenizer

    @cached_property
    def special_ids(self) -> Ints:
        """The special tokens: class, separator, padding."""
        tokens = (self.tokenizer.cls_token_id, self.tokenizer.sep_token_id, self.tokenizer.pad_token_id)
        return np.array([token for token in tokens if token is not None], dtype=np.int64)

    @cached_property
    def n_tokens(self) -> int:
        """One more than the largest number of a token: a vocabulary may leave numbers out."""
        return max(*self.tokenizer.get_vocab().values(), *self.special_ids.tolist(), len(self.tokenizer) - 1) + 1

    def tokenize(self, texts: Sequence[str]) -> TokenizedTexts:
        """Token numbers with special tokens; a text beyond `max_length` loses its end."""
        # RoBERTa's vocabulary distinguishes a word at the beginning from one after a space; texts begin as if after a
        # space.
        lead = " " if self.source.model_type == "roberta" else ""
        return self.tokenizing.texts([lead + text.strip() for text in texts])

    def encode(self, encodings: Sequence[Encoding]) -> TokenVectors:
        """The vectors of every token, in the order of the inputs. Inputs should be distinct."""
        import torch

        inputs = Encodings.of(encodings)
        lengths, starts, ids = inputs.lengths, inputs.starts, inputs.ids.astype(np.int64)
        flat: torch.Tensor | None = None
        for rows, hidden in self.engine.batches(inputs, self.forward):
            if flat is None:
                flat = torch.empty((len(ids), hidden.shape[-1]), dtype=torch.float32, device=hidden.device)
            where = torch.from_numpy(ragged_places(starts[rows], lengths[rows])).to(hidden.device)
            flat[where] = hidden.float()
        vectors = torch.empty((0, 0)) if flat is None else flat
        return TokenVectors(vectors, ids, starts, lengths)

    def forward(self, batch: Batch) -> torch.Tensor:
        """(tokens, width) hidden states of the layer, input after input."""
        return token_vectors(self.model, batch, layer=self.layer)
