"""Exports for other programs, imported again by the mappings in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.exporters import campaigns, canonical
from annotation.exporters.layouts.workbook import MAX_TEXT, count_units, cut_cell
from annotation.exporters.options import ExportOptions
from annotation.mapping import open_table, propose_mapping
from annotation.mapping.aligned import list_folder
from annotation.pipelines.exports import write_export
from annotation.services.uploads import Incoming, receive_upload
from evalapp.accounts.models import Project
from evalapp.accounts.services.projects import create_project
from evalapp.common.runner import execute_run
from tests.taking import list_errors, take_in

pytestmark = pytest.mark.django_db
ODD = ("=1+1", "-no\nline\r\nbreak", "👍🏽 שלום, \u202bמה\u202c", "_x0041_ <b>&amp;</b> \"quoted\", 'single'")
FILES: dict[str, Any] = {
    "dataset.json": {
        "name": "Odd", "task": "dialogue", "lang": "en",
        "aspects": [{"name": "quality", "min": 1, "max": 5}, {"name": "how good?", "min": 0, "max": 100},
                    {"name": "better"}],
    },
    "items.jsonl": [
        {"id": "1", "context": ["Hi.", "Hello?"], "references": ["@one", ODD[2]], "group": "y"},
        {"id": "2", "context": ["+2"], "source": ODD[3], "references": ["Two."], "group": "x"},
        {"id": "3", "context": ["Bye."], "references": [], "group": "y"},
        {"id": "4", "context": ["Nothing?"], "references": ["None."]},
    ],
    "outputs.jsonl": [
        *({"item": str(number), "system": system, "text": f"{system} {text}" if system == "c" else text}
          for number, text in enumerate(ODD, 1) for system in ("a b", "c")),
        {"item": "1", "system": "m", "step": 5, "text": "early"}, {"item": "1", "system": "m", "step": 40, "text": "é"},
    ],
    "ratings.jsonl": [
        *({"item": item, "system": system, "rater": rater, "aspect": "quality", "value": value}
          for item, system, rater, value in (
            ("1", "a b", "r", 1), ("1", "a b", "ü 2", 2), ("1", "c", "r", 4), ("2", "a b", "r", 3), ("2", "c", "q", 3),
            ("3", "a b", "r", 5))),
        {"item": "1", "system": "m", "step": 40, "rater": "r", "aspect": "how good?", "value": 97},
    ],
    "comparisons.jsonl": [
        {"item": item, "system_a": a, "system_b": b, "rater": rater, "aspect": "better", "verdict": verdict}
        for item, a, b, rater, verdict in (
            ("1", "a b", "c", "r", "a"), ("1", "a b", "c", "q", "b"), ("1", "a b", "c", "s", "tie"),
            ("2", "a b", "c", "r", "both_bad"), ("3", "a b", "c", "r", "cannot_decide"),
            ("2", "a b", {"reference": 0}, "r", "b"),
        )
    ],
}  # fmt: skip


@pytest.fixture
def project(cast) -> Project:
    upload = take_in(cast.project, FILES)
    assert upload.state == "done", list_errors(upload)
    return cast.project


@pytest.fixture
def target(cast) -> Project:
    return create_project(slug="back", owner=None)


def export(project: Project, folder: Path, format: str) -> Path:
    folder.mkdir()
    write_export(project, folder, ExportOptions(format=format), lambda done: None)
    return folder


def load(target: Project, path: Path, mapping: Path) -> None:
    """Import a file or folder, as the command `load` does."""
    found = [(path.name, path)] if path.is_file() else [(file.name, path / file.name) for file in list_folder(path)]
    upload = receive_upload(
        project=target, user=None, files=[Incoming(name, path=one) for name, one in found], send=False,
        mapping=json.loads(mapping.read_text(encoding="utf-8")),
    )  # fmt: skip
    assert upload.run is not None
    execute_run(upload.run.pk)
    upload.refresh_from_db()
    assert upload.state == "done", [*list_errors(upload), upload.run.error]


def read(project: Project, table: str, *names: str) -> list[tuple[Any, ...]]:
    rows = [row for name, row in canonical.rows(project) if name == table]
    return sorted((tuple(row.get(name) for name in names) for row in rows), key=repr)


ITEM = ("id", "context", "source", "references", "group")
OUTPUT = ("item", "system", "step", "text")
RATING = ("item", "system", "step", "rater", "aspect", "value")
COMPARISON = ("item", "system_a", "system_b", "rater", "aspect", "verdict")


def name_checkpoints(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows with checkpoints as systems of their own, as programs without steps have them."""
    return [
        (item, f"{system}@{step}" if step is not None else system, None, *rest) for item, system, step, *rest in rows
    ]


