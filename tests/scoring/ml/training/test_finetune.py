"""The settings of `finetune`: rate by step, decay, clipping, patience; each worked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig

from scoring.ml import fit
from scoring.ml.network import Network
from scoring.ml.training import finetune as finetune_module
from scoring.ml.training.curve import FinetuneResult
from scoring.ml.training.finetune import FinetuneSettings, estimate_activations, finetune
from scoring.ml.training.fit import make_job
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.ml.training.steps import steps_taken
from tests.scoring.ml.training.test_head import QUICK, rated
from tests.scoring.ml.training.toy import toy_data


class Slope(Network):
    """One weight and one bias, both 1 at the start; the batch gives the gradient of each."""

    def build(self, network: dict[str, Any], width: int) -> None:
        self.head = torch.nn.Linear(1, 1)
        torch.nn.init.ones_(self.head.weight)
        torch.nn.init.ones_(self.head.bias)

    def forward(self, slope: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": self.note_loss(slope * (self.head.weight.sum() + self.head.bias.sum()))}


class Slopes:
    """The same batches every epoch."""

    def __init__(self, *slopes: float) -> None:
        self.slopes = slopes

    def __len__(self) -> int:
        return len(self.slopes)

    def __getitem__(self, number: int) -> dict[str, Any]:
        return {"slope": torch.tensor(self.slopes[number])}

    def set_epoch(self, epoch: int) -> None:
        pass


def run(folder: Path, slopes: Slopes, network: Network | None = None, **more: Any) -> tuple[Network, FinetuneResult]:
    evaluate = more.pop("evaluate", None)
    settings = FinetuneSettings(**{"learning_rate": 0.5, "epochs": 1, "device": "cpu", **more})
    job = make_job("toy", toy_data(), {}, folder=folder)
    network = Slope.from_source(None, {}) if network is None else network
    return network, finetune(network, slopes, settings, job, evaluate=evaluate)


#: Ten steps with two of warm-up: the first has rate zero, the third the full rate, the last an eighth.
WARM = [0, 1 / 2, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]


@pytest.mark.parametrize(
    ("settings", "shares"),
    [
        ({"warmup": 0.2}, WARM),
        ({}, [0, 1, 8 / 9, 7 / 9, 6 / 9, 5 / 9, 4 / 9, 3 / 9, 2 / 9, 1 / 9]),
        ({"warmup": 0.0}, [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]),
        ({"warmup": 0.0, "schedule": "constant"}, [1] * 10),
    ],
    ids=["two steps of warm-up", "as it is without a word", "no warm-up", "constant"],
)
def test_rate_rises_in_warm_up_and_falls_to_zero(tmp_path: Path, settings: dict[str, Any], shares: list[float]) -> None:
    with steps_taken() as steps:
        run(tmp_path, Slopes(*[1.0] * 5), epochs=2, **settings)
    assert [step.rate for step in steps] == pytest.approx([0.5 * share for share in shares])


def test_weights_decay_and_biases_do_not(tmp_path: Path) -> None:
    with steps_taken() as steps:
        run(tmp_path, Slopes(1.0), weight_decay=0.25)
        run(tmp_path / "as it is", Slopes(1.0))
    assert [step.decays for step in steps] == [(0.25, 0.0), (0.01, 0.0)]


def test_gradients_are_clipped(tmp_path: Path) -> None:
    """Two weights with a gradient of s each have a norm of s times the square root of 2."""
    root = 2**0.5
    with steps_taken() as steps:
        run(tmp_path, Slopes(0.3, 40.0, 0.1), max_grad_norm=2.0)
        run(tmp_path / "as it is", Slopes(0.3, 40.0, 0.1))
    assert [step.norm for step in steps] == pytest.approx([0.3 * root, 2, 0.1 * root, 0.3 * root, 1, 0.1 * root])


def test_ten_steps_by_hand(tmp_path: Path) -> None:
    """All gradients are clipped to the same value: AdamW then moves by one rate per step, whatever its memory, after
    decaying the weight by rate x decay."""
    network, _ = run(tmp_path, Slopes(2.0, 70.0, 5.0, 900.0, 3.0), epochs=2, warmup=0.2, weight_decay=0.2)
    weight = bias = 1.0
    for share in WARM:
        weight = weight * (1 - 0.5 * share * 0.2) - 0.5 * share
        bias -= 0.5 * share
    assert network.head.weight.item() == pytest.approx(weight, abs=1e-4)
    assert network.head.bias.item() == pytest.approx(bias, abs=1e-4)


@pytest.mark.parametrize(("patience", "evaluations", "kept"), [(1, 2, 1), (2, 5, 3), (3, 7, 6), (None, 7, 6)])
def test_patience_counts_consecutive_evaluations_without_improvement(
    tmp_path: Path, patience: int | None, evaluations: int, kept: int
) -> None:
    """Losses of 3, 3.5, 2, 2, 2.6, 1, 4: an equal one is no improvement, a better one resets the count."""
    losses = [3.0, 3.5, 2.0, 2.0, 2.6, 1.0, 4.0]
    seen: list[float] = []

    def evaluate(network: Network) -> dict[str, float]:
        seen.append(network.head.bias.item())
        return {"loss": losses[len(seen) - 1]}

    network, found = run(tmp_path, Slopes(1.0, 1.0), epochs=7, patience=patience, evaluate=evaluate)
    assert [row["dev_loss"] for row in found.log] == losses[:evaluations]
    assert found.steps == 2 * evaluations
    assert found.metrics == {"loss": losses[kept - 1]}
    # Each evaluation saw another weight; the best one is stored.
    assert len(set(seen)) == evaluations
    assert network.head.bias.item() == seen[kept - 1]


def test_long_batches_are_recomputed_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With dropout, whose masks must be drawn alike; perception also differentiates its gradients."""
    encoder = tiny_encoder("bert", tmp_path / "encoder", dropout=0.1)
    kept, again = [], []
    for name, options in (("perception", {"penalty": "pair", "penalty_every": 1}), ("shared-bert", {})):
        for found, most in ((kept, 1 << 40), (again, 0)):
            monkeypatch.setattr(finetune_module, "MOST_ACTIVATIONS", most)
            trained = fit(name, rated(12), encoder=encoder, stages="together", seed=3, **QUICK, **options)
            found.append(trained.artefact.network)
    for network, other in zip(kept, again, strict=True):
        assert not network.is_activation_checkpointing
        assert other.is_activation_checkpointing
        torch.testing.assert_close(dict(other.state_dict()), dict(network.state_dict()), rtol=1e-6, atol=1e-7)


def test_estimate_of_activations_by_hand() -> None:
    config = BertConfig(hidden_size=10, num_hidden_layers=2, num_attention_heads=5, intermediate_size=4)
    assert estimate_activations(config, (3, 7)) == 4 * 2 * 3 * 7 * (200 + 3 * 5 * 7)
