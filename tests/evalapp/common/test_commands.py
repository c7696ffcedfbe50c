"""Behaviour shared by all commands: exit codes, protected paths, and output without a reader."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from evalapp.common import commands
from evalapp.common.errors import BadInput, Conflict, EvalappError, Fault, NotThere

ROOT = Path(__file__).resolve().parents[3]


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


class Talking(commands.Command):
    requires_system_checks = ()

    def work(self, *, fails: Exception | None = None, code: int = 0, **_: Any) -> dict[str, Any]:
        self.say("At work.")
        if fails:
            raise fails
        return {"told": True, "exit": code}

    def show(self, result: dict[str, Any]) -> None:
        self.stdout.write("Told.")


@pytest.mark.parametrize("as_json", [False, True])
def test_command_ends_quietly_without_a_reader(as_json: bool) -> None:
    for code, expected in ((0, 141), (3, 3)):
        with pytest.raises(SystemExit) as ended:
            Talking(stdout=Gone(), stderr=io.StringIO()).execute(
                json=as_json, code=code, force_color=False, no_color=True
            )
        assert ended.value.code == expected


def test_work_continues_without_a_reader_of_progress() -> None:
    out = io.StringIO()
    options = {"json": False, "force_color": False, "no_color": True}
    Talking(stdout=out, stderr=Gone()).execute(**options)
    assert out.getvalue() == "Told.\n"
    with pytest.raises(CommandError, match="It cannot be"):
        Talking(stdout=out, stderr=Gone()).execute(fails=EvalappError("It cannot be."), **options)


class Reading(Talking):
    fields_are_arguments = False


@pytest.mark.parametrize(
    ("fails", "code"),
    [
        (EvalappError("It cannot be."), 1),
        (Conflict("Taken.", faults=[Fault("Taken.", field="name")]), 1),
        (BadInput("There are no outputs yet."), 1),
        (BadInput("A row is wrong.", faults=[Fault("wrong", field="value", file="ratings.csv", line=3)]), 1),
        (BadInput("No number.", faults=[Fault("No number.", field="max")]), 2),
        (NotThere("There is no evaluator of that name."), 2),
        (commands.WrongUsage("Name the file."), 2),
        (PermissionError(errno.EACCES, "Permission denied", "/locked/out"), 1),
    ],
)
def test_kind_of_error_decides_the_exit_code(fails: Exception, code: int) -> None:
    out = io.StringIO()
    options = {"force_color": False, "no_color": True, "json": True, "fails": fails}
    with pytest.raises(CommandError) as ended:
        Talking(stdout=out, stderr=io.StringIO()).execute(**options)
    assert ended.value.returncode == code
    assert json.loads(out.getvalue())["detail"] == str(ended.value).partition("\n")[0]
    with pytest.raises(CommandError) as ended:
        Reading(stdout=out, stderr=io.StringIO()).execute(**options)
    assert ended.value.returncode == (2 if isinstance(fails, commands.WrongUsage | NotThere) else 1)


class Choosing(Talking):
    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--method", choices=["mean", "m1"], required=True)
        add = parser.add_subparsers(dest="what").add_parser("add")
        add.add_argument("--number", type=int)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "the following arguments are required: --method"),
        (["--method", "nosuch"], "argument --method: invalid choice: 'nosuch'"),
        (["--method", "m1", "add", "--number", "x"], "argument --number: invalid int value: 'x'"),
    ],
)
def test_argparse_error_is_json_if_requested(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    for asked, expected in ((["--json"], 1), ([], 0)):
        out = io.StringIO()
        with pytest.raises(SystemExit) as ended:
            Choosing(stdout=out).run_from_argv(["manage.py", "choosing", *asked, *words])
        assert ended.value.code == 2
        assert says in capsys.readouterr().err
        lines = out.getvalue().splitlines()
        assert len(lines) == expected
        for line in lines:
            assert json.loads(line)["error"] == "bad-input"
            assert says in json.loads(line)["detail"]


@pytest.mark.django_db
def test_unknown_project_suggests_the_nearest(cast: Any) -> None:
    with pytest.raises(NotThere, match=r"“alhpa”.* alpha\?.* alpha"):
        commands.find_project("alhpa")
    with pytest.raises(NotThere, match="“zzz”"):
        commands.find_project("zzz")


def test_program_error_keeps_its_traceback() -> None:
    with pytest.raises(FileNotFoundError):
        Talking(stderr=io.StringIO()).execute(
            fails=FileNotFoundError(errno.ENOENT, "gone", "part-7"), json=False, force_color=False, no_color=True
        )


@pytest.mark.parametrize("arguments", [["evaluators"], ["evaluators", "--json"]])
def test_closed_real_pipe(arguments: list[str], tmp_path: Path) -> None:
    """Output left in the buffer at exit gives no traceback either."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "DATA_DIR": str(tmp_path)}, timeout=300, check=False,
        )  # fmt: skip
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
