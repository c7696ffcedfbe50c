"""Trainings for tests of the path from data to leaderboards: a sixth of the demonstration, a few steps. The resulting
figures are meaningless."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from tests.cast import person
from tests.scoring.ml.tiny import tiny_encoder

#: The papers' own evaluators.
LEARNED = ("comparative", "ream", "perception", "shared-bert", "maude")
#: Options that shorten a training, where an evaluator has them.
SHORT = {"max_steps": 6, "epochs": 1, "max_epochs": 1, "augmentation": 1}
#: The same for scoring.
SHORT_SCORING = {"n_references": 2, "mc_passes": 2}


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def part(demo_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every sixth group of the demonstration's items with all related rows, as a folder to load."""
    whole, into = demo_files, tmp_path_factory.mktemp("demo") / "part"
    groups = sorted({row["group"] for row in read(whole / "items.jsonl")})[::6]
    kept = {row["id"] for row in read(whole / "items.jsonl") if row["group"] in groups}
    shutil.copytree(whole, into)
    for name, key in (("items", "id"), ("outputs", "item"), ("ratings", "item"), ("comparisons", "item")):
        rows = [row for row in read(whole / f"{name}.jsonl") if row[key] in kept]
        (into / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return into


@pytest.fixture
def encoder(tmp_path: Path, settings: Any) -> str:
    """A tiny encoder offered here; workers must get it through their environment."""
    folder = tiny_encoder("bert", tmp_path / "tiny")
    settings.ENCODERS = [folder]
    return folder


def pick_options(options: Iterable[Any], wanted: dict[str, int]) -> dict[str, int]:
    """The requested options that an evaluator has."""
    return {option.name: wanted[option.name] for option in options if option.name in wanted}


def words(options: Iterable[Any], wanted: dict[str, int]) -> list[str]:
    """The same for a command."""
    return [word for name, value in pick_options(options, wanted).items() for word in ("--set", f"{name}={value}")]


def fields(options: Iterable[Any], wanted: dict[str, int]) -> dict[str, int]:
    """The same for a form."""
    return {f"option_{name}": value for name, value in pick_options(options, wanted).items()}


def command(*asked: str) -> dict[str, Any]:
    """The JSON output of a command."""
    out = io.StringIO()
    call_command(*asked, "--json", stdout=out, stderr=io.StringIO(), verbosity=0)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def load(part: Path, *metrics: str) -> None:
    """The part as a project of Olga's, with the scores of some metrics."""
    person("olga")
    command("load", str(part), "--project", "demo", "--owner", "olga")
    for name in metrics:
        command("score", name, "--project", "demo", "--here")
