"""`load` and `dump` from outside: exit codes, reports, all real data sets."""

from __future__ import annotations

import filecmp
import gzip
import io
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from annotation.models import Item, Output, System, Upload
from evalapp.accounts.models import Membership, Project
from tests.faults.backup_world import make_postgres_installation, make_sqlite_installation
from tests.taking import ITEMS, RATINGS, WHOLE, as_bytes

pytestmark = pytest.mark.django_db

#: Together these sets cover every table except corpus and dialogues, and load in seconds.
SMALL = [
    "dailydialog_multiref", "grade_convai2", "grade_dailydialog", "grade_empathetic", "pandalm",
    "predictive_engagement", "scratchplot", "union_roc", "usr_personachat", "usr_topicalchat",
]  # fmt: skip


def write_folder(tmp_path: Path, files: dict) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(as_bytes(content))
    return folder


def call(name: str, *arguments: object, **options: object) -> tuple[dict, int]:
    """The JSON object on stdout and the exit code."""
    out = io.StringIO()
    code = 0
    try:
        call_command(name, *map(str, arguments), stdout=out, stderr=io.StringIO(), json=True, **options)
    except SystemExit as stop:
        code = int(stop.code or 0)
    except CommandError as error:
        code = error.returncode
    return json.loads(out.getvalue() or "{}"), code


def round_trip(source: Path, tmp_path: Path) -> list[str]:
    """Load twice, dump, load the dump and dump again; returns the reports of ignored rows."""
    slug = source.name.replace("_", "-")
    first, code = call("load", source, "--project", slug)
    assert code == 0, first
    assert first["faults"] == []
    again, code = call("load", source, "--project", slug)
    assert code == 0
    assert all(counts["same"] == counts["rows"] for counts in again["counts"].values()), again["counts"]
    dumps = [tmp_path / source.name / name for name in ("a", "b")]
    call("dump", slug, dumps[0])
    twin, code = call("load", dumps[0], "--project", f"{slug}-twin")
    assert code == 0, twin
    call("dump", f"{slug}-twin", dumps[1])
    names = sorted(path.name for path in dumps[0].iterdir())
    assert names == sorted(path.name for path in dumps[1].iterdir())
    _, different, missing = filecmp.cmpfiles(*dumps, names, shallow=False)
    assert (different, missing) == ([], [])
    # As many rows as the source file has lines.
    for name in names:
        table = name.removesuffix(".jsonl")
        if name.endswith(".jsonl"):
            assert len((dumps[0] / name).read_bytes().splitlines()) == first["counts"][table]["rows"]
    return first["ignored"]


def test_load_creates_the_project_and_its_owner(tmp_path, cast):
    report, code = call("load", write_folder(tmp_path, WHOLE), "--project", "new-one", "--owner", "olga")
    assert code == 0
    assert report["counts"]["ratings"]["added"] == 2
    project = Project.objects.get(slug="new-one")
    assert Membership.objects.get(project=project).user == cast.owner
    assert project.name == "Alpha"
    assert Upload.objects.get(project=project).created_by == cast.owner


def test_errors_name_file_and_line_and_store_nothing(tmp_path):
    folder = write_folder(tmp_path, {**WHOLE, "ratings.jsonl": [{**RATINGS[0], "value": 9}]})
    err = io.StringIO()
    with pytest.raises(SystemExit) as stop:
        call_command("load", str(folder), "--project", "bad", stdout=io.StringIO(), stderr=err)
    assert stop.value.code == 1
    assert re.search(r"ratings\.jsonl:1: .*\b9\b.*\b1\b.*\b5\b", err.getvalue())
    assert not Project.objects.filter(slug="bad").exists()
    report, code = call("load", folder, "--project", "bad")
    assert code == 1
    (fault,) = report["faults"]
    assert re.findall(r"\d+", fault.pop("message")) == ["9", "1", "5"]
    assert fault == {"file": "ratings.jsonl", "line": 1, "field": "value"}


def test_dry_run_stores_nothing(tmp_path):
    report, code = call("load", write_folder(tmp_path, WHOLE), "--project", "dry", "--dry-run")
    assert (code, report["state"]) == (0, "checked")
    assert report["counts"]["items"]["added"] == 2
    assert not Project.objects.filter(slug="dry").exists()
    assert not Item.objects.exists()
    assert not list(settings.UPLOADS_DIR.glob("*")) or not Upload.objects.exists()


def test_replace_and_kinds(tmp_path, cast):
    call(
        "load",
        write_folder(tmp_path, {"items.jsonl": ITEMS, "outputs.jsonl": WHOLE["outputs.jsonl"]}),
        "--project",
        "alpha",
    )
    changed = [{**WHOLE["outputs.jsonl"][0], "text": "New."}]
    folder = write_folder(tmp_path, {"outputs.jsonl": changed})
    assert call("load", folder, "--project", "alpha")[1] == 1
    _, code = call(
        "load", folder, "--project", "alpha", "--replace", "--system-kind", "t=control", "--system-kind", "s=human"
    )
    assert code == 0
    assert Output.objects.get(item__key="i1", system__name="s").text == "New."
    assert dict(System.objects.values_list("name", "kind")) == {"s": "human", "t": "control"}
    for summary in ("Stored in alpha.", "Nothing to do: all rows are already stored in alpha."):
        report, _ = call("load", folder, "--project", "alpha", "--system-kind", "t=reference")
        assert report["summary"] == summary
    assert System.objects.get(name="t").kind == "reference"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nowhere", "--project", "x"], 2),
        ([".", "--project", "x", "--system-kind", "nonsense"], 2),
        ([".", "--project", "Not A Slug"], 2),
        ([".", "--project", "x", "--owner", "nobody"], 2),
        ([".", "--project", "x", "--system-kind", "s=robot"], 2),
        ([".", "--project", "x", "--system-kind", "typo=human"], 1),
    ],
)
def test_wrong_usage_and_unknown_names(tmp_path, monkeypatch, arguments, code):
    write_folder(tmp_path, WHOLE)
    monkeypatch.chdir(tmp_path / "data")
    assert call("load", *arguments)[1] == code
    assert not Project.objects.exists()


