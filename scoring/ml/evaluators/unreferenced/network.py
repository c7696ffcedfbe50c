"""The base of all networks of this package: contexts and replies become vectors, a small classifier compares them.

How texts reach a network (cached vectors, or tokens) is here as well; each network has a module of its own.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from scoring.ml.encodings import Encodings, Ints, ragged_places
from scoring.ml.evaluators.unreferenced.losses import hinge_loss, nce_loss
from scoring.ml.network import Network


class Tokens(NamedTuple):
    """Token numbers (texts, longest), filled up with 0, and how many each text has."""

    ids: Tensor
    lengths: Tensor


class VectorStore:
    """Cached vectors by row."""

    def __init__(self, vectors: npt.NDArray[np.floating], device: str) -> None:
        self.vectors, self.device = vectors, device

    def take(self, rows: Ints) -> Tensor:
        """(rows, width) in fp32 on the device."""
        return torch.from_numpy(np.asarray(self.vectors[rows], dtype=np.float32)).to(self.device)


class TokenStore:
    """Tokens by row."""

    def __init__(self, encodings: Encodings, device: str) -> None:
        self.encodings, self.device = encodings, device

    def take(self, rows: Ints) -> Tokens:
        """The texts of the rows, padded to the longest."""
        lengths = self.encodings.lengths[rows]
        ids = np.zeros((len(rows), int(lengths.max()) if len(rows) else 0), dtype=np.int64)
        ids[np.arange(ids.shape[1]) < lengths[:, None]] = self.encodings.ids[
            ragged_places(self.encodings.starts[rows], lengths)
        ]
        return Tokens(torch.from_numpy(ids).to(self.device), torch.from_numpy(lengths))


Store: TypeAlias = VectorStore | TokenStore


class Examples(NamedTuple):
    """Contexts of a batch: `texts` are their turns end to end, `lengths` (contexts,) the turns of each; `owner`
    (examples,) is the context of each example and `position` the number of turns before it."""

    texts: Any
    lengths: Tensor
    owner: Tensor
    position: Tensor


class UnreferencedNetwork(Network):
    """sigmoid(MLP([features of context vector c and reply vector h])).

    Subclasses say whether they read `vectors` or `tokens`, whether each context is one `flat` text, build their parts
    in `build_parts` (which returns the number of features) and give `contexts`, `replies` and `features`.
    """

    reads: ClassVar[Literal["vectors", "tokens"]]
    flat: ClassVar[bool]

    def build(self, network: dict[str, Any], width: int) -> None:
        self.sizes = network
        n_features = self.build_parts(network)
        self.classifier = nn.Sequential(
            nn.Linear(n_features, int(network["decoder"])),
            nn.ReLU(),
            nn.Dropout(float(network["dropout"])),
            nn.Linear(int(network["decoder"]), 1),
        )

    def build_parts(self, network: dict[str, Any]) -> int:
        """Make the layers below the classifier; return the number of its features."""
        raise NotImplementedError

    def contexts(self, texts: Any, lengths: Tensor) -> Tensor:
        """(contexts, turns, size): the vector of every beginning of each context. `texts` are the turns end to end,
        `lengths` (contexts,) how many each has."""
        raise NotImplementedError

    def replies(self, texts: Any) -> Tensor:
        """(texts, size) the vector of each reply."""
        raise NotImplementedError

    def features(self, c: Tensor, h: Tensor) -> Tensor:
        """(..., features) of a context vector and a reply vector."""
        raise NotImplementedError

    def logits(self, c: Tensor, h: Tensor) -> Tensor:
        """(...,) before the sigmoid. Texts that the option `inputs` excludes are replaced by zeros."""
        inputs = self.sizes.get("inputs", "both")
        if inputs == "text":
            c = torch.zeros_like(c)
        if inputs == "context":
            h = torch.zeros_like(h)
        return cast(Tensor, self.classifier(self.features(c, h))).squeeze(-1)

    def chosen_contexts(self, texts: Any, lengths: Tensor, owner: Tensor, position: Tensor) -> Tensor:
        """(examples, size) vector of the first `position` turns of context `owner` of each example."""
        return self.contexts(texts, lengths)[owner, position - 1]

    def forward(
        self,
        examples: Examples,
        reply_texts: Any,
        reply_places: Tensor,
        targets: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """`logits` (examples, replies); with `targets` (replies,) and `weights` (examples, replies) also `loss`.

        `reply_places` (examples, replies) are places in `reply_texts`, so that a text is read once in a batch.
        """
        c = self.chosen_contexts(*examples)
        h = self.replies(reply_texts)[reply_places]
        result = self.logits(c[:, None, :].expand(-1, h.shape[1], -1), h)
        if targets is None or weights is None:
            return {"logits": result}
        if self.sizes.get("loss", "nce") == "hinge":
            loss = hinge_loss(result, targets, weights, float(self.sizes["margin"]))
        else:
            loss = nce_loss(result, targets, weights)
        return {"logits": result, "loss": self.note_loss(loss)}


def compared(c: Tensor, h: Tensor, difference: str) -> Tensor:
    """Return the features of a context vector `c` and a reply vector `h`: [c, h, |c - h|, c * h] as released, or with
    `difference` signed [h, c, h * c, h - c] as printed (Sinha et al. 2020, equations 3, 4)."""
    if difference == "signed":
        return torch.cat([h, c, h * c, h - c], dim=-1)
    return torch.cat([c, h, (c - h).abs(), c * h], dim=-1)


class TokenPairNetwork(UnreferencedNetwork):
    """Base of networks with learned word embeddings: a recurrent reader of the context as one text, and one of the
    reply. Sizes: `vocabulary`, `embedding`, `hidden`, `cell`."""

    reads: ClassVar[Literal["vectors", "tokens"]] = "tokens"
    flat: ClassVar[bool] = True

    def build_parts(self, network: dict[str, Any]) -> int:
        """Make embeddings and readers; return the size of a reader's vector."""
        words, embedding, hidden = (int(network[name]) for name in ("vocabulary", "embedding", "hidden"))
        self.words = nn.Embedding(words, embedding)
        self.query = TokenReader(embedding, hidden, str(network["cell"]))
        self.reply = TokenReader(embedding, hidden, str(network["cell"]))
        return 2 * hidden

    def contexts(self, texts: Tokens, lengths: Tensor) -> Tensor:
        return self.read_context(texts)[:, None, :]

    def read_context(self, texts: Tokens) -> Tensor:
        """(contexts, size) the vector of each context."""
        return cast(Tensor, self.query(self.words(texts.ids), texts.lengths))

    def replies(self, texts: Tokens) -> Tensor:
        return cast(Tensor, self.reply(self.words(texts.ids), texts.lengths))


class TokenReader(nn.Module):
    """A recurrent layer in both directions over word vectors; the largest value of each feature over the words."""

    def __init__(self, embedding: int, hidden: int, cell: str) -> None:
        super().__init__()
        kind = nn.GRU if cell == "gru" else nn.LSTM
        self.recurrent = kind(embedding, hidden, batch_first=True, bidirectional=True)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        """(texts, 2 hidden) from `words` (texts, longest, embedding); padding never enters."""
        packed = nn.utils.rnn.pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
        states, _ = self.recurrent(packed)
        outputs, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)
        padding = torch.arange(outputs.shape[1])[None, :] >= lengths[:, None]
        return outputs.masked_fill(padding.to(outputs.device)[:, :, None], float("-inf")).amax(dim=1)
