"""A failed export leaves nothing behind: every format, and every file of the folder (FAULTS C2)."""

from __future__ import annotations

import ast
import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command

from annotation.exporters import formats
from annotation.exporters.formats import FORMATS
from annotation.models import Rating
from annotation.pipelines import exports
from evalapp.common.drafts import whole_folder
from tests.annotation.pipelines.rich import RICH
from tests.taking import list_errors, list_named, take_in

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def rich(cast):
    upload = take_in(cast.project, RICH)
    assert upload.state == "done", list_errors(upload)
    return cast.project


def _break(monkeypatch, where):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    if where == "document":
        monkeypatch.setattr(exports, "_write_document", fail)
        return
    for made in set(formats._WRITERS.values()):
        monkeypatch.setattr(made, where, fail)


@pytest.mark.parametrize("where", ["write", "close", "document"])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("is_there", [False, True])
def test_failed_dump_leaves_nothing(rich, tmp_path, monkeypatch, format, where, is_there):
    folder = tmp_path / "out"
    if is_there:
        folder.mkdir()
    with monkeypatch.context() as patch:
        _break(patch, where)
        with pytest.raises(CommandError, match="No space left on device"):
            call_command("dump", rich.slug, str(folder), "--format", format)
    assert list(tmp_path.rglob("*")) == ([folder] if is_there else [])
    call_command("dump", rich.slug, str(folder), "--format", format)
    assert (folder / "dataset.json").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_folder_is_complete_or_absent(tmp_path):
    def fail() -> None:
        with whole_folder(tmp_path / "a" / "b") as draft:
            (draft / "x").write_text("half")
            assert not (tmp_path / "a" / "b").exists()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list((tmp_path / "a").iterdir()) == []


@pytest.mark.parametrize("format", FORMATS)
def test_integers_beyond_double_precision(cast, rich, tmp_path, format):
    """1e22 is a double, but as an integer it needs more than 64 bits. Up to 2**53 every integer is a double."""
    big = [{"item": "i1", "system": "s", "rater": f"big{k}", "aspect": "size", "value": value, "step": 5}
           for k, value in enumerate((1, 2**53, 1e22, 10**22))]  # fmt: skip
    items = [{"id": "i1"}]
    outputs = [{"item": "i1", "system": "s", "text": "t", "step": 5}]
    from evalapp.accounts.models import Project

    project = Project.objects.create(slug="big", name="big")
    upload = take_in(project, {"items.jsonl": items, "outputs.jsonl": outputs, "ratings.jsonl": big})
    assert upload.state == "done", list_errors(upload)
    folder = tmp_path / "out"
    call_command("dump", "big", str(folder), "--format", format)
    if format == "parquet":
        values = pq.read_table(folder / "ratings.parquet").column("value").to_pylist()
    elif format == "jsonl":
        values = [json.loads(line)["value"] for line in (folder / "ratings.jsonl").read_text().splitlines()]
    else:
        (name,) = folder.glob("ratings*.csv")
        values = [float(row["value"]) for row in csv.DictReader(name.open())]
    assert values == [1, 2**53, 1e22, 1e22]
    twin = Project.objects.create(slug="twin", name="twin")
    again = take_in(twin, {file.name: file.read_bytes() for file in folder.iterdir()})
    assert again.state == "done", list_errors(again)
    assert sorted(Rating.objects.filter(project=twin).values_list("value", flat=True)) == [1, 2**53, 1e22, 1e22]


@pytest.mark.parametrize("value", [9007199254740993, -9007199254740993, 10**30 + 1, 2**64 + 1])
def test_rating_that_would_be_rounded_is_refused(rich, value):
    row = {"item": "Z", "system": "s", "step": 40, "rater": "big", "aspect": "quality", "value": value}
    upload = take_in(rich, {"ratings.jsonl": [row]})
    assert upload.state == "faulty"
    ((_, field, named),) = list_named(upload)
    assert (field, str(abs(value)) in named) == ("value", True)


#: Files written in place, without a rename at the end, and why that is safe.
IN_PLACE = {
    "evalapp/management/commands/up.py": "the stamp of static files: without a whole one they are collected again",
    "annotation/exporters/formats.py": "into the draft of an export",
    "annotation/exporters/layouts/base.py": "into the draft of an export",
    "annotation/pipelines/exports.py": "into the draft of an export",
    "annotation/services/uploads.py": "into the draft of an upload",
    "evalapp/common/backup/container.py": "a part of the archive, which is renamed",
    "evalapp/common/backup/files.py": "into the folder that restore puts in place",
    "evalapp/client/uploads.py": "into a temporary folder that is uploaded",
    "evalapp/demo/build.py": "texts of the demonstration, made by developers",
    "scoring/ml/hub.py": "into a temporary folder that is sent",
    "scoring/ml/score_files/command.py": "a file that a person names, which may be a pipe",
    "retrieval/services/corpora.py": "a received file, under its number until it is taken in",
    "retrieval/index/inversion.py": "into the draft of a segment",
    "retrieval/index/segment.py": "into the draft of a segment",
    "retrieval/index/writer.py": "into the draft of a segment",
    "retrieval/index/embedded.py": "a lock; the list of segments is renamed",
    "retrieval/services/places.py": "a lock",
    "scoring/services/artefacts.py": "into the draft of a received evaluator",
    "scoring/ml/text/word_ngrams.py": "into the draft of an artefact",
    "scoring/ml/evaluators/unreferenced/tools.py": "a log of texts in the folder of a training, cut to whole lines",
    "scoring/ml/artefact.py": "into the draft of an artefact",
    "scoring/pipelines/train.py": "a mark that is written again",
}


def test_file_writers_rename_at_the_end():
    for room in ("annotation", "evalapp", "retrieval", "scoring"):
        for path in (ROOT / room).rglob("*.py"):
            name, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
            calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
            if any(map(_writes, calls)) and name not in IN_PLACE:
                assert any(map(_renames, calls)), name


def _renames(call: ast.Call) -> bool:
    named = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    # `Path.replace` takes one argument, `str.replace` two.
    return named in ("write_whole", "write_folder", "rename") or (named == "replace" and len(call.args) == 1)


def _writes(call: ast.Call) -> bool:
    named = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if named in ("write_text", "write_bytes"):
        return True
    modes = [node.value for node in call.args if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return named == "open" and any(mode in ("w", "wb", "x", "xb", "w+b") for mode in modes)
