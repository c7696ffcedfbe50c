"""Committed results contain figures of known scripts, and no text of the sets they were computed on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results"
FILES = sorted((RESULTS / "rows").glob("*"))
#: The longest name of a setting has eight words; a text of a set has more, or is very short.
WORDS = 12


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from (key, *strings(entry))
    elif isinstance(value, list):
        for entry in value:
            yield from strings(entry)


def test_rows_exist() -> None:
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_rows_are_figures_of_a_script(file: Path) -> None:
    scripts = {path.stem for path in RESULTS.glob("*.py")}
    assert file.suffix == ".jsonl"
    assert any(file.stem == name or file.stem.startswith(f"{name}-") for name in scripts)
    assert "aside" not in file.stem
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
        # A table of the demonstration consists of made-up texts; it is the only long string.
        long = [text for text in strings(row["result"]) if len(text.split()) > WORDS]
        assert not long or row["setting"] == "selection/demo", f"{row['setting']}: {long[0][:80]}"
        assert "people" not in row["setting"]
    assert len(keys) == len(set(keys))
