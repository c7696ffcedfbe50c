"""A frozen transformers encoder that turns texts into token vectors, on the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scoring.ml.encoders.forward import token_vectors
from scoring.ml.encoders.frozen import FrozenEncoder
from scoring.ml.encodings import Encoding, Encodings, TokenizedTexts, ragged_places
from scoring.ml.engine import Batch

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
