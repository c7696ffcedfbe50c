"""The pair classifier: an encoder, one vector for the pair, three logits. Imports torch."""

from __future__ import annotations

from typing import Any

import torch

from scoring.ml.encoders.forward import first_vectors
from scoring.ml.engine import Batch
from scoring.ml.layers.pooling import Pooling, pool
from scoring.ml.network import Network
from scoring.ml.training.batches import as_inputs

#: The classes, always of the first text against the second.
WORSE, TIE, BETTER = 0, 1, 2
DROPOUT = 0.1
# A logit that no other reaches, finite in every number format.
_NEVER = -1e4


class ComparativeNetwork(Network):
    """Logits over worse, tie, better; with `single` one logit for "written by a person".

    `pooling` "cls": the first token through a dense layer and tanh, as BERT's own pooler, whose weights it takes
    where the encoder has one. Without `tie` that class is never chosen.
    """

    def build(self, network: dict[str, Any], width: int) -> None:
        self.pooling = str(network["pooling"])
        self.tie, self.single = bool(network["tie"]), bool(network["single"])
        if self.pooling == "cls":
            self.dense = torch.nn.Linear(width, width)
            own = getattr(getattr(self.encoder, "pooler", None), "dense", None)
            if own is not None and own.weight.shape == self.dense.weight.shape:
                with torch.no_grad():
                    self.dense.weight.copy_(own.weight)
                    self.dense.bias.copy_(own.bias)
        self.dropout = torch.nn.Dropout(DROPOUT)
        self.classifier = torch.nn.Linear(width, 1 if self.single else 3)
        torch.nn.init.normal_(self.classifier.weight, std=0.02)
        torch.nn.init.zeros_(self.classifier.bias)

    def forward(self, targets: torch.Tensor | None = None, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """`targets` (rows, 3) are distributions over the classes, (rows,) the probability of "a person" if single.

        loss = mean over rows of - sum_c target_c log softmax(logits)_c; binary cross-entropy if single.
        """
        how: Pooling = "cls" if self.pooling == "cls" else "mean"
        logits = self._logits(pool(self.hidden(**inputs), inputs["attention_mask"], how))
        if targets is None:
            return {"logits": logits}
        if self.single:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits.float(), targets)
        else:
            loss = torch.nn.functional.cross_entropy(logits.float(), targets)
        return {"logits": logits, "loss": self.note_loss(loss)}

    @torch.no_grad()
    def infer(self, batch: Batch) -> torch.Tensor:
        """The logits of a batch of the engine, without padding where that is faster."""
        if self.pooling == "cls" and self.encoder is not None and not self.training:
            return self._logits(first_vectors(self.encoder, batch))
        logits: torch.Tensor = self(**as_inputs(batch))["logits"]
        return logits

    def _logits(self, vectors: torch.Tensor) -> torch.Tensor:
        if self.pooling == "cls":
            vectors = torch.tanh(self.dense(self.dropout(vectors)))
        logits: torch.Tensor = self.classifier(self.dropout(vectors))
        if self.single:
            return logits.squeeze(-1)
        return logits if self.tie else logits + logits.new_tensor([0.0, _NEVER, 0.0])
