"""The steps of a `perception` training, worked by hand from its network's outputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scoring.ml import fit
from scoring.ml.encoders.source import find_encoder
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.evaluators.perception.evaluator import Perception
from scoring.ml.evaluators.perception.network import PerceptionNetwork, _between
from scoring.ml.evaluators.perception.pairs import PairBatches, encode_sides
from scoring.ml.evaluators.perception.texts import learnable
from scoring.ml.training.fit import make_job
from scoring.ml.types import Dataset, Item, Output
from tests.scoring.ml.tiny import tiny_encoder

WORDS = ["cat", "dog", "sat", "on", "mat", "tea", "you", "like", "ran", "the"]
QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 8, "penalty": "none"}


def data(near: int = 8, far: int = 8, seed: int = 3, prefix: str = "i") -> Dataset:
    """Items with one reference each; `near` has outputs for the first ones, `far` for others."""
    rng = np.random.default_rng(seed)
    items = tuple(
        Item(f"{prefix}{n}", ("hello",), references=(" ".join(rng.choice(WORDS, 3)),), group=f"{prefix}{n}")
        for n in range(max(near, far))
    )
    outputs = [
        Output(item.id, system, f"{word} " + " ".join(rng.choice(WORDS, 2)))
        for system, word, n in (("near", "yes", near), ("far", "no", far))
        for item in items[:n]
    ]
    return Dataset("hand", items=items, outputs=tuple(outputs))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def dropping(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same with dropout."""
    return tiny_encoder("bert", tmp_path_factory.mktemp("dropping"), dropout=0.1)


@pytest.mark.parametrize(("budget", "factor"), [(1_000.0, 1.01), (0.0, 0.99)], ids=["ample", "none"])
def test_confidence_weight_adapts_at_every_step(encoder: str, budget: float, factor: float) -> None:
    """From 0.1 on: divided by 1.01 if the budget exceeds the confidence loss, else by 0.99."""
    given = {**QUICK, "epochs": 3, "patience": None, "stages": "together"}
    found = fit("perception", data(), dev=data(2, 2, seed=4, prefix="d"), encoder=encoder, budget=budget, **given)
    weights = {row["step"]: row["dev_confidence_weight"] for row in found.record.log}
    assert weights == pytest.approx({step: 0.1 / factor**step for step in (2, 4, 6)}, rel=1e-5)


def network(encoder: str, **changes: Any) -> PerceptionNetwork:
    torch.manual_seed(3)
    settings = {"pooling": "mean", "confidence": True, "penalty": "none", "penalty_weight": 10.0, "penalty_every": 1}
    return PerceptionNetwork.from_source(find_encoder(encoder), {**settings, "towers": 1, **changes}, attention="eager")


def pairs(rows: int) -> dict[str, torch.Tensor]:
    ids = torch.randint(5, 20, (2 * rows, 6), generator=torch.Generator().manual_seed(1))
    places = torch.stack([torch.arange(rows), rows + torch.arange(rows)], dim=1)
    return {"places": places, "input_ids": ids, "attention_mask": torch.ones_like(ids)}


