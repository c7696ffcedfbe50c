"""An encoder, a tanh layer and a head per aspect; or one encoder per aspect, the rival the paper compares with.

Explained in docs/explanation/evaluators/shared-bert.md#model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch.nn import functional

from scoring.ml.encoders.forward import pooled_vectors
from scoring.ml.encoders.separate import PARTS, join_vectors
from scoring.ml.engine import Batch
from scoring.ml.layers.pooling import Pooling, pool
from scoring.ml.network import TowerNetwork


class SharedBertNetwork(TowerNetwork):
    """logits (rows, aspects). `network`: `aspects` (number), `pooling`, `shared`.

    With `pooling="pooler"` the encoder's own pooler (dense and tanh over the first token) feeds the head, as in the
    paper, whose head then has width x aspects weights. Otherwise with `dense` a new dense layer with tanh replaces it;
    without, the head is linear in the pooled vector and can be fitted alone. With `texts` 2 or 3 output,
    reference and context are each read alone (`encoders.separate`), and the head, without dense layer, reads the
    features of all.
    """

    heads_by_tower = ("heads", "dense")

    def build(self, network: dict[str, Any], width: int) -> None:
        self.aspects, self.pooling = int(network["aspects"]), str(network["pooling"])
        towers = 1 if network["shared"] else self.aspects
        heads = self.aspects if network["shared"] else 1
        # Networks saved by earlier versions all have it.
        self.texts = int(network.get("texts", 0))
        dense = self.texts < 2 and self.pooling != "pooler" and bool(network.get("dense", True))
        self.add_towers(towers)
        self.dense = _layers(width, width, towers) if dense else torch.nn.ModuleList()
        self.heads = _layers(PARTS.get(self.texts, 1) * width, heads, towers)
        self.dropout = torch.nn.Dropout(0.1)

    def forward(
        self,
        labels: torch.Tensor | None = None,
        beta: torch.Tensor | None = None,
        places: torch.Tensor | None = None,
        **inputs: torch.Tensor,
    ) -> dict[str, torch.Tensor]:
        """`labels` (rows, aspects) from 0 to 1 with nan where unknown; `beta` (rows, aspects) the weight of the good
        ones."""
        logits = torch.cat([self._tower(number, inputs, places) for number in range(len(self.heads))], dim=-1)
        if labels is None or beta is None:
            return {"logits": logits}
        return {"logits": logits, "loss": self.note_loss(balanced_cross_entropy(logits, labels, beta))}

    def counted(self, inputs: Mapping[str, torch.Tensor]) -> float:
        """The labels that are known: the loss is their mean."""
        return float((~torch.isnan(inputs["labels"])).sum())

    def judge(self, batch: Batch) -> torch.Tensor:
        """logits (rows, aspects) at inference, over the encoder's unpadded forward where there is one."""
        if self.pooling == "pooler":
            return cast("torch.Tensor", self(**batch.inputs)["logits"])
        columns = [head(self.read_features(batch, number)) for number, head in enumerate(self.heads)]
        return torch.cat(columns, dim=-1)

    def read_features(self, batch: Batch, number: int = 0) -> torch.Tensor:
        """(rows, width) what the head of a tower reads, at inference."""
        if self.pooling == "pooler":
            return cast("torch.Tensor", self.tower(number)(**batch.inputs).pooler_output)
        vector = pooled_vectors(self.tower(number), batch, self._how)
        return self._transformed(number, vector.to(next(self.heads[number].parameters()).dtype))

    def read_texts(self, batch: Batch, number: int = 0) -> torch.Tensor:
        """(texts, width) vectors by a tower of texts that are read alone, at inference."""
        return self.read_features(batch, number)

    def judge_features(self, features: torch.Tensor, number: int = 0) -> torch.Tensor:
        """The logits of a tower from what its head reads, (rows, k)."""
        head = cast("torch.nn.Linear", self.heads[number])
        return cast("torch.Tensor", head(features.to(head.weight.dtype)))

    @property
    def head_layer(self) -> torch.nn.Linear:
        """The head of the first tower."""
        return cast("torch.nn.Linear", self.heads[0])

    def head_loss(self, logits: torch.Tensor, **values: torch.Tensor) -> torch.Tensor:
        """The loss of logits (rows, aspects), with the values of `forward`."""
        return balanced_cross_entropy(logits, values["labels"], values["beta"])

    @property
    def _how(self) -> Pooling:
        return "mean" if self.pooling == "mean" else "cls"

    def _transformed(self, number: int, vector: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.dense[number](vector)) if len(self.dense) else vector

    def _tower(self, number: int, inputs: dict[str, torch.Tensor], places: torch.Tensor | None) -> torch.Tensor:
        output = self.tower(number)(**inputs)
        if self.pooling == "pooler":
            vector = output.pooler_output
        else:
            vector = self._transformed(number, pool(output.last_hidden_state, inputs["attention_mask"], self._how))
        if places is not None:
            vector = join_vectors(vector, places)
        return cast("torch.Tensor", self.heads[number](self.dropout(vector)))


def balanced_cross_entropy(logits: torch.Tensor, labels: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    """-beta y log p - (1 - beta) (1 - y) log(1 - p), mean over the labels y that are known, from 0 to 1;
    p = sigmoid(logits).

    Reddy 2022, equation 1: beta = .3535 gives .078881 for (y=1, p=.8) and 1.040502 for (0, .8).
    """
    known = ~torch.isnan(labels)
    y = torch.where(known, labels, torch.zeros_like(labels))
    loss = beta * y * functional.softplus(-logits) + (1 - beta) * (1 - y) * functional.softplus(logits)
    return (loss * known).sum() / known.sum().clamp_min(1)


def _layers(width: int, out: int, n: int) -> torch.nn.ModuleList:
    layers = torch.nn.ModuleList(torch.nn.Linear(width, out) for _ in range(n))
    for layer in layers:
        torch.nn.init.normal_(layer.weight, std=0.02)  # type: ignore[arg-type]
        torch.nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return layers
