"""`load` and `dump` from outside: exit codes, reports, all real data sets."""

from __future__ import annotations

import filecmp
import gzip
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from annotation.models import Item, Output, System, Upload
from evalapp.accounts.models import Membership, Project
from tests.taking import ITEMS, RATINGS, WHOLE, as_bytes

pytestmark = pytest.mark.django_db

#: Together they hold every table but corpus and dialogues, and are read in seconds.
SMALL = [
    "dailydialog_multiref", "grade_convai2", "grade_dailydialog", "grade_empathetic", "pandalm",
    "predictive_engagement", "scratchplot", "union_roc", "usr_personachat", "usr_topicalchat",
]  # fmt: skip


def folder_of(tmp_path: Path, files: dict) -> Path:
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
    """Load, load again, dump, load the dump, dump: the reports of what was ignored."""
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
    # As many rows as the source has lines.
    for name in names:
        table = name.removesuffix(".jsonl")
        if name.endswith(".jsonl"):
            assert len((dumps[0] / name).read_bytes().splitlines()) == first["counts"][table]["rows"]
    return first["ignored"]


def test_load_makes_the_project_with_its_owner(tmp_path, cast):
    report, code = call("load", folder_of(tmp_path, WHOLE), "--project", "new-one", "--owner", "olga")
    assert code == 0
    assert report["counts"]["ratings"]["added"] == 2
    project = Project.objects.get(slug="new-one")
    assert Membership.objects.get(project=project).user == cast.owner
    assert project.name == "Alpha"
    assert Upload.objects.get(project=project).created_by == cast.owner


def test_faults_are_reported_as_file_line_message_and_leave_nothing(tmp_path):
    folder = folder_of(tmp_path, {**WHOLE, "ratings.jsonl": [{**RATINGS[0], "value": 9}]})
    err = io.StringIO()
    with pytest.raises(SystemExit) as stop:
        call_command("load", str(folder), "--project", "bad", stdout=io.StringIO(), stderr=err)
    assert stop.value.code == 1
    assert "ratings.jsonl:1: The value 9 is outside the scale from 1 to 5." in err.getvalue()
    assert not Project.objects.filter(slug="bad").exists()
    report, code = call("load", folder, "--project", "bad")
    assert code == 1
    assert report["faults"] == [
        {"file": "ratings.jsonl", "line": 1, "field": "value",
         "message": "The value 9 is outside the scale from 1 to 5."}
    ]  # fmt: skip


def test_a_dry_run_leaves_nothing_either(tmp_path):
    report, code = call("load", folder_of(tmp_path, WHOLE), "--project", "dry", "--dry-run")
    assert (code, report["state"]) == (0, "checked")
    assert report["counts"]["items"]["added"] == 2
    assert not Project.objects.filter(slug="dry").exists()
    assert not Item.objects.exists()
    assert not list(settings.UPLOADS_DIR.glob("*")) or not Upload.objects.exists()


def test_replace_and_kinds(tmp_path, cast):
    call(
        "load",
        folder_of(tmp_path, {"items.jsonl": ITEMS, "outputs.jsonl": WHOLE["outputs.jsonl"]}),
        "--project",
        "alpha",
    )
    changed = [{**WHOLE["outputs.jsonl"][0], "text": "New."}]
    folder = folder_of(tmp_path, {"outputs.jsonl": changed})
    assert call("load", folder, "--project", "alpha")[1] == 1
    _, code = call(
        "load", folder, "--project", "alpha", "--replace", "--system-kind", "t=control", "--system-kind", "s=human"
    )
    assert code == 0
    assert Output.objects.get(item__key="i1", system__name="s").text == "New."
    assert dict(System.objects.values_list("name", "kind")) == {"s": "human", "t": "control"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nowhere", "--project", "x"], 2),
        ([".", "--project", "x", "--system-kind", "nonsense"], 2),
        ([".", "--project", "Not A Slug"], 1),
        ([".", "--project", "x", "--owner", "nobody"], 1),
        ([".", "--project", "x", "--system-kind", "s=robot"], 1),
    ],
)
def test_wrong_usage_and_wrong_names(tmp_path, monkeypatch, arguments, code):
    folder_of(tmp_path, WHOLE)
    monkeypatch.chdir(tmp_path / "data")
    assert call("load", *arguments)[1] == code
    assert not Project.objects.exists()