def select_plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [row for row in rows if isinstance(row[2], str)]


def test_workbook_comes_back_with_raters_and_steps(project, target, tmp_path):
    folder = export(project, tmp_path / "out", "xlsx")
    for table in ("items", "outputs", "ratings", "comparisons"):
        load(target, folder / "project.xlsx", folder / f"{table}.mapping.json")
    assert read(target, "items", *ITEM) == read(project, "items", *ITEM)
    assert read(target, "outputs", *OUTPUT) == read(project, "outputs", *OUTPUT)
    assert read(target, "ratings", *RATING) == read(project, "ratings", *RATING)
    assert read(target, "comparisons", *COMPARISON) == select_plain(read(project, "comparisons", *COMPARISON))
    assert "1 comparisons of checkpoints or with references" in (folder / "README.md").read_text(encoding="utf-8")


def test_wide_table_comes_back_with_means(project, target, tmp_path):
    folder = export(project, tmp_path / "out", "wide-csv")
    load(target, folder / "wide.safe.csv", folder / "wide.mapping.json")
    assert read(target, "items", *ITEM) == read(project, "items", *ITEM)
    outputs = name_checkpoints(read(project, "outputs", *OUTPUT))
    assert read(target, "outputs", *OUTPUT) == sorted(outputs, key=repr)
    assert read(target, "ratings", "item", "system", "rater", "value") == [
        ("1", "a b", "mean", 1.5), ("1", "c", "mean", 4), ("1", "m@40", "mean", 97), ("2", "a b", "mean", 3),
        ("2", "c", "mean", 3), ("3", "a b", "mean", 5),
    ]  # fmt: skip


@pytest.mark.parametrize(("format", "rating", "comparison"), [
    ("label-studio", "rating.json", "comparison.json"),
    ("argilla", "rating.records.json", "comparison.records.json"),
])  # fmt: skip
def test_tasks_come_back_with_every_judgement(project, target, tmp_path, format, rating, comparison):
    folder = export(project, tmp_path / "out", format)
    load(target, folder / rating, folder / "outputs.mapping.json")
    load(target, folder / rating, folder / "ratings.mapping.json")
    load(target, folder / comparison, folder / "comparisons.mapping.json")
    assert read(target, "items", *ITEM) == read(project, "items", *ITEM)
    outputs = [*name_checkpoints(read(project, "outputs", *OUTPUT)), ("2", "reference 1", None, "Two.")]
    assert read(target, "outputs", *OUTPUT) == sorted(outputs, key=repr)
    assert read(target, "ratings", *RATING) == sorted(name_checkpoints(read(project, "ratings", *RATING)), key=repr)
    compared = select_plain(read(project, "comparisons", *COMPARISON))
    named = ("2", "a b", "reference 1", "r", "better", "b")
    assert read(target, "comparisons", *COMPARISON) == sorted([*compared, named], key=repr)


@pytest.mark.parametrize(("format", "rating", "comparison"), [
    ("label-studio", "rating.json", "comparison.json"),
    ("argilla", "rating.records.json", "comparison.records.json"),
])  # fmt: skip
def test_tasks_are_recognized_without_their_mappings(project, target, tmp_path, format, rating, comparison):
    folder = export(project, tmp_path / "out", format)
    for number, name in enumerate((rating, comparison)):
        proposal = propose_mapping(open_table(folder / name))
        assert (proposal.mapping.preset.startswith(format), proposal.questions) == (True, [])
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(proposal.mapping.as_json()))
        load(target, folder / name, file)
    assert {row[0] for row in read(target, "items", *ITEM)} == {row[0] for row in read(project, "items", *ITEM)}
    assert read(target, "ratings", *RATING) == sorted(name_checkpoints(read(project, "ratings", *RATING)), key=repr)
    compared = select_plain(read(project, "comparisons", *COMPARISON))
    named = ("2", "a b", "reference 1", "r", "better", "b")
    assert read(target, "comparisons", *COMPARISON) == sorted([*compared, named], key=repr)


