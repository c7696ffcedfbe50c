"""BERT-NLI, a rival of MAUDE: the whole context is read as one text with one frozen vector.

c = W x, h = r, score = sigmoid(MLP([c, h, |c - h|, c * h])). A context longer than the encoder reads loses its oldest
part (the release fails there).

Explained in docs/explanation/evaluators/unreferenced.md#networks.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from scoring.ml.evaluators.unreferenced.frame import UnreferencedEvaluator
from scoring.ml.evaluators.unreferenced.network import UnreferencedNetwork, compared


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
    """The evaluator."""

    network_class = BertNliNetwork
