"""A frozen transformers encoder that turns texts into token vectors, on the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scoring.ml.encoders.source import EncoderSource
from scoring.ml.engine import Batch, Dtype, Encoding, Engine
from scoring.ml.errors import EncoderError

if TYPE_CHECKING:
    import torch

Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """Token vectors of texts laid end to end: text i owns rows `starts[i]` to `starts[i] + lengths[i]`."""

    vectors: torch.Tensor  # (tokens, width) float32
    ids: Ints  # (tokens,) token numbers
    starts: Ints  # (texts,)
    lengths: Ints  # (texts,)

    def rows(self, texts: Sequence[int]) -> Ints:
        """The rows of some texts, end to end."""
        lengths = self.lengths[list(texts)]
        ends = np.cumsum(lengths)
        return np.arange(ends[-1]) + np.repeat(self.starts[list(texts)] - (ends - lengths), lengths)


@dataclass(frozen=True, slots=True)
class Tokenized:
    """Texts as the encoder reads them, and which of them were cut."""

    encodings: list[Encoding]
    truncated: npt.NDArray[np.bool_]


class TextEncoder:
    """Hidden states of one layer for every token of a text, special tokens included.

    `layer` counts from 1; 0 is the embedding layer. Layers above it are not computed. Tokenizer and model are
    loaded when they are first needed, from local files, never running code from the model's folder.
    """

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
        self.source = source
        self.layer = source.n_layers if layer is None else layer
        if not 0 <= self.layer <= source.n_layers:
            raise EncoderError(source.name, f"has layers 0 to {source.n_layers}, not {self.layer}")
        self.max_length = source.max_length(max_length)
        self.dtype = dtype
        self._device, self._batch_tokens = device, batch_tokens

    @cached_property
    def tokenizer(self) -> Any:
        """The encoder's own tokenizer."""
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(str(self.source.folder), local_files_only=True, trust_remote_code=False)

    @cached_property
    def engine(self) -> Engine:
        """The engine all batches go through."""
        pad = self.tokenizer.pad_token_id
        return Engine(device=self._device, batch_tokens=self._batch_tokens, pad_id=0 if pad is None else pad)

    @cached_property
    def model(self) -> torch.nn.Module:
        """The encoder up to `layer`, in evaluation mode on the engine's device."""
        import torch
        from transformers import AutoModel

        with _without_progress_bar():
            model = AutoModel.from_pretrained(
                str(self.source.folder),
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                attn_implementation=self.source.attention,
                dtype=torch.bfloat16 if self.dtype == "bf16" else torch.float32,
            )
        # Not every architecture runs without any layer, so the embeddings come from a model of one.
        _keep_layers(model, self.source, max(self.layer, 1))
        return model.eval().to(self.engine.device)

    @cached_property
    def special_ids(self) -> Ints:
        """Numbers of the tokens that stand for no part of the text: class, separator, padding."""
        tokens = (self.tokenizer.cls_token_id, self.tokenizer.sep_token_id, self.tokenizer.pad_token_id)
        return np.array([token for token in tokens if token is not None], dtype=np.int64)

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Token numbers with special tokens; a text beyond `max_length` loses its end."""
        # RoBERTa's vocabulary tells a word at the beginning from one after a space; texts begin as if after one.
        lead = " " if self.source.model_type == "roberta" else ""
        lines = [lead + text.strip() for text in texts]
        if not lines:
            return Tokenized([], np.zeros(0, dtype=np.bool_))
        found = self.tokenizer(lines, return_attention_mask=False, return_token_type_ids=False, verbose=False)
        ids = [tuple(row) for row in found["input_ids"]]
        truncated = np.array([len(row) > self.max_length for row in ids])
        long = np.flatnonzero(truncated)
        if len(long):
            cut = self.tokenizer([lines[row] for row in long], truncation=True, max_length=self.max_length)
            for row, shorter in zip(long, cut["input_ids"], strict=True):
                ids[row] = tuple(shorter)
        # A tokenizer without special tokens may find nothing at all; one padding token keeps the place.
        empty = (self.engine.pad_id,)
        return Tokenized([Encoding(row or empty) for row in ids], truncated)

    def encode(self, encodings: Sequence[Encoding]) -> TokenVectors:
        """The vectors of every token, in the order of the inputs. Inputs should be distinct."""
        import torch

        lengths = np.array([len(encoding.ids) for encoding in encodings], dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        ids = np.fromiter((t for e in encodings for t in e.ids), np.int64, int(lengths.sum()))
        flat: torch.Tensor | None = None
        for rows, hidden in self.engine.batches(encodings, self.forward):
            if flat is None:
                flat = torch.empty((len(ids), hidden.shape[-1]), dtype=torch.float32, device=hidden.device)
            kept = np.arange(hidden.shape[1])[None, :] < lengths[rows][:, None]
            places = (starts[rows][:, None] + np.arange(hidden.shape[1])[None, :])[kept]
            where = torch.from_numpy(places).to(hidden.device)
            flat[where] = hidden[torch.from_numpy(kept).to(hidden.device)].float()
        vectors = torch.empty((0, 0)) if flat is None else flat
        return TokenVectors(vectors, ids, starts, lengths)

    def forward(self, batch: Batch) -> torch.Tensor:
        """(rows, tokens, width) hidden states of the layer."""
        output = self.model(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            output_hidden_states=self.layer == 0,
        )
        return output.hidden_states[0] if self.layer == 0 else output.last_hidden_state


def _keep_layers(model: torch.nn.Module, source: EncoderSource, layer: int) -> None:
    """Drop the layers above `layer`, wherever the architecture keeps its list of them."""
    import torch

    if layer == source.n_layers:
        return
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == source.n_layers:
            owner, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(owner), attribute, module[:layer])
            return
    raise EncoderError(source.name, f"its layers were not found ({source.model_type}); leave out `layer`")


@contextmanager
def _without_progress_bar() -> Iterator[None]:
    """transformers draws a bar when it reads weights; a library should not."""
    from transformers.utils import logging

    enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()
