"""Rows of each table: which values are accepted, which are errors, and the field named."""

from __future__ import annotations

import pytest

from annotation.parsers import KINDS, check_dataset
from annotation.parsers.kinds import _FIELDS
from annotation.parsers.results import _SCORE_SET_TEXTS


def check(kind: str, row: dict):
    faults: list[tuple[str, str]] = []
    return KINDS[kind].check(row, lambda *fault: faults.append(fault)), faults


def test_item_needs_only_an_id():
    values, faults = check("items", {"id": "x"})
    assert faults == []
    assert values == ("x", "[]", None, "x", "{}", "[]", 0)


def test_unknown_columns_are_stored_in_meta():
    values, faults = check("outputs", {"item": "i", "system": "s", "text": "", "score": 3, "meta": {"a": 1}})
    assert faults == []
    assert values == ("i", "s", -1, "", '{"a":1,"score":3}')


def test_conflicting_column_and_meta():
    _, faults = check("outputs", {"item": "i", "system": "s", "text": "", "score": 3, "meta": {"score": 4}})
    assert faults[0][0] == "score"


@pytest.mark.parametrize(
    ("kind", "row", "field"),
    [
        ("items", {"context": []}, "id"),
        ("items", {"id": 12.5}, "id"),
        ("items", {"id": True}, "id"),
        ("items", {"id": "x" * 201}, "id"),
        ("items", {"id": "x", "context": 5}, "context"),
        ("items", {"id": "x", "references": ["a", 1]}, "references"),
        ("items", {"id": "x", "source": 3}, "source"),
        ("items", {"id": "x", "meta": []}, "meta"),
        ("outputs", {"item": "i", "system": "s"}, "text"),
        ("outputs", {"item": "i", "system": "s", "text": "", "step": 1.5}, "step"),
        ("outputs", {"item": "i", "system": "s", "text": "", "step": -1}, "step"),
        ("outputs", {"item": "i", "system": "s", "text": "", "step": True}, "step"),
        ("ratings", {"item": "i", "system": "s", "rater": "r", "aspect": "a", "value": "5"}, "value"),
        ("ratings", {"item": "i", "system": "s", "rater": "r", "aspect": "a", "value": True}, "value"),
        ("ratings", {"item": "i", "system": "s", "rater": "r", "aspect": "a"}, "value"),
        ("ratings", {"item": "i", "rater": "r", "aspect": "a", "value": 1}, "system"),
        ("ratings", {"dialogue": "d", "item": "i", "rater": "r", "aspect": "a", "value": 1}, "dialogue"),
        ("ratings", {"item": "i", "system": "s", "rater": "r", "aspect": "a", "value": 1, "simulated": 1}, "simulated"),
        ("comparisons", {"item": "i", "system_a": "s", "system_b": "t", "rater": "r", "aspect": "a", "verdict": "c"},
         "verdict"),
        ("comparisons", {"item": "i", "system_a": "s", "system_b": "s", "rater": "r", "aspect": "a", "verdict": "a"},
         "system_b"),
        ("comparisons", {"item": "i", "system_a": "s", "system_b": {"reference": -1}, "rater": "r", "aspect": "a",
                         "verdict": "a"}, "system_b"),
        ("dialogues", {"id": "d"}, "turns"),
        ("dialogues", {"id": "d", "turns": ["a", "b"], "speakers": ["A"]}, "speakers"),
        ("systems", {"id": "s", "kind": "robot"}, "kind"),
        ("corpus", {"query": "q"}, "response"),
    ],
)  # fmt: skip
def test_errors_name_the_field(kind, row, field):
    _, faults = check(kind, row)
    assert [name for name, _ in faults] == [field]


def test_invalid_row_with_a_valid_key_is_identified():
    values, faults = check("items", {"id": "x", "source": 3})
    assert faults
    assert values is not None
    assert values[0] == "x"


def test_a_comparison_with_a_reference():
    values, faults = check(
        "comparisons",
        {"item": "i", "system_a": "s", "system_b": {"reference": 2}, "rater": "r", "aspect": "a", "verdict": "tie"},
    )
    assert faults == []
    assert values is not None
    assert values[3:6] == (None, -1, 2)


def test_dataset_with_open_and_closed_aspects():
    faults: list[tuple[str, str]] = []
    found = check_dataset(
        {"name": "n", "task": "story", "aspects": [{"name": "a", "min": 1, "max": 5}, {"name": "b", "min": None,
         "max": None, "note": "x"}], "year": 2024},
        lambda *fault: faults.append(fault),
    )  # fmt: skip
    assert faults == []
    assert found.fields == {"name": "n", "task": "story"}
    assert [(a.name, a.low, a.high, a.meta) for a in found.aspects] == [
        ("a", 1, 5, {}),
        ("b", None, None, {"note": "x"}),
    ]
    assert found.meta == {"year": 2024}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"task": " "}, "task"),
        ({"task": 3}, "task"),
        ({"name": 3}, "name"),
        ({"lang": "zz123"}, "lang"),
        ({"aspects": {}}, "aspects"),
        ({"aspects": [{"name": "a", "min": 5, "max": 1}]}, "aspects"),
        ({"aspects": [{"name": "a", "min": 1, "max": None}]}, "aspects"),
        ({"aspects": [{"name": "a"}, {"name": "a"}]}, "aspects"),
    ],
)
def test_dataset_errors(document, field):
    faults: list[tuple[str, str]] = []
    check_dataset(document, lambda *fault: faults.append(fault))
    assert faults[0][0] == field


#: A line break, the Unicode one, a change of direction, a control character.
BREAKING = {"\n": "U+000A", "\u2028": "U+2028", "\u202e": "U+202E", "\x1b": "U+001B"}


@pytest.mark.parametrize("character", BREAKING)
@pytest.mark.parametrize("field", sorted(_FIELDS))
def test_single_line_fields_refuse_control_characters(field, character):
    """A LaTeX comment ends at a line break, so the text after it would be executed. Source and notes may have several
    lines."""
    faults: list[tuple[str, str]] = []
    found = check_dataset({field: f"A{character}\\input{{x}}"}, lambda *fault: faults.append(fault))
    if field in ("source", "notes"):
        assert (faults, list(found.fields)) == ([], [field])
    else:
        assert [(name, BREAKING[character] in why) for name, why in faults] == [(field, True)]
        assert found.fields == {}


SCORE_SET = {
    "id": "mine", "evaluator": "my-metric", "name": "my-metric", "kind": "baseline", "signature": "my-metric|v:1",
    "short_signature": "my-metric|v:1", "scored_at": "2026-05-01T12:00:00+00:00",
}  # fmt: skip


@pytest.mark.parametrize("character", BREAKING)
@pytest.mark.parametrize("field", ["id", "evaluator", *_SCORE_SET_TEXTS, "options", "systems"])
def test_score_set_fields_are_single_line(field, character):
    text = f"a{character}b"
    value = {"options": {"more": [{"lang": text}]}, "systems": ["a", text]}.get(field, text)
    _, faults = check("score_sets", {**SCORE_SET, field: value})
    assert [(name, BREAKING[character] in why) for name, why in faults] == [(field, True)]
    assert check("score_sets", SCORE_SET)[1] == []


def test_filter_names_raters_in_one_line():
    _, faults = check("filters", {"name": "f", "raters": ["a", "b\nc"]})
    assert [name for name, _ in faults] == ["raters"]
