"""The common framework: train, interrupt, continue, save, load, refuse."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scoring.ml import (
    ArtefactError,
    InvalidOption,
    NotTrained,
    ScoringError,
    TrainingDataError,
    TrainingProgress,
    cross_fit,
    fit,
    load,
    plan,
)
from scoring.ml.catalogue import Option
from scoring.ml.errors import TrainingDiverged
from scoring.ml.training import finetune as finetune_module
from scoring.ml.training.fit import MARK, make_job
from scoring.ml.training.record import data_hash, hash_contents
from scoring.ml.training.together import Together
from scoring.ml.types import Aspect, System
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.ml.training.toy import ENTRY, Toy, ToyNetwork, toy_data


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), dropout=0.1)


@pytest.fixture(params=[False, True], ids=["tuned", "frozen"])
def frozen(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def weights(evaluator: Toy) -> dict[str, torch.Tensor]:
    return evaluator.artefact.network.state_dict()


def same(a: Toy, b: Toy) -> bool:
    return all(torch.equal(x, y) for x, y in zip(weights(a).values(), weights(b).values(), strict=True))


class Stop(Exception):
    pass


def test_saved_and_loaded_scores_the_same(tmp_path: Path, encoder: str, frozen: bool) -> None:
    data = toy_data()
    evaluator = fit("toy", data, dev=toy_data(8, seed=9), encoder=encoder, epochs=2, frozen=frozen)
    evaluator.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    records = data.outputs_with_context()
    np.testing.assert_allclose(loaded.score(records), evaluator.score(records), atol=1e-6)
    assert loaded.signature == evaluator.signature
    assert (
        loaded.record.contents
        == evaluator.record.contents
        == hash_contents(evaluator.record, data, toy_data(8, seed=9))
    )
    assert len(loaded.record.contents) > 8
    assert "profile:recommended" in loaded.signature
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"card.md", "train_log.jsonl", "fixtures.jsonl", "split.json", "model.safetensors"} <= names
    card = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert "24 of the judgements it learned from were simulated" in card
    assert "| length | fluency |" in card


def test_same_seed_gives_the_same_weights_and_another_one_others(encoder: str, frozen: bool) -> None:
    one, two, other = (fit("toy", toy_data(), encoder=encoder, epochs=2, frozen=frozen, seed=s) for s in (1, 1, 2))
    assert same(one, two)
    assert not same(one, other)


@pytest.fixture(scope="module")
def uncut(encoder: str) -> dict[bool, Toy]:
    """The next test's training without interruption, for a frozen or trainable encoder."""
    arguments = {"encoder": encoder, "epochs": 3, "learning_rate": 1e-3}
    return {frozen: fit("toy", toy_data(), frozen=frozen, **arguments) for frozen in (False, True)}


