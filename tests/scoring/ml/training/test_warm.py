"""Training that begins with a trained evaluator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scoring.ml import InvalidOption, cross_fit, fit, load, plan
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training.record import hash_content
from scoring.ml.types import Dataset
from tests.scoring.ml.tiny import tiny_encoder
from tests.scoring.ml.training.test_head import QUICK, rated

ALL = ["shared-bert", "adversarial", "perception", "comparative"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), dropout=0.0)


@pytest.fixture(scope="module")
def first(encoder: str) -> TrainedEvaluator:
    found = fit("shared-bert", rated(12), encoder=encoder, learning_rate=1e-3, stages="both", seed=3, **QUICK)
    assert isinstance(found, TrainedEvaluator)
    return found


def weights(one: Any) -> dict[str, torch.Tensor]:
    return dict(one.artefact.network.named_parameters())


@pytest.mark.parametrize("name", ALL)
def test_start_from_itself_changes_nothing_at_rate_0(encoder: str, tmp_path: Path, name: str) -> None:
    given = {"seed": 3, "human": "no", **QUICK} if name == "comparative" else {"seed": 3, **QUICK}
    before = fit(name, rated(12), encoder=encoder, learning_rate=1e-3, stages="both", **given)
    before.save_pretrained(tmp_path / "before")
    after = fit(name, rated(12), init=tmp_path / "before", stages="together", learning_rate=0.0, **given)
    for key, value in weights(before).items():
        assert torch.equal(value, weights(after)[key]), key
    records = rated(4, first=30).outputs_with_context()
    np.testing.assert_array_equal(before.score(records), after.score(records))


def test_new_scale_gets_a_new_head_on_the_trained_encoder(first: TrainedEvaluator) -> None:
    data = rated(12, first=40)
    data = replace(
        data,
        aspects=tuple(replace(one, name="appeal") for one in data.aspects),
        ratings=tuple(replace(one, aspect="appeal") for one in data.ratings),
    )
    found = fit("shared-bert", data, init=first, stages="head", seed=3, **QUICK)
    assert found.aspects == ("appeal",)
    for key, value in weights(first).items():
        assert torch.equal(value, weights(found)[key]) == key.startswith("encoder."), key


def test_card_signature_and_leakage_name_the_start(first: TrainedEvaluator, tmp_path: Path) -> None:
    later = fit("shared-bert", rated(12, first=40), init=first, stages="head", seed=3, **QUICK)
    later.save_pretrained(tmp_path / "later")
    again = load(tmp_path / "later")
    assert isinstance(again, TrainedEvaluator)
    assert f"|init:{first.weights[:8]}|" in again.signature
    assert "|init:" not in first.signature
    assert f"| Began with | shared-bert {first.weights[:8]}, trained on d (" in again.card
    assert {"g0", "g11", "g40", "g51"} <= again.trained_on
    assert "g12" not in again.trained_on
    item = rated(12).items[0]
    # In other data the same content is recognised under another name.
    again.recognise([("other", "o", hash_content(item.context, item.source, item.id))])
    assert again.trained_on == {"o"}


def test_held_out_groups_that_the_start_has_seen_are_named(first: TrainedEvaluator) -> None:
    dev = rated(4, first=10)
    found = fit("shared-bert", rated(12, first=40), dev=dev, init=first, stages="head", seed=3, **QUICK)
    assert any(note.startswith("2 of 4 held-out groups were seen by the evaluator") for note in found.record.notes)
    clean = fit("shared-bert", rated(12, first=40), dev=rated(4, first=60), init=first, stages="head", seed=3, **QUICK)
    assert not any("were seen" in note for note in clean.record.notes)


def test_folds_begin_with_it_and_count_everything_as_seen(first: TrainedEvaluator, tmp_path: Path) -> None:
    found = cross_fit(
        "shared-bert", rated(12, first=40), folds=2, folder=tmp_path, init=first, stages="head", seed=3, **QUICK
    )
    for member in found.members:
        assert {"g0", "g11"} <= member.trained_on


def refused(first: TrainedEvaluator, tmp_path: Path) -> list[tuple[str, Dataset, dict[str, Any], str]]:
    return [
        ("adversarial", rated(12), {"init": first}, "is a shared-bert: begin with a adversarial"),
        ("ridge", rated(12), {"init": first}, "its encoder stays frozen"),
        ("shared-bert", rated(12), {"init": tmp_path / "none"}, "is not the folder of a single trained evaluator"),
        ("shared-bert", rated(12), {"init": first, "encoder": "x"}, "leave out encoder"),
        ("shared-bert", rated(12), {"init": load("length")}, "must be a trained evaluator with a single model"),
    ]


@pytest.mark.parametrize("number", range(5))
def test_unsuitable_starts_are_refused_before_training(first: TrainedEvaluator, tmp_path: Path, number: int) -> None:
    name, data, given, text = refused(first, tmp_path)[number]
    with pytest.raises(InvalidOption, match=text):
        plan(name, data, **given)


def test_folder_of_a_training_with_another_start_is_refused(
    first: TrainedEvaluator, encoder: str, tmp_path: Path
) -> None:
    given = {"folder": tmp_path / "work", "stages": "head", "seed": 3, **QUICK}
    fit("shared-bert", rated(12, first=40), encoder=encoder, **given)
    with pytest.raises(InvalidOption, match="init"):
        fit("shared-bert", rated(12, first=40), init=first, **given)
