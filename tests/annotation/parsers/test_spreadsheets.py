"""Tables as spreadsheets and data frames write them (FAULTS F1)."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.parsers import KINDS, Limits
from annotation.parsers.faults import StopReading
from annotation.parsers.rows import read_rows


def read(text: str | bytes, table: str, form: str = "csv"):
    """Returns (checked rows, errors)."""
    faults, rows = [], []
    raw = io.BytesIO(text.encode() if isinstance(text, str) else text)
    for line, row in read_rows(raw, form, Limits(), lambda *fault: faults.append(fault), table):  # type: ignore[arg-type]
        found = KINDS[table].check(row, lambda field, message, line=line: faults.append((line, field, message)))
        rows.append((line, found))
    return rows, faults


OUTPUT = ("i1", "s", 100, "a, b; c", "{}")


@pytest.mark.parametrize(
    ("text", "form", "line"),
    [
        ('item,system,step,text\ni1,s,100,"a, b; c"\n', "csv", 2),
        ('item;system;step;text\ni1;s;100;"a, b; c"\n', "csv", 2),
        ('sep=;\r\nitem;system;step;text\r\ni1;s;100.0;"a, b; c"\r\n', "csv", 3),
        ('"sep=;"\r\nitem;system;step;text\r\ni1;s;100.0;"a, b; c"\r\n', "csv", 3),
        ("item\tsystem\tstep\ttext\ni1\ts\t100\ta, b; c\n", "csv", 2),
        ("item\tsystem\tstep\ttext\ni1\ts\t100\ta, b; c\n", "tsv", 2),
        ("sep=|\nitem|system|step|text\ni1|s|100|a, b; c\n", "csv", 3),
        ('ITEM,System,"Step",Text\ni1,s,100.00,"a, b; c"\n', "csv", 2),
        ('\n\nItem;System;Step;Text\ni1;s;100;"a, b; c"\n', "csv", 4),
        ('"item";"system";"step";"text"\n"i1";"s";"100";"a, b; c"\n', "csv", 2),
    ],
)
def test_delimiter_is_detected(text, form, line):
    assert read(text, "outputs", form) == ([(line, OUTPUT)], [])


def test_quoted_two_line_header_and_single_column():
    assert read('id,"my\nnote"\ni1,x\n', "items")[0][0][1][:1] == ("i1",)
    assert read("id\ni1\n", "items")[0][0] == (2, ("i1", "[]", None, "i1", "{}", "[]", 0))


def test_decimal_comma():
    rows, faults = read("item;system;rater;aspect;value\ni;s;r;q;3,5\ni;s;r2;q;-0,25\n", "ratings")
    assert faults == []
    assert [row[6] for _, row in rows] == [3.5, -0.25]


@pytest.mark.parametrize("cell", ["1,500", "12,345,678", "-1,000"])
def test_possible_thousands_separator_is_not_a_decimal(cell):
    """1,500 means 1.5 in one spreadsheet and 1500 in another: the parser does not guess."""
    for mark, form in ((",", "csv"), ("\t", "csv"), ("\t", "tsv")):
        head, row = (
            mark.join(cells) for cells in (["item", "system", "rater", "aspect", "value"], ["i", "s", "r", "q"])
        )
        rows, faults = read(f'{head}\n{row}{mark}"{cell}"\n', "ratings", form)
        assert rows == []
        assert faults[0][1] == "value"
        assert "comma" in faults[0][2]


def test_comma_is_decimal_when_semicolons_delimit():
    rows, faults = read("item;system;rater;aspect;value;step\ni;s;r;q;2,333;100,0\ni;s;r2;q;0,125;\n", "ratings")
    assert (faults, [(row[2], row[6]) for _, row in rows]) == ([], [(100, 2.333), (-1, 0.125)])
    rows, faults = read('item,system,rater,aspect,value\ni,s,r,q,"0,125"\ni,s,r2,q,"1234,567"\n', "ratings")
    assert (faults, [row[6] for _, row in rows]) == ([], [0.125, 1234.567])


def read_values(cells: list[str], mark: str = ";") -> tuple[list[float], list[Any]]:
    lines = [mark.join(["i", "s", f"r{k}", "q", f'"{cell}"']) for k, cell in enumerate(cells)]
    rows, faults = read("\n".join([mark.join(["item", "system", "rater", "aspect", "value"]), *lines]), "ratings")
    return [row[6] for _, row in rows], faults


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1.250", "3,5"], [1250, 3.5]),
        (["4", "3,5", "-1.250.000", "1.250"], [4, 3.5, -1_250_000, 1250]),
        (["1.250", "4", "0.5"], [1.25, 4, 0.5]),
        (["1.250"] * 100 + ["3,5"], [1250] * 100 + [3.5]),
        (["0.125", "1.250"], [0.125, 1.25]),
    ],
)
def test_the_whole_column_decides_what_a_point_separates(cells, values):
    assert read_values(cells) == (values, [])


def test_a_point_that_nothing_decides_is_an_error():
    """Only where cells are separated by semicolons, as in countries with decimal commas: exports have points."""
    values, faults = read_values(["4", "1.250", "12"])
    [(line, field, message)] = faults
    assert (values, line, field) == ([4, 12], 3, "value")
    assert "“1.250” may be 1250 or 1,25," in message
    assert read_values(["4", "1.250", "12"], ",") == ([4, 1.25, 12], [])
    assert read_values(["3,5", "1.250"], ",") == ([3.5, 1250], [])


def test_few_rows_wait_for_the_decimal_sign(monkeypatch):
    monkeypatch.setattr("annotation.parsers.rows.MOST_HELD", 3)
    values, faults = read_values(["1.250"] * 4 + ["3,5", "1.250"])
    assert (len(faults), values) == (3, [1250, 3.5, 1250])


@pytest.mark.parametrize("cells", [("3,5", "1.25"), ("1.25", "3,5")])
def test_two_decimal_signs_in_a_column_are_an_error(cells):
    rows, faults = read(
        f"item;system;rater;aspect;value\ni;s;r;q;4\ni;s;r2;q;{cells[0]}\ni;s;r3;q;{cells[1]}\n", "ratings"
    )
    assert [row[6] for _, row in rows] == [4, 3.5 if cells[0] == "3,5" else 1.25]
    [(line, field, message)] = faults
    assert (line, field) == (4, "value")
    assert "“1.25” has a decimal point and “3,5” a decimal comma" in message
    assert read("item,system,rater,aspect,value\ni,s,r,q,1.250\n", "ratings")[1] == []  # another file


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        ("Hello there", ["Hello there"]), ('["a", "b"]', ["a", "b"]), ("[]", []), ("", []), ("5", ["5"]),
        ("[laughs] Hi", ["[laughs] Hi"]), ("name[X], food[Y]", ["name[X], food[Y]"]), ("{a}", ["{a}"]),
    ],
)  # fmt: skip
def test_plain_texts_for_lists(cell, texts):
    quoted = cell.replace('"', '""')
    ((_, row),), faults = read(f'id,context,references\ni1,"{quoted}","{quoted}"\n', "items")
    assert (faults, json.loads(row[1]), json.loads(row[5])) == ([], texts, texts)
    if not cell.startswith('["') and cell != "[]":
        ((_, row),), faults = read(json.dumps({"id": "i1", "context": cell, "references": cell}), "items", "jsonl")
        assert (faults, json.loads(row[1]), json.loads(row[5])) == ([], texts, texts)


def test_damaged_list_is_still_an_error():
    _, faults = read('id,context\ni1,"[""a"", ""b"""\n', "items")
    assert len(faults) == 1
    assert faults[0][1] == "context"
    assert "JSON" in faults[0][2]


