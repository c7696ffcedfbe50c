"""Errors in files as plain values, and limits on what is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from evalapp.translation import gettext as _

#: (line or None for the whole file, field or "", message)
Report = Callable[[int | None, str, str], None]
Row = dict[str, Any]
#: (line, those values of a rejected row that identify it; may be empty)
Lost = Callable[[int, Row], None]


@dataclass(frozen=True)
class Fault:
    """An error: where it is and what to do. `line` counts from 1."""

    message: str
    field: str = ""
    file: str = ""
    line: int | None = None


@dataclass(frozen=True)
class Limits:
    """`row_bytes`: longest row; `rows`: maximum number of rows in a file; `total_bytes`: maximum size after
    decompression, so that a small file cannot unpack without end."""

    row_bytes: int = 1_000_000
    rows: int = 20_000_000
    total_bytes: int = 20_000_000_000

    def for_file(self, size: int) -> Limits:
        """The limits for a file of `size` bytes: it may unpack to a thousand times its size plus 100 MB, so that a few
        bytes cannot fill the disk. Gzip reaches at most 1,032 times."""
        return replace(self, total_bytes=min(self.total_bytes, 100_000_000 + 1000 * size))

    def describe_rows(self) -> str:
        """The message for a file with too many rows."""
        return _("The file has more than %(rows)s rows. Split it into several uploads.", rows=f"{self.rows:,}")

    def describe_size(self) -> str:
        """The message for a file that unpacks to too many bytes."""
        return _(
            "The file unpacks to more than %(total_bytes)s bytes, which is more than its size allows or "
            "than one upload may hold. Split it into several uploads.",
            total_bytes=f"{self.total_bytes:,}",
        )


class StopReading(Exception):
    """The rest of the file cannot be read. Raised by readers, with the message for users."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


#: The maximum number of kinds of error, of characters in a message, and of places and different messages per kind.
KEPT_FAULTS, _LONGEST_MESSAGE, _PLACES = 1000, 2000, 3
#: The varying parts of a message: quoted names and numbers.
_VARYING = re.compile(r"“[^“”]*”|\d[\d,.]*\d|\d")
_QUOTED = re.compile(r"“[^“”]*”")


@dataclass
class _Rows:
    """The number of rows, and the first places."""

    n: int = 0
    places: list[int | None] = field(default_factory=list)

    def add(self, n: int, places: Sequence[int | None]) -> None:
        self.n += n
        self.places += places[: _PLACES - len(self.places)]

    def __str__(self) -> str:
        lines = [f"{place:,}" for place in self.places if place is not None]
        if self.n < 2 or not lines:
            return ""
        return f"{self.n:,} rows: {', '.join(lines)}" + (", ..." if self.n > len(lines) else "")


@dataclass
class _Kind:
    """Errors of a file and field whose messages differ only in names and numbers."""

    rows: _Rows = field(default_factory=_Rows)
    #: The first different messages, and the hashes of more.
    messages: dict[str, _Rows] = field(default_factory=dict)
    different: set[int] = field(default_factory=set)

    def add(self, message: str, n: int, places: Sequence[int | None]) -> None:
        self.rows.add(n, places)
        if message in self.messages or len(self.messages) < _PLACES:
            self.messages.setdefault(message, _Rows()).add(n, places)
        if len(self.different) < KEPT_FAULTS:
            self.different.add(hash(message))

    def say(self) -> Iterator[tuple[str, int | None]]:
        """(message, first place): each of a few different messages, or one for many."""
        if len(self.different) <= len(self.messages):
            for message, rows in self.messages.items():
                yield message + (f" ({rows})" if str(rows) else ""), rows.places[0]
            return
        message, *others = self.messages
        more = f"{len(self.different) - len(self.messages):,}"
        more = f"at least {more}" if len(self.different) >= KEPT_FAULTS else more
        names = [name for other in others if (name := _say_difference(message, other))]
        likewise = f"likewise {', '.join(names)} and {more} more" if names else ""
        inside = "; ".join(filter(None, (str(self.rows) or f"{self.rows.n:,} times", likewise)))
        yield f"{message} ({inside})", self.rows.places[0]


def _say_difference(message: str, other: str) -> str:
    """The quoted names of `other` that are not in `message`."""
    there = set(_QUOTED.findall(message))
    return " with ".join(name for name in _QUOTED.findall(other) if name not in there)


class Faults:
    """Counts all faulty rows. Rows of a file with the same message are combined into one error, with their number and
    first places, as are messages with more than three different names or numbers."""

    def __init__(self) -> None:
        self.count = 0
        #: What fields are called in the file, if they have other names there.
        self.names: dict[str, str] = {}
        self._kinds: dict[tuple[str, str, str], _Kind] = {}

    def add(
        self, file: str, line: int | None, field: str, message: str, others: Sequence[int] = (), n: int = 1
    ) -> None:
        """Add a message for `n` rows: the one at `line` and, if known, those at `others`."""
        self.count += n
        field = self.names.get(field, field)
        message = message[:_LONGEST_MESSAGE]
        key = (file, field[:100], _VARYING.sub("…", message))
        if key in self._kinds or len(self._kinds) < KEPT_FAULTS:
            self._kinds.setdefault(key, _Kind()).add(message, n, [line, *others])

    @property
    def kept(self) -> list[Fault]:
        """The errors in order of occurrence, at most a thousand."""
        every = (
            Fault(message, field, file, place)
            for (file, field, _), kind in self._kinds.items()
            for message, place in kind.say()
        )
        return list(islice(every, KEPT_FAULTS))
