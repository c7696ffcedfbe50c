"""What all readers of tables have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from annotation.parsers.faults import Limits

from .mapping import Reading

Row = dict[str, Any]
#: So many first rows are searched for the names of the columns.
HEAD = 20
#: (row or None for the whole file, column or "", message)
Report = Callable[[int | None, str, str], None]


def ignore(row: int | None, column: str, message: str) -> None:
    """Ignores rows that cannot be read."""


class Source:
    """Reads a file. `columns`: in their order, or None if only the rows have them; `position`: bytes read so far."""

    format = ""

    def __init__(self, path: Path, name: str, reading: Reading, limits: Limits) -> None:
        self.path, self.name, self.reading, self.limits = path, name, reading, limits
        self.columns: list[str] | None = None
        self.notes: list[str] = []
        #: The letters of the columns of a spreadsheet, by name.
        self.letters: dict[str, str] = {}
        self.position = 0

    def read(self, report: Report) -> Iterator[tuple[int, Row]]:
        """(number of the row in the file, its values)."""
        raise NotImplementedError

    def read_head(self) -> list[list[Any]]:
        """The cells of the first rows, with those that have the names; empty for files without such rows."""
        return []


def name_columns(cells: list[str]) -> list[str]:
    """Unique names of columns: empty ones are numbered, repeated ones as well."""
    names: dict[str, None] = {}
    for number, cell in enumerate(cells, 1):
        plain = " ".join(cell.split()) or f"column {number}"
        name, times = plain, 1
        while name in names:
            times += 1
            name = f"{plain} ({times})"
        names[name] = None
    return list(names)


def join_headers(rows: list[list[str]]) -> list[str]:
    """The names of columns in several rows: above a cell is the last one that has a text, as for merged cells."""
    width = max((len(cells) for cells in rows), default=0)
    padded = [[" ".join(cell.split()) for cell in cells] + [""] * (width - len(cells)) for cells in rows]
    for k, cells in enumerate(padded[:-1]):
        for at in range(1, width):
            if not cells[at] and any(below[at] for below in padded[k + 1 :]):
                cells[at] = cells[at - 1]
    return [" ".join(part for part in parts if part) for parts in zip(*padded, strict=True)]


def flatten_row(row: Row, before: str = "") -> Row:
    """The row with the parts of objects as columns of their own: `author.name`."""
    if not before and dict not in map(type, row.values()):
        return row
    flat: Row = {}
    for name, value in row.items():
        if isinstance(value, dict) and value:
            flat.update(flatten_row(value, f"{before}{name}."))
        else:
            flat[before + name] = value
    return flat
