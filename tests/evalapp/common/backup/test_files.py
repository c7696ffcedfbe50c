"""Backing up files while other processes create and delete some."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from evalapp.common.backup.files import STALE_SECONDS, _remove_stale, _walk


def test_folder_removed_during_the_walk_has_no_files(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    listed = Path.iterdir

    def iterdir(path):
        if path == tmp_path / "b":
            shutil.rmtree(path)
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert [path.relative_to(tmp_path).as_posix() for path in _walk(tmp_path, False)] == ["a/file", "c/file"]


def test_file_removed_by_another_backup_is_not_missed(tmp_path, monkeypatch):
    for name in (".backup-a", ".backup-b", ".backup-new"):
        (tmp_path / name).mkdir()
    old = time.time() - STALE_SECONDS - 60
    for name in (".backup-a", ".backup-b"):
        os.utime(tmp_path / name, (old, old))
    known = Path.stat

    def stat(path, **how):
        if path.name == ".backup-a":
            shutil.rmtree(path, ignore_errors=True)
        return known(path, **how)

    monkeypatch.setattr(Path, "stat", stat)
    _remove_stale(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".backup-new"]
