"""What every command shares, where nobody reads what it prints."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from evalapp.common import commands
from evalapp.common.errors import EvalappError

ROOT = Path(__file__).resolve().parents[3]


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


class Talking(commands.Command):
    requires_system_checks = ()

    def work(self, *, fails: bool = False, code: int = 0, **_: Any) -> dict[str, Any]:
        self.say("At work.")
        if fails:
            raise EvalappError("It cannot be.")
        return {"told": True, "exit": code}

    def show(self, result: dict[str, Any]) -> None:
        self.stdout.write("Told.")


@pytest.mark.parametrize("as_json", [False, True])
def test_without_a_reader_a_command_ends_quietly(as_json: bool) -> None:
    for code, expected in ((0, 141), (3, 3)):
        with pytest.raises(SystemExit) as ended:
            Talking(stdout=Gone(), stderr=io.StringIO()).execute(
                json=as_json, code=code, force_color=False, no_color=True
            )
        assert ended.value.code == expected


def test_without_a_reader_of_the_progress_the_work_goes_on() -> None:
    out = io.StringIO()
    options = {"json": False, "force_color": False, "no_color": True}
    Talking(stdout=out, stderr=Gone()).execute(**options)
    assert out.getvalue() == "Told.\n"
    with pytest.raises(CommandError, match="It cannot be"):
        Talking(stdout=out, stderr=Gone()).execute(fails=True, **options)


@pytest.mark.parametrize("arguments", [["evaluators"], ["evaluators", "--json"]])
def test_a_real_pipe_that_is_closed(arguments: list[str], tmp_path: Path) -> None:
    """What is left in the buffer at the end makes no trace either."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "DATA_DIR": str(tmp_path)}, timeout=120, check=False,
        )  # fmt: skip
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
