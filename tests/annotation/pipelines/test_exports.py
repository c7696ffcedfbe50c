"""Exports: canonical order and bytes, every format, absent tables, equal projects."""

from __future__ import annotations

import json
import zipfile

import pytest

from annotation.models import System
from annotation.selectors.run_results import export_gone
from annotation.services.exports import delete_export, get_export_folder, get_exported_file, request_export
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, NotThere
from evalapp.common.models import Run
from evalapp.common.runner import execute_run
from tests.annotation.pipelines.rich import RICH
from tests.taking import DATASET, ITEMS, list_errors, take_in, written

pytestmark = pytest.mark.django_db


@pytest.fixture
def rich(cast):
    upload = take_in(cast.project, RICH)
    assert upload.state == "done", list_errors(upload)
    return cast.project


def test_rows_are_in_code_point_order_with_format_keys(rich, tmp_path):
    files = written(rich, tmp_path)
    items = [json.loads(line) for line in files["items.jsonl"].splitlines()]
    assert [row["id"] for row in items] == ["Z", "i1", "i2", "é"]
    assert list(items[0]) == ["id", "context", "source", "references", "group", "meta"]
    assert files["items.jsonl"].splitlines()[0].endswith(b'"meta": {"big": 10000000000000000000000000, "z": 4}}')
    outputs = [json.loads(line) for line in files["outputs.jsonl"].splitlines()]
    assert [(row["item"], row["system"], row["step"]) for row in outputs] == [
        ("Z", "s", 5), ("Z", "s", 40), ("i1", "s", None), ("i1", "t", None), ("i2", "s", None), ("é", "é", None),
    ]  # fmt: skip
    assert files["ratings.jsonl"].splitlines()[1] == (
        b'{"item": "i1", "system": "s", "rater": "r", "aspect": "quality", "value": 4}'
    )
    assert files["ratings.jsonl"].splitlines()[-1] == (
        b'{"dialogue": "d", "rater": "r", "aspect": "quality", "value": 5}'
    )
    assert [json.loads(line)["query"] for line in files["corpus.jsonl"].splitlines()] == ["b", "a", "b"]


def test_table_without_rows_has_no_file(cast, tmp_path):
    take_in(cast.project, {"items.jsonl": ITEMS})
    assert sorted(written(cast.project, tmp_path)) == ["dataset.json", "items.jsonl"]


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_loading_a_dump_gives_an_equal_project(rich, cast, tmp_path, format):
    dumped = written(rich, tmp_path / "a", format)
    twin = Project.objects.create(slug="twin", name="twin")
    upload = take_in(twin, dumped)
    assert upload.state == "done", list_errors(upload)
    assert written(twin, tmp_path / "b", format) == dumped
    assert written(twin, tmp_path / "c") == written(rich, tmp_path / "d")
    assert set(System.objects.filter(project=twin).values_list("name", "kind", "declared")) == set(
        System.objects.filter(project=rich).values_list("name", "kind", "declared")
    )


def test_parquet_has_typed_columns(rich, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    written(rich, tmp_path, "parquet")
    items = pq.read_table(tmp_path / "items.parquet").to_pylist()
    assert items[1]["references"] == ["Hi.", "Hey."]
    assert json.loads(items[1]["meta"]) == {"d": "x"}
    ratings = pq.read_table(tmp_path / "ratings.parquet")
    assert str(ratings.schema.field("value").type) == "double"
    assert [row["step"] for row in ratings.to_pylist()] == [40, None, None, None]
    comparisons = pq.read_table(tmp_path / "comparisons.parquet").to_pylist()
    assert comparisons[1]["system_b"] in ("t", '{"reference": 1}')


def test_job_leaves_files_and_an_archive(rich, cast, client):
    run = request_export(project=rich, user=cast.researcher)
    assert request_export(project=rich, user=cast.researcher).pk == run.pk
    done = execute_run(run.pk)
    assert done is not None
    assert done.state == Run.State.SUCCEEDED
    assert done.result["files"][0]["name"] == "dataset.json"
    with zipfile.ZipFile(get_exported_file(run=done, name=done.result["archive"])) as archive:
        assert f"{rich.slug}/items.jsonl" in archive.namelist()
    for name in ("../../evalapp.sqlite3", "nothing.jsonl", "secret_key"):
        with pytest.raises(NotThere):
            get_exported_file(run=done, name=name)
    assert done.done == sum(file["rows"] for file in done.result["files"]) - 1
    assert get_export_folder(done).is_dir()
    client.force_login(cast.researcher)
    assert done.result["archive"] in client.get(done.result["url"]).content.decode()
    assert export_gone(done) == ""
    delete_export(run=done, user=cast.researcher)
    assert export_gone(done) == "The files of this export were deleted."


def test_unknown_formats_are_refused(cast):
    with pytest.raises(BadInput):
        request_export(project=cast.project, user=cast.owner, format="docx")


def test_dump_describes_the_project(rich, tmp_path):
    document = json.loads(written(rich, tmp_path)["dataset.json"])
    assert list(document) == ["name", "task", "lang", "aspects", "licence", "source", "notes"]
    assert document["aspects"] == DATASET["aspects"]


def test_free_text_task_is_restored(cast, tmp_path):
    """The project page accepts any task; its help text mentions translation."""
    Project.objects.filter(pk=cast.project.pk).update(task="translation")
    dumped = written(Project.objects.get(pk=cast.project.pk), tmp_path / "a")
    twin = Project.objects.create(slug="twin", name="twin")
    assert list_errors(take_in(twin, dumped)) == []
    twin.refresh_from_db()
    assert twin.task == "translation"
