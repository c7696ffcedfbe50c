"""The prediction model: one graph-attention layer on the complete graph of a set, max-pool, tanh (equations 3 to 5).

Dense matrices and edge lists of torch-geometric compute the same on the same weights, whose names are
torch-geometric's.

Explained in docs/explanation/evaluators/ream.md#network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from scoring.ml.network import Network

SLOPE = 0.2


class Sides(NamedTuple):
    """What texts contribute to the pairs of a set: `values` (..., heads, size) that are summed, and their parts of a
    logit as source and as target, (..., heads, size) or (..., heads)."""

    values: torch.Tensor
    source: torch.Tensor
    target: torch.Tensor

    def take(self, rows: torch.Tensor) -> Sides:
        """Those of the texts with these numbers, (*rows.shape, ...)."""

        def gather(side: torch.Tensor) -> torch.Tensor:
            return functional.embedding(rows, side.flatten(1)).unflatten(-1, side.shape[1:])

        values = gather(self.values)
        return Sides(values, values if self.source is self.values else gather(self.source), gather(self.target))


class DenseAttention(torch.nn.Module):
    """A graph-attention layer on complete graphs."""

    bias: torch.Tensor

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads

    def project(self, x: torch.Tensor) -> Sides:
        """What vectors (..., width) contribute."""
        raise NotImplementedError

    def compare(self, target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        """Logits (..., heads) from the parts of both sides, broadcast."""
        raise NotImplementedError

    def forward(self, sides: Sides) -> torch.Tensor:
        """(sets, n, width) from sides (sets, n, ...)."""
        logits = self.compare(sides.target[:, :, None], sides.source[:, None])  # (sets, i, j, heads)
        return torch.einsum("bijh,bjhc->bihc", logits.softmax(dim=2), sides.values).flatten(2) + self.bias


class DenseGAT(DenseAttention):
    """e_ij = LeakyReLU(a_src . W x_j + a_dst . W x_i), alpha = softmax over j, z_i = sum_j alpha_ij W x_j + b.

    Veličković et al. 2018; parameters as `torch_geometric.nn.GATConv(width, width // heads, heads)`.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, heads)
        self.lin = torch.nn.Linear(width, width, bias=False)
        self.att_src = torch.nn.Parameter(torch.empty(1, heads, self.size))
        self.att_dst = torch.nn.Parameter(torch.empty(1, heads, self.size))
        self.bias = torch.nn.Parameter(torch.zeros(width))
        for weight in (self.lin.weight, self.att_src, self.att_dst):
            _glorot(weight)

    def project(self, x: torch.Tensor) -> Sides:
        values = self.lin(x).unflatten(-1, (self.heads, self.size))
        return Sides(values, (values * self.att_src).sum(-1), (values * self.att_dst).sum(-1))

    def compare(self, target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return functional.leaky_relu(target + source, SLOPE)


class DenseGATv2(DenseAttention):
    """e_ij = a . LeakyReLU(W_l x_j + W_r x_i), alpha = softmax over j, z_i = sum_j alpha_ij W_l x_j + b.

    Brody et al. 2022; parameters as `torch_geometric.nn.GATv2Conv(width, width // heads, heads)`.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, heads)
        self.lin_l = torch.nn.Linear(width, width)
        self.lin_r = torch.nn.Linear(width, width)
        self.att = torch.nn.Parameter(torch.empty(1, heads, self.size))
        self.bias = torch.nn.Parameter(torch.zeros(width))
        for layer in (self.lin_l, self.lin_r):
            _glorot(layer.weight)
            torch.nn.init.zeros_(layer.bias)
        _glorot(self.att)

    def project(self, x: torch.Tensor) -> Sides:
        shape = (self.heads, self.size)
        left = self.lin_l(x).unflatten(-1, shape)
        return Sides(left, left, self.lin_r(x).unflatten(-1, shape))

    def compare(self, target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        # One product with a matrix that holds the heads' vectors apart is faster than a product for each head.
        apart = torch.block_diag(*self.att[0].unsqueeze(1))
        return functional.linear(functional.leaky_relu(target + source, SLOPE).flatten(-2), apart)


class ReamNetwork(Network):
    """s(q, R) = tanh(w . max_i z_i + b). `network`: width of a pair's vector, attention_kind, heads.

    The encoder is inside only where it learns; otherwise the vectors of pairs come from outside.
    """

    def build(self, network: dict[str, Any], width: int) -> None:
        size = int(network["width"])
        kind = DenseGATv2 if network["attention_kind"] == "gatv2" else DenseGAT
        self.attention = kind(size, int(network["heads"]))
        self.out = torch.nn.Linear(size, 1)
        torch.nn.init.normal_(self.out.weight, std=size**-0.5)
        torch.nn.init.zeros_(self.out.bias)

    def forward(self, x: torch.Tensor, groups: Sequence[torch.Tensor]) -> torch.Tensor:
        """The reliabilities of the sets of all `groups`, one after the other. A group (sets, n) has the rows in x
        (k, width) of sets of equal size. Every vector is projected once, though it may be in several sets."""
        sides = self.attention.project(x)
        return torch.cat([self.read(self.attention(sides.take(rows)).amax(dim=1)) for rows in groups])

    def forward_edges(self, x: torch.Tensor, groups: Sequence[torch.Tensor]) -> torch.Tensor:
        """The same over edge lists by torch-geometric: no (n, n) matrix, for sets too large for one."""
        attend = self._edge_layer()
        return torch.cat([self.read(attend_edges(attend, x, rows).amax(dim=1)) for rows in groups])

    def read(self, graph: torch.Tensor) -> torch.Tensor:
        """(sets,) from the greatest of each number over the nodes of a set (sets, width)."""
        return torch.tanh(self.out(graph).squeeze(-1))

    def _edge_layer(self) -> torch.nn.Module:
        from torch_geometric.nn import GATConv, GATv2Conv

        own = self.attention
        width = own.heads * own.size
        kind = GATv2Conv if isinstance(own, DenseGATv2) else GATConv
        layer: torch.nn.Module = kind(width, own.size, heads=own.heads, negative_slope=SLOPE, add_self_loops=False)
        layer.load_state_dict(own.state_dict())
        return layer.to(own.bias.device, own.bias.dtype).eval()


def attend_edges(layer: torch.nn.Module, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return (sets, n, width) of a `layer` of torch-geometric on the complete graphs of sets of equal size: `rows`
    (sets, n) in the vectors `x` (k, width)."""
    nodes = torch.arange(rows.numel(), device=x.device).view(rows.shape)
    shape = (*rows.shape, rows.shape[1])
    edges = torch.stack([nodes[:, None, :].expand(shape), nodes[:, :, None].expand(shape)]).flatten(1)
    found: torch.Tensor = layer(x[rows.flatten()], edges)
    return found.unflatten(0, rows.shape)


def ream_loss(
    predicted: torch.Tensor,
    gold: torch.Tensor,
    negatives: torch.Tensor,
    owner: torch.Tensor,
    margin: torch.Tensor,
    eta: float,
) -> torch.Tensor:
    """Return mean (s - rho)^2 + eta mean max(0, margin - s(R) + s(R^-)) (eq 6 to 8 without the L2 term, which Adam
    has).

    `predicted` s and `gold` rho are (n,). `negatives` (k,) are the scores of worse sets, `owner` (k,) the sample of
    each, `margin` (k,), `eta` the weight. The second mean is over all negatives of the batch, so that a sample without
    one kind counts by the others.
    """
    regression = (predicted - gold).pow(2).mean()
    if not len(negatives):
        return regression
    hinge = functional.relu(margin - predicted[owner] + negatives)
    return regression + eta * hinge.mean()


def _glorot(weight: torch.Tensor) -> None:
    torch.nn.init.xavier_uniform_(weight)
