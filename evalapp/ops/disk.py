"""Flush files to disk and allocate disk space. Imports nothing of the product, so that pure packages can use it."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def allocate(path: Path) -> None:
    """Allocate the disk space of a sparse file. On a full disk this raises OSError, while writing to a memory map of
    the file would kill the process (SIGBUS)."""
    with path.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
