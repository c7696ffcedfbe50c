"""Tables of every format have the same rows, and files that cannot be read are refused with a reason."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.mapping import Fault, Reading, convert_rows, open_files, open_table, read_mapping
from annotation.mapping.values import WrongCell
from annotation.mapping.xlsx_process import read_all
from annotation.parsers import Limits, StopReading

ROOT = Path(__file__).resolve().parents[3]
ROWS = [{"id": f"q{k}", "prompt": f"Ünïcode, “{k}”?", "gpt": f"line one\nline {k}", "score": k} for k in range(1, 6)]
COLUMNS = list(ROWS[0])


def write_delimited(path: Path, separator: str, encoding: str = "utf-8") -> None:
    lines = [separator.join(COLUMNS)]
    lines += [separator.join(f'"{value}"' for value in row.values()) for row in ROWS]
    path.write_text("\r\n".join(lines), encoding=encoding, newline="")


def write_xlsx(path: Path, rows: list[list[Any]]) -> None:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


WRITERS: dict[str, Callable[[Path], object]] = {
    "comma.csv": lambda path: write_delimited(path, ","),
    "semicolon.csv": lambda path: write_delimited(path, ";"),
    "tabs.tsv": lambda path: write_delimited(path, "\t"),
    "bars.txt.csv": lambda path: write_delimited(path, "|"),
    "windows.csv": lambda path: write_delimited(path, ";", "cp1252"),
    "excel.csv": lambda path: write_delimited(path, "\t", "utf-16"),
    "lines.jsonl": lambda path: path.write_text("\n".join(map(json.dumps, ROWS))),
    "array.json": lambda path: path.write_text(json.dumps(ROWS, indent=1, ensure_ascii=False)),
    "object.json": lambda path: path.write_text(json.dumps({"version": 1, "data": ROWS})),
    "rows.parquet": lambda path: pq.write_table(pa.Table.from_pylist(ROWS), path),
    "sheet.xlsx": lambda path: write_xlsx(path, [COLUMNS, *(list(row.values()) for row in ROWS)]),
}


@pytest.mark.parametrize("name", WRITERS)
def test_rows_of_every_format(tmp_path, name):
    WRITERS[name](tmp_path / name)
    table = open_table(tmp_path / name)
    assert table.columns == COLUMNS
    rows = [{key: str(value) for key, value in row.items()} for _number, row in table]
    assert rows == [{key: str(value) for key, value in row.items()} for row in ROWS]
    assert rows == [{key: str(value) for key, value in row.items()} for _number, row in table]  # once more
    # The encoding and the separator are part of the proposed mapping, so that the next file is read in the same way.
    again = open_table(tmp_path / name, reading=table.reading)
    assert again.columns == COLUMNS


def test_an_encoding_that_was_guessed_is_mentioned(tmp_path):
    WRITERS["windows.csv"](tmp_path / "a.csv")
    assert open_table(tmp_path / "a.csv").notes
    assert not open_table(tmp_path / "a.csv", reading=Reading(encoding="cp1252")).notes


def test_rows_have_the_numbers_of_the_file(tmp_path):
    WRITERS["comma.csv"](tmp_path / "a.csv")
    assert [number for number, _row in open_table(tmp_path / "a.csv")] == [2, 4, 6, 8, 10]  # texts of two lines
    WRITERS["sheet.xlsx"](tmp_path / "a.xlsx")
    assert [number for number, _row in open_table(tmp_path / "a.xlsx")] == [2, 3, 4, 5, 6]


def test_nested_values_have_dotted_columns(tmp_path):
    rows = [{"id": 1, "author": {"name": "x", "at": {"place": "y"}}, "tags": ["a"], "when": None}] * 2
    (tmp_path / "a.json").write_text(json.dumps(rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    for name in ("a.json", "a.parquet"):
        table = open_table(tmp_path / name)
        assert table.columns == ["id", "author.name", "author.at.place", "tags", "when"]
        assert next(iter(table))[1]["author.at.place"] == "y"


def test_parquet_columns_of_every_type(tmp_path):
    day = datetime.datetime(2024, 2, 29, 13, 5)
    columns = {
        "text": pa.array(["a", None, "c"]), "category": pa.array(["x", "y", None]).dictionary_encode(),
        "whole": pa.array([1, None, 3]), "full": pa.array([1, 2, 2**60]), "small": pa.array([1, 2, 3], pa.uint8()),
        "real": pa.array([0.5, float("nan"), None]), "single": pa.array([0.5, 1.5, 2.0], pa.float32()),
        "flag": pa.array([True, False, None]), "sure": pa.array([True, False, True]),
        "day": pa.array([day, None, day]), "price": pa.array([Decimal("1.50"), None, Decimal("2.00")]),
        "list": pa.array([["a", "b"], None, []]), "bytes": pa.array([b"a", None, b"b"]),
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    rows = [row for _number, row in open_table(tmp_path / "a.parquet")]
    assert rows == [
        {"text": "a", "category": "x", "whole": 1, "full": 1, "small": 1, "real": 0.5, "single": 0.5, "flag": True,
         "sure": True, "day": "2024-02-29T13:05:00", "price": 1.5, "list": ["a", "b"], "bytes": "a"},
        {"category": "y", "full": 2, "small": 2, "single": 1.5, "flag": False, "sure": False},
        {"text": "c", "whole": 3, "full": 2**60, "small": 3, "single": 2.0, "sure": True,
         "day": "2024-02-29T13:05:00", "price": 2, "list": [], "bytes": "b"},
    ]  # fmt: skip
    assert [type(rows[0][name]) for name in ("whole", "small", "single", "sure")] == [int, int, float, bool]


def test_a_sheet_of_many_cells_is_read_in_little_memory(tmp_path):
    """Neither rows nor texts are kept: a sheet of ten times as many rows needs no more memory."""
    peaks = []
    for count in (2_000, 20_000):
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet()
        sheet.append(["id", "text"])
        for k in range(count):
            sheet.append([k, f"the text {k} of a sheet"])
        book.save(tmp_path / "a.xlsx")
        with (tmp_path / "a.xlsx").open("rb") as raw:
            tracemalloc.start()
            assert sum(1 for _line in read_all(raw, "", Limits())) == count + 2
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + 1_000_000, peaks


def test_parquet_is_only_opened_by_the_limited_process(tmp_path):
    """A worker neither loads the library, which takes over 100 MB, nor reads metadata without a limit of memory."""
    rows = [{"id": 1, "output": {"text": "a", "model": {"name": "m"}}}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    program = """