def test_empty_and_unrelated_folders(tmp_path):
    (tmp_path / "data").mkdir()
    report, code = call("load", tmp_path / "data", "--project", "x")
    assert code == 1
    assert "is empty" in report["detail"]
    report, code = call("load", write_folder(tmp_path, {"notes.txt": b"x"}), "--project", "x")
    assert code == 1
    assert "items.jsonl" in report["detail"], "the names to use"
    assert not Project.objects.exists()


def test_dump_writes_only_into_an_empty_folder(tmp_path, cast):
    report, code = call("dump", "alpha", tmp_path / "out" / "deep", "--format", "csv")
    assert code == 0
    assert [file["name"] for file in report["files"]] == ["dataset.json", "README.md", "DATASHEET.md"]
    assert call("dump", "alpha", tmp_path / "out")[1] == 1
    assert call("dump", "nobody", tmp_path / "other")[1] == 2
    (tmp_path / "file").write_text("here")
    for place in (tmp_path / "file" / "below", tmp_path / "file", tmp_path / ("x" * 300)):
        report, code = call("dump", "alpha", place)
        assert (code, str(place) in report["detail"]) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_small_real_sets_come_back_byte_for_byte(shared_data, tmp_path, name):
    ignored = round_trip(shared_data / name, tmp_path)
    assert ignored[-1] == "SOURCE.txt: not a file of the interchange format"


#: Rows per table of a large set: more than one batch of reading, checking or writing. All 72,180 comparisons of e2e
#: would take a minute.
MOST_ROWS = 2_500


def read_lines(path: Path) -> list[bytes]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return file.readlines()


def shortened(source: Path, folder: Path) -> Path:
    """The folder cut to its first items, up to `MOST_ROWS` outputs, and the first rows about these."""
    made = folder / "short" / source.name
    shutil.copytree(source, made)
    tables = {path.name.split(".")[0]: path for path in made.iterdir() if ".jsonl" in path.name}
    outputs = Counter(json.loads(line)["item"] for line in read_lines(tables["outputs"])) if "outputs" in tables else {}
    kept: set[str] = set()
    n_rows = 0
    for table in ("items", "outputs", "ratings", "comparisons", "corpus", "dialogues"):
        if table not in tables:
            continue
        rows = []
        for line in read_lines(tables[table]):
            row = json.loads(line)
            if table == "items":
                n_rows += outputs.get(row["id"], 1)
                if n_rows > MOST_ROWS:
                    break
                kept.add(row["id"])
            elif "item" in row and row["item"] not in kept:
                continue
            rows.append(line)
        path = tables[table]
        with gzip.open(path, "wb", compresslevel=1) if path.suffix == ".gz" else path.open("wb") as file:
            file.writelines(rows[:MOST_ROWS] if table != "outputs" else rows)
    return made


@pytest.mark.slow
def test_large_real_sets_come_back_byte_for_byte(shared_data, tmp_path):
    """Together with the small sets, this covers every folder."""
    large = sorted(path for path in shared_data.iterdir() if path.is_dir() and path.name not in SMALL)
    assert len(large) + len(SMALL) == 17
    for source in large:
        ignored = round_trip(shortened(source, tmp_path), tmp_path)
        if source.name == "dstc7_dev":
            assert "excluded.jsonl: not a file of the interchange format" in ignored


@pytest.mark.slow
@pytest.mark.server("postgres")
def test_both_databases_dump_the_same_bytes(migrated_url, migrated_file, tmp_path, shared_data, django_db_blocker):
    """Once with tables made by migrations, and once set up as in production."""
    stations = [
        make_postgres_installation(tmp_path / "postgresql", migrated_url),
        make_sqlite_installation(tmp_path / "sqlite", migrated_file),
    ]
    sources = shortened(shared_data / "novikova", tmp_path), shared_data / "scratchplot"
    for station in stations:
        with django_db_blocker.unblock(), station.django():
            assert connection.vendor == station.folder.name
            for source in sources:
                assert call("load", source, "--project", source.name)[1] == 0
                again, code = call("load", source, "--project", source.name)
                assert code == 0
                assert all(counts["same"] == counts["rows"] for counts in again["counts"].values())
                assert call("dump", source.name, station.folder / source.name)[1] == 0
    for source in sources:
        one, two = (station.folder / source.name for station in stations)
        names = sorted(path.name for path in one.iterdir())
        assert names == sorted(path.name for path in two.iterdir())
        _, different, missing = filecmp.cmpfiles(one, two, names, shallow=False)
        assert (different, missing) == ([], [])
