"""Loss, hints, budget and the gradient penalty in its three modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from scoring.ml.encoders.source import find_encoder
from scoring.ml.evaluators.perception.network import PerceptionNetwork, gradient_penalty
from tests.scoring.ml.tiny import tiny_encoder

SETTINGS: dict[str, Any] = {
    "pooling": "mean",
    "confidence": True,
    "penalty": "none",
    "penalty_weight": 10.0,
    "penalty_every": 1,
    "towers": 1,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"))


def network(folder: str, **changes: Any) -> PerceptionNetwork:
    torch.manual_seed(3)
    return PerceptionNetwork.from_source(find_encoder(folder), {**SETTINGS, **changes}, attention="eager")


def pairs(rows: int = 3, seed: int = 1) -> dict[str, torch.Tensor]:
    """Sides of unequal length, padded at the end: generations of 6 tokens, references of 8, the first of either 4."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 20, (2 * rows, 8), generator=generator)
    mask = torch.ones_like(ids)
    mask[:rows, 6:] = 0
    mask[[0, rows], 4:] = 0
    ids[mask == 0] = 0
    places = torch.stack([torch.arange(rows), rows + torch.arange(rows)], dim=1)
    return {"places": places, "input_ids": ids, "attention_mask": mask}


def find_vectors(net: PerceptionNetwork, inputs: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Those of the generations and of the references."""
    vectors = net.vectors({name: value for name, value in inputs.items() if name != "places"})
    return vectors[inputs["places"][:, 0]], vectors[inputs["places"][:, 1]]


def test_loss_is_equation_13_without_hints_and_dropout(folder: str) -> None:
    net = network(folder).eval()
    inputs = pairs()
    found = net(**inputs)
    v_gen, v_ref = find_vectors(net, inputs)
    p_ref = torch.sigmoid(net.grade(v_ref) - net.grade(v_gen))
    c = net.confide(v_gen + v_ref)
    wanted = -(c * p_ref + 1 - c).log().mean() + 0.1 * -c.log().mean()
    torch.testing.assert_close(found["loss"], wanted)
    torch.testing.assert_close(found["p_ref"], p_ref)


@pytest.mark.parametrize("mode", ["none", "pair", "pooled"])
def test_what_pairs_share_is_read_once_with_the_same_loss_and_gradient(folder: str, mode: str) -> None:
    """Three generations with one reference, read once or three times."""
    inputs = pairs()
    shared = inputs["places"].clone()
    shared[:, 1] = 4
    chosen = [0, 1, 2, 4, 4, 4]
    copies = {name: inputs[name][chosen] for name in ("input_ids", "attention_mask")} | {"places": inputs["places"]}
    net = network(folder, penalty=mode).train()
    found = []
    for given in ({**inputs, "places": shared}, copies):
        net.zero_grad()
        net.steps.zero_()
        torch.manual_seed(2)
        loss = net(**given)["loss"]
        loss.backward()
        found.append([loss.detach(), *(p.grad.clone() for p in net.parameters() if p.grad is not None)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("mode", ["none", "pair", "interpolate", "pooled"])
def test_padding_and_copies_do_not_change_separate_texts(folder: str, mode: str) -> None:
    """Two pairs of one context, whose texts and contexts are read once or once for each unit."""
    inputs = pairs(2)
    # Texts 0 to 3; 3 is the context of three units, the last unit has none.
    once = {**inputs, "units": torch.tensor([[0, 3], [1, 3], [2, 3], [2, -1]])}
    once["places"] = torch.tensor([[0, 2], [1, 3]])
    repeated = [0, 1, 2, 2, 3, 3, 3]
    copies = {name: torch.nn.functional.pad(inputs[name][repeated], (0, 2)) for name in ("input_ids", "attention_mask")}
    copies |= {"units": torch.tensor([[0, 4], [1, 5], [2, 6], [3, -1]]), "places": once["places"]}
    net = network(folder, penalty=mode, texts=2, confidence=False).train()
    found = []
    for given in (once, copies):
        net.steps.zero_()
        torch.manual_seed(2)
        found.append(net(**given)["loss"].detach())
    torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=1e-4)


def test_budget_adjusts_the_confidence_weight(folder: str) -> None:
    net = network(folder)
    net.last_confidence_loss = 0.2
    net.adapt(0.3)
    assert float(net.confidence_weight) == pytest.approx(0.1 / 1.01)
    net.last_confidence_loss = 0.4
    net.adapt(0.3)
    assert float(net.confidence_weight) == pytest.approx(0.1 / 1.01 / 0.99)


def test_without_confidence_its_branch_does_not_learn(folder: str) -> None:
    net = network(folder, confidence=False).train()
    net(**pairs())["loss"].backward()
    assert all(p.grad is None for p in net.l2.parameters())
    assert all(p.grad is not None for p in net.l1.parameters() if p.ndim > 1)


@pytest.mark.parametrize("mode", ["pair", "interpolate", "pooled"])
def test_every_mode_reaches_the_encoder_or_the_head(folder: str, mode: str) -> None:
    plain, penalised = network(folder).train(), network(folder, penalty=mode).train()
    for net in (plain, penalised):
        torch.manual_seed(1)
        net(**pairs())["loss"].backward()
    moved = {
        name
        for (name, one), (_, two) in zip(plain.named_parameters(), penalised.named_parameters(), strict=True)
        if two.grad is not None and (one.grad is None or not torch.allclose(one.grad, two.grad, atol=1e-9))
    }
    assert "l1.0.weight" in moved
    assert any("layer.0.attention" in name for name in moved) == (mode != "pooled")


def test_lazy_penalty_comes_every_fourth_step_with_fourfold_weight(folder: str) -> None:
    lazy, always, never = (
        network(folder, penalty="pooled", penalty_every=4, confidence=False).train(),
        network(folder, penalty="pooled", confidence=False).train(),
        network(folder, confidence=False).train(),
    )
    losses = {name: [float(net(**pairs())["loss"].detach()) for _ in range(5)] for name, net in
              (("lazy", lazy), ("always", always), ("never", never))}  # fmt: skip
    plain = losses["never"][0]
    extra = losses["always"][0] - plain
    assert losses["lazy"][1:4] == pytest.approx([plain] * 3)
    assert losses["lazy"][0] == pytest.approx(plain + 4 * extra, rel=1e-4)
    assert losses["lazy"][4] == losses["lazy"][0]
    assert int(lazy.steps) == 5


def test_pooled_penalty_is_a_bound_on_the_last_layer(folder: str) -> None:
    # With a linear l1, the gradient with respect to the pooled vector is the constant w.
    net = network(folder, penalty="pooled", confidence=False).train()
    weight = net.l1[0].weight.detach()
    plain = network(folder, confidence=False).train()
    gap = float((net(**pairs())["loss"] - plain(**pairs())["loss"]).detach())
    norm = float(weight.pow(2).sum().sqrt())
    assert gap == pytest.approx(10 * (norm - 1) ** 2, rel=1e-4)


@pytest.mark.parametrize("mode", ["pair", "interpolate"])
def test_padding_does_not_enter_the_penalty(folder: str, mode: str) -> None:
    net = network(folder, penalty=mode, confidence=False).train()
    assert net.encoder is not None
    # Trained encoders have a padding vector, tiny new ones have zeros.
    net.encoder.get_input_embeddings().weight.data[0] = 0.5  # type: ignore[union-attr,operator]
    inputs = pairs()
    longer = {
        name: value if name == "places" else torch.nn.functional.pad(value, (0, 3)) for name, value in inputs.items()
    }
    found = []
    for given in (inputs, longer):
        net.steps.zero_()
        torch.manual_seed(2)
        found.append(float(net(**given)["loss"].detach()))
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_double_backward_equals_finite_differences(folder: str) -> None:
    """The gradient of the `pair` penalty against central differences, in double precision."""
    net = network(folder, penalty="pair", confidence=False).double().train()
    inputs = pairs(2)

    def loss() -> torch.Tensor:
        net.steps.zero_()
        found: torch.Tensor = net(**inputs)["loss"]
        return found

    loss().backward()
    weights = dict(net.named_parameters())
    checked = ["l1.0.weight", *[name for name in weights if name.endswith(("query.weight", "output.dense.weight"))]]
    step = 1e-6
    for name in checked[:5]:
        weight = weights[name]
        assert weight.grad is not None
        for place in ((0, 0), (0, 5)):
            at = weight.data[place].clone()
            values = []
            for sign in (1, -1):
                weight.data[place] = at + sign * step
                values.append(float(loss().detach()))
            weight.data[place] = at
            slope = (values[0] - values[1]) / (2 * step)
            assert float(weight.grad[place]) == pytest.approx(slope, rel=1e-4, abs=1e-7), name


def test_penalty_by_hand() -> None:
    x = torch.tensor([[[3.0], [4.0], [9.0]]], requires_grad=True)
    mask = torch.tensor([[1, 1, 0]])
    # d (x^2 / 2) / dx = x: norm 5 over the two that count, (5 - 1)^2 = 16.
    assert float(gradient_penalty((x.pow(2) / 2).sum(dim=(1, 2)), x, mask).detach()) == pytest.approx(16.0)


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "deberta-v2", "modernbert"])
@pytest.mark.parametrize("mode", ["pair", "interpolate"])
def test_every_family_can_be_penalised(family: str, mode: str, tiny_family: Callable[[str], str]) -> None:
    net = network(tiny_family(family), penalty=mode).train()
    inputs = pairs()
    net(**inputs)["loss"].backward()
    assert all(torch.isfinite(p.grad).all() for p in net.parameters() if p.grad is not None)
    if mode == "pair":
        # Embeddings in place of tokens must give the same text.
        net.eval()
        side = {name: value[:3] for name, value in inputs.items() if name != "places"}
        torch.testing.assert_close(net.vectors(net._embedded(side)), net.vectors(side), atol=1e-5, rtol=1e-5)