def test_hints_go_to_some_and_all_pay_for_confidence(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equations 10 to 13 in training: p' = c p + 1 - c with a hint, p without one; the confidence loss uses c itself,
    hint or not."""
    hints = torch.tensor([1.0, 0.0, 0.0, 1.0])
    asked: list[torch.Tensor] = []

    def drawn(chances: torch.Tensor) -> torch.Tensor:
        asked.append(chances)
        return hints

    monkeypatch.setattr(torch, "bernoulli", drawn)
    net, inputs = network(encoder).train(), pairs(4)
    both = net.vectors({name: value for name, value in inputs.items() if name != "places"})
    vectors = both[:4], both[4:]
    p = net(**inputs)["p_ref"].detach()
    c = net.confide(vectors[0] + vectors[1]).detach()
    # Confidences clearly different from 1 and from each other.
    assert 0.1 < float(c.max()) < 0.9
    told = torch.stack([c[0] * p[0] + 1 - c[0], p[1], p[2], c[3] * p[3] + 1 - c[3]])
    loss_of_confidence = -c.log().mean()
    assert net.last_confidence_loss == pytest.approx(float(loss_of_confidence), rel=1e-5)
    assert net.last_loss == pytest.approx(float(-told.log().mean() + 0.1 * loss_of_confidence), rel=1e-5)
    assert [chances.tolist() for chances in asked] == [[0.5] * 4]
    # The held-out part is deterministic: all get the hint.
    net.eval()
    loss = net(**inputs)["loss"].detach()
    assert len(asked) == 1
    torch.testing.assert_close(loss, -(c * p + 1 - c).log().mean() + 0.1 * loss_of_confidence)


def test_penalty_has_the_requested_frequency_and_weight(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven steps at a learning rate near 0: at the 1st, 4th and 7th, 3 x 2.5 x (|w| - 1)^2 is added to -mean log p,
    where w is the last layer's weight, the gradient of the pooled penalty."""
    extra: list[float] = []
    forward = PerceptionNetwork.forward

    def told(self: PerceptionNetwork, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        found = forward(self, **inputs)
        if self.training:
            extra.append(float((found["loss"] + found["p_ref"].log().mean()).detach()))
        return found

    monkeypatch.setattr(PerceptionNetwork, "forward", told)
    found = fit(
        "perception", data(7, 7), encoder=encoder, epochs=1, batch_size=2, learning_rate=1e-9, confidence=False,
        penalty="pooled", penalty_weight=2.5, penalty_every=3,
    )  # fmt: skip
    net = found.artefact.network
    assert isinstance(net, PerceptionNetwork)
    penalty = (float(net.l1[0].weight.detach().norm()) - 1) ** 2
    assert penalty > 0.01
    assert extra == pytest.approx([7.5 * penalty, 0, 0, 7.5 * penalty, 0, 0, 7.5 * penalty], rel=1e-3, abs=1e-5)


def test_each_pair_is_interpolated_at_its_own_point() -> None:
    """WGAN-GP: eps ~ U(0, 1) per pair. Between ones and zeros, the value is eps itself."""
    mask = torch.ones(400, 2, dtype=torch.int64)
    torch.manual_seed(5)
    one, zero = ({"inputs_embeds": torch.full((400, 2, 3), value), "attention_mask": mask} for value in (1.0, 0.0))
    found = _between(one, zero)["inputs_embeds"]
    share = found[:, 0, 0]
    torch.testing.assert_close(found, share[:, None, None].expand(400, 2, 3))
    assert len(set(share.tolist())) > 390
    assert 0 <= float(share.min()) < 0.05
    assert 0.95 < float(share.max()) <= 1
    assert float(share.mean()) == pytest.approx(0.5, abs=0.05)


def test_smaller_system_has_equal_share_in_one_model_for_all(encoder: str, tmp_path: Path) -> None:
    """Three texts against eight: eight pairs each per epoch, each of the three two or three times."""
    whole = data(3, 8)
    job = make_job("perception", whole, {**QUICK, "encoder": encoder}, folder=tmp_path)
    texts = learnable(whole)
    systems = [record.system for record in texts.records]
    assert systems == ["near"] * 3 + ["far"] * 8
    sides = encode_sides(PairTokenizer(job.encoder), texts.records, form="both")
    batches = PairBatches(sides, systems, systems, job, pad_id=0, phase="x")
    often = set()
    for epoch in range(6):
        batches.set_epoch(epoch)
        met = np.bincount(np.concatenate([generated for generated, _ in batches.batches]), minlength=11).tolist()
        assert sorted(met[:3]) == [2, 3, 3]
        assert met[3:] == [1] * 8
        often.add(met.index(2))
    # The texts skipped in the last round are random.
    assert len(often) > 1
    assert fit("perception", whole, encoder=encoder, **QUICK).record.steps == 16 // 8


def test_model_certainty_is_drawn_by_its_seed(dropping: str) -> None:
    found = fit("perception", data(), encoder=dropping, max_steps=1, **QUICK)
    assert isinstance(found, Perception)
    records = data(3, 3, seed=9).outputs_with_context()

    def certainty(seed: int) -> list[float]:
        artefact = replace(found.artefact, seed=seed)
        return Perception(found.entry, artefact, {"mc_passes": 3}).certainty(records)[0].tolist()

    one, again, other = certainty(13), certainty(13), certainty(14)
    assert one == again
    assert all(a != b for a, b in zip(one, other, strict=True))


def test_model_of_a_system_is_selected_on_texts_of_that_system(encoder: str) -> None:
    """-mean log(1 - P_gen) of that system's held-out texts: P_gen is their score by that system's model."""
    dev = data(5, 3, seed=4, prefix="d")
    found = fit("perception", data(), dev=dev, encoder=encoder, models="per_system", learning_rate=1e-3, **QUICK)
    said = {row["system"]: row["dev_loss"] for row in found.record.log}
    records = dev.outputs_with_context()
    for system, n in (("near", 5), ("far", 3)):
        scores = found.score([record for record in records if record.system == system])
        assert len(scores) == n
        assert said[system] == pytest.approx(float(-np.log(1 - scores).mean()), rel=1e-4)
