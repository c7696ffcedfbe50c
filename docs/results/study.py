"""A study as its file in `studies/` declares it, and one run of it: arguments, data, stored results."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from store import Result, Store, to_json

from evalapp.stats.core.estimate import Estimate
from scoring.ml import Dataset, read_dataset

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]


@dataclass(frozen=True)
class Question:
    """A section of a page: one sentence of answer, one table and one figure."""

    id: str
    title: str
    #: At most 15 words, for the list of results.
    short: str
    #: One or two sentences with `{row | column}` in place of figures.
    answer: str
    #: Column -> heading; the first is the name of the row.
    columns: Mapping[str, str]
    figure: Mapping[str, Any]
    digits: int = 2
    notes: str = ""


@dataclass(frozen=True)
class Study:
    """What a file of `studies/` declares."""

    name: str
    title: str
    experiment: str
    order: int
    seeds: tuple[int, ...]
    cost: str
    method: str
    caveats: tuple[str, ...]
    questions: tuple[Question, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    #: About how many items of each set its committed rows are computed from; None is all.
    items: int | None = None
    #: Whether its rows are committed; those that take minutes and are large are not.
    commit_rows: bool = True

    @property
    def tables(self) -> list[dict[str, Any]]:
        """The rows of its tables: `{"table": question, column: value}`; table "facts" holds single figures."""
        path = FOLDER / "tables" / f"{self.name}.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def read_study(name: str) -> Study:
    found = tomllib.loads((FOLDER / "studies" / f"{name}.toml").read_text(encoding="utf-8"))
    questions = tuple(Question(**question) for question in found.pop("questions"))
    lists = {key: tuple(found.pop(key, ())) for key in ("seeds", "caveats", "parts")}
    return Study(name=name, questions=questions, **lists, **found)


def read_studies() -> list[Study]:
    return sorted(
        (read_study(path.stem) for path in (FOLDER / "studies").glob("*.toml")), key=lambda one: (one.order, one.name)
    )


@dataclass(frozen=True)
class Run:
    """One call of the runner for a study."""

    study: Study
    data: Path
    #: Checkpoints, models, and results that hold data.
    out: Path
    seeds: tuple[int, ...]
    encoder: str | None = None
    items: int | None = None
    quick: bool = False
    only: tuple[str, ...] = ()
    again: tuple[str, ...] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.study.settings

    @property
    def file(self) -> str:
        """The name of its files of rows: another encoder or number of items has files of its own."""
        encoder = "" if self.encoder is None else "-" + "".join(c if c.isalnum() else "_" for c in self.encoder)
        size = f"-{self.items}-items" if self.items and self.settings.get("rows_by_items", True) else ""
        return f"{self.study.name}{encoder}{size}{'-quick' if self.quick else ''}"

    @cached_property
    def store(self) -> Store:
        rows = FOLDER / "rows" if self.study.commit_rows and not self.quick else self.out
        return Store(rows / f"{self.file}.jsonl", self.out / f"{self.file}-private.jsonl", read_commit(), self.again)

    def once(self, setting: str, seed: int, work: Callable[[], Mapping[str, Any]], *, data: bool = False) -> Result:
        return self.store.once(setting, seed, work, data=data)

    def wants(self, part: str) -> bool:
        """Whether a part of the study has to be computed."""
        return not self.only or part in self.only

    def read(self, name: str) -> Dataset:
        return read_dataset(self.data / name)

    def draw(self, data: Dataset, quick: int) -> Dataset:
        """All items, or about as many as asked for (`quick` in a trial), in whole groups drawn by hash."""
        wanted = quick if self.quick else self.items
        if wanted is None or wanted >= len(data.items):
            return data
        share = wanted / len(data.items)
        return data.split(seed=1, shares=(share, 1 - share))[0]

    def folder(self, *names: object) -> Path:
        """The folder of a training's checkpoints."""
        words = [self.study.name, *map(str, names), self.encoder or "", str(self.items or ""), "quick" * self.quick]
        return self.out / "work" / "-".join("".join(c if c.isalnum() else "_" for c in word) for word in words if word)

    def with_items(self, items: int | None) -> Run:
        return replace(self, items=items, again=())


def read_commit() -> str:
    """The short hash of the commit, with "+" if files differ from it; empty without git."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--exclude=*", "--dirty=+"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def share_vectors(folder: Path, shared: Path) -> None:
    """Let a cross-fitting in `folder` keep vectors of texts in `shared`: they depend on neither seed nor metric."""
    for place in (folder, shared):
        place.mkdir(parents=True, exist_ok=True)
    if not (folder / "shared").exists():
        (folder / "shared").symlink_to(shared.resolve(), target_is_directory=True)


def forget(folder: Path) -> None:
    """Delete the checkpoints of a training whose figures are stored; its seed reproduces them."""
    shutil.rmtree(folder, ignore_errors=True)


# Figures over seeds


def over_seeds(values: Sequence[float | None]) -> dict[str, Any] | None:
    """Mean with its standard deviation over seeds; None if no value is defined."""
    defined = [float(value) for value in values if value is not None and value == value]
    if not defined:
        return None
    found = {"value": float(np.mean(defined))}
    if len(defined) > 1:
        found["sd"] = float(np.std(defined, ddof=1))
    if len(defined) < len(values):
        found |= {"defined": len(defined), "of": len(values)}
    return to_json(found)


def t_interval(values: Sequence[float | None]) -> dict[str, Any] | None:
    """Mean with its 95 % interval by Student's t over seeds or folds; no interval for fewer than three values."""
    defined = [float(value) for value in values if value is not None]
    if len(defined) < 3:
        return {"value": float(np.mean(defined))} if defined else None
    mean, n = float(np.mean(defined)), len(defined)
    reach = float(np.std(defined, ddof=1)) / n**0.5 * float(stats.t.ppf(0.975, n - 1))
    return to_json({"value": mean, "low": mean - reach, "high": mean + reach})


def with_ends(value: float, ends: Sequence[float]) -> dict[str, Any]:
    return to_json({"value": value, "low": ends[0], "high": ends[1]})


def plain(estimate: Mapping[str, Any] | Estimate) -> dict[str, Any]:
    """Value and interval of an estimate."""
    found = estimate.as_dict() if isinstance(estimate, Estimate) else estimate
    return to_json({key: found[key] for key in ("value", "low", "high") if found.get(key) is not None})


def row(table: str, name: str, label: str, **columns: Any) -> dict[str, Any]:
    """A row of a table: its first column `name` has the row's label."""
    return {"table": table, name: label, **to_json(columns)}


Tables = Iterator[dict[str, Any]]
