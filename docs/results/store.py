"""Stored results: one line of JSON per setting and seed.

Rows without texts or judgements of a data set are committed in `rows/`. Results that hold such data go to a second file
in the output folder. A result is computed once; an interrupted run continues with the missing ones.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Result = dict[str, Any]
#: Fields of a result that are not figures; nor is any field with "seconds" in its name.
NOT_FIGURES = ("load", "code", "resumed", "signature")


class Store:
    """Results by setting and seed, read from and appended to two files of lines `{"setting", "seed", "result"}`.

    In `private`, a line without "result" marks a computation that began. In `path`, a line with "again" holds the
    comparison of a repeated computation with its row. A truncated last line is ignored. `again` lists the results to
    repeat, each as SETTING@SEED.
    """

    def __init__(self, path: Path, private: Path, code: str = "", again: Iterable[str] = ()) -> None:
        self.path, self.private, self.code, self.again = path, private, code, set(again)
        self.rows: dict[tuple[str, int], Result] = {}
        self.begun: set[tuple[str, int]] = set()
        for file in (path, private):
            for row in read_lines(file):
                key = (row["setting"], row["seed"])
                if "again" not in row:
                    self.begun.add(key)
                if "result" in row:
                    self.rows[key] = row["result"]
        unknown = self.again - {f"{setting}@{seed}" for setting, seed in self.rows}
        if unknown:
            raise SystemExit(f"{path} has no result {', '.join(sorted(unknown))}: use SETTING@SEED as in its rows")

    def once(self, setting: str, seed: int, work: Callable[[], Mapping[str, Any]], *, data: bool = False) -> Result:
        """The stored result, or that of `work`, stored with its seconds, the load before it and the code's version.

        `data`: the result holds texts or judgements of a data set and must not be committed.
        """
        key = (setting, seed)
        if f"{setting}@{seed}" in self.again and key in self.rows:
            self._compare(setting, seed, work)
        if key not in self.rows:
            print(f"{setting}, seed {seed} ...", flush=True)
            resumed = {"resumed": True} if key in self.begun else {}
            append_line(self.private, {"setting": setting, "seed": seed})
            load, start = round(os.getloadavg()[0], 1), time.monotonic()
            result = to_json(work())
            seconds = round(time.monotonic() - start, 1)
            self.rows[key] = {**result, **resumed, "wall_seconds": seconds, "load": load, "code": self.code}
            append_line(
                self.private if data else self.path, {"setting": setting, "seed": seed, "result": self.rows[key]}
            )
            print(f"  {seconds:.0f} s", flush=True)
        return self.rows[key]

    def lacks(self, setting: str, seed: int) -> bool:
        """Whether a result is missing or has to be repeated."""
        return (setting, seed) not in self.rows or f"{setting}@{seed}" in self.again

    def get(self, setting: str, seeds: Iterable[int]) -> list[Result]:
        """The stored results of a setting, in the order of the seeds."""
        return [self.rows[setting, seed] for seed in seeds if (setting, seed) in self.rows]

    def find(self, prefix: str) -> dict[str, dict[int, Result]]:
        """The results of all settings with a prefix, without it: setting -> seed -> result."""
        found: dict[str, dict[int, Result]] = {}
        for (setting, seed), result in self.rows.items():
            if setting.startswith(prefix):
                found.setdefault(setting.removeprefix(prefix), {})[seed] = result
        return found

    def _compare(self, setting: str, seed: int, work: Callable[[], Mapping[str, Any]]) -> None:
        """Repeat a result and store the largest difference of its figures."""
        self.again.discard(f"{setting}@{seed}")
        start = time.monotonic()
        difference = largest_difference(self.rows[setting, seed], to_json(work()))
        if not math.isfinite(difference):
            raise SystemExit(f"{setting}, seed {seed}: other fields than in the row; delete the row to replace it")
        seconds = round(time.monotonic() - start, 1)
        found = {"difference": float(f"{difference:.1g}"), "wall_seconds": seconds, "code": self.code}
        append_line(self.path, {"setting": setting, "seed": seed, "again": found})
        print(f"{setting}, seed {seed}, again: {seconds:.0f} s, largest difference {difference:.1g}", flush=True)


def largest_difference(one: Any, two: Any) -> float:
    """The largest absolute difference of two results' figures; infinite if their fields differ."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        figures = [
            {key: value for key, value in each.items() if key not in NOT_FIGURES and "seconds" not in key}
            for each in (one, two)
        ]
        if figures[0].keys() != figures[1].keys():
            return math.inf
        return max((largest_difference(value, figures[1][key]) for key, value in figures[0].items()), default=0.0)
    if isinstance(one, list) and isinstance(two, list):
        if len(one) != len(two):
            return math.inf
        return max((largest_difference(*pair) for pair in zip(one, two, strict=True)), default=0.0)
    if isinstance(one, int | float) and isinstance(two, int | float):
        return float(abs(one - two))
    return 0.0 if one == two else math.inf


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The complete lines of a file; none if the file does not exist."""
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        with contextlib.suppress(json.JSONDecodeError):
            yield json.loads(line)


def append_line(path: Path, content: Mapping[str, Any]) -> None:
    """Append a line and sync it to disk. A truncated last line is ended first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    truncated = path.is_file() and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" * truncated + json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def to_json(value: Any) -> Any:
    """The value in JSON's own types, numbers with eight digits; nan and infinities become None."""
    if isinstance(value, Mapping):
        return {str(key): to_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return to_json(value.tolist())
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, float):
        return float(f"{value:.8g}") if math.isfinite(value) else None
    return value
