"""The head first, then the encoder: the optimum of its own loss, rates of its own, and the choice on held-out data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from transformers import Trainer

from scoring.ml import TrainingProgress, fit
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training import finetune as frame
from scoring.ml.training.fit import make_job
from scoring.ml.training.head import HeadData, HeadFit, fit_head
from scoring.ml.types import Aspect, Dataset, Item, Output, Rating
from tests.scoring.ml.tiny import tiny_encoder

WORDS = ["cat", "dog", "sat", "on", "mat", "tea", "you", "like", "ran", "the"]
#: Whether the word "yes" decides, which a random encoder shows to a linear head.
QUICK: dict[str, Any] = {"batch_size": 8, "epochs": 2, "max_length": 32}


def rated(n_items: int, *, first: int = 0) -> Dataset:
    items, outputs, ratings = [], [], []
    for number in range(first, first + n_items):
        word, other = WORDS[number % 10], WORDS[(3 * number + 1) % 10]
        item = f"i{number}"
        references = (f"the {word} sat", f"{word} {other}")
        items.append(Item(item, (f"{other} {word} {number}",), None, references, f"g{number}"))
        for system, text, value in (("good", f"yes {word} {other}", 6 - number % 2), ("bad", f"no {word}", 2)):
            outputs.append(Output(item, system, text))
            ratings.append(Rating("r", "quality", value, item, system))
    return Dataset(
        "d", aspects=(Aspect("quality", 1, 6),), items=tuple(items), outputs=tuple(outputs), ratings=tuple(ratings)
    )


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), dropout=0.1)


class Classifier(torch.nn.Module):
    def __init__(self, k: int, loss: Any, outputs: int = 1) -> None:
        super().__init__()
        self.head_layer = torch.nn.Linear(k, outputs)
        self.head_loss = loss


def any_job(folder: Path) -> Any:
    return make_job("adversarial", rated(4), {}, folder=folder)


def binary_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.binary_cross_entropy_with_logits(logits.squeeze(-1), labels)


def test_head_reaches_the_optimum_of_its_convex_loss(tmp_path: Path) -> None:
    """scikit-learn's logistic regression with C = 1 / (penalty k) on standardised features has the same minimum."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(60, 5)) * [1.0, 3.0, 0.2, 10.0, 1.0] + [0.0, 5.0, 0.0, -2.0, 1.0]
    labels = (rng.random(60) < 1 / (1 + np.exp(-(features[:, 0] + features[:, 2] * 4)))).astype(float)
    network = Classifier(5, binary_loss)
    data = HeadData(torch.tensor(features), {"labels": torch.tensor(labels)}, [f"g{row // 3}" for row in range(60)])
    fitted = fit_head(network, data, any_job(tmp_path), "training")
    mean, spread = features.mean(axis=0), features.std(axis=0)
    peer = LogisticRegression(C=1 / (fitted.penalty * 5), tol=1e-12, max_iter=10_000)
    peer.fit((features - mean) / spread, labels)
    weights = network.head_layer.weight.detach().numpy()[0]
    np.testing.assert_allclose(weights * spread, peer.coef_[0], atol=2e-5)
    bias = peer.intercept_[0] - peer.coef_[0] @ (mean / spread)
    assert network.head_layer.bias.item() == pytest.approx(bias, abs=1e-4)


