"""MAUDE (Sinha et al., ACL 2020): scores a reply by whether it follows its context.

Also a dialogue that is scored while it grows: each new turn costs one utterance and one step of the network. Training
and scoring are in `frame.py`, the network in `maude_network.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from scoring.ml.errors import ScoringError
from scoring.ml.evaluators.unreferenced.conversations import prepare_turns
from scoring.ml.evaluators.unreferenced.frame import UnreferencedEvaluator
from scoring.ml.evaluators.unreferenced.maude_network import MaudeNetwork, State
from scoring.ml.signature import SignatureField
from scoring.ml.types import Record


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
