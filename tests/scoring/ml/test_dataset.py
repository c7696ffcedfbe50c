"""Reading the interchange folder: every format, every clear refusal."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from scoring.ml import DatasetError, read_dataset
from scoring.ml.training.gold import collect_compared_pairs

HEADER = {"name": "toy", "task": "dialogue", "lang": "en", "aspects": [{"name": "overall", "min": 1, "max": 5}]}
ITEM = {"id": "i1", "context": ["hi", "hello"], "source": None, "references": ["r1", "r2"], "group": "g", "meta": {}}
OUTPUT = {"item": "i1", "system": "s", "text": "yes", "step": None, "meta": {}}
RATING = {"item": "i1", "system": "s", "rater": "a", "aspect": "overall", "value": 4}


def write(folder: Path, **files: list[dict] | str) -> Path:
    (folder / "dataset.json").write_text(json.dumps(HEADER), encoding="utf-8")
    for name, rows in files.items():
        text = rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_reads_all_kinds_of_rows(tmp_path):
    folder = write(
        tmp_path,
        systems=[{"id": "s", "kind": "human"}],
        items=[{**ITEM, "colour": "red"}],
        outputs=[OUTPUT, {**OUTPUT, "system": "t", "step": 3}],
        ratings=[RATING, {"dialogue": "d", "rater": "a", "aspect": "overall", "value": 2.5, "simulated": True}],
        comparisons=[
            {"item": "i1", "system_a": "s", "system_b": "t", "rater": "a", "aspect": "overall", "verdict": "tie"},
            {"item": "i1", "system_a": "s", "system_b": {"reference": 0}, "rater": "a", "aspect": "overall",
             "verdict": "cannot_decide"},
        ],
        dialogues=[{"id": "d", "turns": ["a", "b"]}],
    )  # fmt: skip
    data = read_dataset(folder)
    assert (data.name, data.task, data.aspects[0].maximum) == ("toy", "dialogue", 5)
    assert data.systems[0].kind == "human"
    assert data.items[0].context == ("hi", "hello")
    assert data.items[0].meta == {"colour": "red"}
    assert data.outputs[1].step == 3
    assert data.ratings[1].dialogue == "d"
    assert data.ratings[1].simulated
    assert data.comparisons[1].reference_b == 0
    assert data.comparisons[1].system_b is None
    # If omitted, it means the output without a step, or the only one: docs/reference/interchange-format.md.
    assert (data.comparisons[0].step_a, data.comparisons[0].step_b) == (None, 3)
    # The rows can be used in training: once, a row for an output with a step was skipped or raised a KeyError.
    assert [(row.a.system, row.b.step) for row in collect_compared_pairs(data, "overall")] == [("s", 3)]


def test_tables_and_gzip_equal_jsonl(tmp_path):
    plain, table, packed = (tmp_path / name for name in ("plain", "table", "packed"))
    for folder in (plain, table, packed):
        folder.mkdir()
    write(plain, items=[ITEM], outputs=[{**OUTPUT, "text": 'two\nlines, "quoted"'}], ratings=[RATING])
    write(table)
    (table / "items.csv").write_text(
        '\ufeffid,context,source,references,group\r\ni1,"[""hi"", ""hello""]",,"[""r1"", ""r2""]",g\r\n',
        encoding="utf-8",
    )
    (table / "outputs.csv").write_text('item,system,text\r\ni1,s,"two\nlines, ""quoted"""\r\n', encoding="utf-8")
    (table / "ratings.tsv").write_text("item\tsystem\trater\taspect\tvalue\ni1\ts\ta\toverall\t4\n", encoding="utf-8")
    write(packed)
    for name in ("items", "outputs", "ratings"):
        packed.joinpath(f"{name}.jsonl.gz").write_bytes(gzip.compress((plain / f"{name}.jsonl").read_bytes()))
    assert read_dataset(plain) == read_dataset(table) == read_dataset(packed)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"items": [ITEM, ITEM]}, r"items.jsonl:2: the same key is in items.jsonl:1"),
        ({"items": '{"id": "i1", '}, r"items.jsonl:1: .*JSON"),
        ({"items": "[1]\n"}, r"items.jsonl:1: The line is not a JSON object"),
        ({"items": [{**ITEM, "references": 3}]}, r"items.jsonl:1: references must be a list of texts"),
        ({"items": [{"context": []}]}, r"items.jsonl:1: id is missing"),
        ({"items": [ITEM], "outputs": [{**OUTPUT, "item": "x"}]}, r"outputs.jsonl: names the unknown item 'x'"),
        ({"items": [ITEM], "outputs": [{**OUTPUT, "step": "x"}]}, r"step must be a whole number from 0"),
        ({"items": [ITEM], "outputs": [OUTPUT], "ratings": [{**RATING, "system": "t"}]}, "unknown output 't' of 'i1'"),
        ({"items": [ITEM], "outputs": [OUTPUT], "ratings": [{**RATING, "value": "many"}]}, "value must be a number"),
        # Rows for another step, which nothing would have read.
        ({"items": [ITEM], "outputs": [OUTPUT], "ratings": [{**RATING, "step": 7}]}, "names step 7 of 's' for 'i1'"),
        (
            {"items": [ITEM], "outputs": [{**OUTPUT, "step": 7}, {**OUTPUT, "step": 8}], "ratings": [RATING]},
            "names no step of 's' for 'i1', whose outputs have the steps 7, 8",
        ),
        ({"items": [ITEM], "outputs": [OUTPUT], "ratings": [{**RATING, "simulated": "no"}]}, "must be true or false"),
        ({"items": [ITEM], "ratings": '{"item": "i1", "value": NaN}'}, r"ratings.jsonl:1: NaN is not JSON"),
        ({"systems": [{"id": "s", "kind": "robot"}]}, "must be one of machine, human, reference, control"),
    ],
)  # fmt: skip
def test_invalid_rows_name_file_line_and_reason(tmp_path, files, message):
    with pytest.raises(DatasetError, match=message):
        read_dataset(write(tmp_path, **files))


