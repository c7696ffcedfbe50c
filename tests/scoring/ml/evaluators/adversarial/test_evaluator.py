"""`adversarial` as a whole on tiny random encoders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scoring.ml import EncoderError, InvalidOption, TrainingDataError, TrainingProgress, fit, load, plan
from scoring.ml.evaluators.adversarial.evaluator import Adversarial
from scoring.ml.evaluators.adversarial.network import AdversarialNetwork
from scoring.ml.registry import get_entry
from scoring.ml.training import finetune as finetune_module
from scoring.ml.types import Aspect, Dataset, Item, Output, Rating, Record
from tests.scoring.ml.tiny import copy_as_another_kind, tiny_encoder

PEOPLE = ["the cat sat on the mat", "you like the tea", "the dog ran", "i like the cat"]
MACHINES = ["no no", "tea tea", "yes yes no", "no tea yes"]


def data(n_items: int = 12, seed: int = 3, **changes: Any) -> Dataset:
    """References are sentences; both machines repeat themselves. Ratings are for the model card."""
    rng = np.random.default_rng(seed)
    items, outputs, ratings = [], [], []
    for number in range(n_items):
        item = f"i{number}"
        references = tuple(str(text) for text in rng.choice(PEOPLE, 2, replace=False))
        items.append(Item(item, context=(str(rng.choice(["tea", "cat", "mat"])),), references=references))
        for system in ("m1", "m2"):
            outputs.append(Output(item, system, str(rng.choice(MACHINES))))
            ratings.append(Rating("r1", "quality", float(rng.integers(1, 6)), item, system))
    whole = Dataset(
        "hand", aspects=(Aspect("quality", 1, 5),), items=tuple(items), outputs=tuple(outputs), ratings=tuple(ratings)
    )
    return replace(whole, **changes)


def human_records(n: int = 4) -> list[Record]:
    return [Record(text, context=("tea",)) for text in PEOPLE[:n]]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), dropout=0.1)


@pytest.fixture(scope="module")
def trained(encoder: str) -> Adversarial:
    found = fit(
        "adversarial", data(), dev=data(8, seed=4), encoder=encoder, epochs=15, learning_rate=3e-3, batch_size=8,
        patience=None,
    )  # fmt: skip
    assert isinstance(found, Adversarial)
    return found


def weights(evaluator: Any) -> torch.Tensor:
    return torch.cat([value.flatten() for value in evaluator.artefact.network.state_dict().values()])


def test_human_texts_score_above_machine_texts(trained: Adversarial) -> None:
    machines = trained.score(data(8, seed=9).outputs_with_context())
    people = trained.score(human_records())
    assert people.min() > 0.5 > machines.max()
    metrics = trained.record.metrics
    assert metrics["auroc"] == 1.0
    assert metrics["balanced_accuracy"] == 1.0
    assert metrics["majority"] >= 0.5
    losses = [row["dev_loss"] for row in trained.record.log]
    assert min(losses) < 0.5 * losses[0]


def test_batch_and_order_do_not_matter(trained: Adversarial) -> None:
    records = [*data(8, seed=8).outputs_with_context(), *human_records()]
    together = trained.score(records)
    assert together.shape == (len(records),)
    assert together.dtype == np.float64
    alone = np.concatenate([trained.score([record]) for record in records])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(trained.score(records[::-1])[::-1], together, atol=1e-6)


def test_saved_and_loaded_it_scores_the_same(trained: Adversarial, tmp_path: Path) -> None:
    trained.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    records = data().outputs_with_context()
    np.testing.assert_allclose(loaded.score(records), trained.score(records), atol=1e-6)
    assert loaded.signature == trained.signature
    assert "profile:recommended" in loaded.signature
    assert "| adversarial | quality |" in (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    half = load(tmp_path / "out", dtype="bf16")
    np.testing.assert_allclose(half.score(records), trained.score(records), atol=2e-2)


def test_same_seed_same_weights(encoder: str) -> None:
    one, two, other = (
        fit("adversarial", data(8), encoder=encoder, epochs=1, batch_size=8, seed=seed) for seed in (1, 1, 2)
    )
    assert torch.equal(weights(one), weights(two))
    assert not torch.equal(weights(one), weights(other))


def test_interrupted_training_ends_with_the_same_weights(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finetune_module, "CHECKPOINT_SECONDS", 0.0)
    options: dict[str, Any] = {"encoder": encoder, "epochs": 2, "batch_size": 8, "learning_rate": 1e-3}
    whole = fit("adversarial", data(), **options)

    class Stop(Exception):
        pass

    def interrupt(progress: TrainingProgress) -> None:
        if progress.done == 5:
            raise Stop

    with pytest.raises(Stop):
        fit("adversarial", data(), folder=tmp_path, progress=interrupt, **options)
    seen: list[int] = []
    resumed = fit("adversarial", data(), folder=tmp_path, progress=lambda p: seen.append(p.done), **options)
    assert seen[0] > 1
    assert torch.equal(weights(whole), weights(resumed))


def test_everything_learns(trained: Adversarial) -> None:
    torch.manual_seed(0)
    fresh = AdversarialNetwork.from_source(trained.artefact.encoder, {"pooling": "mean"})
    after = dict(trained.artefact.network.named_parameters())
    still = [
        name for name, value in fresh.named_parameters() if "pooler" not in name and torch.equal(value, after[name])
    ]
    assert still == []


def test_the_loss_weighs_and_is_the_mean_cross_entropy(trained: Adversarial) -> None:
    network = trained.artefact.network
    inputs = {"input_ids": torch.tensor([[2, 5, 3], [2, 6, 3]]), "attention_mask": torch.ones(2, 3, dtype=torch.long)}
    logits = network(**inputs)["logits"].detach()
    labels, weight = torch.tensor([1.0, 0.0]), torch.tensor([3.0, 0.5])
    p = torch.sigmoid(logits)
    expected = (-3.0 * p[0].log() - 0.5 * (1 - p[1]).log()) / 2
    loss = network(labels=labels, weights=weight, **inputs)["loss"].detach()
    assert float(loss) == pytest.approx(float(expected), rel=1e-4)


def test_inputs_follow_the_option(encoder: str) -> None:
    records = data(4).outputs_with_context()
    blind = fit("adversarial", data(), encoder=encoder, epochs=1, inputs="text")
    changed = [replace(record, context=("no yes",)) for record in records]
    np.testing.assert_allclose(blind.score(records), blind.score(changed), atol=1e-6)
    deaf = fit("adversarial", data(), encoder=encoder, epochs=1, inputs="context")
    changed = [replace(record, text="no no no") for record in records]
    np.testing.assert_allclose(deaf.score(records), deaf.score(changed), atol=1e-6)
    assert "inputs:context" in deaf.signature


def test_context_is_read(trained: Adversarial) -> None:
    records = data(4).outputs_with_context()
    changed = [replace(record, context=("no yes on the mat",)) for record in records]
    assert (trained.score(records) != trained.score(changed)).all()


def test_options_of_the_classes(encoder: str) -> None:
    unlike = data()
    more = tuple(Output(f"i{n}", "m3", f"no {word}") for n in range(12) for word in ("tea",))
    unlike = replace(unlike, outputs=(*unlike.outputs, *more))
    drawn = plan("adversarial", unlike, encoder=encoder, dev=data(4), batch_size=8, epochs=2)
    assert drawn.examples["texts of people"] < drawn.examples["texts of machines"]
    assert drawn.examples["texts in an epoch"] == 2 * drawn.examples["texts of people"]
    weighed = plan("adversarial", unlike, encoder=encoder, dev=data(4), batch_size=8, epochs=2, balance="weight")
    total = weighed.examples["texts of people"] + weighed.examples["texts of machines"]
    assert weighed.examples["texts in an epoch"] == total
    assert weighed.steps == -(-total // 8) * 2
    one = fit("adversarial", unlike, encoder=encoder, epochs=1, balance="weight", batch_size=8)
    two = fit("adversarial", unlike, encoder=encoder, epochs=1, batch_size=8)
    assert not torch.equal(weights(one), weights(two))


def test_profiles(encoder: str) -> None:
    entry = get_entry("adversarial")
    assert entry.train_defaults("paper")["pooling"] == "cls"
    assert entry.train_defaults("recommended")["pooling"] == "mean"
    paper = fit("adversarial", data(), encoder=encoder, profile="paper", epochs=1)
    assert "profile:paper" in paper.signature
    assert "pool:cls" in paper.signature
    own = [p.numel() for name, p in paper.artefact.network.named_parameters() if not name.startswith("encoder")]
    assert sorted(own) == [1, 32]


def test_held_out_part(encoder: str) -> None:
    alone = fit("adversarial", data(12), encoder=encoder, epochs=1)
    assert len(alone.record.dev_groups) == 1
    assert len(alone.record.groups) == 11
    assert "auroc" in alone.record.metrics
    few = fit("adversarial", data(6), encoder=encoder, epochs=1)
    assert few.record.dev_groups == ()
    assert few.record.metrics == {}
    assert any("last epoch" in note for note in plan("adversarial", data(6), encoder=encoder).notes)


def test_empty_and_long_texts(trained: Adversarial) -> None:
    found = trained.evaluate([Record(" ", context=("tea",)), Record("tea " * 10_000, context=("cat",)), Record("tea")])
    assert found.values[0] == 0.0
    assert found.n_empty == 1
    assert found.n_truncated == 1
    assert np.isfinite(found.values).all()


@pytest.mark.parametrize("family", ["roberta", "distilbert", "modernbert"])
def test_any_family_of_encoders(family: str, tiny_family: Callable[[str], str], tmp_path: Path) -> None:
    found = fit("adversarial", data(6), encoder=tiny_family(family), epochs=1, max_steps=1)
    found.save_pretrained(tmp_path / "out")
    records = data(3).outputs_with_context()
    np.testing.assert_allclose(load(tmp_path / "out").score(records), found.score(records), atol=1e-5)


def test_invalid_input_is_named_before_training(encoder: str, tmp_path: Path) -> None:
    whole = data()
    bare = tuple(replace(item, references=()) for item in whole.items)
    with pytest.raises(TrainingDataError, match="add references to the items"):
        plan("adversarial", replace(whole, items=bare), encoder=encoder)
    with pytest.raises(TrainingDataError, match="upload the outputs of a system"):
        plan("adversarial", replace(whole, outputs=()), encoder=encoder)
    same = tuple(replace(output, text="the cat sat") for output in whole.outputs)
    equal = tuple(replace(item, references=("the cat sat",)) for item in whole.items)
    with pytest.raises(TrainingDataError, match="22 outputs"):
        plan("adversarial", replace(whole, outputs=same, items=equal), encoder=encoder)
    with pytest.raises(TrainingDataError, match=r"3 items .*too few"):
        plan("adversarial", data(3), encoder=encoder)
    with pytest.raises(TrainingDataError, match="too few: it needs 4 of each"):
        plan("adversarial", replace(whole, outputs=whole.outputs[:2]), encoder=encoder)
    unasked = tuple(replace(item, context=()) for item in whole.items)
    with pytest.raises(TrainingDataError, match="no item has a context"):
        plan("adversarial", replace(whole, items=unasked), encoder=encoder, inputs="context")
    with pytest.raises(EncoderError, match="is neither a folder"):
        plan("adversarial", whole, encoder=str(tmp_path / "nothing"))
    with pytest.raises(EncoderError, match="'big_bird'"):
        plan("adversarial", whole, encoder=copy_as_another_kind(encoder, tmp_path))
    with pytest.raises(InvalidOption, match="draw, weight"):
        plan("adversarial", whole, encoder=encoder, balance="never")


def test_one_system_and_duplicates_are_enough(encoder: str) -> None:
    whole = data(8)
    one = replace(whole, outputs=tuple(output for output in whole.outputs if output.system == "m1"))
    found = plan("adversarial", one, encoder=encoder)
    assert found.examples["systems"] == 1
    assert found.seconds is not None
    assert found.seconds > 0
    twice = replace(
        one, items=tuple(replace(item, references=(*item.references, *item.references)) for item in one.items)
    )
    assert plan("adversarial", twice, encoder=encoder).examples["texts of people"] == found.examples["texts of people"]
    assert any("read once" in note for note in plan("adversarial", twice, encoder=encoder).notes)
