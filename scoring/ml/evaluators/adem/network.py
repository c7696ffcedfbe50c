"""The two matrices of ADEM with everything between a text's vector and a score."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from scoring.ml.network import Network


class AdemNetwork(Network):
    """score(c, r, y) = (c' M y + r' N y - alpha) / beta, y the reply, r the reference, c the context.

    Each vector is first brought to its principal components; with `affine` a 1 is appended. Sizes: `vector`,
    `components`, `affine`, `inputs`, `l1`, `l2`.
    """

    mean: Tensor
    axes: Tensor
    alpha: Tensor
    beta: Tensor

    def build(self, network: dict[str, Any], width: int) -> None:
        self.sizes = network
        size = int(network["components"]) + bool(network["affine"])
        self.M = nn.Parameter(torch.eye(size))
        self.N = nn.Parameter(torch.eye(size))
        self.register_buffer("mean", torch.zeros(int(network["vector"])))
        self.register_buffer("axes", torch.zeros(int(network["vector"]), int(network["components"])))
        self.register_buffer("alpha", torch.zeros(()))
        self.register_buffer("beta", torch.ones(()))

    def components(self, vectors: Tensor) -> Tensor:
        """(texts, size) of text vectors (texts, width)."""
        kept = (vectors.to(self.axes.dtype) - self.mean) @ self.axes
        if not self.sizes["affine"]:
            return kept
        return torch.cat([kept, kept.new_ones((len(kept), 1))], dim=1)

    def readable(self, c: Tensor, r: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The three components; a component that `inputs` excludes is only a constant."""
        inputs = self.sizes["inputs"]
        if inputs == "text":
            return self._constant(c), self._constant(r), y
        if inputs == "context":
            return c, self._constant(r), self._constant(y)
        return c, r, y

    def _constant(self, x: Tensor) -> Tensor:
        blank = torch.zeros_like(x)
        if self.sizes["affine"]:
            blank[:, -1] = 1
        return blank

    def products(self, c: Tensor, r: Tensor, y: Tensor) -> Tensor:
        """(texts,) c' M y + r' N y of components."""
        return ((c @ self.M) * y).sum(dim=1) + ((r @ self.N) * y).sum(dim=1)

    def forward(self, c: Tensor, r: Tensor, y: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        """`value` (texts,) from components, and with `labels` the loss: squared error + l2 |.|^2 + l1 |.|."""
        value = (self.products(*self.readable(c, r, y)) - self.alpha) / self.beta
        if labels is None:
            return {"value": value}
        loss = ((value - labels) ** 2).mean()
        for matrix in (self.M, self.N):
            loss = loss + float(self.sizes["l2"]) * (matrix**2).sum() + float(self.sizes["l1"]) * matrix.abs().sum()
        return {"value": value, "loss": self.note_loss(loss)}
