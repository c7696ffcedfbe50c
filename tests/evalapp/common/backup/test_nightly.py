"""The daily backup: one file per day, the oldest removed only after a new one, a failure reported by `doctor`."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

import pytest
from celery.schedules import crontab
from django.core.exceptions import ImproperlyConfigured

from evalapp import celery
from evalapp.common import tasks
from evalapp.common.backup.nightly import check_nightly_backup
from evalapp.ops.checks import MISSING
from evalapp.settings import env


@pytest.fixture
def folder(tmp_path: Path, settings) -> Path:
    settings.BACKUP_FOLDER, settings.BACKUP_KEEP = str(tmp_path), 2
    for day in ("2026-01-01", "2026-01-02"):
        path = tmp_path / f"evalapp-{day}.backup"
        path.write_text("old")
        os.utime(path, (time.time() - 90 * 3600,) * 2)
    (tmp_path / "evalapp-before-the-upgrade.backup").write_text("kept")
    return tmp_path


def test_a_failure_removes_nothing(folder: Path, settings, caplog: pytest.LogCaptureFixture) -> None:
    settings.BACKUP_FOLDER = str(folder / "unmounted")
    with caplog.at_level(logging.ERROR):
        tasks.back_up()
    assert "No backup was made: The folder" in caplog.text
    assert len(list(folder.iterdir())) == 3
    (check,) = check_nightly_backup()
    assert (check.state, check.found) == (MISSING, f"none in {folder}/unmounted")


def test_beat_requests_it_only_with_a_folder(settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(celery.app.conf.beat_schedule, "back-up", None)
    del celery.app.conf.beat_schedule["back-up"]
    settings.BACKUP_FOLDER = ""
    celery.configure()
    assert "back-up" not in celery.app.conf.beat_schedule
    settings.BACKUP_FOLDER, settings.BACKUP_TIME = "/backups", (4, 15)
    celery.configure()
    assert celery.app.conf.beat_schedule["back-up"]["schedule"] == crontab(hour=4, minute=15)
    settings.BACKUP_FOLDER = ""
    celery.configure()
    assert check_nightly_backup() == []


@pytest.mark.parametrize("value", ["24:00", "3", "03:60", "noon"])
def test_wrong_time_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("BACKUP_TIME", value)
    with pytest.raises(ImproperlyConfigured, match="such as 03:30"):
        env.time_of_day("BACKUP_TIME", "03:30")


def test_missing_folder_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BACKUP_FOLDER", str(tmp_path / "nowhere"))
    with pytest.raises(ImproperlyConfigured, match="Create it first"):
        env.backup_folder()