import sys
from pathlib import Path
from annotation.mapping import open_table
table = open_table(Path(sys.argv[1]))
print(sorted(name for row in list(table) for name in row[1]), "pyarrow" in sys.modules, "numpy" in sys.modules)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "a.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "['id', 'output.model.name', 'output.text'] False False"


def test_times_maps_and_decimals_in_parquet(tmp_path):
    day = datetime.date(2026, 1, 2)
    table = pa.table({
        "id": ["a", "b"], "scores": pa.array([[("gpt", 1)], [("llama", 2)]], pa.map_(pa.string(), pa.int64())),
        "at": pa.array([datetime.datetime(2026, 1, 2, 3, 4), None]), "day": pa.array([day, day]),
        "value": pa.array([Decimal("1.50"), Decimal("2.00")]),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "a.parquet")
    rows = [row for _number, row in open_table(tmp_path / "a.parquet")]
    assert [(row["day"], row["value"]) for row in rows] == [("2026-01-02", 1.5), ("2026-01-02", 2)]
    assert (rows[0]["at"], rows[1].get("at")) == ("2026-01-02T03:04:00", None)
    assert (rows[0]["scores.gpt"], rows[1]["scores.llama"]) == (1, 2)


def test_rows_above_and_below_the_names_are_left_out(tmp_path):
    (tmp_path / "a.csv").write_text("a title,\n\nid,score\nthe id,the score\n1,2\n")
    write_xlsx(tmp_path / "a.xlsx", [["a title"], ["id", "score"], ["the id", "the score"], ["1", "2"]])
    for name, above, number in (("a.csv", 1, 5), ("a.xlsx", 1, 4)):
        table = open_table(tmp_path / name, reading=Reading(skip_above=above, skip_below=1))
        assert table.columns == ["id", "score"]
        assert list(table) == [(number, {"id": "1", "score": "2"})]


def test_several_aligned_files(tmp_path):
    for name, content in {"src": "a\nb\n", "gpt": "c\nd\n"}.items():
        (tmp_path / name).write_text(content)
    table = open_files([("src.txt", tmp_path / "src"), ("gpt.txt", tmp_path / "gpt")])
    assert [row for _number, row in table] == [{"src.txt": "a", "gpt.txt": "c"}, {"src.txt": "b", "gpt.txt": "d"}]


def test_columns_without_name_or_with_the_same_one(tmp_path):
    (tmp_path / "a.csv").write_text(",score,score\n1,2,3\n")
    assert open_table(tmp_path / "a.csv").columns == ["column 1", "score", "score (2)"]


# ---- what cannot be read --------------------------------------------------------------------------------------------


def refuse(path: Path, **more: Any) -> StopReading:
    """The reason why a file cannot be read."""
    with pytest.raises(StopReading) as caught:
        list(open_table(path, **more))
    return caught.value


def test_a_formula_without_value_is_named_and_one_with_a_value_is_read(tmp_path):
    path = tmp_path / "a.xlsx"
    write_xlsx(path, [["id", "sum"], [1, 2], [3, "=1+1"]])
    [wrong] = [cell for _number, row in open_table(path) if isinstance(cell := row["sum"], WrongCell)]
    assert "B3" in wrong.message
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    assert b"</f><v></v>" in parts[sheet]
    parts[sheet] = parts[sheet].replace(b"</f><v></v>", b"</f><v>2</v>")
    with zipfile.ZipFile(path, "w") as book:
        for name, content in parts.items():
            book.writestr(name, content)
    assert [row["sum"] for _number, row in open_table(path)] == [2, 2]


@pytest.mark.parametrize("cell", ["#DIV/0!", "=1+1"])
def test_a_cell_that_cannot_be_read_is_a_fault_only_if_its_column_is_mapped(tmp_path, cell):
    write_xlsx(
        tmp_path / "a.xlsx", [["id", "system", "answer", "sum"], ["a", "gpt", "Yes.", cell], ["b", "gpt", "No.", 5]]
    )
    table = open_table(tmp_path / "a.xlsx")
    columns = {"item": "id", "system": "system", "text": "answer"}
    made = convert_rows(table, read_mapping({"shape": "long", "columns": columns, "make_items": False}))
    assert [row.table for row in made] == ["outputs", "outputs"]
    rated = {**columns, "value": "sum"}
    constants = {"rater": "r", "aspect": "quality"}
    faults = [
        row
        for row in convert_rows(table, read_mapping({"shape": "long", "columns": rated, "constants": constants}))
        if isinstance(row, Fault)
    ]
    assert [(fault.row, fault.column) for fault in faults] == [(2, "sum (D)")]
    kept = {"shape": "long", "columns": columns, "meta": {"outputs": ["sum"]}}
    assert [row.row for row in convert_rows(table, read_mapping(kept)) if isinstance(row, Fault)] == [2]


def test_bytes_of_parquet_are_texts_or_faults(tmp_path):
    columns = {
        "id": ["a", "b"], "system": ["gpt", "gpt"], "answer": pa.array(["Ü.".encode(), b"Yes."]),
        "image": [{"bytes": b"\xff\xd8"}, {"bytes": b"\xff"}],
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    table = open_table(tmp_path / "a.parquet")
    mapping = {"shape": "long", "columns": {"item": "id", "system": "system", "text": "answer"}}
    assert [row.values["text"] for row in convert_rows(table, read_mapping(mapping))] == ["Ü.", "Yes."]
    mapping["columns"] = {"item": "id", "system": "system", "text": "image.bytes"}
    faults = list(convert_rows(table, read_mapping(mapping)))
    assert [(fault.row, fault.column, "UTF-8" in fault.message) for fault in faults] == [
        (1, "image.bytes", True), (2, "image.bytes", True),
    ]  # fmt: skip


def test_spreadsheets_that_are_refused(tmp_path):
    protected = tmp_path / "protected.xlsx"
    protected.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le"))
    assert "password" in refuse(protected).message
    old = tmp_path / "old.xls"
    old.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600)
    assert ".xls" in refuse(old).message
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(b"PK\x03\x04 this is no archive")
    refuse(broken)
    write_xlsx(tmp_path / "a.xlsx", [["id"], [1]])
    assert "Other" in refuse(tmp_path / "a.xlsx", reading=Reading(sheet="Other")).message
    write_xlsx(tmp_path / "empty.xlsx", [])
    refuse(tmp_path / "empty.xlsx")


def test_escaped_characters_of_a_spreadsheet_are_read(tmp_path):
    texts = ["a_x000D_\nb", "_x005F_x0041_", "_xD800_", "_x0000_", "snake_x"]
    write_xlsx(tmp_path / "a.xlsx", [["text"], *([text] for text in texts)])
    read = [row["text"] for _number, row in open_table(tmp_path / "a.xlsx")]
    assert read == ["a\r\nb", "_x0041_", "_xD800_", "_x0000_", "snake_x"]


def test_a_single_line_with_a_list_of_objects_is_a_row(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "1", "chosen": [{"role": "assistant", "content": "x"}]}\n', encoding="utf-8")
    assert [row["id"] for _number, row in open_table(path)] == ["1"]


def test_a_bomb_in_a_spreadsheet_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "bomb.xlsx"
    write_xlsx(path, [["id"], [1]])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as book, book.open("xl/sharedStrings2.xml", "w") as part:
        for _k in range(160):
            part.write(b"\0" * (1 << 20))
    assert "unpacks" in refuse(path).message


def test_texts_of_a_spreadsheet_that_need_too_much_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("annotation.mapping.xlsx.MOST_PART", 1000)
    write_xlsx(tmp_path / "a.xlsx", [["id"], *[[f"text number {k}"] for k in range(200)]])
    assert "xl/" in refuse(tmp_path / "a.xlsx").message


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'[{"a": 1}, {"a": 2]', 2), (b'[{"a": 1}, {"a": 2}', 3), (b'[{"a": 1} nonsense]', 2), (b"[]", None),
        (b'{"a": 1', None), (b"plain text", None), (b'[{"a": "\xff"}]', None), (b"[" * 100_000, 1),
    ],
)  # fmt: skip
def test_json_that_is_none(tmp_path, content, line):
    (tmp_path / "a.json").write_bytes(content)
    assert refuse(tmp_path / "a.json").line == line


