"""The prediction model: dense against torch-geometric, order, padding, the loss by hand."""

from __future__ import annotations

import pytest
import torch

from scoring.ml.evaluators.ream.network import ReamNetwork, complete_edges, ream_loss


def network(kind: str = "gatv2", heads: int = 4, width: int = 16) -> ReamNetwork:
    torch.manual_seed(5)
    found = ReamNetwork.from_source(None, {"width": width, "attention_kind": kind, "heads": heads})
    torch.nn.init.normal_(found.attention.bias)
    return found.eval()


def sets() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], dtype=torch.bool)
    return torch.randn(3, 4, 16), mask


@pytest.mark.parametrize(("kind", "heads"), [("gat", 1), ("gat", 4), ("gatv2", 1), ("gatv2", 4)])
def test_masked_matrices_and_edge_lists_agree_on_the_same_weights(kind: str, heads: int) -> None:
    net = network(kind, heads)
    x, mask = sets()
    torch.testing.assert_close(net(x, mask), net.forward_edges(x, mask), atol=1e-6, rtol=1e-5)


def test_reliability_is_within_one_and_ignores_order_and_padding() -> None:
    net = network()
    x, mask = sets()
    found = net(x, mask)
    assert (found.abs() < 1).all()
    shuffled = net(x[:1, [2, 0, 3, 1]], mask[:1])
    torch.testing.assert_close(shuffled, found[:1])
    torch.testing.assert_close(net(x[1:2, :2], mask[1:2, :2]), found[1:2])
    changed = x.clone()
    changed[1, 2:] = 9.0
    torch.testing.assert_close(net(changed, mask), found)


def test_attention_by_hand() -> None:
    net = network("gat", 1, width=2)
    layer = net.attention
    with torch.no_grad():
        layer.lin.weight.copy_(torch.eye(2))
        layer.att_src.copy_(torch.tensor([[[1.0, 0.0]]]))
        layer.att_dst.copy_(torch.tensor([[[0.0, 1.0]]]))
        layer.bias.zero_()
    x = torch.tensor([[[1.0, 0.0], [-2.0, 1.0]]])
    # For node 0: e_00 = leaky(0 + 1) = 1, e_01 = leaky(0 - 2) = -.4; for node 1: leaky(1 + 1) = 2, leaky(1 - 2) = -.2.
    a0 = torch.softmax(torch.tensor([1.0, -0.4]), 0)
    a1 = torch.softmax(torch.tensor([2.0, -0.2]), 0)
    wanted = torch.stack([a0 @ x[0], a1 @ x[0]])
    torch.testing.assert_close(layer(x, torch.ones(1, 2, dtype=torch.bool))[0], wanted)


def test_edges_of_complete_graphs_with_self_loops() -> None:
    edges = complete_edges(torch.tensor([2, 1]))
    assert sorted(zip(*edges.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)]


def test_worked_loss() -> None:
    # docs/explanation/evaluators/ream.md#worked-numbers:
    # s = .41, rho = .37, negatives .40 .30 .45, gamma .05 -> MSE .0016, hinge .04 0 .09.
    loss = ream_loss(
        torch.tensor([0.41]),
        torch.tensor([0.37]),
        torch.tensor([0.40, 0.30, 0.45]),
        torch.zeros(3, dtype=torch.int64),
        torch.full((3,), 0.05),
        1.0,
    )
    assert float(loss) == pytest.approx(0.0016 + 0.043333, abs=1e-6)
    alone = ream_loss(
        torch.tensor([0.41]), torch.tensor([0.37]), torch.zeros(0), torch.zeros(0).long(), torch.zeros(0), 1.0
    )
    assert float(alone) == pytest.approx(0.0016)


def test_everything_learns() -> None:
    for kind in ("gat", "gatv2"):
        net = network(kind).train()
        x, mask = sets()
        net(x, mask).pow(2).sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())
