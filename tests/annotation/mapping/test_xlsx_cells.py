"""Cells of spreadsheets of every kind, as several programs write them, and sheets that are damaged."""

from __future__ import annotations

import datetime
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from annotation.mapping import convert_rows, open_table, read_mapping
from annotation.mapping.values import WrongCell
from annotation.parsers import Limits, StopReading

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SHEET, TEXTS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
HEADER = '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c><c r="B1" t="inlineStr"><is><t>b</t></is></c></row>'


def write_sheet(path: Path, rows: str, texts: str = "", head: str = "", tag: str = "") -> None:
    """A workbook of openpyxl with the XML of other rows and texts. `tag`: the prefix of the names in the sheet."""
    book = openpyxl.Workbook()
    book.active.append(["text"])
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    named = f"xmlns{f':{tag[:-1]}' if tag else ''}"
    sheet = f'{head}<{tag}worksheet {named}="{MAIN}"><{tag}sheetData>{rows}</{tag}sheetData></{tag}worksheet>'
    parts[SHEET] = sheet.encode()
    parts[TEXTS] = f'<sst xmlns="{MAIN}">{texts}</sst>'.encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def read_cells(path: Path, rows: str, **more: Any) -> list[tuple[Any, ...]]:
    """The rows below the header `a`, `b`: number and cells."""
    write_sheet(path / "a.xlsx", HEADER + rows, **more)
    return [(number, *row.values()) for number, row in open_table(path / "a.xlsx")]


def test_values_have_the_types_that_openpyxl_wrote(tmp_path):
    values = [
        3, -2.5, 3.0, 2**60, True, False, "Ünï <&> “x”\nnext line", " spaces ",
        datetime.datetime(2024, 2, 29, 13, 5, 7),
        datetime.date(1950, 1, 2), datetime.time(6, 30), datetime.timedelta(hours=30), None, 1e300,
    ]  # fmt: skip
    book = openpyxl.Workbook()
    book.active.append([f"column {k}" for k in range(len(values) + 1)])
    book.active.append([*values, "last"])
    book.save(tmp_path / "a.xlsx")
    [(number, row)] = list(open_table(tmp_path / "a.xlsx"))
    read = list(row.values())
    # As JSON has them: whole numbers are integers, times are texts of ISO 8601.
    assert (number, read) == (2, [
        3, -2.5, 3, 2**60, True, False, "Ünï <&> “x”\nnext line", " spaces ", "2024-02-29T13:05:07",
        "1950-01-02", "06:30:00", "1 day, 6:00:00", None, 1e300, "last",
    ])  # fmt: skip
    assert [type(value) for value in read[:6]] == [
        int,
        float,
        int,
        float,
        bool,
        bool,
    ]  # openpyxl writes 1.152921504606847e+18


def test_dates_that_count_from_1904(tmp_path):
    book = openpyxl.Workbook()
    book.epoch = openpyxl.utils.datetime.CALENDAR_MAC_1904
    book.active.append(["day"])
    book.active.append([datetime.datetime(2024, 2, 29)])
    book.save(tmp_path / "a.xlsx")
    assert [row["day"] for _number, row in open_table(tmp_path / "a.xlsx")] == ["2024-02-29T00:00:00"]


@pytest.mark.parametrize(
    ("value", "shown", "text"),
    [
        (datetime.datetime(2024, 2, 29), "yyyy-mm-dd", "2024-02-29"),
        (datetime.datetime(2024, 2, 29), '[$-407]d. mmmm yyyy "Uhr"', "2024-02-29"),
        (datetime.datetime(2024, 2, 29, 12), "dd/mm/yy", "2024-02-29"),
        (datetime.datetime(2024, 2, 29), "d.m.yyyy hh:mm", "2024-02-29T00:00:00"),
        (datetime.time(0), "h:mm", "00:00:00"),
        (0.85, "0%", "85%"),
        (0.07, "0.00%", "7%"),
        (0.8567, "0%", "85.67%"),
        (0.01125, "0.000%", "1.1250%"),
        (3, '0 "%"', 3),
        (3, "0.00", 3),
    ],
)
def test_dates_and_percentages_are_as_in_csv(tmp_path, value, shown, text):
    book = openpyxl.Workbook()
    book.active.append(["a", "b"])
    book.active.append([value, "x"])
    book.active["A2"].number_format = shown
    book.save(tmp_path / "a.xlsx")
    assert [row["a"] for _number, row in open_table(tmp_path / "a.xlsx")] == [text]


def test_percentages_are_the_same_ratings_as_in_csv(tmp_path):
    book = openpyxl.Workbook()
    for row in (["id", "system", "score"], ["1", "gpt", 0.855], ["2", "gpt", 0.011250]):
        book.active.append(row)
    book.active["C2"].number_format = book.active["C3"].number_format = "0.0%"
    book.save(tmp_path / "a.xlsx")
    (tmp_path / "a.csv").write_text("id,system,score\n1,gpt,85.5%\n2,gpt,1.1250%\n")
    document: dict[str, Any] = {
        "shape": "long", "columns": {"item": "id", "system": "system", "value": "score"}, "make_items": False,
        "constants": {"rater": "r", "aspect": "quality"},
    }  # fmt: skip
    mapping = read_mapping(document)
    values = [[row.values["value"] for row in convert_rows(open_table(tmp_path / name), mapping)]
              for name in ("a.xlsx", "a.csv")]  # fmt: skip
    assert values == [[85.5, 1.125]] * 2


