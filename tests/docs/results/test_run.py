"""The runner: its arguments, what a trial writes, and how new rows of a table replace old ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def run(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("run")


@pytest.fixture
def make(run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A run as the command line asks for it."""

    def made(*arguments: str) -> Any:
        folders = ["--data", str(tmp_path), "--out", str(tmp_path / "out")]
        monkeypatch.setattr(sys, "argv", ["run.py", *arguments, *folders])
        options = run.read_arguments()
        return run.make_run(run.read_study(options.study), options)

    return made


def test_a_study_names_its_seeds_items_and_parts(make: Callable[..., Any]) -> None:
    usual = make("ream")
    assert (usual.seeds, usual.items, usual.file) == ((13, 14, 15, 16, 17), 100, "ream-100-items")
    assert usual.wants("e2e")
    asked = make("ream", "--seeds", "3", "--items", "0", "--only", "tried")
    assert (asked.seeds, asked.items, asked.file) == ((3,), None, "ream")
    assert not asked.wants("e2e")
    assert asked.folder("x") != usual.folder("x")
    # All numbers of dialogues are in one file, as settings of their own.
    assert make("maude", "--items", "1000").file == "maude"


def test_a_trial_has_its_rows_in_the_output_folder(make: Callable[..., Any], tmp_path: Path) -> None:
    trial = make("ream", "--quick")
    assert len(trial.seeds) == 2
    assert trial.store.path.parent == tmp_path / "out"
    assert make("ream").store.path.parent.name == "rows"
    assert make("power").store.path.parent == tmp_path / "out"  # large and quickly computed


@pytest.mark.parametrize("arguments", [("nothing",), ("ream", "--pages"), (), ("ream", "--only", "nothing")])
def test_wrong_arguments_are_refused(make: Callable[..., Any], arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        make(*arguments)


def test_new_rows_replace_those_of_the_same_label(run: ModuleType) -> None:
    old = [{"table": "a", "set": name, "value": 1} for name in ("x", "y")] + [{"table": "facts", "n": 1}]
    new = [{"table": "a", "set": "y", "value": 2}, {"table": "a", "set": "z", "value": 2}, {"table": "facts", "n": 2}]
    merged = run.merge_tables(old, new)
    assert [(one.get("set"), one.get("value", one.get("n"))) for one in merged] == [
        ("x", 1), ("y", 2), (None, 2), ("z", 2)
    ]  # fmt: skip


def test_shared_vectors_outlive_the_checkpoints_of_a_training(
    module: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    study = module("study")
    for seed in ("13", "14"):
        study.share_vectors(tmp_path / seed, tmp_path / "texts")
        study.share_vectors(tmp_path / seed, tmp_path / "texts")  # an interrupted training begins again
    (tmp_path / "13/shared/vectors").write_text("1")
    study.forget(tmp_path / "13")
    assert (tmp_path / "14/shared/vectors").read_text() == "1"
