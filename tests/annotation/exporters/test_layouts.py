"""Exports for other programs, read as those programs read them."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from annotation.exporters.layouts import LAYOUTS
from annotation.exporters.options import ExportOptions
from annotation.mapping import convert_rows, open_table, read_mapping
from annotation.pipelines.exports import write_export
from evalapp.accounts.models import Project
from tests.annotation.pipelines.rich import RICH
from tests.taking import list_errors, take_in

pytestmark = pytest.mark.django_db
SHEETS = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
FILES: dict[str, Any] = {
    "dataset.json": {
        "name": "Alpha", "task": "dialogue", "lang": "en",
        "aspects": [{"name": "quality", "min": 1, "max": 5}, {"name": "better"}],
    },
    "items.jsonl": [
        {"id": "1", "context": ["Hi.", "Hello?"], "references": ["Yes.", "Well."], "group": "y"},
        {"id": "2", "context": ["=1+1"], "source": "fact", "references": ["Two."], "group": "x"},
        {"id": "3", "context": ["Bye."], "references": [], "group": "y"},
    ],
    "outputs.jsonl": [
        {"item": item, "system": system, "text": text}
        for item, system, text in (
            ("1", "a b", "-no"), ("1", "c", "so\nlong "), ("2", "a b", "@x"), ("2", "c", "y"), ("3", "a b", "same"),
            ("3", "c", "same"),
        )
    ],
    "ratings.jsonl": [
        {"item": item, "system": system, "rater": rater, "aspect": "quality", "value": value}
        for item, system, rater, value in (
            ("1", "a b", "r", 1), ("1", "a b", "q", 2), ("1", "c", "r", 4), ("2", "a b", "r", 3), ("2", "c", "q", 3),
            ("3", "a b", "r", 5), ("3", "c", "r", 4),
        )
    ],
    "comparisons.jsonl": [
        {"item": item, "system_a": a, "system_b": b, "rater": rater, "aspect": "better", "verdict": verdict}
        for item, a, b, rater, verdict in (
            ("1", "a b", "c", "r", "a"), ("1", "c", "a b", "q", "b"), ("1", "a b", "c", "s", "tie"),
            ("2", "a b", "c", "r", "both_bad"), ("2", "a b", {"reference": 0}, "r", "b"),
        )
    ],
}  # fmt: skip


@pytest.fixture
def project(cast) -> Project:
    upload = take_in(cast.project, FILES)
    assert upload.state == "done", list_errors(upload)
    return cast.project


def export(project: Project, folder: Path, format: str) -> Path:
    folder.mkdir()
    files = write_export(project, folder, ExportOptions(format=format), lambda done: None)
    written = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert written == sorted(file["name"] for file in files)
    return folder


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_wide_table_has_a_row_per_item_and_columns_per_system(project, tmp_path):
    path = export(project, tmp_path / "out", "wide-csv") / "wide.safe.csv"
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "id", "group", "source", "context", "reference", "reference 2", "a b", "c", "a b: quality", "c: quality",
    ]  # fmt: skip
    assert rows[0]["context"] == "Hi.\nHello?"
    assert (rows[0]["a b"], rows[0]["c"]) == ("'-no", "so\nlong ")
    assert (rows[0]["a b: quality"], rows[0]["c: quality"]) == ("1.5", "4")
    assert (rows[1]["context"], rows[1]["a b"], rows[1]["reference 2"]) == ("'=1+1", "'@x", "")


def test_wide_table_is_imported_by_its_mapping(project, tmp_path):
    folder = export(project, tmp_path / "out", "wide-csv")
    mapping = read_mapping(json.loads((folder / "wide.mapping.json").read_text(encoding="utf-8")))
    found: dict[str, list[Any]] = {}
    for row in convert_rows(open_table(folder / "wide.safe.csv"), mapping):
        found.setdefault(row.table, []).append(row.values)
    names = ("id", "context", "source", "references", "group")
    assert [{name: row.get(name) for name in names} for row in found["items"]] == [
        {name: row.get(name) for name in names} for row in FILES["items.jsonl"]
    ]  # fmt: skip
    assert found["outputs"] == FILES["outputs.jsonl"]
    assert {(row["item"], row["system"]): row["value"] for row in found["ratings"]} == {
        ("1", "a b"): 1.5, ("1", "c"): 4, ("2", "a b"): 3, ("2", "c"): 3, ("3", "a b"): 5, ("3", "c"): 4,
    }  # fmt: skip


def test_preferences_count_votes_and_leave_ties_out(project, tmp_path):
    folder = export(project, tmp_path / "out", "preferences")
    compared = read_lines(folder / "preferences.better.jsonl")
    assert [(row["item"], row["chosen_system"], row["rejected_system"]) for row in compared] == [
        ("1", "a b", "c"), ("2", "reference 1", "a b"),
    ]  # fmt: skip
    assert compared[0]["votes"] == {"chosen": 2, "rejected": 0, "tie": 1, "both_bad": 0}
    assert compared[0]["prompt"] == [
        {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Hello?"},
    ]  # fmt: skip
    assert compared[0]["chosen"] == [{"role": "assistant", "content": "-no"}]
    assert compared[1]["prompt"][0] == {"role": "system", "content": "fact"}
    rated = read_lines(folder / "preferences.quality.jsonl")
    assert [(row["item"], row["chosen_system"], row["margin"]) for row in rated] == [("1", "c", 2.5)]
    mapping = read_mapping(json.loads((folder / "preferences.mapping.json").read_text(encoding="utf-8")))
    found = list(convert_rows(open_table(folder / "preferences.better.jsonl"), mapping))
    assert next(row.values["context"] for row in found if row.table == "items") == ["Hi.", "Hello?"]
    assert [(row.values["system"], row.values["text"]) for row in found if row.table == "outputs"] == [
        ("a b", "-no"), ("c", "so\nlong "), ("reference 1", "Two."), ("a b", "@x"),
    ]  # fmt: skip
    pairs = [row.values for row in found if row.table == "comparisons"]
    assert [(row["system_a"], row["system_b"], row["verdict"]) for row in pairs] == [
        ("a b", "c", "a"), ("reference 1", "a b", "a"),
    ]  # fmt: skip
    notes = (folder / "README.md").read_text(encoding="utf-8")
    assert "preferences.better.jsonl`: 2 compared" in notes
    assert "Left out: 1 both texts bad." in notes
    assert "Left out: 1 ties, 1 both texts equal." in notes


def test_mt_metrics_eval_keeps_documents_together(project, tmp_path):
    folder = export(project, tmp_path / "out", "mt-metrics-eval")
    assert (folder / "documents/en-en.docs").read_text().splitlines() == ["all y", "all y", "all x"]
    assert (folder / "sources/en-en.txt").read_text().splitlines() == ["Hi. Hello?", "Bye.", "fact =1+1"]
    assert (folder / "references/en-en.refB.txt").read_text().splitlines() == [
        "Well.", "[No translation supplied]", "[No translation supplied]",
    ]  # fmt: skip
    assert (folder / "system-outputs/en-en/c.txt").read_text() == "so long \nsame\ny\n"
    assert (folder / "human-scores/en-en.quality.seg.score").read_text().split("\n")[:4] == [
        "a_b\t1.5", "a_b\t5.0", "a_b\t3.0", "c\t4.0",
    ]  # fmt: skip
    systems = (folder / "human-scores/en-en.quality.sys.score").read_text()
    assert systems == f"a_b\t{9.5 / 3!r}\nc\t{11 / 3!r}\n"


@pytest.mark.parametrize("format", LAYOUTS)
def test_every_layout_takes_every_kind_of_text(cast, tmp_path, format):
    export(cast.project, tmp_path / "empty", format)
    upload = take_in(cast.project, RICH)
    assert upload.state == "done", list_errors(upload)
    export(cast.project, tmp_path / "rich", format)


def test_workbook_has_texts_and_no_formulas(project, tmp_path):
    with zipfile.ZipFile(export(project, tmp_path / "out", "xlsx") / "project.xlsx") as book:
        main = ElementTree.fromstring(book.read("xl/workbook.xml"))
        assert [sheet.get("name") for sheet in main.iterfind(".//m:sheet", SHEETS)] == [
            "wide", "items", "outputs", "ratings", "comparisons",
        ]  # fmt: skip
        styles = ElementTree.fromstring(book.read("xl/styles.xml")).findall("m:cellXfs/m:xf", SHEETS)
        sheets = [ElementTree.fromstring(book.read(name)) for name in book.namelist() if "/sheet" in name]
    cells = {cell.get("r"): cell for cell in sheets[0].iterfind(".//m:c", SHEETS)}
    assert "".join(cells["D3"].itertext()) == "=1+1"
    assert styles[int(cells["D3"].get("s"))].get("quotePrefix") == "1"
    assert [cells[name].find("m:v", SHEETS).text for name in ("I2", "J2")] == ["1.5", "4"]
    assert not [formula for sheet in sheets for formula in sheet.iterfind(".//m:f", SHEETS)]


def test_label_studio_tasks_have_their_controls(project, tmp_path):
    folder = export(project, tmp_path / "out", "label-studio")
    tasks = json.loads((folder / "rating.json").read_text(encoding="utf-8"))
    assert [(task["data"]["item"], task["data"]["system"], len(task["annotations"])) for task in tasks] == [
        ("1", "a b", 2), ("1", "c", 1), ("2", "a b", 1), ("2", "c", 1), ("3", "a b", 1), ("3", "c", 1),
    ]  # fmt: skip
    assert tasks[0]["data"]["context"] == [
        {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Hello?"},
    ]  # fmt: skip
    assert [annotation["result"][0]["value"] for annotation in tasks[0]["annotations"]] == [
        {"rating": 2}, {"rating": 1},
    ]  # fmt: skip
    verdicts = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))[0]
    assert [annotation["result"][0]["value"]["choices"] for annotation in verdicts["annotations"]] == [
        ["a"], ["a"], ["tie"],
    ]  # fmt: skip
    for name, some in (("rating", tasks), ("comparison", [verdicts])):
        config = ElementTree.parse(folder / f"{name}.xml").getroot()
        names = {tag.get("name"): tag for tag in config.iter() if tag.get("name")}
        for task in some:
            assert {tag.get("value")[1:] for tag in names.values() if tag.get("value")} <= set(task["data"])
            for annotation in task["annotations"]:
                for result in annotation["result"]:
                    assert names[result["from_name"]].get("toName") == result["to_name"] in names


def test_argilla_records_answer_the_questions_of_the_settings(project, tmp_path):
    folder = export(project, tmp_path / "out", "argilla")
    for kind, texts in (("rating", ("text",)), ("comparison", ("text_a", "text_b"))):
        settings = json.loads((folder / f"{kind}.settings.json").read_text(encoding="utf-8"))
        questions = {question["name"]: question["settings"]["options"] for question in settings["questions"]}
        records = json.loads((folder / f"{kind}.records.json").read_text(encoding="utf-8"))
        assert {*texts} <= {field["name"] for field in settings["fields"] if field["required"]}
        for record in records:
            assert {*texts} <= set(record["fields"]) <= {field["name"] for field in settings["fields"]}
            for name, suggestion in record["suggestions"].items():
                assert suggestion["value"] in [option["value"] for option in questions[name]]
    by_id = {record["id"]: record["suggestions"] for record in records}
    assert by_id["1/a b/c"] == {"better": {"value": "a", "agent": "3 raters", "score": 2 / 3}}
    rating = json.loads((folder / "rating.records.json").read_text(encoding="utf-8"))
    assert rating[0]["suggestions"] == {}  # 1 and 2 are equally frequent
    assert rating[1]["suggestions"]["quality"]["value"] == 4
