"""Committed results are figures of known studies and contain no texts or judgements of the data sets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results"
FILES = sorted((RESULTS / "rows").glob("*"))
TABLES = sorted((RESULTS / "tables").glob("*"))
#: The longest name of a setting has eight words, the longest sentence of a ranking some twenty; texts have more.
WORDS = 25


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from (key, *strings(entry))
    elif isinstance(value, list):
        for entry in value:
            yield from strings(entry)


def test_there_are_rows() -> None:
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_rows_are_figures_of_a_study(file: Path) -> None:
    studies = {path.stem for path in (RESULTS / "studies").glob("*.toml")}
    assert file.suffix == ".jsonl"
    assert any(file.stem == name or file.stem.startswith(f"{name}-") for name in studies)
    assert "private" not in file.stem
    assert "quick" not in file.stem
    keys = []
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "again" in row:
            assert row["again"].keys() == {"difference", "wall_seconds", "code"}
            assert (row["setting"], row["seed"]) in keys
            continue
        assert {"wall_seconds", "load", "code"} <= row["result"].keys()
        keys.append((row["setting"], row["seed"]))
        long = [text for text in strings(row["result"]) if len(text.split()) > WORDS]
        assert not long, f"{row['setting']}: {long[0][:80]}"
        assert "people" not in row["setting"]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("file", TABLES, ids=lambda file: file.name)
def test_tables_hold_figures_and_labels(file: Path) -> None:
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert rows
    assert not [text for row in rows for text in strings(row) if len(text.split()) > WORDS]
    assert all(next(iter(row)) == "table" for row in rows)
