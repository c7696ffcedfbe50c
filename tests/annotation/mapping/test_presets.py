"""Presets, each on a file written after the public description of its format: recognized from the file, and converted
to rows. Expected numbers are counted in the files by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from annotation.mapping import PRESETS, Fault, convert_rows, propose_mapping, read_mapping
from annotation.mapping.records import WrongRecord
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
        ("arena_votes.csv", ["a", "b", "tie"]),
        ("label_studio_pairwise.json", ["a", "a", "a", "b", "a"]),
        ("prodigy_choice.jsonl", ["a", "b", "a"]),
    ],
)
def test_verdicts(name, verdicts):
    assert [row.values["verdict"] for row in convert(name, {}) if row.table == "comparisons"] == verdicts


@pytest.mark.parametrize(
    ("preset", "record", "column"),
    [
        ("alpaca-eval-annotations", {"preference": 3}, "preference"),
        ("mt-bench-pairs", {"g1_winner": "model_1", "g2_winner": "model_3"}, "g2_winner"),
        ("arena", {"winner": "model_c"}, "winner"),
        ("arena-votes", {"winner_model_a": 1, "winner_model_b": 1, "winner_tie": 0}, "winner_model_a"),
        ("label-studio-pairs", {"annotations": [{"result": [{"type": "pairwise", "value": {"selected": "up"}}]}]},
         "annotations"),
        ("prodigy-pairs", {"answer": "accept", "accept": ["c"], "options": [{"id": "a"}, {"id": "b"}]}, "accept"),
        ("parallel-lists", {"contexts": ["a"], "responses": ["b", "c"], "scores": [1]}, "responses"),
    ],
)  # fmt: skip
def test_faulty_record_names_its_column(preset, record, column):
    flatten = PRESETS[preset].flatten
    assert flatten is not None
    with pytest.raises(WrongRecord) as caught:
        list(flatten(record))
    assert caught.value.column == column


@pytest.mark.parametrize(
    "name", [name for name, (preset, *_rest) in FORMATS.items() if preset and PRESETS[preset].flatten]
)
def test_damaged_records_are_faults_and_no_errors(name):
    """Every member of every record is replaced by values of other types."""
    flatten = PRESETS[FORMATS[name][0]].flatten
    assert flatten is not None
    for _number, record in open_file(name).sample[:3]:
        for damaged in damage(record):
            try:
                list(flatten(damaged))
            except WrongRecord:
                continue


def damage(value: Any) -> Iterator[Any]:
    """The value with each of its parts replaced, one at a time."""
    for other in (None, 3, "x", [], {}, [3], [[]], {"a": [1]}):
        if isinstance(value, dict):
            yield from ({**value, key: other} for key in value)
        elif isinstance(value, list):
            yield from ([*value[:k], other, *value[k + 1 :]] for k in range(min(len(value), 2)))
    if isinstance(value, dict):
        for key, part in value.items():
            yield from ({**value, key: one} for one in damage(part))
    elif isinstance(value, list):
        for k, part in enumerate(value[:2]):
            yield from ([*value[:k], one, *value[k + 1 :]] for one in damage(part))
