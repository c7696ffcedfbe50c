"""The pair classifier: an encoder, one vector for the pair, three logits; and separate vectors of its two texts.

Imports torch.
"""

from __future__ import annotations

from typing import Any, cast

import torch

from scoring.ml.encoders.forward import first_vectors, pooled_vectors, token_vectors
from scoring.ml.encoders.separate import PARTS, join_vectors
from scoring.ml.engine import Batch
from scoring.ml.layers.pooling import Pooling, pool
from scoring.ml.network import Network

DROPOUT = 0.1
# A logit that no other reaches, finite in every number format.
_NEVER = -1e4


class ComparativeNetwork(Network):
    """Logits over worse, tie, better; with `single` one logit for "written by a person".

    `pooling` "cls": the first token through a dense layer and tanh, as BERT's own pooler, whose weights it takes where
    the encoder has one. "mean": the mean of all tokens. "sides": the means a and b over the tokens of either text as a,
    b, |a - b|, a * b; `separator` and `between` (`PairReader.separator`) say where they are. Without `tie` that class
    is never chosen. With `texts` above 1 the rows are that many texts, each read alone (`encoders.separate`).
    """

    def build(self, network: dict[str, Any], width: int) -> None:
        self.tie, self.single = bool(network["tie"]), bool(network["single"])
        self.texts = int(network.get("texts", 0))
        # A text alone has no other side.
        alone = self.single or self.texts > 1
        self.pooling = "mean" if alone and network["pooling"] == "sides" else str(network["pooling"])
        self.marks = (int(network["separator"]), int(network["between"])) if self.pooling == "sides" else (0, 0)
        self.has_dense = self.pooling == "cls" and self.texts < 2
        if self.has_dense:
            self.dense = torch.nn.Linear(width, width)
            own = getattr(getattr(self.encoder, "pooler", None), "dense", None)
            if own is not None and own.weight.shape == self.dense.weight.shape:
                with torch.no_grad():
                    self.dense.weight.copy_(own.weight)
                    self.dense.bias.copy_(own.bias)
        self.dropout = torch.nn.Dropout(DROPOUT)
        parts = 4 if self.pooling == "sides" else PARTS.get(self.texts, 1)
        self.classifier = torch.nn.Linear(parts * width, 1 if self.single else 3)
        torch.nn.init.normal_(self.classifier.weight, std=0.02)
        torch.nn.init.zeros_(self.classifier.bias)

    def forward(self, targets: torch.Tensor | None = None, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """`targets` (rows, 3) are distributions over the classes, (rows,) the probability of "a person" if single.

        loss = mean over rows of - sum_c target_c log softmax(logits)_c; binary cross-entropy if single.
        """
        logits = self._logits(self._pooled(**inputs))
        if targets is None:
            return {"logits": logits}
        return {"logits": logits, "loss": self.note_loss(self._loss(logits.float(), targets))}

    def _loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if self.single:
            return torch.nn.functional.binary_cross_entropy_with_logits(logits, targets)
        return torch.nn.functional.cross_entropy(logits, targets)

    @property
    def head_layer(self) -> torch.nn.Linear:
        """The classifier."""
        return self.classifier

    def head_loss(self, logits: torch.Tensor, **values: torch.Tensor) -> torch.Tensor:
        """The loss of logits (rows, classes), with the `targets` of `forward`."""
        return self._loss(self._allowed(logits), values["targets"])

    @torch.no_grad()
    def read_features(self, batch: Batch) -> torch.Tensor:
        """(rows, k) what the classifier reads, at inference."""
        assert self.encoder is not None
        if self.pooling == "sides":
            return side_vectors(self.encoder, batch, *self.marks)
        if self.pooling == "cls":
            return self._transformed(first_vectors(self.encoder, batch))
        return pooled_vectors(self.encoder, batch, "mean")

    @torch.no_grad()
    def read_texts(self, batch: Batch) -> torch.Tensor:
        """(texts, width) vectors of texts that are read alone, at inference."""
        assert self.encoder is not None
        return pooled_vectors(self.encoder, batch, self._how)

    @torch.no_grad()
    def judge_features(self, features: torch.Tensor) -> torch.Tensor:
        """The logits from what the classifier reads, (rows, k)."""
        return self._logits(features.to(self.classifier.weight.dtype))

    @torch.no_grad()
    def infer(self, batch: Batch) -> torch.Tensor:
        """The logits of a batch of the engine, without padding where that is faster."""
        if self.encoder is not None and not self.training and self.pooling == "cls":
            return self._logits(first_vectors(self.encoder, batch))
        if self.encoder is not None and not self.training and self.pooling == "sides":
            return self._logits(side_vectors(self.encoder, batch, *self.marks))
        return cast("torch.Tensor", self(**batch.inputs)["logits"])

    @property
    def _how(self) -> Pooling:
        return "cls" if self.pooling == "cls" else "mean"

    def _pooled(self, places: torch.Tensor | None = None, **inputs: torch.Tensor) -> torch.Tensor:
        hidden, mask = self.hidden(**inputs), inputs["attention_mask"]
        if places is not None:
            return join_vectors(pool(hidden, mask, self._how), places)
        if self.pooling == "sides":
            return pool_sides(hidden, number_sides(inputs["input_ids"], mask, *self.marks))
        return pool(hidden, mask, self._how)

    def _logits(self, vectors: torch.Tensor) -> torch.Tensor:
        return self._allowed(self.classifier(self.dropout(self._transformed(vectors))))

    def _transformed(self, vectors: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.dense(self.dropout(vectors))) if self.has_dense else vectors

    def _allowed(self, logits: torch.Tensor) -> torch.Tensor:
        """(rows,) if single; without ties their logit is out of reach."""
        if self.single:
            return logits.squeeze(-1)
        return logits if self.tie else logits + logits.new_tensor([0.0, _NEVER, 0.0])


def number_sides(ids: torch.Tensor, mask: torch.Tensor, separator: int, between: int) -> torch.Tensor:
    """Return (rows, tokens): 0 for tokens of the first text, 1 for the second, 2 elsewhere.

    `ids` and `mask` are (rows, tokens). An input ends with one `separator` and has `between` separators between its
    texts, as in `[CLS] c [SEP] a [SEP] b [SEP]` and `<s> c </s></s> a </s></s> b </s>`: the last text is the second,
    the one before it the first. In `[CLS] a [SEP] b [SEP]` the first includes the class token.
    """
    kept = mask.bool()
    ends = (ids == separator) & kept
    seen = ends.cumsum(dim=1)
    last = seen[:, -1:]
    sides = torch.full_like(seen, 2)
    sides[kept & ~ends & (seen == last - 1)] = 1
    sides[kept & ~ends & (seen == last - 1 - between)] = 0
    return sides


def pool_sides(hidden: torch.Tensor, sides: torch.Tensor) -> torch.Tensor:
    """Return (rows, 4 width): a, b, |a - b| and a * b of the mean vectors a and b of both texts.

    `hidden` is (rows, tokens, width), `sides` (rows, tokens) as from `number_sides`. A text without tokens is a vector
    of zeros.
    """
    means = []
    for side in (0, 1):
        kept = (sides == side).unsqueeze(-1).to(hidden.dtype)
        means.append((hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp_min(1.0))
    return _together(*means)


def side_vectors(encoder: torch.nn.Module, batch: Batch, separator: int, between: int) -> torch.Tensor:
    """Return `pool_sides` of the last hidden states of `encoder` for a `batch`, without gradients, and without padding
    where that is faster.

    `separator` and `between` are those of `number_sides`.
    """
    hidden = token_vectors(encoder, batch)
    mask = batch.attention_mask.bool()
    sides = number_sides(batch.input_ids, mask, separator, between)
    # Each row has three places: its first text, its second, and the rest.
    owner = (sides + 3 * torch.arange(len(sides), device=sides.device)[:, None])[mask]
    sums = torch.zeros((3 * len(sides), hidden.shape[1]), dtype=torch.float32, device=hidden.device)
    sums.index_add_(0, owner, hidden.float())
    counts = torch.bincount(owner, minlength=len(sums)).clamp_min(1)
    means = (sums / counts[:, None]).view(len(sides), 3, -1)
    return _together(means[:, 0], means[:, 1]).to(hidden.dtype)


def _together(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.cat([a, b, (a - b).abs(), a * b], dim=1)
