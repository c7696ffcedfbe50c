"""What is said to the disk below the level of files: that something must be there after a power cut, and that room is
taken now. Imports nothing of the product, so that the pure rooms can use it."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """A file's content, or the names in a folder, are on the disk when this returns."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def take_room(path: Path) -> None:
    """Give a file with holes the room it stands for. On a full disk this is an OSError; writing into a memory map of it
    later would be the end of the process (SIGBUS)."""
    with path.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
