"""Rows of a Parquet file, as exports write them: typed columns, with objects as JSON text. Read in small batches; how
large the file is when unpacked is looked at before anything is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import IO, Any

from .faults import Limits, Report, StopReading
from .rows import Lost, Row, decode_object, has_nul

_BATCH = 1000
#: Columns that hold objects or lists of objects, as JSON text.
OBJECTS = frozenset({"meta", "written", "candidate_source", "options", "systems", "told"})
_PLAIN = (str, int, float, bool)


def read_parquet(
    raw: IO[bytes], limits: Limits, report: Report, lost: Lost = lambda line, row: None
) -> Iterator[tuple[int, Row]]:
    """(row number from 1, row); nulls are absent. `lost` gets the cells of a faulty row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(raw)
    except (pa.ArrowInvalid, OSError) as error:
        raise StopReading("The file ends in .parquet and is not Parquet, or is damaged. Write it again.") from error
    with file:
        described = file.metadata
        if described.num_rows > limits.rows:
            raise StopReading(f"The file has more than {limits.rows:,} rows. Split it into several uploads.")
        size = sum(described.row_group(k).total_byte_size for k in range(described.num_row_groups))
        if size > limits.total_bytes:
            raise StopReading(f"The file unpacks to more than {limits.total_bytes:,} bytes. Split it into several.")
        number = 0
        try:
            for batch in file.iter_batches(batch_size=_BATCH):
                for cells in batch.to_pylist():
                    number += 1
                    row = _row(cells, number, report)
                    if row is not None:
                        yield number, row
                    else:
                        lost(number, cells)
        except (pa.ArrowException, OSError) as error:
            raise StopReading(f"The Parquet file is damaged ({error}). Write it again.", number) from error
        except UnicodeDecodeError as error:
            raise StopReading("A text is not UTF-8. Write the file again.", number + 1) from error
    if not number:
        raise StopReading("The file has no rows. Leave it out, or write its rows.")


def _row(cells: dict[str, Any], number: int, report: Report) -> Row | None:
    row: Row = {}
    for name, value in cells.items():
        if value is None:
            continue
        if name in OBJECTS or (name == "system_b" and isinstance(value, str) and value.startswith('{"reference"')):
            try:
                value = decode_object(value.encode()) if isinstance(value, str) else value
            except ValueError as error:
                report(number, name, f"{name} must hold JSON: {error}.")
                return None
        if not _is_finite(value):
            report(number, name, f"{name} is NaN or infinite. Write null, or leave the row out.")
            return None
        if not _is_plain(value):
            report(number, name, f"{name} is {type(value).__name__}; write text, a number, true or false, or a list.")
            return None
        row[name] = value
    if has_nul(row):
        report(number, "", "A text has a NUL character (\\u0000), which no database keeps. Remove it.")
        return None
    return row


def _is_finite(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_finite(part) for part in value)
    return not isinstance(value, float) or math.isfinite(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(part) for part in value)
    if isinstance(value, dict):
        return all(_is_plain(part) for part in value.values())
    return value is None or isinstance(value, _PLAIN)
