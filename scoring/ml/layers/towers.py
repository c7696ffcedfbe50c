"""Networks with one encoder for all tasks, or with an encoder per task: a tower each."""

from __future__ import annotations

import copy
from typing import ClassVar

import torch

from scoring.ml.network import Network


class TowerNetwork(Network):
    """The first tower is `encoder`, further ones are in `others`. Subclasses name their lists of heads in
    `heads_by_tower`; each list has a head per tower, or is empty."""

    heads_by_tower: ClassVar[tuple[str, ...]]
    others: torch.nn.ModuleList

    def add_towers(self, n: int) -> None:
        """Copy the encoder until there are `n` towers."""
        assert self.encoder is not None
        encoder = self.encoder
        self.others = torch.nn.ModuleList(copy.deepcopy(encoder) for _ in range(n - 1))

    def tower(self, number: int) -> torch.nn.Module:
        """The encoder of the tower `number`."""
        encoder = self.encoder if number == 0 else self.others[number - 1]
        assert encoder is not None
        return encoder

    def copy_tower(self, network: TowerNetwork, number: int) -> None:
        """Copy the weights of a `network` with one tower into the tower `number`."""
        self.tower(number).load_state_dict(network.tower(0).state_dict())
        for name in self.heads_by_tower:
            if len(getattr(self, name)):
                getattr(self, name)[number].load_state_dict(getattr(network, name)[0].state_dict())
