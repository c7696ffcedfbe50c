"""Reliabilities of a set extended by one text, in time linear in the set, by extending stored state.

A full forward pass reads n^2 pairs of references; a new text changes n + 1 pairs for the others and n + 1 for itself.
Vectors are passed in.
"""

from __future__ import annotations

from typing import Self

import torch

from scoring.ml.evaluators.ream.network import ReamNetwork, Sides

# Numbers in one tensor of pairs: 2 MB of floats, which stay in a core's cache.
LARGEST = 1 << 19


class GrownSet:
    """s(q, R) of a set and of R extended by a text, equal to `ReamNetwork.forward` up to rounding.

    Softmax attention over n + 1 nodes follows from that over n: with the logit e of the new node and L the log of the
    sum over the old ones, z' = z + sigmoid(e - L) (v - z).
    """

    def __init__(self, network: ReamNetwork, sides: Sides, z: torch.Tensor, log_sum: torch.Tensor) -> None:
        self.network, self.sides = network, sides
        #: (n, heads, size) the attention's mean of every node, and (n, heads) the log of its softmax's denominator.
        self.z, self.log_sum = z, log_sum

    def __len__(self) -> int:
        return len(self.z)

    @classmethod
    @torch.inference_mode()
    def of(cls, network: ReamNetwork, x: torch.Tensor) -> Self:
        """The set of the vectors x (n, width); n may be 0."""
        sides = network.attention.project(x)
        n = len(x)
        z, log_sum = torch.empty_like(sides.values), sides.values.new_empty(sides.values.shape[:2])
        step = max(1, LARGEST // max(1, sides.source.numel()))
        for at in range(0, n, step):
            logits = network.attention.compare(sides.target[at : at + step, None], sides.source[None])  # (i, j, heads)
            log_sum[at : at + step] = logits.logsumexp(dim=1)
            z[at : at + step] = torch.einsum("ijh,jhc->ihc", logits.softmax(dim=1), sides.values)
        return cls(network, sides, z, log_sum)

    @torch.inference_mode()
    def value(self) -> float:
        """s(q, R); nan for the empty set."""
        return float(self._read(self.z.amax(dim=0)[None])[0]) if len(self) else float("nan")

    @torch.inference_mode()
    def with_each(self, x: torch.Tensor) -> torch.Tensor:
        """(k,) s(q, R + r) for each text r of the vectors x (k, width)."""
        new = self.network.attention.project(x)
        result = new.values.new_empty(len(x))
        step = max(1, LARGEST // max(1, self.z.numel()))
        for at in range(0, len(x), step):
            part = Sides(*(side[at : at + step] for side in new))
            graph = self._own_mean(part)
            if len(self):
                logits = self.network.attention.compare(self.sides.target[None], part.source[:, None])  # (k, n, heads)
                share = torch.sigmoid(logits - self.log_sum)[..., None]
                graph = torch.maximum(graph, torch.lerp(self.z[None], part.values[:, None], share).amax(dim=1))
            result[at : at + step] = self._read(graph)
        return result

    def _own_mean(self, new: Sides) -> torch.Tensor:
        """(k, heads, size) z of each new text, which looks at the set and at itself."""
        own = self.network.attention.compare(new.target, new.source)[:, None]  # (k, 1, heads)
        others = self.network.attention.compare(new.target[:, None], self.sides.source[None])  # (k, n, heads)
        alpha = torch.cat([others, own], dim=1).softmax(dim=1)
        return torch.einsum("knh,nhc->khc", alpha[:, :-1], self.sides.values) + alpha[:, -1, :, None] * new.values

    def _read(self, graph: torch.Tensor) -> torch.Tensor:
        return self.network.read(graph.flatten(1) + self.network.attention.bias)