def test_mt_metrics_eval_comes_back_in_its_order(project, target, tmp_path):
    folder = export(project, tmp_path / "out", "mt-metrics-eval")
    load(target, folder, folder / "folder.mapping.json")
    assert read(target, "items", "id", "group") == read(project, "items", "id", "group")
    assert ("2", f"{ODD[3]} +2") in read(target, "items", "id", "source")
    lines = {(row[0], row[1]): row[3] for row in name_checkpoints(read(project, "outputs", *OUTPUT))}
    back = {(item, system): text for item, system, text in read(target, "outputs", "item", "system", "text")}
    assert {key: " ".join(text.splitlines()) for key, text in lines.items()} == {key: back[key] for key in lines}
    assert {back[key] for key in back.keys() - lines.keys()} == {"[No translation supplied]"}
    assert ("1", "a b", "mean", 1.5) in read(target, "ratings", "item", "system", "rater", "value")
    assert len(read(target, "ratings", "item")) == 6


def test_preferences_come_back_with_majorities(project, target, tmp_path):
    folder = export(project, tmp_path / "out", "preferences")
    load(target, folder / "preferences.better.jsonl", folder / "preferences.mapping.json")
    assert read(target, "comparisons", *COMPARISON) == [("2", "reference 1", "a b", "preferences", "better", "a")]
    texts = [row for row in read(project, "outputs", *OUTPUT) if row[:2] == ("2", "a b")]
    assert read(target, "outputs", *OUTPUT) == [*texts, ("2", "reference 1", None, "Two.")]


def test_long_texts_of_workbooks_are_cut_as_excel_counts():
    assert cut_cell("x" * 40_000) == "x" * (MAX_TEXT - 1) + "…"
    emoji = cut_cell("👍" * 20_000)
    assert MAX_TEXT - 1 <= count_units(emoji) <= MAX_TEXT
    assert set(emoji) == {"👍", "…"}
    turns = ["Hi.", '"\n' * 30_000, "x" * 20_000]
    first, second, third = json.loads(cut := cut_cell(turns))
    assert count_units(cut) <= MAX_TEXT
    assert (first, third) == ("Hi.", turns[2])
    assert turns[1].startswith(second.removesuffix("…"))
    assert cut_cell(["x"] * 40_000).endswith("…")


def test_workbook_with_long_texts_is_imported(cast, target, tmp_path):
    items = [{"id": "1", "context": ["x" * 50_000, "Hello?"], "references": ["👍" * 20_000]}]
    upload = take_in(cast.project, {"dataset.json": FILES["dataset.json"], "items.jsonl": items})
    assert upload.state == "done", list_errors(upload)
    folder = export(cast.project, tmp_path / "out", "xlsx")
    load(target, folder / "project.xlsx", folder / "items.mapping.json")
    ((context, references),) = read(target, "items", "context", "references")
    assert context[0].startswith("x" * 32_000)
    assert context[1] == "Hello?"
    assert references[0].startswith("👍" * 16_000)


def test_links_of_hired_participants_come_back_with_their_campaign(cast, target, tmp_path):
    """As an interchange folder; single participants are not part of it."""
    from tests.annotation.hired import Study, Visitor

    study = Study(cast, questions=[{"name": "age", "question": "Age?", "kind": "number"}], min_seconds=3, pay=2.5)
    Visitor(study, "id-1").begin({"age": "30", "May-export": "on"})
    folder = tmp_path / "folder"
    folder.mkdir()
    write_export(cast.project, folder, ExportOptions(attributes=True), lambda done: None)
    files = [Incoming(file.name, path=file) for file in sorted(folder.iterdir())]
    upload = receive_upload(project=target, user=None, files=files, send=False)
    assert upload.run is not None
    execute_run(upload.run.pk)
    upload.refresh_from_db()
    assert upload.state == "done", [*list_errors(upload), upload.run.error]
    target.refresh_from_db()
    (_, before), (_, after) = (next(campaigns.rows(project, str)) for project in (cast.project, target))
    assert after["told"]["recruitment"] == json.loads(json.dumps(before["told"]["recruitment"]))
    (link,) = after["told"]["recruitment"]
    assert (link["participants"]["working"], link["pay"], link["questions"][0]["name"]) == (1, 2.5, "age")
