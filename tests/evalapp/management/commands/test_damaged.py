"""With a damaged SQLite file, every command prints one message with a remedy that works as written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
pytestmark = pytest.mark.slow


#: Runs `manage.py` with each list of arguments, in a process forked from this one, which has loaded Django: starting
#: Python for each would take most of the time.
MANAGE_EACH = """
import json, os, runpy, sys, tempfile
import django
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalapp.settings")
django.setup()
import evalapp.urls
results = []
for arguments in json.loads(sys.argv[1]):
    with tempfile.TemporaryFile() as output:
        if not (child := os.fork()):
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            sys.argv = ["manage.py", *arguments]
            runpy.run_path("manage.py", run_name="__main__")
            sys.exit()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        results.append((status, output.read().decode()))
print(json.dumps(results))
"""


def manage(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_python(folder, str(ROOT / "manage.py"), *arguments)


def run_python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    unwanted = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_SETTINGS_MODULE")
    env = {key: value for key, value in os.environ.items() if key not in unwanted}
    env |= {"EVALAPP_DATA": str(folder), "MIN_FREE_MB": "0", "REDIS_URL": "redis://127.0.0.1:9/0"}
    return subprocess.run(
        [sys.executable, *arguments], env=env, cwd=ROOT, text=True, capture_output=True, check=False, timeout=300
    )


def no_database(path: Path) -> None:
    path.write_bytes(b"this is no database " * 1000)


def torn_pages(path: Path) -> None:
    """The header is intact; the pages after it, including the schema's, are overwritten."""
    content = bytearray(path.read_bytes())
    content[100 : len(content)] = b"\xa5" * (len(content) - 100)
    path.write_bytes(content)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


@pytest.fixture
def folder(tmp_path: Path, migrated_file: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    shutil.copy(migrated_file, data / "evalapp.sqlite3")
    return data


@pytest.mark.parametrize("damage", [no_database, torn_pages, cut_short])
def test_each_command_reports_the_damaged_file_and_a_remedy(folder, damage):
    damage(folder / "evalapp.sqlite3")
    load = ["load", "--project", "p", str(folder)]
    commands = [["up", "--port", "0"], ["migrate"], ["migrate", "--json"], ["doctor"], load, ["runs"],
                ["createowner", "olga"], ["changepassword", "olga"], ["backup", str(folder / "b")]]  # fmt: skip
    done = run_python(folder, "-c", MANAGE_EACH, json.dumps(commands))
    assert done.returncode == 0, done.stderr
    for arguments, (status, said) in zip(commands, json.loads(done.stdout), strict=True):
        assert status != 0, arguments
        assert "Traceback" not in said, (arguments, said[-2000:])
        assert f"{folder / 'evalapp.sqlite3'} is damaged or is not a database" in said, (arguments, said)
        assert "restore FILE --replace" in said, (arguments, said)


def test_remedy_works_as_written(folder, tmp_path):
    assert manage(folder, "createowner", "olga").returncode == 0
    backup = tmp_path / "backup.evalapp"
    made = manage(folder, "backup", str(backup))
    assert made.returncode == 0, made.stderr
    no_database(folder / "evalapp.sqlite3")
    away = tmp_path / "away"
    away.mkdir()
    for path in folder.glob("evalapp.sqlite3*"):
        path.rename(away / path.name)
    done = manage(folder, "restore", str(backup), "--replace", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    again = manage(folder, "createowner", "olga")
    assert "exists" in again.stderr, again.stderr
