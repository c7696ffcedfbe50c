"""Disk space is reserved on request, and files reported as written can be synced."""

from __future__ import annotations

from pathlib import Path

from evalapp.ops import disk


def test_sparse_file_gets_its_space_and_keeps_its_content(tmp_path: Path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(b"begin")
        file.truncate(8 << 20)
    assert path.stat().st_blocks * 512 < 1 << 20
    disk.allocate(path)
    assert path.stat().st_blocks * 512 >= 8 << 20
    assert path.stat().st_size == 8 << 20
    assert path.read_bytes()[:6] == b"begin\0"


def test_files_and_folders_can_be_synced(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"x")
    disk.sync(path)
    disk.sync(tmp_path)
    assert path.read_bytes() == b"x"