@pytest.mark.parametrize("stop_at", [1, 7, 12])
def test_interrupted_training_ends_with_the_same_weights(
    tmp_path: Path,
    encoder: str,
    uncut: dict[bool, Toy],
    frozen: bool,
    stop_at: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(finetune_module, "CHECKPOINT_SECONDS", 0.0)
    whole = uncut[frozen]

    def interrupt(progress: TrainingProgress) -> None:
        if progress.done == stop_at:
            raise Stop

    arguments = {"encoder": encoder, "epochs": 3, "learning_rate": 1e-3, "frozen": frozen, "folder": tmp_path}
    if not frozen or stop_at < 9:
        with pytest.raises(Stop):
            fit("toy", toy_data(), progress=interrupt, **arguments)
    seen: list[int] = []
    resumed = fit("toy", toy_data(), progress=lambda p: seen.append(p.done), **arguments)
    assert same(whole, resumed)
    if not frozen:
        assert seen[0] == stop_at  # the step whose report failed was not saved, earlier ones were
    assert not list(tmp_path.rglob("checkpoint-*"))
    again = fit("toy", toy_data(), progress=lambda p: pytest.fail("a finished training ran again"), **arguments)
    assert same(whole, again)


def test_training_interrupted_before_an_evaluation_catches_up(
    tmp_path: Path, encoder: str, uncut: dict[bool, Toy], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint between an epoch's last step and its evaluation would lose the evaluation, and perhaps the best
    weights."""
    monkeypatch.setattr(finetune_module, "CHECKPOINT_SECONDS", 0.0)
    evaluate = finetune_module._Keeper._evaluate
    arguments = {"encoder": encoder, "epochs": 3, "learning_rate": 1e-3, "frozen": False, "folder": tmp_path}

    def cut_off(self: Any, network: Any, state: Any, control: Any) -> None:
        if len(self.log) == 1:
            raise Stop
        evaluate(self, network, state, control)

    monkeypatch.setattr(finetune_module._Keeper, "_evaluate", cut_off)
    with pytest.raises(Stop):
        fit("toy", toy_data(), **arguments)
    monkeypatch.setattr(finetune_module._Keeper, "_evaluate", evaluate)
    resumed = fit("toy", toy_data(), **arguments)
    assert [row["dev_loss"] for row in resumed.record.log] == [row["dev_loss"] for row in uncut[False].record.log]
    assert same(uncut[False], resumed)


def test_incomplete_checkpoint_is_skipped(tmp_path: Path) -> None:
    for step in (2, 10, 4):
        (tmp_path / f"checkpoint-{step}").mkdir()
        if step != 10:
            (tmp_path / f"checkpoint-{step}" / finetune_module.COMPLETE).write_text("{}")
    assert finetune_module.last_checkpoint(tmp_path) == tmp_path / "checkpoint-4"
    assert not (tmp_path / "checkpoint-10").exists()


def test_progress_reports_loss_rate_and_time_left(encoder: str) -> None:
    seen: list[TrainingProgress] = []
    fit("toy", toy_data(), encoder=encoder, epochs=2, progress=seen.append)
    assert [p.done for p in seen] == list(range(1, 13))
    assert all(p.total == 12 and p.loss is not None and p.loss > 0 for p in seen)
    assert seen[-1].seconds_left == 0.0
    assert seen[-1].rate


def test_step_limit_beyond_the_epochs_adds_none(encoder: str, frozen: bool) -> None:
    """transformers would replace the epochs by the number of steps: 50 steps instead of 6."""
    for limit, expected in ((50, 6 if not frozen else 3), (2, 2)):
        found = fit("toy", toy_data(), encoder=encoder, epochs=1, frozen=frozen, max_steps=limit)
        assert found.record.steps == expected


@pytest.mark.parametrize(
    ("asked", "together", "index"),
    [("auto", Together(), 0), ("cuda:1", Together(), 1), ("cuda", Together(rank=1, processes=2), 1)],
)
def test_several_gpus_do_not_change_a_training(
    tmp_path: Path, encoder: str, monkeypatch: pytest.MonkeyPatch, asked: str, together: Together, index: int
) -> None:
    """With two GPUs, the Trainer merged two prepared batches into a step and lost one; and cuda:1 trained on the first
    GPU. Processes that share a training have one GPU each."""
    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    job = make_job("toy", toy_data(), {"encoder": encoder}, folder=tmp_path)
    settings = finetune_module.FinetuneSettings(1e-3, 2, device=asked)
    found = finetune_module._arguments(tmp_path, settings, job, "training", 6, together)
    assert (found.device, found.n_gpu) == (torch.device("cuda", index), 1)
    assert found.train_batch_size == 1
    assert chosen[-1] == torch.device("cuda", index)


def test_loss_falls_and_the_encoder_learns(encoder: str) -> None:
    evaluator = fit("toy", toy_data(4), encoder=encoder, epochs=30, learning_rate=3e-3)
    losses = [row["dev_loss"] for row in evaluator.record.log]
    assert losses[-1] < 0.2 * losses[0]
    fresh = Toy.network_class.from_source(evaluator.artefact.encoder, {})
    before, after = fresh.state_dict(), weights(evaluator)
    moved = [name for name in before if name.startswith("encoder") and not torch.equal(before[name], after[name])]
    assert len(moved) > 10


def test_diverged_training_gives_no_evaluator(monkeypatch: pytest.MonkeyPatch) -> None:
    artefact = fit("toy", toy_data(), epochs=1, frozen=True).artefact
    with torch.no_grad():
        next(artefact.network.parameters())[0] = torch.nan
    monkeypatch.setattr(Toy, "train", classmethod(lambda cls, job: artefact))
    with pytest.raises(TrainingDiverged, match="smaller learning_rate"):
        fit("toy", toy_data(), epochs=1, frozen=True)


@pytest.mark.parametrize("dev", [True, False])
def test_training_at_too_large_a_rate_is_explained(tmp_path: Path, encoder: str, frozen: bool, dev: bool) -> None:
    """Once, it ended in "Out of range float values are not JSON compliant: nan"."""
    held_out = toy_data(4, seed=9) if dev else None
    given = {"encoder": encoder, "dev": held_out, "frozen": frozen, "learning_rate": 1e30, "folder": tmp_path}
    steps: list[int] = []
    with pytest.raises(TrainingDiverged, match="learning_rate"):
        fit("toy", toy_data(), epochs=10, progress=lambda p: steps.append(p.done), **given)
    assert max(steps) < 10  # not to the end of all epochs
    with pytest.raises(TrainingDiverged):
        fit("toy", toy_data(), epochs=10, progress=lambda p: pytest.fail("it was trained again"), **given)


def test_training_that_diverges_after_its_best_evaluation_keeps_that(
    encoder: str, frozen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, steps = ToyNetwork.note_loss, 0

    def at_last_no_number(self: ToyNetwork, loss: torch.Tensor) -> torch.Tensor:
        nonlocal steps
        steps += self.training
        return note(self, loss * torch.nan if self.training and steps > 7 else loss)

    monkeypatch.setattr(ToyNetwork, "note_loss", at_last_no_number)
    found = fit("toy", toy_data(), dev=toy_data(4, seed=9), encoder=encoder, epochs=6, frozen=frozen)
    # Epochs of three steps, or of six; the toy's evaluation on features has a single figure, so its first is the best.
    *rows, last = found.record.log
    assert [row["step"] for row in rows] == ([3, 6] if frozen else [6])
    assert (last["step"], last["loss"], last["diverged"], last["kept"]) == (8, None, True, 3 if frozen else 6)
    assert any("diverged at step 8" in note and "smaller learning_rate" in note for note in found.record.notes)
    assert np.isfinite(found.score(toy_data().outputs_with_context())).all()


def test_excessive_rate_is_refused() -> None:
    with pytest.raises(InvalidOption, match="must be at most 1"):
        plan("maude", toy_data(), learning_rate=1e38)


def test_missing_input_is_reported_before_training() -> None:
    with pytest.raises(TrainingDataError, match="no ratings"):
        fit("toy", replace(toy_data(), ratings=()))
    with pytest.raises(TrainingDataError, match="there are: fluency"):
        plan("toy", toy_data(), aspect="taste")
    with pytest.raises(TrainingDataError, match="too few"):
        plan("toy", toy_data(1))
    with pytest.raises(InvalidOption, match="one of recommended"):
        fit("toy", toy_data(), profile="paper")
    with pytest.raises(NotTrained, match="has to be trained first"):
        load("toy")
    for call in (fit, plan, partial(cross_fit, folder="somewhere")):
        with pytest.raises(ScoringError, match=r"str: read_dataset\(folder\)"):
            call("toy", "my-folder")
    with pytest.raises(InvalidOption, match=r"fit\(\) "):
        fit("length", toy_data())
    assert plan("toy", toy_data(), epochs=5).steps == 30


def test_damaged_folder_is_refused(tmp_path: Path) -> None:
    evaluator = fit("toy", toy_data(), epochs=1, frozen=True)
    folder = tmp_path / "out"

    def damaged(name: str, content: str | None) -> None:
        evaluator.save_pretrained(folder)
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_text(content, encoding="utf-8")

    damaged("card.md", None)
    with pytest.raises(ArtefactError, match=r"card\.md missing"):
        load(folder)
    damaged("model.safetensors", "no tensors")
    with pytest.raises(ArtefactError, match="cannot be read"):
        load(folder)
    damaged("split.json", "[")
    with pytest.raises(ArtefactError, match="is damaged"):
        load(folder)
    evaluator.save_pretrained(folder)
    lines = (folder / "fixtures.jsonl").read_text(encoding="utf-8").splitlines()
    row = json.loads(lines[0])
    row["score"] += 0.5
    damaged("fixtures.jsonl", "\n".join([json.dumps(row), *lines[1:]]))
    with pytest.raises(ArtefactError, match="fixture 1 scores"):
        load(folder)
    fit("toy", toy_data(), epochs=1, frozen=True, seed=2).save_pretrained(tmp_path / "other")
    evaluator.save_pretrained(folder)
    (tmp_path / "other" / "model.safetensors").replace(folder / "model.safetensors")
    with pytest.raises(ArtefactError, match="not the file that was saved"):
        load(folder, verify=False)


def test_folder_belongs_to_one_training(tmp_path: Path) -> None:
    """Once, a second seed in the same folder gave the first one's weights under the second one's name."""
    arguments = {"epochs": 1, "frozen": True, "folder": tmp_path}
    one = fit("toy", toy_data(), seed=1, **arguments)
    for named, data, changes in (
        ("other seed", toy_data(), {"seed": 2}),
        ("other learning_rate", toy_data(), {"seed": 1, "learning_rate": 0.5}),
        ("other train", replace(toy_data(), aspects=()), {"seed": 1}),
        ("other language", replace(toy_data(), lang="zh"), {"seed": 1}),
    ):
        with pytest.raises(InvalidOption, match=f"{named}: take another folder"):
            fit("toy", data, **arguments, **changes)
    mark = tmp_path / MARK
    said = json.loads(mark.read_text())
    mark.write_text(json.dumps({**said, "revision": said["revision"] + 1}))
    with pytest.raises(InvalidOption, match="other revision: take another folder"):
        fit("toy", toy_data(), seed=1, **arguments)
    # Folders from before the revision was written continue.
    mark.write_text(json.dumps({name: value for name, value in said.items() if name != "revision"}))
    assert same(one, fit("toy", toy_data(), seed=1, train_device="cpu", **arguments))


def test_data_hash_covers_the_training_input() -> None:
    data = toy_data()
    people = replace(data, systems=(System("a", "human"),))
    hashes = {data_hash(one) for one in (data, people, replace(data, aspects=()), replace(data, ratings=()))}
    assert len(hashes) == 4
    assert data_hash(replace(data, items=data.items[::-1])) == data_hash(data)
    assert data_hash(replace(data, aspects=(Aspect("fluency", 1.0, 6.0),))) == data_hash(data)


@pytest.mark.parametrize("absent", [None, "none", ""])
def test_optional_number_may_be_omitted(absent: str | None) -> None:
    patience = replace(next(o for o in toy_options() if o.name == "patience"), default=5)
    assert patience.parse("toy", absent) is None
    assert patience.parse("toy", "3") == 3
    epochs = next(o for o in toy_options() if o.name == "epochs")
    with pytest.raises(InvalidOption, match="must be a whole number"):
        epochs.parse("toy", absent)


def toy_options() -> tuple[Option, ...]:
    return ENTRY.train_options
