"""InferSent, a rival of MAUDE: recurrent readers with learned word embeddings for context and reply (Conneau et al.
2017), score = sigmoid(MLP([q, r, |q - r|, q * r])), q = W times the reader's vector of the context as one text.

Explained in docs/explanation/evaluators/unreferenced.md#networks.
"""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor, nn

from scoring.ml.evaluators.unreferenced.frame import UnreferencedEvaluator
from scoring.ml.evaluators.unreferenced.network import TokenPairNetwork, Tokens, compared


class InferSentNetwork(TokenPairNetwork):
    """Further size: `difference`."""

    def build_parts(self, network: dict[str, Any]) -> int:
        size = super().build_parts(network)
        self.project = nn.Linear(size, size, bias=False)
        nn.init.xavier_uniform_(self.project.weight)
        return 4 * size

    def read_context(self, texts: Tokens) -> Tensor:
        return cast(Tensor, self.project(super().read_context(texts)))

    def features(self, c: Tensor, h: Tensor) -> Tensor:
        return compared(c, h, str(self.sizes["difference"]))


class InferSent(UnreferencedEvaluator):
    """The evaluator."""

    network_class = InferSentNetwork