def test_missing_folder_files_and_duplicates(tmp_path):
    with pytest.raises(DatasetError, match="no such folder"):
        read_dataset(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match="holds no file of the interchange format"):
        read_dataset(tmp_path)
    write(tmp_path, items=[ITEM])
    (tmp_path / "items.csv").write_text("id\n", encoding="utf-8")
    with pytest.raises(DatasetError, match="twice"):
        read_dataset(tmp_path)


def test_wrong_encoding_is_reported(tmp_path):
    write(tmp_path)
    (tmp_path / "items.jsonl").write_bytes('{"id": "é"}'.encode("latin-1"))
    with pytest.raises(DatasetError, match="UTF-8"):
        read_dataset(tmp_path)


def test_name_of_the_data_is_one_line(tmp_path):
    """As in `manage.py load`: LaTeX would execute the text after a line break."""
    write(tmp_path, items=[ITEM])
    (tmp_path / "dataset.json").write_text(json.dumps({**HEADER, "name": "A\n\\input{x}"}), encoding="utf-8")
    with pytest.raises(DatasetError, match=r"dataset.json.*name: .*U\+000A LINE FEED"):
        read_dataset(tmp_path)


def test_error_has_attributes(tmp_path):
    with pytest.raises(DatasetError) as caught:
        read_dataset(write(tmp_path, items=[ITEM, ITEM]))
    assert (caught.value.file, caught.value.line) == ("items.jsonl", 2)


def test_file_names_of_load_without_dataset_json(tmp_path):
    """Several files per kind, as `manage.py load` accepts them, and no dataset.json."""
    (tmp_path / "items.jsonl").write_text(json.dumps(ITEM) + "\n", encoding="utf-8")
    (tmp_path / "outputs-gpt.jsonl").write_text(json.dumps({**OUTPUT, "system": "gpt"}) + "\n", encoding="utf-8")
    (tmp_path / "outputs_old.csv").write_text("item,system,text\ni1,old,no\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("notes", encoding="utf-8")
    (tmp_path / "LICENSE").write_text("MIT", encoding="utf-8")
    data = read_dataset(tmp_path)
    assert data.name == tmp_path.name
    assert [(row.system, row.text) for row in data.outputs] == [("gpt", "yes"), ("old", "no")]
    (tmp_path / "ratings.csv").write_text("item,system,rater,aspect,value\ni1,gpt,a,overall,4\n", encoding="utf-8")
    data = read_dataset(tmp_path)
    assert [row.value for row in data.ratings] == [4]
    assert [(one.name, one.minimum, one.maximum) for one in data.aspects] == [("overall", 4, 4)]


@pytest.mark.parametrize("name", ["output.jsonl", "my-ratings.csv", "ratings.xlsx", "data.parquet", "items.jsonl.zip"])
def test_unread_data_file_is_an_error(tmp_path, name):
    write(tmp_path, items=[ITEM])
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(DatasetError, match=f"{name}: would not be read"):
        read_dataset(tmp_path)
