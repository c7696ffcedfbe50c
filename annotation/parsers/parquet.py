"""Rows of a Parquet file, as written by exports: typed columns, with objects as JSON text.

A small file can unpack to any size, and the library allocates memory before it can be asked how much. So a separate
process with limited memory reads the file (`parquet_process`), and writes each checked row as a line of JSON."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import IO, Any

from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop

from .faults import Limits, Lost, Report, Row, StopReading
from .limited_process import read_process

_MODULE = "annotation.parsers.parquet_process"
_DAMAGED = gettext_noop("The file ends in .parquet and is not Parquet, or is damaged. Write it again.")


def read_parquet(
    raw: IO[bytes],
    limits: Limits,
    report: Report,
    lost: Lost = lambda line, row: None,
    table: str = "",
    is_lenient: bool = False,
    mark: Callable[[Row, list[Any]], None] = lambda row, wrong: None,
) -> Iterator[tuple[int, Row]]:
    """(row number from 1, row); nulls are absent. `lost` gets the identifying values of a faulty row. `is_lenient`:
    times and bytes are texts and NaN is absent, as for files of any layout; `mark` gets a row with bytes that are no
    text, and for each the path to it and a message."""
    rows = 0
    with ExitStack() as stack:
        for line in _read_lines(stack, raw, limits, table, "lenient" if is_lenient else ""):
            rows += 1
            match line:
                case [number, row]:
                    yield number, row
                case [number, row, wrong]:
                    mark(row, wrong)
                    yield number, row
                case [number, field, message, key]:
                    report(number, field, message)
                    lost(number, key)
    if not rows:
        raise StopReading(_("The file has no rows. Leave it out, or write its rows."))


def read_columns(raw: IO[bytes], limits: Limits) -> list[str]:
    """The names of the columns; `object.part` for each part of a column of objects. Raises `StopReading`."""
    with ExitStack() as stack:
        [(_place, names)] = _read_lines(stack, raw, limits, "", "columns")
    return list(names)


def _read_lines(stack: ExitStack, raw: IO[bytes], limits: Limits, table: str, mode: str) -> Iterator[list[Any]]:
    arguments = [limits.row_bytes, limits.rows, limits.total_bytes, table, mode]
    return read_process(stack, _MODULE, arguments, raw, _describe_damage)


def _describe_damage(rows: int) -> str:
    return _("The Parquet file cannot be read after row %(rows)s.", rows=f"{rows:,}") if rows else _(_DAMAGED)
