"""Rivals of MAUDE that read the whole context as one text.

BERT-NLI has one frozen vector x of the context: c = W x, h = r. A context longer than the encoder reads loses its
oldest part (the release fails there). InferSent (Conneau et al. 2017) has recurrent readers with learned word
embeddings for context and reply; c is W times the reader's vector of the context. Both score
sigmoid(MLP([c, h, |c - h|, c * h])).

Explained in docs/explanation/evaluators/unreferenced.md#networks.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, cast

from torch import Tensor, nn

from scoring.ml.evaluators.unreferenced.frame import UnreferencedEvaluator
from scoring.ml.evaluators.unreferenced.network import TokenPairNetwork, Tokens, UnreferencedNetwork, compared


class BertNliNetwork(UnreferencedNetwork):
    """Sizes: `vector` (of a text), `difference`."""

    reads: ClassVar[Literal["vectors", "tokens"]] = "vectors"
    flat: ClassVar[bool] = True

    def build_parts(self, network: dict[str, Any]) -> int:
        width = int(network["vector"])
        self.project = nn.Linear(width, width, bias=False)
        nn.init.xavier_uniform_(self.project.weight)
        return 4 * width

    def contexts(self, texts: Tensor, lengths: Tensor) -> Tensor:
        result: Tensor = self.project(texts.to(self.project.weight.dtype))
        return result[:, None, :]

    def replies(self, texts: Tensor) -> Tensor:
        return texts.to(self.project.weight.dtype)

    def features(self, c: Tensor, h: Tensor) -> Tensor:
        return compared(c, h, str(self.sizes["difference"]))


class BertNli(UnreferencedEvaluator):
    """The evaluator BERT-NLI."""

    network_class = BertNliNetwork


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
    """The evaluator InferSent."""

    network_class = InferSentNetwork
