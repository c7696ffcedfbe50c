"""The use of ADEM's held-out rows: they select the ridge penalty, and join the last solution if they were split off
from the training data; they do not affect the principal axes or the scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scoring.ml.evaluators.adem import evaluator as module
from scoring.ml.evaluators.adem.evaluator import Adem, _Part, _ridge
from scoring.ml.evaluators.adem.network import AdemNetwork
from scoring.ml.evaluators.adem.ridge import Components
from scoring.ml.training.fit import make_job
from scoring.ml.training.job import FitJob
from scoring.ml.types import Aspect, Dataset, Item, Output, Rating, Record
from tests.scoring.ml.tiny import tiny_encoder


def rated(n: int, name: str) -> Dataset:
    """Items with one rated output each."""
    ids = [f"{name}{number}" for number in range(n)]
    return Dataset(
        name,
        aspects=(Aspect("overall", 1, 5),),
        items=tuple(Item(one, ("you like",), references=("tea",), group=one) for one in ids),
        outputs=tuple(Output(one, "s", "cat") for one in ids),
        ratings=tuple(Rating("r1", "overall", 1.0 + place % 5, one, "s") for place, one in enumerate(ids)),
    )


def job(folder: Path, train: Dataset, dev: Dataset | None = None, **options: Any) -> FitJob:
    return make_job("adem", train, options, dev=dev, folder=folder)


@pytest.mark.parametrize("method", ["ridge", "gradient"])
@pytest.mark.parametrize("cut_off", [False, True])
def test_axes_and_scale_come_from_training_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, cut_off: bool
) -> None:
    """Training vectors differ along the first of 32 axes, held-out ones far more along the second."""
    encoder = tiny_encoder("bert", tmp_path / "encoder")
    train, dev = rated(20, "t"), None if cut_off else rated(4, "d")
    given = job(tmp_path, train, dev, encoder=encoder, components=1, method=method, epochs=1)
    _, part = module._check(given)
    assert part.cut_off == cut_off
    assert 0 < part.held.sum() < 10
    taught = np.flatnonzero(~part.held)
    along = np.arange(1.0, len(taught) + 1)
    sides = np.zeros((len(part.held), 32))
    sides[taught, 0] = along
    sides[part.held, 1] = np.arange(1, part.held.sum() + 1) * 100.0
    monkeypatch.setattr(module, "_encode", lambda *_: Components(sides, sides, sides))
    network = Adem.train(given).network
    wanted = np.zeros(32)
    wanted[0] = along.mean()
    np.testing.assert_allclose(network.mean.numpy(), wanted, atol=1e-5)
    np.testing.assert_allclose(network.axes[:, 0].numpy(), np.eye(32)[0], atol=1e-5)
    # Each product is c y + r y of the one component, and 1 + 1 of the constants.
    products = 2 * (along - along.mean()) ** 2 + 2
    beta = np.ptp(products) / 4
    assert float(network.beta) == pytest.approx(beta, rel=1e-5)
    assert float(network.alpha) == pytest.approx(products.mean() - 3 * beta, rel=1e-4)


@pytest.mark.parametrize("cut_off", [False, True])
def test_split_off_rows_join_the_final_solution(tmp_path: Path, cut_off: bool) -> None:
    """One component each: contexts and replies of 1, references of 0, so that a score is M alone.

    M is 1 + sum(label - 1) / (n + weight): with three labels of 2 and a weight of 1 it is 1.75. With the held-out label
    of 6 it is 2.6.
    """
    sizes = {"vector": 1, "components": 1, "affine": False, "inputs": "both", "l1": 0.0, "l2": 0.0}
    network = AdemNetwork.from_source(None, sizes)
    one, nothing = np.ones((4, 1)), np.zeros((4, 1))
    held = np.array([False, False, True, False])
    part = _Part([Record("x")] * 4, np.array([2.0, 2.0, 6.0, 2.0]), held, 0, {}, cut_off)
    with torch.no_grad():
        found = _ridge(network, job(tmp_path, rated(4, "t"), l2=1.0), Components(one, nothing, one), part)
    assert float(network.M.detach()) == pytest.approx(2.6 if cut_off else 1.75)
    assert float(network.N.detach()) == 1.0
    # The error on rows outside the training data selects the weight.
    assert found.metrics == {"loss": pytest.approx((6 - 1.75) ** 2), "l2": 1.0}
