"""benchmarks/README.md covers every benchmark in short cells; each figure is in the committed details."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(path.stem for path in BENCHMARKS.glob("*.py") if not path.name.startswith("_"))
COLUMNS = ["what", "peer", "ratio", "absolute", "machine", "date"]
MEASUREMENT = {"what", "peer", "settings", "machine", "load", "date", "commit", "recorded", "figures", "notes"}
LONGEST_CELL = 250


def read_table() -> list[list[str]]:
    lines = [
        line for line in (BENCHMARKS / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")
    ]
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    assert header == COLUMNS
    return rows


def read_details(name: str) -> dict[str, Any]:
    return json.loads((BENCHMARKS / "results" / f"{name}.json").read_text(encoding="utf-8"))


def find_numbers(text: str) -> set[float]:
    without_commas = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    return {float(number) for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])", without_commas)}


def test_every_benchmark_has_a_row_and_details():
    linked = set()
    for row in read_table():
        assert len(row) == len(COLUMNS), row
        link = re.match(r"\[`(\w+)`\]\(results/(\w+)\.json\): ", row[0])
        assert link, row[0]
        assert link[1] == link[2]
        linked.add(link[1])
    assert sorted(linked) == SCRIPTS
    assert sorted(path.stem for path in (BENCHMARKS / "results").glob("*.json")) == SCRIPTS


def test_no_cell_is_longer_than_a_sentence():
    assert not [cell for row in read_table() for cell in row if len(cell) > LONGEST_CELL]


@pytest.mark.parametrize("name", SCRIPTS)
def test_details_are_complete(name):
    details = read_details(name)
    assert details["benchmark"] == f"benchmarks/{name}.py"
    assert details["measures"]
    assert details["measurements"]
    for measurement in details["measurements"]:
        assert set(measurement) == MEASUREMENT, measurement["what"]
        assert measurement["date"] or measurement["recorded"], measurement["what"]
        for figure in measurement["figures"]:
            assert figure.get("name"), measurement["what"]
            assert figure.get("unit"), figure
            assert {"value", "values", "low", "high"} & set(figure), figure


@pytest.mark.parametrize("name", SCRIPTS)
def test_figures_of_the_table_are_in_the_details(name):
    known = find_numbers(json.dumps(read_details(name), ensure_ascii=False))
    for row in read_table():
        if row[0].startswith(f"[`{name}`]"):
            assert find_numbers(f"{row[2]}; {row[3]}") <= known, row[0]
