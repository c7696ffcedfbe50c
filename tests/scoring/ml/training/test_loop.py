"""The plain loop over cached features: its step with lambda, and its end; worked by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from scoring.ml.network import Network
from scoring.ml.training.curve import FinetuneResult
from scoring.ml.training.fit import make_job
from scoring.ml.training.loop import LoopSettings, train_loop
from tests.scoring.ml.training.toy import toy_data


class One(Network):
    """One weight."""

    def build(self, network: dict[str, Any], width: int) -> None:
        self.weight = torch.nn.Parameter(torch.tensor([2.0]))


def run(
    folder: Path, slopes: Sequence[float], figures: Sequence[float] = (), **settings: Any
) -> tuple[FinetuneResult, float]:
    """The result for a loss of `slope` times the weight, one step per epoch, and the weight; the first recorded
    figures."""
    network, given = One.from_source(None, {}), iter(figures)
    job = make_job("toy", toy_data(4), {"frozen": True}, seed=1, folder=folder)

    def losses(epoch: int) -> Iterator[torch.Tensor]:
        yield (slopes[epoch % len(slopes)] * network.weight).sum()

    asked = LoopSettings(**{"learning_rate": 0.1, "max_epochs": len(slopes), **settings})
    evaluate = (lambda _: {"loss": next(given)}) if figures else None
    found = train_loop(network, losses, asked, job, steps_per_epoch=1, evaluate=evaluate)
    return found, float(network.weight.detach())


def test_lambda_shrinks_the_weights(tmp_path: Path) -> None:
    """Adam's first step has the size of its rate, whatever the gradient's size. For a loss that does not depend on the
    weight, only lambda times the weight remains: .01 x 2."""
    assert run(tmp_path / "without", [0.0])[1] == 2.0
    assert run(tmp_path / "with", [0.0], weight_decay=0.01)[1] == pytest.approx(2.0 - 0.1, abs=1e-5)
    # It is part of the gradient, not a separate weight decay: -.03 + .01 x 2 points upwards.
    assert run(tmp_path / "less", [-0.03], weight_decay=0.01)[1] == pytest.approx(2.0 + 0.1, abs=1e-5)
    assert run(tmp_path / "more", [-0.01], weight_decay=0.01)[1] == pytest.approx(2.0 - 0.1, abs=1e-5)


@pytest.mark.parametrize(("patience", "epochs", "best"), [(1, 3, 2), (2, 4, 2), (3, 8, 5), (None, 9, 5)])
def test_training_ends_after_too_many_evaluations_without_improvement(
    tmp_path: Path, patience: int | None, epochs: int, best: int
) -> None:
    """With a patience of 3, it reaches the fifth, a better one, and restores it; an equal one is no improvement."""
    figures = [5.0, 3.0, 4.0, 3.5, 2.5, 2.5, 2.6, 2.7, 2.8]
    found, weight = run(tmp_path, [1.0] * len(figures), figures, patience=patience)
    assert len(found.log) == found.steps == epochs
    assert found.metrics == {"loss": figures[best - 1]}
    # Each step changes the weight by .1: the weights are those of the best epoch.
    assert weight == pytest.approx(2.0 - 0.1 * best, abs=1e-4)
