"""Decimal signs are those of a whole column; where no cell shows the sign, or two contradict, it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from annotation.mapping import Fault, convert_rows, open_table, propose_mapping, read_mapping

MAPPING: dict[str, Any] = {
    "shape": "long", "columns": {"item": "id", "system": "system", "value": "score"}, "make_items": False,
    "constants": {"rater": "r", "aspect": "quality"},
}  # fmt: skip


def write(tmp_path: Path, cells: list[str]) -> Path:
    rows = [f"{k};gpt;{cell}" for k, cell in enumerate(cells)]
    (tmp_path / "a.csv").write_text("\n".join(["id;system;score", *rows]) + "\n")
    return tmp_path / "a.csv"


def convert(tmp_path: Path, cells: list[str], **reading: str) -> list[Any]:
    mapping = read_mapping({**MAPPING, "reading": {"separator": ";", **reading}})
    rows = convert_rows(open_table(write(tmp_path, cells), reading=mapping.reading), mapping)
    return [str(row) if isinstance(row, Fault) else row.values["value"] for row in rows]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1.250", "3,5"], [1250, 3.5]),  # the sign is shown below
        (["3,5", "1.250", "-2.000.000"], [3.5, 1250, -2_000_000]),
        (["1.250", "0.5"], [1.25, 0.5]),
        (["1,250", "3.5", "1,250.75"], [1250, 3.5, 1250.75]),
        (["0,125", "1,250"], [0.125, 1.25]),
        (["1 250", "3", "1'000", "2e3"], [1250, 3, 1000, 2000]),
        (["85%", "8,5 %"], [85, 8.5]),
    ],
)
def test_a_column_has_one_decimal_sign(tmp_path, cells, numbers):
    assert convert(tmp_path, cells) == numbers


def test_the_sign_is_searched_in_the_whole_file(tmp_path):
    assert convert(tmp_path, ["1.250"] * 1500 + ["3,5"])[0] == 1250


def test_a_sign_that_no_cell_shows_is_a_fault_unless_it_is_stated(tmp_path):
    [first, _second] = convert(tmp_path, ["1.250", "4.500"])
    assert "1.25" in first
    assert "1250" in first
    assert '"decimal"' in first
    assert convert(tmp_path, ["1.250", "4.500"], decimal=".") == [1.25, 4.5]
    assert convert(tmp_path, ["1.250", "4.500"], decimal=",") == [1250, 4500]


@pytest.mark.parametrize("cells", [["3,5", "1.25"], ["1.25", "3,5"], ["1.250.000", "1.25"]])
def test_signs_that_contradict_are_a_fault(tmp_path, cells):
    _first, second = convert(tmp_path, cells)
    assert cells[0] in second
    assert cells[1] in second


def test_a_percent_sign_in_some_cells_is_a_fault(tmp_path):
    assert "percent" in convert(tmp_path, ["85%", "90"])[1]
    assert "percent" in convert(tmp_path, ["90", "85%"])[1]


@pytest.mark.parametrize(
    ("cells", "member", "words"),
    [
        (["1.250", "4.500", "2.000"], "reading.decimal", ["score", "Row 2"]),
        (["3,5", "4,5", "1.25"], "values.value", ["score", "row 4", "row 2"]),
    ],
)
def test_the_proposal_asks_with_row_and_column(tmp_path, cells, member, words):
    [asked] = propose_mapping(open_table(write(tmp_path, cells))).questions
    assert asked.member == member
    assert [word for word in words if word not in asked.message] == []


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        (["1", "5", "99"], "99"),
        (["-9", "3", "5"], "-9"),
        (["2", "-1", "5"], "-1"),
        (["87", "12", "100", "999"], "999"),
        (["0", "1", "-99"], "-99"),
        (["1,5", "4", "99,0"], "99,0"),
        (["-3", "4", "99"], "99"),
    ],
)
def test_a_code_for_a_missing_answer_is_no_rating(tmp_path, cells, code):
    """It is asked about, and a fault with its row and column unless the mapping states its number."""
    proposal = propose_mapping(open_table(write(tmp_path, cells)))
    (question,) = [one for one in proposal.questions if one.member == "values.value"]
    assert (f"“{code}”" in question.message, question.suggestion) == (True, f"{code} =")
    at = cells.index(code)
    assert f"Row {at + 2} of “score”" in question.message
    mapping = read_mapping({**MAPPING, "reading": {"separator": ";"}})
    table = open_table(write(tmp_path, cells), reading=mapping.reading)
    (fault,) = [row for row in convert_rows(table, mapping) if isinstance(row, Fault)]
    assert (fault.row, fault.column) == (at + 2, "score")
    for stated in (None, 99):
        known = read_mapping({**MAPPING, "reading": {"separator": ";"}, "values": {"value": {code: stated}}})
        rows = list(convert_rows(table, known))
        assert len(rows) == len(cells) - (stated is None)
        assert not any(isinstance(row, Fault) for row in rows)


@pytest.mark.parametrize(
    ("cells", "column"),
    [
        (["-1", "0", "1"], "score"),
        (["-2", "-1", "2"], "score"),
        (["99", "87", "45"], "score"),
        (["99", "3", "5"], "score (0-100)"),
        (["-9", "3", "5"], "score (-10 to 10)"),
        (["99", "99"], "score"),
    ],
)
def test_a_number_within_the_scale_is_a_rating(tmp_path, cells, column):
    path = write(tmp_path, cells)
    path.write_text(path.read_text().replace("score", column))
    assert not [one for one in propose_mapping(open_table(path)).questions if one.member == "values.value"]
    mapping = read_mapping({**MAPPING, "columns": {**MAPPING["columns"], "value": column}})
    rows = list(convert_rows(open_table(path, reading=mapping.reading), mapping))
    assert [row.values["value"] for row in rows] == [int(cell) for cell in cells]


def test_a_code_outside_the_scale_in_the_name_of_its_column_is_no_rating(tmp_path):
    path = write(tmp_path, ["50", "88", "99"])
    path.write_text(path.read_text().replace("score", "score (0-90)"))
    (question,) = [one for one in propose_mapping(open_table(path)).questions if one.member == "values.value"]
    assert "from 0 to 90" in question.message


def test_a_code_below_the_first_rows_is_a_fault(tmp_path):
    rows = convert(tmp_path, ["4"] * 1500 + ["99"])
    assert rows[:1500] == [4] * 1500
    assert "“99” may say that an answer is missing" in rows[1500]
