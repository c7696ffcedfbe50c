"""Losses by hand, networks by hand, and the effect of padding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from scoring.ml.evaluators.unreferenced.losses import hinge_loss, nce_loss
from scoring.ml.evaluators.unreferenced.maude import MaudeNetwork
from scoring.ml.evaluators.unreferenced.network import Examples, Tokens, compared
from scoring.ml.evaluators.unreferenced.rivals import BertNliNetwork, InferSentNetwork
from scoring.ml.evaluators.unreferenced.ruber import RuberNetwork, blend, unit_range

SIZES: dict[str, Any] = {
    "vector": 6, "vocabulary": 20, "down": 5, "hidden": 4, "layers": 1, "bidirectional": False, "pool_zeros": False,
    "difference": "abs", "embedding": 3, "cell": "lstm", "decoder": 7, "dropout": 0.0, "loss": "nce", "margin": 0.5,
    "inputs": "both",
}  # fmt: skip


def network(kind: type, **sizes: Any) -> Any:
    torch.manual_seed(1)
    return kind.from_source(None, {**SIZES, **sizes}).eval()


def test_nce_is_the_weighted_mean_cross_entropy() -> None:
    logits = torch.tensor([[2.0, -1.0, 0.5]])
    targets = torch.tensor([1.0, 0.0, 0.0])
    s = 1 / (1 + np.exp(-np.array([2.0, -1.0, 0.5])))
    parts = [-math.log(s[0]), -math.log(1 - s[1]), -math.log(1 - s[2])]
    assert float(nce_loss(logits, targets, torch.ones(1, 3))) == pytest.approx(sum(parts) / 3, abs=1e-6)
    weighted = torch.tensor([[6.0, 1.0, 0.0]])
    assert float(nce_loss(logits, targets, weighted)) == pytest.approx((6 * parts[0] + parts[1]) / 7, abs=1e-6)


def test_hinge_compares_each_false_reply_with_the_true_one() -> None:
    scores = np.array([0.8, 0.6, 0.2])
    logits = torch.tensor(np.log(scores / (1 - scores)))[None].float()
    targets = torch.tensor([1.0, 0.0, 0.0])
    # max(0, .5 - .8 + .6) = .3 and max(0, .5 - .8 + .2) = 0, mean .15
    assert float(hinge_loss(logits, targets, torch.ones(1, 3), 0.5)) == pytest.approx(0.15, abs=1e-6)


def test_features_as_released_and_as_published() -> None:
    c, h = torch.tensor([1.0, -2.0]), torch.tensor([3.0, 1.0])
    assert compared(c, h, "abs").tolist() == [1, -2, 3, 1, 2, 3, 3, -2]
    assert compared(c, h, "signed").tolist() == [3, 1, 1, -2, 3, -2, 2, 3]


@pytest.mark.parametrize("layers", [1, 2])
def test_prefix_scores_as_if_it_were_alone(layers: int) -> None:
    net = network(MaudeNetwork, layers=layers)
    turns = torch.randn(5, 6)
    whole = net.contexts(turns, torch.tensor([5]))[0]
    for n in range(1, 6):
        alone = net.contexts(turns[:n], torch.tensor([n]))[0, -1]
        torch.testing.assert_close(alone, whole[n - 1], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_padding_of_a_batch_does_not_change_a_context(bidirectional: bool) -> None:
    net = network(MaudeNetwork, bidirectional=bidirectional, layers=2)
    turns = torch.randn(7, 6)
    lengths = torch.tensor([2, 5])
    together = net.chosen_contexts(turns, lengths, torch.arange(2), lengths)
    for place, part in enumerate((turns[:2], turns[2:])):
        n = torch.tensor([len(part)])
        alone = net.chosen_contexts(part, n, torch.arange(1), n)
        torch.testing.assert_close(alone[0], together[place], atol=1e-6, rtol=1e-5)


def test_padded_zeros_of_the_release_matter_only_in_training() -> None:
    net = network(MaudeNetwork, pool_zeros=True)
    turns, lengths = -torch.ones(4, 6), torch.tensor([1, 3])

    def short() -> torch.Tensor:
        return net.chosen_contexts(turns, lengths, torch.arange(2), lengths)[0]

    scored = short()
    net.train()
    trained = short()
    net.sizes = {**net.sizes, "pool_zeros": False}
    torch.testing.assert_close(short(), scored)
    assert not torch.allclose(trained, scored)
    states = net._states(turns, lengths)[0, 0].clamp_min(0)
    torch.testing.assert_close(trained, net.project(states))


def test_stepwise_equals_the_whole() -> None:
    net = network(MaudeNetwork, layers=2)
    turns = torch.randn(4, 6)
    state, largest = None, None
    for vector in turns:
        state, largest = net.step(vector, state, largest)
    whole = net.contexts(turns, torch.tensor([4]))[0, -1]
    torch.testing.assert_close(net.context_of_largest(largest), whole, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("kind", [InferSentNetwork, RuberNetwork])
def test_token_encoders_never_see_padding(kind: type, cell: str) -> None:
    net = network(kind, cell=cell)
    ids = torch.tensor([[3, 4, 0, 0], [5, 6, 7, 8]])
    both = net.replies(Tokens(ids, torch.tensor([2, 4])))
    alone = net.replies(Tokens(ids[:1, :2], torch.tensor([2])))
    torch.testing.assert_close(both[:1], alone, atol=1e-6, rtol=1e-5)
    assert both.shape == (2, 8)


def test_ruber_starts_without_a_match_and_has_one_more_feature() -> None:
    net = network(RuberNetwork)
    c, h = torch.randn(2, 8), torch.randn(2, 8)
    assert net.features(c, h)[:, 8].tolist() == [0.0, 0.0]
    assert net.classifier[0].in_features == 17
    net.match.data = torch.eye(8)
    torch.testing.assert_close(net.features(c, h)[:, 8], (c * h).sum(dim=1))


def test_sizes_equal_those_of_the_papers() -> None:
    maude = MaudeNetwork.from_source(None, {**SIZES, "vector": 768, "down": 300, "hidden": 300, "decoder": 200})
    shapes = {name: tuple(value.shape) for name, value in maude.state_dict().items()}
    assert shapes["down.weight"] == (300, 768)
    assert shapes["project.weight"] == (300, 300)
    assert shapes["classifier.0.weight"] == (200, 1200)
    both = MaudeNetwork.from_source(None, {**SIZES, "down": 300, "hidden": 300, "bidirectional": True})
    assert both.project.weight.shape == (300, 600)
    nli = BertNliNetwork.from_source(None, {**SIZES, "vector": 768})
    assert nli.classifier[0].in_features == 3072
    sent = InferSentNetwork.from_source(None, {**SIZES, "embedding": 300, "hidden": 300})
    assert sent.classifier[0].in_features == 2400
    ruber = RuberNetwork.from_source(None, {**SIZES, "embedding": 300, "hidden": 300})
    assert ruber.classifier[0].in_features == 1201


@pytest.mark.parametrize(
    ("inputs", "changed"), [("both", (True, True)), ("text", (False, True)), ("context", (True, False))]
)
def test_excluded_inputs_change_nothing_and_learn_nothing(inputs: str, changed: tuple[bool, bool]) -> None:
    net = network(MaudeNetwork, inputs=inputs)
    c, h = torch.randn(1, 5), torch.randn(1, 5)
    base = net.logits(c, h)
    assert (bool(net.logits(c + 1, h) != base), bool(net.logits(c, h + 1) != base)) == changed
    n = torch.tensor([2])
    found = net(
        Examples(torch.randn(2, 6), n, torch.arange(1), n), torch.randn(2, 6), torch.tensor([[0, 1]]),
        torch.tensor([1.0, 0.0]), torch.ones(1, 2),
    )  # fmt: skip
    found["loss"].backward()
    grown = net.transition.weight_ih_l0.grad
    assert (grown is not None and bool(grown.abs().sum() > 0)) == changed[0]


def test_gradient_reaches_every_weight() -> None:
    for kind in (MaudeNetwork, BertNliNetwork, InferSentNetwork, RuberNetwork):
        net = network(kind)
        n = torch.tensor([2, 1] if kind is MaudeNetwork else [1, 1])
        texts: Any = torch.randn(int(n.sum()), 6)
        replies: Any = torch.randn(4, 6)
        if kind.reads == "tokens":
            texts = Tokens(torch.randint(1, 20, (2, 3)), torch.tensor([3, 2]))
            replies = Tokens(torch.randint(1, 20, (4, 3)), torch.tensor([3, 2, 3, 3]))
        places = torch.tensor([[0, 1], [2, 3]])
        loss = net(Examples(texts, n, torch.arange(2), n), replies, places, torch.tensor([1.0, 0.0]), torch.ones(2, 2))[
            "loss"
        ]
        loss.backward()
        silent = [name for name, p in net.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
        assert not silent, kind


def test_blend_uses_parts_scaled_to_one_range() -> None:
    u, r = np.array([0.2, 0.4, 0.6]), np.array([-1.0, 1.0, 0.0])
    assert unit_range(u).tolist() == pytest.approx([0, 0.5, 1])
    assert unit_range(np.array([3.0, 3.0])).tolist() == [0.5, 0.5]
    assert blend(u, r, "min").tolist() == pytest.approx([0, 0.5, 0.5])
    assert blend(u, r, "max").tolist() == pytest.approx([0, 1, 1])
    assert blend(u, r, "arithmetic").tolist() == pytest.approx([0, 0.75, 0.75])
    assert blend(u, r, "geometric").tolist() == pytest.approx([0, math.sqrt(0.5), math.sqrt(0.5)])