def test_shared_texts_with_formats_readings_and_escapes(tmp_path):
    reading = "<rPh sb='0' eb='2'><t>とうきょう</t></rPh>"
    texts = f"<si><r><t>one </t></r><r><rPr><b/></rPr><t>two</t></r></si><si><t>東京</t>{reading}</si>"
    texts += "<si><t>a_x000D_b_x0000_</t></si><si/><si><t>a_x000D_b</t></si>"
    rows = "".join(f'<row r="{k + 2}"><c r="A{k + 2}" t="s"><v>{k}</v></c></row>' for k in (1, 0, 2, 3, 4))
    # A text with _x0000_ stays as it is, because it could not be stored.
    assert read_cells(tmp_path, rows, texts=texts) == [
        (3, "東京", None), (2, "one two", None), (4, "a_x000D_b_x0000_", None), (5, "", None), (6, "a\rb", None),
    ]  # fmt: skip


def test_cells_without_places_and_with_gaps(tmp_path):
    rows = ('<row><c><v>1</v></c><c t="str"><v>x</v></c></row><row r="9"><c r="B9"><v>2</v></c></row>'
            '<row><c/><c t="b"><v>1</v></c></row><row r="20"/>')  # fmt: skip
    assert read_cells(tmp_path, rows) == [(2, 1, "x"), (9, None, 2), (10, None, True)]


def test_names_with_a_prefix(tmp_path):
    row = '<x:row r="{0}"><x:c r="A{0}" t="inlineStr"><x:is><x:t>{1}</x:t></x:is></x:c></x:row>'
    write_sheet(tmp_path / "a.xlsx", row.format(1, "a") + row.format(2, "text"), tag="x:")
    assert [row for _number, row in open_table(tmp_path / "a.xlsx")] == [{"a": "text"}]


def test_a_formula_can_give_an_empty_text(tmp_path):
    """Programs store it as a text without content; a formula without type and content was never computed."""
    row = '<row r="2"><c r="A2"><v>1</v></c><c r="B2" {kind}><f>IF(A2=1,"","x")</f><v></v></c></row>'
    assert read_cells(tmp_path, row.format(kind='t="str"')) == [(2, 1, None)]
    [(_row, _first, cell)] = read_cells(tmp_path, row.format(kind=""))
    assert isinstance(cell, WrongCell)
    assert "B2" in cell.message


def test_rows_that_are_too_long_are_faults_and_wrong_cells_are_marked(tmp_path):
    rows = ('<row r="2"><c r="B2" t="e"><f>1/0</f><v>#DIV/0!</v></c></row><row r="3"><c r="A3"><v>1</v></c></row>'
            f'<row r="4"><c r="A4" t="inlineStr"><is><t>{"x" * 3000}</t></is></c></row>')  # fmt: skip
    write_sheet(tmp_path / "a.xlsx", HEADER + rows)
    faults: list[tuple[int | None, str]] = []
    table = open_table(tmp_path / "a.xlsx", limits=Limits(row_bytes=2000))
    read = list(table.read(lambda row, column, _message: faults.append((row, column))))
    assert [(number, type(row["b"]) is WrongCell) for number, row in read] == [(2, True), (3, False)]
    assert faults == [(4, "")]


def test_a_name_of_a_column_that_cannot_be_read_is_refused(tmp_path):
    write_sheet(tmp_path / "a.xlsx", '<row r="1"><c r="A1"><f>1+1</f></c></row><row r="2"><c r="A2"><v>1</v></c></row>')
    with pytest.raises(StopReading, match="A1"):
        open_table(tmp_path / "a.xlsx")


@pytest.mark.parametrize(
    "rows",
    [
        '<row r="2"><c r="A2" t="s"><v>7</v></c></row>', '<row r="2"><c r="A2" t="s"><v>-1</v></c></row>',
        '<row r="2"><c r="AAAA2"><v>7</v></c></row>', '<row r="2"><c r="Ä2"><v>7</v></c></row>',
        '<row r="2"><c r="A2"><v>seven</v></c></row>', '<row r="2"><c r="A2" t="z"><v>7</v></c></row>',
        '<row r="2"><c r="A2"><v>7</v></row>', '<row r="2"><c r="A2" s="x"><v>7</v></c></row>', '<row r="x"/>',
    ],
)  # fmt: skip
def test_damaged_cells_are_refused(tmp_path, rows):
    with pytest.raises(StopReading, match="damaged"):
        read_cells(tmp_path, rows, texts="<si><t>only one</t></si>")


def test_entities_that_grow_are_refused(tmp_path):
    head = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    with pytest.raises(StopReading, match="entities"):
        read_cells(tmp_path, '<row r="2"><c r="A2" t="str"><v>&b;</v></c></row>', head=head)