def test_an_empty_folder_and_a_folder_of_strangers(tmp_path):
    (tmp_path / "data").mkdir()
    report, code = call("load", tmp_path / "data", "--project", "x")
    assert code == 1
    assert "is empty" in report["detail"]
    report, code = call("load", folder_of(tmp_path, {"notes.txt": b"x"}), "--project", "x")
    assert code == 1
    assert "None of the files" in report["detail"]
    assert not Project.objects.exists()


def test_dump_writes_only_into_an_empty_folder(tmp_path, cast):
    report, code = call("dump", "alpha", tmp_path / "out" / "deep", "--format", "csv")
    assert code == 0
    assert [file["name"] for file in report["files"]] == ["dataset.json", "README.md", "DATASHEET.md"]
    assert call("dump", "alpha", tmp_path / "out")[1] == 1
    assert call("dump", "nobody", tmp_path / "other")[1] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_small_real_sets_come_back_byte_for_byte(shared_data, tmp_path, name):
    ignored = round_trip(shared_data / name, tmp_path)
    assert ignored[-1] == "SOURCE.txt: not a file of the interchange format"


#: Rows of one table of a large set; all of e2e's 72,180 comparisons would take a minute.
MOST_ROWS = 4_000


def shortened(source: Path, folder: Path) -> Path:
    """The folder with the first rows of tables that nothing else points at."""
    made = folder / "short" / source.name
    shutil.copytree(source, made)
    for path in made.glob("*.jsonl.gz"):
        if path.name.split(".")[0] in ("comparisons", "ratings", "corpus", "dialogues"):
            with gzip.open(path) as file:
                rows = list(itertools.islice(file, MOST_ROWS))
            with gzip.open(path, "wb") as file:
                file.writelines(rows)
    return made


@pytest.mark.slow
def test_large_real_sets_come_back_byte_for_byte(shared_data, tmp_path):
    """With the small ones: every folder there is."""
    large = sorted(path for path in shared_data.iterdir() if path.is_dir() and path.name not in SMALL)
    assert len(large) + len(SMALL) == 17
    for source in large:
        ignored = round_trip(shortened(source, tmp_path), tmp_path)
        if source.name == "dstc7_dev":
            assert "excluded.jsonl: not a file of the interchange format" in ignored


@pytest.mark.slow
@pytest.mark.server("postgres")
def test_both_databases_dump_the_same_bytes(migrated_url, migrated_file, tmp_path, shared_data):
    """Commands in processes of their own, on PostgreSQL and on SQLite."""
    dumps = []
    shutil.copy(migrated_file, tmp_path / "db.sqlite3")
    for name, url in (("postgres", migrated_url), ("sqlite", f"sqlite:///{tmp_path / 'db.sqlite3'}")):
        environment = {**os.environ, "DATABASE_URL": url, "EVALAPP_DATA": str(tmp_path / name),
                       "DJANGO_SETTINGS_MODULE": "evalapp.settings"}  # fmt: skip
        root = Path(__file__).resolve().parents[4]

        def manage(*arguments: object, environment: dict = environment, root: Path = root) -> str:
            command = [sys.executable, "manage.py", *map(str, arguments)]
            done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return done.stdout

        for source in ("novikova", "scratchplot"):
            manage("load", shared_data / source, "--project", source)
            again = json.loads(manage("load", shared_data / source, "--project", source, "--json"))
            assert all(counts["same"] == counts["rows"] for counts in again["counts"].values())
            manage("dump", source, tmp_path / name / source)
        dumps.append(tmp_path / name)
    for source in ("novikova", "scratchplot"):
        names = sorted(path.name for path in (dumps[0] / source).iterdir())
        _, different, missing = filecmp.cmpfiles(dumps[0] / source, dumps[1] / source, names, shallow=False)
        assert (different, missing) == ([], [])
