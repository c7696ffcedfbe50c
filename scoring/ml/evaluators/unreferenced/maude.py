"""MAUDE (Sinha et al., ACL 2020): scores a reply by whether it follows its context.

Training and scoring are in `frame.py`, the network in `maude_network.py`.
"""

from __future__ import annotations

from scoring.ml.evaluators.unreferenced.frame import UnreferencedEvaluator
from scoring.ml.evaluators.unreferenced.live import LiveDialogue
from scoring.ml.evaluators.unreferenced.maude_network import MaudeNetwork
from scoring.ml.signature import SignatureField


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
