"""What can be wrong with a file, as plain values, and how much of a file is read at most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


#: Different faults that are kept, characters of a message, and places that are named of faults that say the same.
KEPT_FAULTS, _LONGEST_MESSAGE, _PLACES = 1000, 2000, 3


class Faults:
    """Counts all faulty rows. Rows of a file about which the same is said become one fault, with their number and the
    first places; the first thousand such are kept."""

    def __init__(self) -> None:
        self.count = 0
        self._rows: dict[tuple[str, str, str], list[int | None]] = {}
        self._counts: dict[tuple[str, str, str], int] = {}

    def add(
        self, file: str, line: int | None, field: str, message: str, others: Sequence[int] = (), n: int = 1
    ) -> None:
        """`n` rows say this: the one at `line` and, as far as they are known, those at the `others`."""
        self.count += n
        key = (file, field[:100], message[:_LONGEST_MESSAGE])
        if key not in self._rows:
            if len(self._rows) >= KEPT_FAULTS:
                return
            self._rows[key], self._counts[key] = [], 0
        self._counts[key] += n
        places = self._rows[key]
        places += [line, *others][: _PLACES - len(places)]

    @property
    def kept(self) -> list[Fault]:
        """In the order in which they were found."""
        return [
            Fault(message + _say_places(self._counts[key], places), field, file, places[0])
            for key, places in self._rows.items()
            for file, field, message in [key]
        ]


def _say_places(n: int, places: Sequence[int | None]) -> str:
    lines = [f"{place:,}" for place in places if place is not None]
    if n < 2 or not lines:
        return ""
    more = ", ..." if n > len(lines) else ""
    return f" ({n:,} rows: {', '.join(lines)}{more})"
