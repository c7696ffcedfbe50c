"""Parquet files as tables. A separate process with limited memory reads them, as for the interchange format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from annotation.parsers.faults import Limits, StopReading
from annotation.parsers.parquet import read_parquet
from annotation.parsers.parquet_process import BOUNDS
from evalapp.translation import gettext as _

from .mapping import Reading
from .sources import Report, Row, Source, flatten_row


class ParquetSource(Source):
    format = "parquet"

    def __init__(self, path: Path, name: str, reading: Reading, limits: Limits) -> None:
        super().__init__(path, name, reading, limits)
        try:
            schema = pq.ParquetFile(path, **BOUNDS).schema_arrow
        except (pa.ArrowException, OSError) as error:
            raise StopReading(_("The file is not Parquet, or is damaged. Write it again.")) from error
        self.columns = [name for field in schema for name in _name_parts(field.name, field.type)]

    def read(self, report: Report) -> Iterator[tuple[int, Row]]:
        with self.path.open("rb") as raw:
            size = self.path.stat().st_size
            rows = read_parquet(raw, self.limits, report, is_lenient=True)
            for count, (number, row) in enumerate(rows, 1):
                self.position = min(size, count)
                yield number, flatten_row(row)
        self.position = size


def _name_parts(name: str, kind: pa.DataType) -> Iterator[str]:
    """The column, or those of the parts of its objects."""
    if pa.types.is_struct(kind) and kind.num_fields:
        for k in range(kind.num_fields):
            part = kind.field(k)
            yield from _name_parts(f"{name}.{part.name}", part.type)
    else:
        yield name
