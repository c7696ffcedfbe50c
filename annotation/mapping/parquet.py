"""Parquet files as tables. A separate process with limited memory reads them, as for the interchange format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from annotation.parsers.faults import Limits
from annotation.parsers.parquet import read_columns, read_parquet

from .mapping import Reading
from .sources import Report, Row, Source, flatten_row
from .values import WrongCell


class ParquetSource(Source):
    format = "parquet"

    def __init__(self, path: Path, name: str, reading: Reading, limits: Limits) -> None:
        super().__init__(path, name, reading, limits)
        with path.open("rb") as raw:
            self.columns = read_columns(raw, limits)

    def read(self, report: Report) -> Iterator[tuple[int, Row]]:
        with self.path.open("rb") as raw:
            size = self.path.stat().st_size
            rows = read_parquet(raw, self.limits, report, is_lenient=True, mark=_mark_wrong)
            for count, (number, row) in enumerate(rows, 1):
                self.position = min(size, count)
                yield number, flatten_row(row)
        self.position = size


def _mark_wrong(row: Row, wrong: list[Any]) -> None:
    """Marks the values that cannot be read."""
    for path, message in wrong:
        parent: Any = row
        for part in path[:-1]:
            parent = parent[part]
        parent[path[-1]] = WrongCell(parent[path[-1]], message)
