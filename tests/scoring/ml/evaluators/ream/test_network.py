"""The prediction model: dense against torch-geometric, order, shared vectors, the loss by hand."""

from __future__ import annotations

import pytest
import torch

from scoring.ml.evaluators.ream.network import ReamNetwork, ream_loss


def network(kind: str = "gatv2", heads: int = 4, width: int = 16) -> ReamNetwork:
    torch.manual_seed(5)
    found = ReamNetwork.from_source(None, {"width": width, "attention_kind": kind, "heads": heads})
    torch.nn.init.normal_(found.attention.bias)
    return found.eval()


def sets() -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Vectors, and sets of three sizes; most vectors are in several."""
    torch.manual_seed(1)
    groups = [torch.tensor([[0, 1, 2, 3], [5, 4, 1, 0]]), torch.tensor([[4, 0], [2, 2]]), torch.tensor([[5]])]
    return torch.randn(6, 16), groups


@pytest.mark.parametrize(("kind", "heads"), [("gat", 1), ("gat", 4), ("gatv2", 1), ("gatv2", 4)])
def test_matrices_and_edge_lists_agree_on_the_same_weights(kind: str, heads: int) -> None:
    net = network(kind, heads)
    torch.testing.assert_close(net(*sets()), net.forward_edges(*sets()), atol=1e-6, rtol=1e-5)


def test_reliability_is_within_one_and_ignores_the_order() -> None:
    net = network()
    x, groups = sets()
    found = net(x, groups)
    assert (found.abs() < 1).all()
    torch.testing.assert_close(net(x, [groups[0][:, [2, 0, 3, 1]]]), found[:2])


@pytest.mark.parametrize("kind", ["gat", "gatv2"])
def test_sets_that_share_vectors_have_the_values_and_gradients_of_sets_alone(kind: str) -> None:
    x, groups = sets()
    together, alone = network(kind), network(kind)
    found = together(x, groups)
    wanted = torch.cat([alone(x[row], [torch.arange(len(row))[None]]) for rows in groups for row in rows])
    torch.testing.assert_close(found, wanted)
    found.pow(2).sum().backward()
    wanted.pow(2).sum().backward()
    for one, other in zip(together.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=1e-6, rtol=1e-5)


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
    torch.testing.assert_close(layer(layer.project(x))[0], wanted)


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
        net(*sets()).pow(2).sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())
