"""An encoder with a linear head."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from scoring.ml.encoders.forward import pooled_vectors
from scoring.ml.encoders.separate import PARTS, join_vectors
from scoring.ml.engine import Batch
from scoring.ml.layers.pooling import Pooling, pool
from scoring.ml.network import Network


class AdversarialNetwork(Network):
    """logit (rows,) = w . dropout(vector) + b; P(human) = sigmoid(logit). `network`: `pooling`, mean or cls; with
    `texts` 2 the vector of a row is made from those of text and context, each read alone (`encoders.separate`)."""

    def build(self, network: dict[str, Any], width: int) -> None:
        self.pooling = str(network["pooling"])
        self.texts = int(network.get("texts", 0))
        self.head = torch.nn.Linear(PARTS.get(self.texts, 1) * width, 1)
        torch.nn.init.normal_(self.head.weight, std=0.02)
        torch.nn.init.zeros_(self.head.bias)
        self.dropout = torch.nn.Dropout(0.1)

    def forward(
        self,
        labels: torch.Tensor | None = None,
        weights: torch.Tensor | None = None,
        places: torch.Tensor | None = None,
        **inputs: torch.Tensor,
    ) -> dict[str, torch.Tensor]:
        """`labels` (rows,) 1 where a person wrote the text; the loss is the mean cross-entropy, weighted."""
        vectors = pool(self.hidden(**inputs), inputs["attention_mask"], self._how)
        if places is not None:
            vectors = join_vectors(vectors, places)
        logits: torch.Tensor = self.head(self.dropout(vectors)).squeeze(-1)
        if labels is None:
            return {"logits": logits}
        loss = functional.binary_cross_entropy_with_logits(logits, labels, weight=weights)
        return {"logits": logits, "loss": self.note_loss(loss)}

    def read_features(self, batch: Batch) -> torch.Tensor:
        """(rows, width) what the head reads, at inference."""
        assert self.encoder is not None
        return pooled_vectors(self.encoder, batch, self._how).to(self.head.weight.dtype)

    def read_texts(self, batch: Batch) -> torch.Tensor:
        """(texts, width) vectors of texts that are read alone, at inference."""
        return self.read_features(batch)

    def judge(self, batch: Batch) -> torch.Tensor:
        """(rows,) P(human), at inference."""
        logits: torch.Tensor = self(**batch.inputs)["logits"]
        return torch.sigmoid(logits.float())

    def judge_features(self, features: torch.Tensor) -> torch.Tensor:
        """(rows,) P(human) from what the head reads, (rows, k)."""
        logits: torch.Tensor = self.head(features.to(self.head.weight.dtype)).squeeze(-1)
        return torch.sigmoid(logits.float())

    @property
    def head_layer(self) -> torch.nn.Linear:
        """The head."""
        return self.head

    def head_loss(self, logits: torch.Tensor, **values: torch.Tensor) -> torch.Tensor:
        """The loss of logits (rows, 1), with the values of `forward`."""
        labels = values["labels"]
        return functional.binary_cross_entropy_with_logits(logits.squeeze(-1), labels, weight=values["weights"])

    @property
    def _how(self) -> Pooling:
        return "cls" if self.pooling == "cls" else "mean"
