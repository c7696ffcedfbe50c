"""What can be wrong with a file, as plain values, and how much of a file is read at most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

#: (line or None for the whole file, field or "", message)
Report = Callable[[int | None, str, str], None]


@dataclass(frozen=True)
class Fault:
    """One thing wrong: where it is and what to do. `line` counts from 1."""

    message: str
    field: str = ""
    file: str = ""
    line: int | None = None


@dataclass(frozen=True)
class Limits:
    """`row_bytes`: longest row; `rows`: most rows of a file; `total_bytes`: most bytes after decompression, so
    that a small file cannot unpack into an endless one."""

    row_bytes: int = 1_000_000
    rows: int = 20_000_000
    total_bytes: int = 20_000_000_000

    def for_file(self, size: int) -> Limits:
        """The limits for a file of `size` bytes: it may unpack to a thousand times that and 100 MB, so that a few bytes
        cannot fill a disk. Gzip packs text 1,032 times at most."""
        return replace(self, total_bytes=min(self.total_bytes, 100_000_000 + 1000 * size))

    def too_much(self) -> str:
        """What is said of a file that unpacks to more."""
        return (
            f"The file unpacks to more than {self.total_bytes:,} bytes, which is more than its size allows or than one "
            "upload may hold. Split it into several uploads."
        )


class StopReading(Exception):
    """The rest of the file cannot be read. Raised by the readers, already with the message for people."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
