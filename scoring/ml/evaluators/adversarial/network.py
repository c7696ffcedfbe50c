"""An encoder with a linear head."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from scoring.ml.layers.pooling import pool
from scoring.ml.network import Network


class AdversarialNetwork(Network):
    """logit (rows,) = w . dropout(vector) + b; P(human) = sigmoid(logit). `network`: `pooling`, mean or cls."""

    def build(self, network: dict[str, Any], width: int) -> None:
        self.pooling = str(network["pooling"])
        self.head = torch.nn.Linear(width, 1)
        torch.nn.init.normal_(self.head.weight, std=0.02)
        torch.nn.init.zeros_(self.head.bias)
        self.dropout = torch.nn.Dropout(0.1)

    def forward(
        self,
        labels: torch.Tensor | None = None,
        weights: torch.Tensor | None = None,
        **inputs: torch.Tensor,
    ) -> dict[str, torch.Tensor]:
        """`labels` (rows,) 1 where a person wrote the text; the loss is the mean cross-entropy, weighted."""
        hidden = self.hidden(**inputs)
        vectors = pool(hidden, inputs["attention_mask"], "cls" if self.pooling == "cls" else "mean")
        logits: torch.Tensor = self.head(self.dropout(vectors)).squeeze(-1)
        if labels is None:
            return {"logits": logits}
        loss = functional.binary_cross_entropy_with_logits(logits, labels, weight=weights)
        return {"logits": logits, "loss": self.note_loss(loss)}
