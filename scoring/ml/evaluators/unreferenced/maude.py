"""MAUDE (Sinha et al., ACL 2020): scores a reply by whether it follows its context.

The network is recurrent over frozen utterance vectors: c = W max_t LSTM(D x_1, ..., D x_t), h = D r, score =
sigmoid(MLP([c, h, |c - h|, c * h])); D is shared by context and reply. A dialogue is also scored while it grows: each
new turn costs one utterance and one step of the network. Training and scoring are in `frame.py`. Explained in
docs/explanation/evaluators/unreferenced.md#networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from scoring.ml.errors import ScoringError
from scoring.ml.evaluators.unreferenced.conversations import prepare_turns
from scoring.ml.evaluators.unreferenced.frame import UnreferencedEvaluator
from scoring.ml.evaluators.unreferenced.network import UnreferencedNetwork, compared
from scoring.ml.signature import SignatureField
from scoring.ml.types import Record

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


class Maude(UnreferencedEvaluator):
    """The evaluator; `open_dialogue` gives an object that follows a conversation as it grows."""

    network_class = MaudeNetwork

    def open_dialogue(self, turns: tuple[str, ...] | list[str] = ()) -> LiveDialogue:
        """A conversation that begins with `turns`; the cost of a further turn does not depend on its length."""
        live = LiveDialogue(self)
        for turn in turns:
            live.say(turn)
        return live

    def own_fields(self) -> list[SignatureField]:
        """Also layers, directions and how padding is read."""
        settings = self.settings
        both = "bi" if settings["bidirectional"] else ""
        fields = [SignatureField("net", "net", f"{both}lstm{settings['layers']}x{settings['hidden']}")]
        if settings["pad_attended"]:
            fields.append(SignatureField("pad", "pad", "attended"))
        return [*super().own_fields(), *fields]


class LiveDialogue:
    """Keeps the recurrent state and the largest outputs so far; equal to the evaluator's `score` within 1e-5.

    `say` adds a turn, `score` scores replies to what was said, `reply` does both and counts for `mean`. In one
    direction nothing said before is read again. With `bidirectional` or `pad_attended` the network has to read the
    whole context for each score; then the turns themselves are kept.
    """

    def __init__(self, evaluator: UnreferencedEvaluator) -> None:
        self.evaluator = evaluator
        self.turns: list[str] = []
        self.scores: list[float] = []
        settings = evaluator.settings
        self._whole = bool(settings["bidirectional"] or settings["pad_attended"])
        self._state: State | None = None
        self._largest: Tensor | None = None

    @property
    def mean(self) -> float:
        """The score of the dialogue: the mean over the replies that were scored, nan without any."""
        return sum(self.scores) / len(self.scores) if self.scores else float("nan")

    def say(self, text: str) -> None:
        """Add a turn of either speaker. Blank turns and lines of a persona are skipped."""
        for turn in prepare_turns([text], bool(self.evaluator.settings["lower_case"])):
            self.turns.append(turn)
            if not self._whole:
                self._read(turn)

    def score(self, replies: Sequence[str]) -> list[float]:
        """The score of each reply to what was said. Raises `ScoringError` when nothing was said yet."""
        if not self.turns:
            raise ScoringError("nothing was said yet: a reply is scored against the turns before it")
        if self._whole:
            records = [Record(text, context=tuple(self.turns)) for text in replies]
            return [float(value) for value in self.evaluator.evaluate(records).values]
        texts = [self.evaluator.prepared(text) for text in replies]
        said = [place for place, text in enumerate(texts) if text]
        result = [self.evaluator.worst] * len(replies)
        if said:
            assert self._largest is not None
            with torch.inference_mode():
                c = self._network.context_of_largest(self._largest)
                h = self._network.replies(self._vectors([texts[place] for place in said]))
                values = torch.sigmoid(self._network.logits(c[None].expand(len(said), -1), h).double())
            for place, value in zip(said, values.tolist(), strict=True):
                result[place] = float(value)
        return result

    def reply(self, text: str) -> float:
        """The score of the model's next turn, which then belongs to the dialogue."""
        value = self.score([text])[0]
        self.scores.append(value)
        self.say(text)
        return value

    def _read(self, turn: str) -> None:
        with torch.inference_mode():
            vector = self._vectors([turn])[0]
            self._state, self._largest = self._network.step(vector, self._state, self._largest)

    def _vectors(self, texts: Sequence[str]) -> Tensor:
        encoder = self.evaluator.utterances
        vectors = encoder.vectors(encoder.tokenize(texts).encodings)
        return torch.from_numpy(vectors).to(self.evaluator.device)

    @property
    def _network(self) -> MaudeNetwork:
        return cast(MaudeNetwork, self.evaluator.network)
