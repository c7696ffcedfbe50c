"""The weights of `ridge`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from scoring.ml.network import Network


class RidgeNetwork(Network):
    """score = ((features - mean) / spread) . weights + bias for each aspect; missing features count as the mean. Sizes:
    `features`, `aspects`."""

    mean: Tensor
    spread: Tensor

    def build(self, network: dict[str, Any], width: int) -> None:
        k, aspects = int(network["features"]), int(network["aspects"])
        self.register_buffer("mean", torch.zeros(k))
        self.register_buffer("spread", torch.ones(k))
        self.weights = nn.Parameter(torch.zeros(k, aspects))
        self.bias = nn.Parameter(torch.zeros(aspects))

    def standardise(self, features: Tensor) -> Tensor:
        """(n, k) features with mean 0 and spread 1 in the training data."""
        return torch.nan_to_num((features - self.mean) / self.spread, nan=0.0)

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """`value` (n, aspects) of features (n, k)."""
        return {"value": self.standardise(features) @ self.weights + self.bias}
