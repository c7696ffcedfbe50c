"""The loss of a batch with its negatives, by hand; and a trainable encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scoring.ml import fit
from scoring.ml.evaluators.ream import trainer as module
from scoring.ml.evaluators.ream import training
from scoring.ml.evaluators.ream.evaluator import Ream
from scoring.ml.evaluators.ream.gold import Sample
from scoring.ml.evaluators.ream.report import report
from scoring.ml.evaluators.ream.training import Epochs
from scoring.ml.training.fit import make_job
from scoring.ml.training.loop import LoopSettings
from tests.scoring.ml.evaluators.ream.by_hand import Total, job, prepared
from tests.scoring.ml.evaluators.ream.test_evaluator import QUICK, data
from tests.scoring.ml.tiny import tiny_encoder

ALONE = Sample(0, (0,), 1.0)
PAIR = Sample(0, (0, 1), 0.5)


def loss(folder: Path, sample: Sample, epoch: int = 0, **options: Any) -> float:
    """The loss of the single batch of an epoch."""
    given = job(folder, **options)
    items = prepared()
    (found,) = Epochs(Total(), items, [sample], given, items.make_reader("cpu"))(epoch)  # type: ignore[arg-type]
    return float(found.detach())


def test_gold_margin_is_the_loss_of_quality_of_the_negative(tmp_path: Path) -> None:
    # Predicted .8 for 1. With the stranger, .4 is predicted for 0: the margin is 1 - 0.
    given = {"negatives": "add", "gold_margin": True}
    assert loss(tmp_path, ALONE, **given) == pytest.approx(0.2**2 + (1 - 0.8 + 0.4), abs=1e-6)
    assert loss(tmp_path, ALONE, contrast=0.5, **given) == pytest.approx(0.2**2 + 0.5 * (1 - 0.8 + 0.4), abs=1e-6)
    # The predictions .8 and .4 satisfy a fixed margin of .05, but not of .5.
    assert loss(tmp_path, ALONE, negatives="add") == pytest.approx(0.2**2, abs=1e-6)
    assert loss(tmp_path, ALONE, negatives="add", margin=0.5) == pytest.approx(0.2**2 + 0.1, abs=1e-6)


def test_only_removals_that_make_it_worse_are_negatives(tmp_path: Path) -> None:
    """(0) is worth 1, so it is no negative of the pair, which is worth .5; (1) is worth -1."""
    for epoch in range(8):
        # Predicted .5 for .5, and -.3 for the remaining reference.
        found = loss(tmp_path, PAIR, epoch, negatives="remove", margin=1.0)
        assert found == pytest.approx(1 - 0.5 - 0.3, abs=1e-6)
        assert loss(tmp_path, PAIR, epoch, negatives="remove", gold_margin=True) == pytest.approx(0.7, abs=1e-6)
    # Nothing can be removed from a single reference.
    assert loss(tmp_path, ALONE, negatives="remove", margin=1.0) == pytest.approx(0.2**2, abs=1e-6)


def test_sets_of_every_item_use_its_own_rows() -> None:
    given = prepared()
    read: list[list[int]] = []

    def read_vectors(rows: training.Ints) -> torch.Tensor:
        read.append(rows.tolist())
        return given.make_reader("cpu")(rows)

    sets = [(1, (0, 2)), (0, (0,)), (1, (1,)), (0, (2, 1))]
    wanted = [-1.1 - 1.2, 0.8, 0.7, -0.4 - 0.3]
    found = training.predict_sets(Total(), given, sets, read_vectors)  # type: ignore[arg-type]
    np.testing.assert_allclose(found.detach().numpy(), wanted, atol=1e-6)
    assert read == [[0, 1, 2, 3, 4, 5]]


def test_trainable_encoder_is_evaluated_after_training(tmp_path: Path) -> None:
    """The held-out figures belong to the resulting evaluator, not to the vectors before training."""
    encoder = tiny_encoder("bert", tmp_path / "encoder")
    given = {**QUICK, "epochs": 1, "sizes": "1,2", "tune_encoder": True, "encoder_learning_rate": 1e-2, "batch_size": 8}
    given |= {"pairing": "joint", "pretrain": 0}
    whole, dev = data(3), data(3, seed=4)
    found = fit("ream", whole, dev=dev, encoder=encoder, **given)
    assert isinstance(found, Ream)
    again = make_job("ream", whole, {**given, "encoder": encoder}, dev=dev, seed=found.artefact.seed, folder=tmp_path)
    items = training.query_items(dev, "overall", "raw")
    fresh = training.Preparer(again, found.metric, found.pair_encoder).prepare(items, "dev")
    samples, _ = training.draw_samples(fresh.gold, (1, 2), 2, again.rng("dev sets"))
    wanted = report(found.network, fresh, samples, again.rng("perturbations"))
    assert found.record.metrics["mse"] == pytest.approx(wanted.mse, abs=1e-5)
    assert found.record.metrics["spearman"] == pytest.approx(wanted.spearman, abs=1e-5)


def test_training_loop_gets_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[LoopSettings] = []

    class Enough(Exception):
        pass

    def note(network: Any, epochs: Any, settings: LoopSettings, *others: Any, **more: Any) -> None:
        told.append(settings)
        raise Enough

    monkeypatch.setattr(module, "train_loop", note)
    given = {**QUICK, "weight_decay": 0.25, "patience": 4, "learning_rate": 0.125, "encoder_learning_rate": 0.5}
    given |= {"pairing": "joint", "pretrain": 0}
    encoder = tiny_encoder("bert", tmp_path / "encoder")
    for tuned in (False, True):
        with pytest.raises(Enough):
            fit("ream", data(3), dev=data(3, seed=4), encoder=encoder, tune_encoder=tuned, **given)
    frozen, moving = told
    assert (frozen.weight_decay, frozen.patience, frozen.learning_rate, frozen.max_epochs) == (0.25, 4, 0.125, 3)
    assert (frozen.better, frozen.lower_is_better, frozen.encoder_learning_rate) == ("mse", True, None)
    assert moving.encoder_learning_rate == 0.5
