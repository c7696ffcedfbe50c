"""The network of MAUDE (Sinha et al., ACL 2020): recurrent over frozen utterance vectors.

c = W max_t LSTM(D x_1, ..., D x_t), h = D r, score = sigmoid(MLP([c, h, |c - h|, c * h])); D is shared by context and
reply. Explained in docs/explanation/evaluators/unreferenced.md#networks.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from scoring.ml.evaluators.unreferenced.network import UnreferencedNetwork, compared

State = tuple[Tensor, Tensor]


class MaudeNetwork(UnreferencedNetwork):
    """Sizes: `vector` (of an utterance), `down`, `hidden`, `layers`, `bidirectional`, `pool_zeros`, `difference`."""

    reads: ClassVar[Literal["vectors", "tokens"]] = "vectors"
    flat: ClassVar[bool] = False

    def build_parts(self, network: dict[str, Any]) -> int:
        down, hidden, both = int(network["down"]), int(network["hidden"]), bool(network["bidirectional"])
        self.down = nn.Linear(int(network["vector"]), down, bias=False)
        nn.init.xavier_normal_(self.down.weight)
        self.transition = nn.LSTM(down, hidden, num_layers=int(network["layers"]), batch_first=True, bidirectional=both)
        self.project = nn.Linear(hidden * (2 if both else 1), down, bias=False)
        nn.init.xavier_uniform_(self.project.weight)
        return 4 * down

    @property
    def bidirectional(self) -> bool:
        """Whether the network also reads a context from its end."""
        return bool(self.sizes["bidirectional"])

    def contexts(self, texts: Tensor, lengths: Tensor) -> Tensor:
        """In one direction place t holds the vector of the first t + 1 turns; in both only the last place counts."""
        return self.context_of_largest(self._largest(self._states(texts, lengths), lengths))

    def chosen_contexts(self, texts: Tensor, lengths: Tensor, owner: Tensor, position: Tensor) -> Tensor:
        largest = self._largest(self._states(texts, lengths), lengths)
        chosen = largest[owner, position - 1]
        if self.training and self.sizes["pool_zeros"]:
            # As released: outputs of the batch's padding are zeros, and the largest value is taken over them too.
            padded = (position < largest.shape[1])[:, None]
            chosen = torch.where(padded, chosen.clamp_min(0), chosen)
        return self.context_of_largest(chosen)

    def _states(self, texts: Tensor, lengths: Tensor) -> Tensor:
        """(contexts, longest, hidden) outputs of the recurrent layers."""
        x = self.down(self._cast(texts))
        places = torch.arange(int(lengths.max()), device=x.device)[None, :] < lengths.to(x.device)[:, None]
        padded = x.new_zeros((*places.shape, x.shape[1])).masked_scatter(places[:, :, None], x)
        if not self.bidirectional:
            # Padding comes last and never affects a turn.
            return cast(Tensor, self.transition(padded)[0])
        packed = nn.utils.rnn.pack_padded_sequence(padded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, _ = nn.utils.rnn.pad_packed_sequence(
            self.transition(packed)[0], batch_first=True, total_length=places.shape[1]
        )
        return outputs

    def _largest(self, states: Tensor, lengths: Tensor) -> Tensor:
        """The largest value of each feature up to each turn, or over all turns of each context."""
        if not self.bidirectional:
            return states.cummax(dim=1).values
        beyond = torch.arange(states.shape[1], device=states.device)[None, :] >= lengths.to(states.device)[:, None]
        whole = states.masked_fill(beyond[:, :, None], float("-inf")).amax(dim=1)
        return whole[:, None, :].expand(-1, states.shape[1], -1)

    def context_of_largest(self, largest: Tensor) -> Tensor:
        """(..., down) the context vectors of the largest outputs (..., hidden)."""
        return cast(Tensor, self.project(largest))

    def _cast(self, vectors: Tensor) -> Tensor:
        return vectors.to(self.down.weight.dtype)

    def replies(self, texts: Tensor) -> Tensor:
        return cast(Tensor, self.down(self._cast(texts)))

    def features(self, c: Tensor, h: Tensor) -> Tensor:
        return compared(c, h, str(self.sizes["difference"]))

    def step(self, vector: Tensor, state: State | None, largest: Tensor | None) -> tuple[State, Tensor]:
        """Read one more turn, its vector (width,): the new state and the largest outputs so far (hidden,)."""
        x = self.down(self._cast(vector))[None, None, :]
        output, new_state = self.transition(x, state)
        new = output[0, 0]
        return new_state, new if largest is None else torch.maximum(largest, new)
