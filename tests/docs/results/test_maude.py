"""The page about MAUDE and its rivals: means over seeds, and wording that follows the intervals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from scoring.ml import Dataset, Item, Output
from scoring.ml.types import Dialogue


@pytest.fixture(scope="module")
def maude(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("maude")


N = 60


def result(scores: np.ndarray, **more: Any) -> dict[str, Any]:
    """The result of a training, equal for every set."""
    return {
        "values": dict.fromkeys(SETS, scores.tolist()),
        "bins": {name: [[1, 1, 20, 0.5, 0.25], [2, 2, 40, 0.25, None]] for name in SETS},
        "delta": {"ground_truth": [30, 0.0, 0.0, 0.0], "rand_utt": [30, 0.25, 0.5, 0.75]},
        "examples": {"conversations": 8, "true replies": 40}, "metrics": {"loss": 0.5, "below": 0.75},
        "epochs": None, "steps": 7, "training_seconds": 30.0, **more,
    }  # fmt: skip


SETS = (
    "usr_topicalchat", "usr_personachat", "grade_convai2", "grade_dailydialog", "grade_empathetic",
    "predictive_engagement",
)  # fmt: skip


@pytest.fixture
def store(maude: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Two maude seeds, one right and one reversed; one correct bert-nli; length is nearly right."""
    monkeypatch.setattr(maude, "RESAMPLES", 200)
    rng = np.random.default_rng(1)
    means = rng.normal(size=N)
    kept = maude.Store(tmp_path / "maude.jsonl", tmp_path / "aside.jsonl", "abc")
    kept.once("people", 0, lambda: {name: {"means": means, "groups": np.arange(N) // 2} for name in SETS})
    noisy = {name: dict.fromkeys(SETS, means + rng.normal(size=N) * 3) for name in ("length", "overlap")}
    kept.once("floors", 0, lambda: {**noisy, "token-f1": {SETS[0]: -means}})
    shared = {"shared turns": 1, "turns in all": 2000}
    kept.once("leakage", 0, lambda: dict.fromkeys(SETS, shared))
    kept.once("maude/1000", 13, lambda: result(means))
    kept.once("maude/1000", 14, lambda: result(-means))
    kept.once("bert-nli/200", 13, lambda: result(means, epochs=2))
    kept.once("maude/200", 13, lambda: result(means))
    return kept


def test_page_contains_all_results(maude: ModuleType, store: Any) -> None:
    text = "\n".join(maude.page(store, "one"))
    assert "Not computed yet" not in text
    rows = [line for line in text.splitlines() if line.startswith("| maude, 1,000 dialogues (2 seeds) |")]
    spearman, pearson, delta, training = rows
    assert spearman.count("| .000 [") == len(SETS)  # the mean of 1 and -1
    assert pearson.count("| .000 ") == len(SETS)
    assert ".250 (.500), 75%" in delta
    assert training.endswith("| 8 | 40 | 7 | .500 ± .000 | .750 ± .000 | 0.0 | 0.5 |")
    order = [line.split("|")[1].strip() for line in text.splitlines() if "dialogues" in line and line.startswith("| ")]
    assert order[:3] == [
        "maude, 200 dialogues (1 seed)",
        "maude, 1,000 dialogues (2 seeds)",
        "bert-nli, 200 dialogues, 2 epochs (1 seed)",
    ]
    assert "| token-f1 (floor) | -1.000 [-1.000, -1.000] | - | - |" in text
    assert "| usr_personachat | 1 | 20 | .50 ± .00; .25 ± .00 | .50; .25 |" in text
    assert "| grade_convai2 | 1 | 2,000 |" in text
    assert "Encoder of maude and bert-nli: one, frozen" in text


def test_missing_context_length_does_not_shift_other_evaluators(maude: ModuleType, store: Any) -> None:
    for (setting, _), row in store.rows.items():
        if setting.startswith("bert-nli"):
            row["bins"] = {name: bins[1:] for name, bins in row["bins"].items()}
    text = "\n".join(maude.bin_lines(store))
    assert "| usr_personachat | 1 | 20 | .50 ± .00; .25 ± .00 | -; - |" in text
    assert "| usr_personachat | 2 | 40 | .25 ± .00; - | .25; - |" in text


def test_wording_follows_the_interval_of_the_difference(maude: ModuleType, store: Any) -> None:
    lines = [line for line in maude.page(store, "one") if line.startswith("- ")]
    said = {line.split(" (")[0].removeprefix("- "): line for line in lines}
    assert said["bert-nli, 200 dialogues, 2 epochs"].partition("above: ")[2].count("usr_") == 2
    assert "below" not in said["bert-nli, 200 dialogues, 2 epochs"]
    assert "above" not in said["maude, 1,000 dialogues"]


def test_undefined_scores_are_left_out(maude: ModuleType) -> None:
    means = np.arange(5.0)
    scores = np.array([[0.0, 1.0, np.nan, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0, np.nan]])
    assert maude.coefficient(maude.spearman, scores, means) == pytest.approx(0.0)


def test_groups_are_resampled_whole(maude: ModuleType) -> None:
    """Two groups, each in the right order within but contradicting each other."""
    means = np.array([0.0, 1.0, 10.0, 11.0])
    scores = np.array([[10.0, 11.0, 0.0, 1.0]])
    drawn = maude.spread(scores, means, np.array([0, 0, 1, 1]))
    assert set(np.round(drawn, 6)) == {1.0, round(float(maude.spearman(scores[0], means).value), 6)}


def test_texts_of_the_training_set_are_recognised(maude: ModuleType) -> None:
    turns = ("Well, one two three four five!", "short one")
    train = Dataset(name="train", dialogues=(Dialogue("d", turns),))
    test = Dataset(
        name="test",
        items=(Item("i", context=("well one two three four five", "a turn that nobody has said before", "short one")),),
        outputs=(Output("i", "s", "Well one, two three; four five."), Output("i", "t", "short one")),
    )
    assert maude.shared_texts(train, test) == {
        "shared turns": 1, "turns in all": 2, "shared outputs": 1, "outputs in all": 1,
    }  # fmt: skip
