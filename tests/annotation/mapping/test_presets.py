"""Presets, each on a file written after the public description of its format: recognized from the file, and converted
to rows. Expected numbers are counted in the files by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from annotation.mapping import Fault, convert_rows, propose_mapping, read_mapping
from tests.annotation.mapping.formats import FORMATS, open_file


def convert(name: str, stated: dict[str, Any]) -> list[Any]:
    mapping = read_mapping({**propose_mapping(open_file(name)).mapping.as_json(), **stated})
    return list(convert_rows(open_file(name, mapping), mapping))


@pytest.mark.parametrize("name", FORMATS)
def test_file_is_recognized_and_converted(name):
    preset, stated, numbers = FORMATS[name]
    proposal = propose_mapping(open_file(name))
    assert proposal.mapping.preset == preset
    # Only what the file does not tell is asked.
    asked = {question.member.partition(".")[2] for question in proposal.questions}
    assert asked == set(stated.get("constants", {})), proposal.questions
    rows = convert(name, stated)
    assert not [row for row in rows if isinstance(row, Fault)]
    counts = Counter(row.table for row in rows)
    assert tuple(counts[table] for table in ("items", "outputs", "ratings", "comparisons")) == numbers


@pytest.mark.parametrize(
    ("name", "verdicts"),
    [
        ("alpaca_annotations.json", ["b", "a", "tie"]),
        # A win in only one order is a tie.
        ("mt_bench/model_judgment/gpt-4_pair.jsonl", ["a", "tie", "tie"]),
        ("arena_battles.json", ["a", "tie", "both_bad", "b"]),
        ("label_studio_pairwise.json", ["a", "a", "a", "b", "a"]),
        ("prodigy_choice.jsonl", ["a", "b", "a"]),
    ],
)
def test_verdicts(name, verdicts):
    assert [row.values["verdict"] for row in convert(name, {}) if row.table == "comparisons"] == verdicts
