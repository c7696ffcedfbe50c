"""Tables that cannot be imported: the reason says what to do, and nothing is stored."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.models import Item, Output, Rating, Upload
from annotation.services.table_uploads import receive_mapped
from annotation.services.uploads import Incoming
from evalapp.common.errors import BadInput
from evalapp.common.runner import RunContext, execute_run

pytestmark = pytest.mark.django_db
FILES = Path(__file__).parents[1] / "mapping" / "files"
LONG = {"shape": "long", "columns": {"item": "id", "system": "m", "text": "t"}, "make_items": True}
ROWS: list[dict[str, Any]] = [{"id": "a", "m": "gpt", "t": "It is good."}]


def write_book(rows: list[list[Any]]) -> bytes:
    book, file = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(file)
    return file.getvalue()


def write_bomb() -> bytes:
    file = io.BytesIO(write_book([["id", "m", "t"], ["a", "gpt", "x"]]))
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as book, book.open("xl/sharedStrings2.xml", "w") as part:
        for _k in range(160):
            part.write(b"\0" * (1 << 20))
    return file.getvalue()


def write_parquet(rows: list[dict[str, Any]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


def write_json(*rows: dict[str, Any]) -> bytes:
    return json.dumps(rows).encode()


#: Name of the file, its content, the mapping, and parts of the reason.
BAD: dict[str, tuple[str, bytes, Any, list[str]]] = {
    "wrong mapping": ("a.json", write_json(*ROWS), {**LONG, "columns": {"item": "id", "system": "modl", "text": "t"}},
                      ["modl"]),
    "mapping without a system": ("a.json", write_json(*ROWS), {**LONG, "columns": {"item": "id", "text": "t"}},
                                 ["columns.system"]),
    "two candidates": ("a.csv", b"id,system,model,response\n1,a,b,One two.\n", "auto", ["columns.system"]),
    "unclear texts": ("a.csv", b"id,prompt,gpt output,notice\n1,Who?,It is me.,So it is.\n2,Why?,I say.,So it was.\n",
                      "auto", ["notice"]),
    "ambiguous pattern": ("a.csv", b"id,gpt_4_fluency\n1,3\n",
                          {"shape": "wide", "columns": {"item": "id"}, "ratings": [{"pattern": "{system}_{aspect}"}],
                           "constants": {"rater": "r"}}, ["gpt_4_fluency", "two ways"]),
    "mixed types": ("a.json", write_json(*ROWS, {"id": "b", "m": "gpt", "t": {"text": "x"}}), LONG, ["t", "2"]),
    "formula": ("a.xlsx", write_book([["id", "m", "t"], ["a", "gpt", "=1+1"]]), LONG, ["C2", "paste the values"]),
    "password": ("a.xlsx", (FILES / "password.xlsx").read_bytes(), LONG, ["password"]),
    "bomb": ("a.xlsx", write_bomb(), LONG, ["unpacks"]),
    "nested Parquet": ("a.parquet", write_parquet([{"id": "a", "m": "gpt", "t": [{"text": "x"}]}]), LONG,
                       ["t", "list or an object"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_the_reason_is_clear_and_nothing_is_stored(cast, kind):
    name, content, mapping, words = BAD[kind]
    reasons = import_and_list(cast, {name: content}, mapping)
    assert all(word in " ".join(reasons) for word in words), reasons
    assert not any(model.objects.exists() for model in (Item, Output, Rating))


def import_and_list(cast: Any, files: dict[str, bytes], mapping: Any) -> list[str]:
    """File, line, column and message of each fault of an import."""
    incoming = [Incoming(name, [content]) for name, content in files.items()]
    try:
        upload = receive_mapped(project=cast.project, user=cast.researcher, files=incoming, mapping=mapping)
    except BadInput as error:
        assert not Upload.objects.exists()
        return [error.detail, *(f"{one.file} {one.line} {one.field} {one.message}" for one in error.faults)]
    execute_run(upload.run_id)
    upload.refresh_from_db()
    return [f"{one.file} {one.line} {one.field} {one.message}" for one in upload.faults.all()]


def test_other_text_in_another_file_names_both_places(cast):
    files = {"a.json": write_json(*ROWS), "b.json": write_json({**ROWS[0], "t": "Another one."})}
    reasons = import_and_list(cast, files, LONG)
    assert len(reasons) == 1
    assert reasons[0].startswith("b.json 1 t ")
    assert "a.json:1" in reasons[0]
    assert not Output.objects.exists()


def test_the_same_text_in_several_files_is_stored_once(cast):
    files = {"a.json": write_json(*ROWS), "b.json": write_json(*ROWS, {**ROWS[0], "m": "llama"})}
    assert import_and_list(cast, files, LONG) == []
    assert Output.objects.count() == 2


def test_files_of_lines_of_different_length(cast):
    files = {"src.txt": b"a\nb\n", "gpt.txt": b"c\n"}
    mapping = {"shape": "lines", "columns": {"source": "src.txt"}, "outputs": [{"column": "gpt.txt", "system": "gpt"}],
               "ids": {"source": "row"}}  # fmt: skip
    reasons = import_and_list(cast, files, mapping)
    assert "gpt.txt has 1 lines, src.txt has more" in reasons[0]
    assert not Item.objects.exists()


SYSTEMS, ASPECTS = ("gpt", "llama", "claude", "mistral"), ("fluency", "relevance", "overall")
WIDE = {
    "shape": "wide", "columns": {"item": "id", "context": "prompt"}, "outputs": [{"pattern": "{system} output"}],
    "ratings": [{"pattern": "{system} {aspect}"}], "constants": {"rater": "r"},
}  # fmt: skip


def write_wide(change: dict[int, dict[str, str]], repeated: int | None = None) -> bytes:
    """A sheet with four outputs and twelve ratings per row. `change`: other cells, by row and column."""
    names = [*(f"{one} output" for one in SYSTEMS), *(f"{one} {two}" for one in SYSTEMS for two in ASPECTS)]
    rows = [
        {"id": f"p{k}", "prompt": f"What is {k}?", **{name: f"{name} {k}" for name in names[:4]},
         **dict.fromkeys(names[4:], "3")} | change.get(k, {})
        for k in range(4)
    ]  # fmt: skip
    rows += [rows[repeated]] if repeated is not None else []
    return "".join(",".join(row) + "\n" for row in [["id", "prompt", *names], *(row.values() for row in rows)]).encode()


ONE_CAUSE = {
    "long id": (write_wide({2: {"id": "x" * 300}}), "a.csv 4 id id is longer"),
    "another prompt for an id": (write_wide({2: {"id": "p0"}}), "a.csv 4 id Row 2 has another text"),
    "a row twice": (write_wide({}, repeated=1), "a.csv 6  The same key is already used in a.csv:3"),
    "an output is missing": (write_wide({2: {"gpt output": ""}}), "a.csv 4 system “gpt” has no output"),
    "a long name": (write_wide({}).replace(b"gpt ", b"g" * 300 + b" "), "a.csv 2"),
}


@pytest.mark.parametrize("kind", ONE_CAUSE)
def test_a_bad_row_is_reported_once(cast, kind):
    """Its seventeen parts share the error."""
    content, expected = ONE_CAUSE[kind]
    reasons = import_and_list(cast, {"a.csv": content}, WIDE)
    assert [reason for reason in reasons if not reason.startswith(expected)] == []
    if kind != "a long name":
        assert Upload.objects.get().fault_count == 1


def test_the_log_counts_rows_of_the_file(cast, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(RunContext, "log", lambda self, text: said.append(text))
    files = {"a.csv": write_wide({}), "b.csv": write_wide({}).replace(b"\np", b"\nq")}
    assert import_and_list(cast, files, WIDE) == []
    assert said[:2] == ["a.csv: 4 rows read", "b.csv: 4 rows read"]
