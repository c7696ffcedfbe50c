"""The daily backup of a real installation: a file per day, the oldest removed, and a state that `doctor` reports."""

from __future__ import annotations

import pytest

from evalapp.common import tasks
from evalapp.common.hooks import DOCTOR_CHECKS
from evalapp.ops.checks import MISSING, OK

from .stack import Stack

pytestmark = [pytest.mark.slow]


def test_a_day_adds_a_file_and_removes_the_oldest(stack: Stack, tmp_path, settings) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    settings.BACKUP_FOLDER, settings.BACKUP_KEEP = str(folder), 2
    assert find_check().state == MISSING
    for name in ("2026-01-01", "2026-01-02", "before-the-upgrade"):
        (folder / f"evalapp-{name}.backup").write_text("old")
    tasks.back_up()
    tasks.back_up()  # a repeated message replaces the file of the day
    names = sorted(path.name for path in folder.iterdir())
    assert names[0] == "evalapp-2026-01-02.backup"
    assert names[2] == "evalapp-before-the-upgrade.backup"
    assert len(names) == 3
    assert stack.manage("restore", str(folder / names[1]), "--check").returncode == 0
    assert find_check().state == OK
    assert names[1] in find_check().found


def find_check():
    return next(check for check in DOCTOR_CHECKS.collect() if check.name == "backup")