def test_head_near_a_given_one_minimises_the_distance_to_it(tmp_path: Path) -> None:
    """By scipy, without a gradient, for two features: loss + penalty k / (2 n) |W - W0|^2."""
    rng = np.random.default_rng(5)
    features, labels = rng.normal(size=(20, 2)), (rng.random(20) < 0.5).astype(float)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    network = Classifier(2, binary_loss)
    start = np.array([1.5, -2.0])
    with torch.no_grad():
        network.head_layer.weight.copy_(torch.tensor(start[None]))
    data = HeadData(torch.tensor(features), {"labels": torch.tensor(labels)}, ["g"] * 20)
    fitted = fit_head(network, data, any_job(tmp_path), "training", near=True)
    assert fitted.penalty == 1.0

    def objective(point: np.ndarray) -> float:
        z = features @ point[:2] + point[2]
        return float((np.logaddexp(0, z) - labels * z).mean() + 2 / 40 * ((point[:2] - start) ** 2).sum())

    best = minimize(objective, [*start, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
    np.testing.assert_allclose(network.head_layer.weight.detach().numpy()[0], best.x[:2], atol=1e-4)
    assert fitted.objective == pytest.approx(best.fun, abs=1e-9)


def test_nearly_constant_feature_gets_no_huge_weight(tmp_path: Path) -> None:
    """Encoders have outputs that hardly vary: with spread 1e-7 and a weight for spread 1 it would be a million."""
    rng = np.random.default_rng(2)
    features = rng.normal(size=(40, 4)) * [1.0, 1.0, 1.0, 1e-7] + [0.0, 0.0, 0.0, 3.0]
    labels = torch.tensor((features[:, 3] > 3.0).astype(float))
    network = Classifier(4, binary_loss)
    data = HeadData(torch.tensor(features), {"labels": labels}, [f"g{row}" for row in range(40)])
    fit_head(network, data, any_job(tmp_path), "training")
    assert network.head_layer.weight.abs().max() < 100


def test_penalty_is_that_of_the_least_loss_on_groups_left_out(tmp_path: Path) -> None:
    """Labels without relation to the features: the strongest of the penalties; labels that follow them: a weak one."""
    rng = np.random.default_rng(1)
    features = torch.tensor(rng.normal(size=(90, 20)))
    groups = [f"g{row}" for row in range(90)]
    chance = torch.tensor((rng.random(90) < 0.5).astype(float))
    clear = (features[:, 0] > 0).double()
    penalties = [
        fit_head(Classifier(20, binary_loss), HeadData(features, {"labels": labels}, groups), any_job(tmp_path), "x")
        for labels in (chance, clear)
    ]
    assert penalties[0].penalty == 10.0
    assert penalties[1].penalty < 0.1


@pytest.mark.parametrize("name", ["shared-bert", "adversarial", "perception", "comparative"])
def test_head_alone_leaves_the_encoder(encoder: str, name: str) -> None:
    found = fit(name, rated(12), encoder=encoder, stages="head", seed=3, **QUICK)
    from scoring.ml.encoders.loading import load_model

    assert found.artefact.encoder is not None
    before = load_model(found.artefact.encoder).state_dict()
    for key, value in found.artefact.network.encoder.state_dict().items():  # type: ignore[union-attr]
        assert torch.equal(value, before[key]), key
    assert [row["step"] for row in found.record.log] == [0] * len(found.record.log)
    assert np.isfinite(found.score(rated(3, first=20).outputs_with_context())).all()


@pytest.mark.parametrize("name", ["shared-bert", "adversarial", "perception", "comparative"])
def test_encoder_with_rate_0_stays_while_the_head_learns(encoder: str, name: str) -> None:
    """Only the head has a rate above 0; decay of the encoder is a multiple of its rate."""
    given = {"encoder": encoder, "stages": "together", "learning_rate": 0.0, "seed": 3, **QUICK}
    if name == "comparative":
        given |= {"human": "no"}
    moved = fit(name, rated(12), head_learning_rate=1e-2, **given).artefact.network.state_dict()
    still = fit(name, rated(12), head_learning_rate=0.0, **given).artefact.network.state_dict()
    same = {key: torch.equal(value, still[key]) for key, value in moved.items()}
    assert all(equal for key, equal in same.items() if key.startswith("encoder."))
    assert not all(equal for key, equal in same.items() if key.endswith("weight") and not key.startswith("encoder."))


def test_rates_reach_the_optimiser(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[dict[str, Any]] = []
    create = Trainer.create_scheduler

    def noted(self: Any, num_training_steps: int, optimizer: Any = None) -> Any:
        names = {id(value): name for name, value in self.model.named_parameters()}
        found.extend(
            {"lr": group["lr"], "decay": group["weight_decay"], "names": {names[id(p)] for p in group["params"]}}
            for group in self.optimizer.param_groups
        )
        return create(self, num_training_steps, optimizer)

    monkeypatch.setattr(Trainer, "create_scheduler", noted)
    fit("adversarial", rated(6), encoder=encoder, learning_rate=1e-5, head_learning_rate=1e-2, max_steps=1, **QUICK)
    head = [group for group in found if any(name.startswith("head.") for name in group["names"])]
    assert {(group["lr"], group["decay"]) for group in head} == {(1e-2, 0.01), (1e-2, 0.0)}
    rest = [group for group in found if group not in head]
    assert {group["lr"] for group in rest} == {1e-5}
    assert all(name.startswith("encoder.") for group in rest for name in group["names"])


def evaluate_as(values: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """The held-out loss of each evaluation in turn: first of the head alone, then of each epoch."""
    from scoring.ml.evaluators.adversarial import evaluator

    left = list(values)
    monkeypatch.setattr(evaluator, "measure_held_out", lambda *given: {"loss": left.pop(0)})


@pytest.mark.parametrize(("losses", "kept"), [([0.5, 0.6, 0.7], "head"), ([0.5, 0.6, 0.4], "fine-tuned")])
def test_better_stage_on_held_out_groups_is_kept(
    encoder: str, monkeypatch: pytest.MonkeyPatch, losses: list[float], kept: str
) -> None:
    given = {"encoder": encoder, "learning_rate": 1e-3, "seed": 3, **QUICK}
    evaluate_as(losses[:1], monkeypatch)
    head = fit("adversarial", rated(12), stages="head", **given).artefact.network.state_dict()
    evaluate_as(losses, monkeypatch)
    best = fit("adversarial", rated(12), **given)
    weights = best.artefact.network.state_dict()
    assert all(torch.equal(value, head[key]) for key, value in weights.items()) == (kept == "head")
    text = f"loss on the held-out part: head alone 0.5, fine-tuned {min(losses[1:]):.4g}. Kept: {kept}."
    assert text in best.record.notes
    assert text in best.card


def test_fine_tuned_network_is_kept_if_both_are_asked_for(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate_as([0.5, 0.6, 0.7], monkeypatch)
    both = fit("adversarial", rated(12), encoder=encoder, stages="both", learning_rate=1e-3, seed=3, **QUICK)
    assert "loss on the held-out part: head alone 0.5, fine-tuned 0.6. Kept: fine-tuned." in both.record.notes


class Stop(Exception):
    pass


def stop_after(steps: int) -> Any:
    def report(progress: TrainingProgress) -> None:
        if progress.phase == "training" and progress.done >= steps:
            raise Stop

    return report


def stop_in_head(progress: TrainingProgress) -> None:
    if progress.phase.endswith("head"):
        raise Stop


@pytest.mark.parametrize("report", [stop_in_head, stop_after(1), stop_after(4)], ids=["in head", "early", "late"])
def test_interrupted_training_ends_with_the_same_weights(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: Any
) -> None:
    monkeypatch.setattr(frame, "CHECKPOINT_SECONDS", 0.0)
    given = {"encoder": encoder, "learning_rate": 1e-3, "head_learning_rate": 1e-2, "seed": 3, **QUICK}
    whole = fit("adversarial", rated(12), folder=tmp_path / "whole", **given)
    with pytest.raises(Stop):
        fit("adversarial", rated(12), folder=tmp_path / "cut", progress=report, **given)
    resumed = fit("adversarial", rated(12), folder=tmp_path / "cut", **given)
    assert_same(resumed, whole)
    rows = [[{k: v for k, v in row.items() if k != "seconds"} for row in one.record.log] for one in (resumed, whole)]
    assert rows[0] == rows[1]


def assert_same(one: TrainedEvaluator, other: TrainedEvaluator) -> None:
    first, second = one.artefact.network.state_dict(), other.artefact.network.state_dict()
    assert all(torch.equal(value, second[key]) for key, value in first.items())


def test_restored_head_is_not_fitted_again(encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"encoder": encoder, "seed": 3, **QUICK}
    with pytest.raises(Stop):
        fit("adversarial", rated(12), folder=tmp_path, progress=stop_after(1), **given)

    def refuse(*given: Any, **more: Any) -> HeadFit:
        raise AssertionError("fitted twice")

    monkeypatch.setattr(frame, "fit_head", refuse)
    fit("adversarial", rated(12), folder=tmp_path, **given)