def test_faulty_rows_in_an_array_are_reported_and_others_are_read(tmp_path):
    (tmp_path / "a.json").write_text('[{"a": 1}, {"a": NaN}, 3, {"a": 1, "a": 2}, {"a": "\\u0000"}, {"a": 6}]')
    faults: list[int | None] = []
    rows = list(open_table(tmp_path / "a.json").read(lambda row, column, message: faults.append(row)))
    assert ([number for number, _row in rows], faults) == ([1, 6], [2, 3, 4, 5])


def test_a_long_array_is_read_in_little_memory_and_a_long_row_is_refused(tmp_path):
    path = tmp_path / "a.json"
    with path.open("w") as file:
        file.write("[" + ",\n".join(json.dumps({"id": k, "text": "x" * 500}) for k in range(40_000)) + "]")
    tracemalloc.start()
    assert sum(1 for _row in open_table(path)) == 40_000
    assert tracemalloc.get_traced_memory()[1] < 12_000_000  # the file has 21 MB
    tracemalloc.stop()
    path.write_text('[{"id": 1}, {"id": "' + "x" * 3_000_000 + '"}]')
    assert refuse(path, limits=Limits(row_bytes=100_000)).line == 2


def test_aligned_files(tmp_path):
    files = {"src.txt": "a\nb\n", "ref/ref.txt": "c\nd", "gpt.txt": "e\n\n", "x.seg.score": "gpt\t3\ngpt\tNone\n"}
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, content in files.items():
            path = tmp_path / "folder" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            archive.writestr(name, content)
    for path in (tmp_path / "folder", tmp_path / "a.zip"):
        rows = [row for _number, row in open_table(path)]
        assert rows == [
            {"src.txt": "a", "ref/ref.txt": "c", "gpt.txt": "e", "x.seg.score:gpt": "3"},
            {"src.txt": "b", "ref/ref.txt": "d", "gpt.txt": "", "x.seg.score:gpt": ""},
        ]
    (tmp_path / "folder" / "gpt.txt").write_text("e\n")
    reason = refuse(tmp_path / "folder")
    assert (reason.line, "gpt.txt" in reason.message) == (2, True)


def test_segment_scores_take_little_memory_and_keep_what_they_say(tmp_path):
    texts = ["3.50", "-4", "None", "nan", "1e5", "85%", "0.123456789012345678", "x", "+0.1", "12345678901234567", ""]
    (tmp_path / "src.txt").write_text("a\n" * len(texts))
    (tmp_path / "x.seg.score").write_text("".join(f"gpt\t{text}\n" for text in texts))
    read = [row["x.seg.score:gpt"] for _number, row in open_table(tmp_path)]
    assert read == [
        "3.5", "-4", "", "", "1e5", "85%", "0.123456789012345678", "x", "0.1", "12345678901234567", "",
    ]  # fmt: skip
    n = 20_000
    (tmp_path / "src.txt").write_text("a\n" * n)
    (tmp_path / "x.seg.score").write_text("".join(f"gpt\t{k / 7:.4f}\n" for k in range(n)))
    tracemalloc.start()
    try:
        source = open_table(tmp_path).source
        assert tracemalloc.get_traced_memory()[0] < 20 * n
        assert sum(1 for _row in source.read()) == n
    finally:
        tracemalloc.stop()
