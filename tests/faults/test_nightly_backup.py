"""The daily backup of a real installation: a file per day, the oldest removed, and a state that `doctor` reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalapp.ops.checks import MISSING, OK

from .stack import Stack

pytestmark = [pytest.mark.slow]


def test_a_day_adds_a_file_and_removes_the_oldest(stack: Stack, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    stack.env |= {"BACKUP_FOLDER": str(folder), "BACKUP_KEEP": "2"}
    assert find_check(stack)["state"] == MISSING
    for name in ("2026-01-01", "2026-01-02", "before-the-upgrade"):
        (folder / f"evalapp-{name}.backup").write_text("old")
    code = "from evalapp.common.tasks import back_up; back_up(); back_up()"  # a repeated message replaces the file
    assert stack.manage("shell", "-c", code).returncode == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names[0] == "evalapp-2026-01-02.backup"
    assert names[2] == "evalapp-before-the-upgrade.backup"
    assert len(names) == 3
    assert stack.manage("restore", str(folder / names[1]), "--check").returncode == 0
    check = find_check(stack)
    assert check["state"] == OK
    assert names[1] in check["found"]


def find_check(stack: Stack) -> dict[str, str]:
    checks = json.loads(stack.manage("doctor", "--json").stdout)["checks"]
    return next(check for check in checks if check["name"] == "backup")
