"""A frozen encoder with its tokenizer and its engine, and one vector per text from it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scoring.ml.encoders.forward import pooled_vectors
from scoring.ml.encoders.loading import load_model
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.encodings import Encodings, Ints
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
