"""The page of the comparative evaluator: what was not computed this time stays in its tables, marked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from scoring.ml import Dataset, Item, Output, Record


@pytest.fixture(scope="module")
def comparative(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("comparative")


def results(name: str, code: str) -> dict[str, Any]:
    """One fold of a setting: in each of three groups a pair it gets right and one it gets wrong."""
    rows = [[f"g{n // 2}", 1, 1 if n % 2 else -1, 0.5 if n % 2 else -0.5, 1, 1] for n in range(6)]
    fold = {"choice": "5e-05", "train_pairs": 9, "training_seconds": 1.0, "swap_consistency": 0.5, "rows": rows}
    return {
        f"{name}/rate/5e-05": {"dev_loss": 0.7, "steps": 3, "code": code},
        f"{name}/fold/0": {**fold, "systems": {}, "code": code},
    }


def test_sets_of_an_earlier_run_stay_and_are_marked(comparative: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    comparative.write_page(results("pandalm", "before"), page, False)
    first = page.read_text(encoding="utf-8")
    assert "| pandalm, 1 of 3 folds | 6 | 0.500" in first
    assert comparative.EARLIER not in first
    comparative.write_page(results("scratchplot", comparative.CODE), page, False)
    second = page.read_text(encoding="utf-8")
    assert "| pandalm, † 1 of 3 folds | 6 | 0.500" in second
    assert "- pandalm: † of decided pairs **below**" in second
    assert "| scratchplot, 1 of 3 folds | 6 | 0.500" in second
    assert "† Of an earlier run and code, by" in second
    assert f"Code of the evaluators: state {comparative.CODE}." in second
    # Written once more it is the same page, and what is computed anew loses its mark.
    comparative.write_page(results("scratchplot", comparative.CODE), page, False)
    assert page.read_text(encoding="utf-8") == second
    both = results("scratchplot", comparative.CODE) | results("pandalm", comparative.CODE)
    comparative.write_page(both, page, False)
    assert comparative.EARLIER not in page.read_text(encoding="utf-8")


def test_what_learns_from_more_is_measured_on_the_same_groups(comparative: ModuleType) -> None:
    items = tuple(Item(str(n), group=f"g{n // 2}") for n in range(2400))
    data = Dataset("d", items=items, outputs=tuple(Output(item.id, "a", "text") for item in items))
    small, more = (one for one in comparative.SETTINGS if one.name.startswith("e2e-quality"))
    assert more.learns > small.most == more.most
    for fold in range(comparative.FOLDS):
        parts = {one.name: comparative.part_of(data, one, fold, False) for one in (small, more)}
        groups = {name: [{item.group for item in part.items} for part in found] for name, found in parts.items()}
        train, dev, test = groups[small.name]
        assert groups[more.name][1:] == [dev, test]
        assert (len(train), len(groups[more.name][0]), len(test)) == (small.most, more.learns, small.most)
        assert train <= groups[more.name][0]
        assert not groups[more.name][0] & (dev | test)
        assert not dev & test
    assert not comparative.from_more(["| e2e-quality, 1 of 3 folds | 9 |"])
    assert "*e2e-quality-from-more* learns from 360" in comparative.from_more([f"| {more.name}, 1 of 1 folds | 9 |"])


def test_supervision_stands_beside_its_floors(comparative: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    floors = {"items": 4, "checkpoints": 2, **{name: comparative.shares(spoken(), by_length) | SPEARMAN for name in
              comparative.FLOORS}}  # fmt: skip
    comparative.write_page({"supervision/floors/13": floors}, page, False)
    assert "supervision" not in page.read_text(encoding="utf-8")  # floors alone say nothing
    found = floors["length"] | {"training_seconds": 5.0, "dev_macro_f1": 0.7, "code": comparative.CODE}
    comparative.write_page({"supervision/floors/13": floors, "supervision/without tie/13": found}, page, False)
    text = page.read_text(encoding="utf-8")
    row = "0.500 | 0.250 | 0.750 / 0.000 | 0.250 / 0.500 | 1.000 / 0.000"
    assert f"| without tie | 1 | 0.700 | {row} | 5 |" in text
    assert f"| length (floor) | 1 | - | {row} | - |" in text
    assert "50% of the adversarial negatives are longer" in text
    assert "at most ± 0.49." in text
    missing = text.partition("Not computed yet: ")[2].partition(".")[0]
    assert missing.split(", ") == ", ".join(name for name in comparative.ABLATIONS if name != "without tie").split(", ")


SPEARMAN = {"ngram_spearman": 0.5, "unseen_spearman": 0.25}


def spoken() -> Dataset:
    """Four items: the last checkpoint writes longer in three and alike in one; the adversarial reply is longer than
    people's in two, shorter in one; the random one is always shorter."""
    items = tuple(Item(str(n), references=("four",)) for n in range(4))
    texts = {
        ("ngram", 1): ["a", "a", "a", "a"],
        ("ngram", 2): ["a", "aa", "aa", "aa"],
        ("unseen", 1): ["a", "a", "a", "a"],
        ("unseen", 2): ["a", "a", "a", "a"],
        ("adversarial", None): ["longer", "longer", "four", "sh"],
        ("random", None): ["a", "b", "c", "d"],
    }
    outputs = (Output(str(n), name, text, step) for (name, step), row in texts.items() for n, text in enumerate(row))
    return Dataset("d", items=items, outputs=tuple(outputs))


def by_length(one: list[Record], other: list[Record]) -> np.ndarray:
    return np.array([len(a.text) - len(b.text) for a, b in zip(one, other, strict=True)])


def test_shares_are_of_the_items_won_and_lost(comparative: ModuleType) -> None:
    assert comparative.shares(spoken(), by_length) == {
        "ngram_last_over_first": 0.75, "ngram_first_over_last": 0.0,
        "unseen_last_over_first": 0.0, "unseen_first_over_last": 0.0,
        "people_over_adversarial": 0.25, "adversarial_over_people": 0.5,
        "people_over_random": 1.0, "random_over_people": 0.0,
    }  # fmt: skip
