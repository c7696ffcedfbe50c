"""InferSent, a rival of MAUDE: recurrent readers with learned word embeddings for context and reply (Conneau et al.
2017), score = sigmoid(MLP([q, r, |q - r|, q * r])), q = W times the reader's vector of the context as one text.

Explained in docs/explanation/evaluators/unreferenced.md#networks.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from scoring.ml.evaluators.unreferenced.frame import UnreferencedEvaluator
from scoring.ml.evaluators.unreferenced.network import TokenReader, Tokens, UnreferencedNetwork, compared


class InferSentNetwork(UnreferencedNetwork):
    """Sizes: `vocabulary`, `embedding`, `hidden`, `cell`, `difference`."""

    reads: ClassVar[Literal["vectors", "tokens"]] = "tokens"
    flat: ClassVar[bool] = True

    def build_parts(self, network: dict[str, Any]) -> int:
        words, embedding, hidden = (int(network[name]) for name in ("vocabulary", "embedding", "hidden"))
        self.words = nn.Embedding(words, embedding)
        self.query = TokenReader(embedding, hidden, str(network["cell"]))
        self.reply = TokenReader(embedding, hidden, str(network["cell"]))
        self.project = nn.Linear(2 * hidden, 2 * hidden, bias=False)
        nn.init.xavier_uniform_(self.project.weight)
        return 8 * hidden

    def contexts(self, texts: Tokens, lengths: Tensor) -> Tensor:
        found: Tensor = self.project(self.query(self.words(texts.ids), texts.lengths))
        return found[:, None, :]

    def replies(self, texts: Tokens) -> Tensor:
        found: Tensor = self.reply(self.words(texts.ids), texts.lengths)
        return found

    def features(self, c: Tensor, h: Tensor) -> Tensor:
        return compared(c, h, str(self.sizes["difference"]))


class InferSent(UnreferencedEvaluator):
    """The evaluator."""

    network_class = InferSentNetwork
