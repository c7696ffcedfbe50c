"""The study of MAUDE and its rivals: means over seeds, baselines, and what an interval allows to say."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scoring.ml import Dataset, Record
from scoring.ml.types import Dialogue

N = 60
SETS = (
    "usr_topicalchat", "usr_personachat", "grade_convai2", "grade_dailydialog", "grade_empathetic",
    "predictive_engagement",
)  # fmt: skip


@pytest.fixture(scope="module")
def unreferenced(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("experiments.unreferenced")


def make_result(scores: np.ndarray) -> dict[str, Any]:
    """One training with the same scores for every set."""
    return {
        "values": dict.fromkeys(SETS, scores.tolist()),
        "delta": {"ground_truth": [30, 0.0, 0.0, 0.0], "rand_utt": [30, 0.25, 0.5, 0.75]},
    }


class Rated:
    """Ratings of N outputs, two in each group."""

    def __init__(self, means: np.ndarray) -> None:
        self.records = [Record(f"text {n}", item=str(n), group=f"g{n // 2}") for n in range(len(means))]
        self._means = means

    def means(self) -> np.ndarray:
        return self._means


@pytest.fixture
def rows(unreferenced: ModuleType, make_run: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """maude with two seeds, one right and one reversed; bert-nli with one that is right; baselines are noisy."""
    monkeypatch.setattr(unreferenced, "RESAMPLES", 200)
    rng = np.random.default_rng(1)
    means = rng.normal(size=N)
    monkeypatch.setattr(unreferenced, "read_rated", lambda run: [(name, Rated(means)) for name in SETS])
    run = make_run("maude")
    noisy = {name: dict.fromkeys(SETS, means + rng.normal(size=N) * 3) for name in ("length", "overlap")}
    run.once("floors", 0, lambda: {**noisy, "token-f1": {SETS[0]: -means}})
    run.once("bert-nli/200", 13, lambda: make_result(means))
    run.once("maude/1000", 13, lambda: make_result(means))
    run.once("maude/1000", 14, lambda: make_result(-means))
    run.once("maude/200", 13, lambda: make_result(means))
    return {f"{row['table']} {row['evaluator']}": row for row in unreferenced.tabulate(run)}


def test_coefficients_are_means_over_seeds(rows: dict[str, dict[str, Any]]) -> None:
    assert [name for name in rows if "dialogues" in name and name.startswith("agreement")] == [
        "agreement maude, 200 dialogues", "agreement maude, 1,000 dialogues", "agreement bert-nli, 200 dialogues"
    ]  # fmt: skip
    both = rows["agreement maude, 1,000 dialogues"]
    assert both["seeds"] == 2
    assert all(both[name]["value"] == pytest.approx(0.0, abs=1e-7) for name in SETS)  # the mean of 1 and -1
    baseline = rows["agreement token-f1 (baseline)"]
    assert baseline[SETS[0]] == {"value": -1.0, "low": -1.0, "high": -1.0}
    assert SETS[1] not in baseline
    assert rows["agreement MAUDE as published"]["usr_personachat"] == 0.298


def test_an_evaluator_is_above_a_baseline_by_the_interval_of_the_difference(rows: dict[str, dict[str, Any]]) -> None:
    assert rows["agreement bert-nli, 200 dialogues"]["against"] == "6 / 0"
    assert rows["agreement maude, 1,000 dialogues"]["against"].startswith("0 / ")


def test_shares_of_false_replies_below_the_true_one(rows: dict[str, dict[str, Any]]) -> None:
    row = rows["false maude, 1,000 dialogues"]
    assert (row["rand_utt"], row["seeds"]) == (0.75, 2)
    assert "ground_truth" not in row


def test_texts_in_the_training_data_are_counted(unreferenced: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    long, other = "One two, three four five SIX", "this one has its own six words"
    train = Dataset("t", dialogues=(Dialogue("d", ("one two three four five six!", "short")),))
    records = [Record(long, context=("short", other)), Record(other, context=(long,))]
    monkeypatch.setattr(unreferenced, "read_rated", lambda run: [("x", SimpleNamespace(records=records))])
    assert unreferenced.count_shared(train, None) == {
        "x": {"shared turns": 1, "turns in all": 2, "shared outputs": 1, "outputs in all": 2}
    }
