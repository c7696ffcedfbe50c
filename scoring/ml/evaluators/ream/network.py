"""The prediction model: one graph-attention layer on the complete graph of a set, max-pool, tanh (equations 3 to 5).

Dense masked matrices and edge lists of torch-geometric compute the same on the same weights, whose names are
torch-geometric's.

Explained in docs/explanation/evaluators/ream.md#network.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from scoring.ml.network import Network

SLOPE = 0.2


class DenseGAT(torch.nn.Module):
    """e_ij = LeakyReLU(a_src . W x_j + a_dst . W x_i), alpha = softmax over j, z_i = sum_j alpha_ij W x_j + b.

    Veličković et al. 2018; parameters as `torch_geometric.nn.GATConv(width, width // heads, heads)`.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.lin = torch.nn.Linear(width, width, bias=False)
        self.att_src = torch.nn.Parameter(torch.empty(1, heads, self.size))
        self.att_dst = torch.nn.Parameter(torch.empty(1, heads, self.size))
        self.bias = torch.nn.Parameter(torch.zeros(width))
        for weight in (self.lin.weight, self.att_src, self.att_dst):
            _glorot(weight)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(sets, n, width) from x of that shape; mask (sets, n) True for references."""
        sets, n, width = x.shape
        w = self.lin(x).view(sets, n, self.heads, self.size)
        source, target = (w * self.att_src).sum(-1), (w * self.att_dst).sum(-1)  # (sets, n, heads)
        logits = functional.leaky_relu(target[:, :, None] + source[:, None, :], SLOPE)  # (sets, i, j, heads)
        alpha = logits.masked_fill(~mask[:, None, :, None], float("-inf")).softmax(dim=2)
        z = torch.einsum("bijh,bjhc->bihc", alpha, w)
        return z.reshape(sets, n, width) + self.bias


class DenseGATv2(torch.nn.Module):
    """e_ij = a . LeakyReLU(W_l x_j + W_r x_i), alpha = softmax over j, z_i = sum_j alpha_ij W_l x_j + b.

    Brody et al. 2022; parameters as `torch_geometric.nn.GATv2Conv(width, width // heads, heads)`.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.lin_l = torch.nn.Linear(width, width)
        self.lin_r = torch.nn.Linear(width, width)
        self.att = torch.nn.Parameter(torch.empty(1, heads, self.size))
        self.bias = torch.nn.Parameter(torch.zeros(width))
        for layer in (self.lin_l, self.lin_r):
            _glorot(layer.weight)
            torch.nn.init.zeros_(layer.bias)
        _glorot(self.att)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(sets, n, width) from x of that shape; mask (sets, n) True for references."""
        sets, n, width = x.shape
        left = self.lin_l(x).view(sets, n, self.heads, self.size)
        right = self.lin_r(x).view(sets, n, self.heads, self.size)
        both = functional.leaky_relu(right[:, :, None] + left[:, None, :], SLOPE)  # (sets, i, j, heads, size)
        logits = torch.einsum("bijhc,hc->bijh", both, self.att[0])
        alpha = logits.masked_fill(~mask[:, None, :, None], float("-inf")).softmax(dim=2)
        z = torch.einsum("bijh,bjhc->bihc", alpha, left)
        return z.reshape(sets, n, width) + self.bias


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

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(sets,) reliabilities of sets of vectors x (sets, n, width), mask (sets, n) True for vectors."""
        return self.read(self.attention(x, mask), mask)

    def read(self, z: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The graph's vector and its reading: max-pool over the nodes, linear, tanh."""
        graph = z.masked_fill(~mask[:, :, None], float("-inf")).amax(dim=1)
        return torch.tanh(self.out(graph).squeeze(-1))

    def forward_edges(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The same over edge lists by torch-geometric: no (n, n) matrix, for sets too large for one."""
        from torch_geometric.utils import scatter

        sizes = mask.sum(dim=1)
        nodes = x[mask]
        owner = torch.repeat_interleave(torch.arange(len(x), device=x.device), sizes)
        z = self._edge_layer()(nodes, complete_edges(sizes))
        graph = scatter(z, owner, dim=0, dim_size=len(x), reduce="max")
        return torch.tanh(self.out(graph).squeeze(-1))

    def _edge_layer(self) -> torch.nn.Module:
        from torch_geometric.nn import GATConv, GATv2Conv

        own = self.attention
        width = own.heads * own.size
        kind = GATv2Conv if isinstance(own, DenseGATv2) else GATConv
        layer: torch.nn.Module = kind(width, own.size, heads=own.heads, negative_slope=SLOPE, add_self_loops=False)
        layer.load_state_dict(own.state_dict())
        return layer.to(own.bias.device, own.bias.dtype).eval()


def complete_edges(sizes: torch.Tensor) -> torch.Tensor:
    """(2, sum n^2) every node of a set with every one, itself included; sets of `sizes` nodes end to end."""
    edges, start = [], 0
    for n in sizes.tolist():
        nodes = torch.arange(start, start + n, device=sizes.device)
        edges.append(torch.stack([nodes.repeat(n), nodes.repeat_interleave(n)]))
        start += n
    return torch.cat(edges, dim=1)


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
