"""The library from a researcher's view: a folder is read, split, trained on, scored, saved and loaded again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scoring.ml import Dataset, TrainingProgress, catalogue, fit, load, plan, read_dataset
from tests.scoring.ml.everything import ASPECTS, SMALL, write_everything
from tests.scoring.ml.tiny import tiny_encoder

#: Evaluators that learn from ratings for one aspect, or for several.
WITH_ASPECT = ("comparative", "ream", "shared-bert")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_everything(tmp_path_factory.mktemp("set"))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder("bert", tmp_path_factory.mktemp("encoder"), dropout=0.1)


def check_comparative(evaluator: Any, test: Dataset) -> None:
    records = test.outputs_with_context()
    good = [record for record in records if record.system == "s0"]
    bad = [record for record in records if record.system == "s3"]
    signs = np.asarray(evaluator.compare(good, bad))
    assert set(signs.tolist()) <= {-1, 0, 1}
    np.testing.assert_array_equal(np.asarray(evaluator.compare(bad, good)), -signs)
    assert set(evaluator.rank({"s0": good, "s3": bad}, seeds=3).order) == {"s0", "s3"}


def check_ream(evaluator: Any, test: Dataset) -> None:
    item = test.items[0]
    value = evaluator.reliability(item.context, item.references)
    assert -1 < value < 1
    assert evaluator.reliability(item.context, item.references[::-1]) == pytest.approx(value, abs=1e-6)
    (found,) = evaluator.annotate([item], [["the cat sat", "tea tea"]])
    assert set(found.references) <= {*item.references, "the cat sat", "tea tea"}


def check_perception(evaluator: Any, test: Dataset) -> None:
    outputs = [record for record in test.outputs_with_context() if record.system == "s0"]
    assert 0 < evaluator.system_score(outputs) < 1


def check_shared_bert(evaluator: Any, test: Dataset) -> None:
    records = test.outputs_with_context()
    assert evaluator.aspects == ASPECTS
    assert evaluator.score(records).shape == (len(records), 2)


def check_reads_no_references(evaluator: Any, test: Dataset) -> None:
    records = test.outputs_with_context()
    found = evaluator.score(records)
    assert ((found > 0) & (found < 1)).all()


CHECKS: dict[str, Callable[[Any, Dataset], None]] = {
    "comparative": check_comparative,
    "ream": check_ream,
    "perception": check_perception,
    "shared-bert": check_shared_bert,
    "maude": check_reads_no_references,
    "adversarial": check_reads_no_references,
}


@pytest.mark.parametrize("name", list(SMALL))
def test_from_a_folder_to_scores_and_back_from_the_disk(
    name: str, folder: Path, encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = read_dataset(folder)
    train, dev, test = data.split(seed=13, by="group")
    assert {item.group for item in train.items}.isdisjoint(item.group for item in (*dev.items, *test.items))
    seen: list[TrainingProgress] = []
    evaluator = fit(
        name, train, dev=dev, profile="recommended", encoder=encoder, seed=13, progress=seen.append, **SMALL[name]
    )
    assert seen
    given = {"aspect": "naturalness"} if name in WITH_ASPECT else {}
    records = test.outputs_with_context()
    scores = evaluator.score(records, **given)
    assert scores.shape == (len(records),)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    evaluator.save_pretrained(tmp_path / "out")
    loaded = load(tmp_path / "out")
    np.testing.assert_allclose(loaded.score(records, **given), scores, atol=1e-6)
    print(evaluator.signature)
    assert capsys.readouterr().out.startswith(f"{name}|profile:recommended|")
    assert loaded.signature == evaluator.signature
    CHECKS[name](loaded, test)


def test_unlearned_aspect_is_refused(folder: Path, encoder: str) -> None:
    data = read_dataset(folder)
    evaluator = fit("adversarial", data, encoder=encoder, epochs=1, max_steps=1)
    with pytest.raises(ValueError, match="learned no aspect"):
        evaluator.score(data.outputs_with_context()[:2], aspect="naturalness")
    with pytest.raises(ValueError, match="it learns no aspect"):
        plan("adversarial", data, encoder=encoder, aspect="naturalness")


@pytest.mark.parametrize("seed", ["abc", -1, 2**31, 1.5, True, None])
def test_invalid_seed_is_refused_before_training(folder: Path, encoder: str, seed: Any) -> None:
    """Once, it was used in training, and the folder could not be read again."""
    with pytest.raises(ValueError, match=r"'seed'.* 0"):
        plan("adem", read_dataset(folder), encoder=encoder, aspect="quality", seed=seed)


def test_catalogue_names_every_learned_evaluator() -> None:
    learns = {entry.name for entry in catalogue() if entry.learns}
    assert {*SMALL, "ruber", "infersent", "bert-nli", "adem", "ridge"} <= learns
