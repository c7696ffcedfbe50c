"""A causal language model from a folder: log-probabilities of texts, alone or as answers to what they follow."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from scoring.ml.encoders.loading import load_pretrained, load_tokenizer
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.encoders.tokenizing import encode_texts
from scoring.ml.encodings import Encoding
from scoring.ml.engine import Batch, Dtype, Engine
from scoring.ml.errors import EncoderError

if TYPE_CHECKING:
    import torch

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
#: Longest window where neither option nor model says less: attention over more costs a lot for little.
LONGEST = 2048
# A token's output is as wide as the vocabulary, so a GPU takes fewer tokens at once than of an encoder.
GPU_BATCH_TOKENS = 8192


class Window(NamedTuple):
    """A part of an input: tokens `begin` to `end`; those from `scored` on count here."""

    row: int
    begin: int
    scored: int
    end: int


class CausalModel:
    """log p(text | context) of a transformers causal model; safetensors only, no code from the folder.

    An input is the beginning-of-sequence token, the context, the text; only the text's tokens count. One longer than
    `max_length` is read in windows: each begins `stride` tokens after the one before, and every token is counted
    once, with at least `max_length - stride` tokens before it in its window if there are that many.
    """

    def __init__(
        self,
        source: EncoderSource,
        *,
        max_length: int | None = None,
        stride: int | None = None,
        dtype: Dtype = "fp32",
        device: str = "auto",
        batch_tokens: int | None = None,
    ) -> None:
        architecture = str((source.config.get("architectures") or [""])[0])
        if not architecture.endswith(("ForCausalLM", "LMHeadModel")):
            result = architecture or "model without a name"
            raise EncoderError(source.name, f"is no causal language model but a {result}; take one *ForCausalLM")
        self.source, self.dtype = source, dtype
        positions = source.config.get("n_positions")
        limits = [limit for limit in (max_length or LONGEST, positions) if isinstance(limit, int)]
        self.max_length = source.max_length(min(limits))
        self.stride = min(stride or max(1, self.max_length // 2), self.max_length - 1)
        self._device, self._batch_tokens = device, batch_tokens

    @cached_property
    def tokenizer(self) -> Any:
        """The model's own tokenizer; it treats all input as plain text."""
        tokenizer = load_tokenizer(self.source)
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
        tokenizer.backend_tokenizer.encode_special_tokens = True
        return tokenizer

    @cached_property
    def bos_id(self) -> int:
        """The first token of every input: the tokenizer's, or its end-of-text token if it has none."""
        for token in (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        raise EncoderError(self.source.name, "its tokenizer has no beginning-of-sequence token: set bos_token")

    @cached_property
    def engine(self) -> Engine:
        """The engine that runs all batches."""
        pad = self.tokenizer.pad_token_id
        engine = Engine(device=self._device, batch_tokens=self._batch_tokens, pad_id=0 if pad is None else int(pad))
        if self._batch_tokens is None and engine.device != "cpu":
            engine.batch_tokens = GPU_BATCH_TOKENS
        return engine

    @cached_property
    def model(self) -> torch.nn.Module:
        """The model in evaluation mode on the engine's device."""
        model: torch.nn.Module = load_pretrained(self.source, "AutoModelForCausalLM", dtype=self.dtype)
        return model.to(self.engine.device)

    def log_likelihoods(self, texts: Sequence[str], contexts: Sequence[str] | None = None) -> tuple[Floats, Ints]:
        """(n,) the sum of log p over the tokens of each text, and (n,) the number of its tokens."""
        after = self._tokens(texts)
        before = self._tokens(contexts) if contexts is not None else [[]] * len(texts)
        inputs = [[self.bos_id, *context, *text] for context, text in zip(before, after, strict=True)]
        windows = [
            Window(row, *span)
            for row, (tokens, text) in enumerate(zip(inputs, after, strict=True))
            for span in plan_windows(len(tokens), len(tokens) - len(text), self.max_length, self.stride)
        ]
        encodings = [Encoding(tuple(inputs[w.row][w.begin : w.end])) for w in windows]
        sums = np.zeros(len(texts))
        for rows, output in self.engine.batches(encodings, self.forward):
            losses = output.double().cpu().numpy()
            for loss, place in zip(losses, rows.tolist(), strict=True):
                window = windows[place]
                # The output at a place is about the token after it.
                sums[window.row] += loss[window.scored - window.begin - 1 : window.end - window.begin - 1].sum()
        return sums, np.array([len(text) for text in after], dtype=np.int64)

    def forward(self, batch: Batch) -> torch.Tensor:
        """(rows, longest - 1) the log-probability of each token after the first, given those before it."""
        import torch

        logits = self.model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
        wanted = batch.input_ids[:, 1:]
        chosen = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1).float(), wanted.flatten(), reduction="none"
        )
        return -chosen.view(wanted.shape)

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        result = encode_texts(self.tokenizer.backend_tokenizer, texts)
        return [list(encoding.ids) for encoding in result]


def plan_windows(length: int, first: int, longest: int, stride: int) -> list[tuple[int, int, int]]:
    """Return (begin, first scored, end) of the windows that score the tokens from `first` (at least 1) to `length`.

    A window has at most `longest` tokens; each begins `stride` tokens after the previous one.
    """
    windows: list[tuple[int, int, int]] = []
    scored = first
    while scored < length:
        # The first window is as full as it may be; the others take one stride each.
        reach = max(longest, scored + stride) if not windows else scored + stride
        end = min(length, reach)
        windows.append((max(0, end - longest), scored, end))
        scored = end
    return windows