def test_column_of_another_table_is_plain_text():
    text = 'item,system,text,context,references,value\ni1,s,t,"Hello, you",[x,5\n'
    ((_, row),), faults = read(text, "outputs")
    assert faults == []
    assert json.loads(row[4]) == {"context": "Hello, you", "references": "[x", "value": "5"}
    sink = io.BytesIO()
    columns = {"item": ["i1"], "system": ["s"], "text": ["t"], "options": ["none"], "written": ["by hand"]}
    pq.write_table(pa.table(columns), sink)
    ((_, row),), faults = read(sink.getvalue(), "outputs", "parquet")
    assert faults == []
    assert json.loads(row[4]) == {"options": "none", "written": "by hand"}


def test_numeric_ids_and_integers_with_a_point():
    text = json.dumps({"item": 7, "system": 3, "step": 100.0, "text": "t"})
    assert read(text, "outputs", "jsonl") == ([(1, ("7", "3", 100, "t", "{}"))], [])
    rating = {"item": 7, "system": 3, "rater": 12, "aspect": "q", "value": 4, "step": None}
    ((_, row),), faults = read(json.dumps(rating), "ratings", "jsonl")
    assert (faults, row[0], row[1], row[4]) == ([], "7", "3", "12")
    for bad in ({"item": True}, {"item": 7.5}, {"step": 1.5}, {"step": "x"}):
        assert read(json.dumps({"item": 7, "system": 3, "text": "t", **bad}), "outputs", "jsonl")[1], bad


def test_parquet_with_other_case_and_decimals():
    sink = io.BytesIO()
    value = pa.array([Decimal("3.50"), Decimal("4.00")])
    columns = {"Item": ["i", "j"], "SYSTEM": ["s", "s"], "rater": ["r", "r"], "Aspect": ["q", "q"], "Value": value}
    pq.write_table(pa.table(columns), sink)
    rows, faults = read(sink.getvalue(), "ratings", "parquet")
    assert (faults, [(row[0], row[1], row[6]) for _, row in rows]) == ([], [("i", "s", 3.5), ("j", "s", 4.0)])
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": ["i"], "ID": ["x"]}), sink)
    ((_, row),), faults = read(sink.getvalue(), "items", "parquet")
    assert (faults, row[0], json.loads(row[4])) == ([], "i", {"ID": "x"})
    sink = io.BytesIO()
    pq.write_table(pa.table({"Id": ["i"], "ID": ["x"]}), sink)
    with pytest.raises(StopReading, match="“id”"):
        read(sink.getvalue(), "items", "parquet")


def test_name_in_other_case_stays_if_the_exact_one_exists():
    ((_, row),), faults = read("item,Item,system,text\ni1,x,s,t\n", "outputs")
    assert (faults, row[0], json.loads(row[4])) == ([], "i1", {"Item": "x"})


@pytest.mark.parametrize("value", ["1e308", "-1e151", "1" + "0" * 160])
def test_numbers_without_a_finite_mean_are_refused(value):
    row = f'{{"item": "i", "system": "s", "rater": "r", "aspect": "q", "value": {value}}}'
    _, faults = read(row, "ratings", "jsonl")
    ((_, field, message),) = faults
    assert (field, "1e+150" in message) == ("value", True)
    assert read(row.replace(value, "-1e150"), "ratings", "jsonl")[1] == []
