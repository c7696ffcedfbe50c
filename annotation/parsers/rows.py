"""Rows of a JSONL, CSV or TSV file as dicts with their line number. Faulty rows are reported and skipped; reading stops
only if the rest is unreadable."""

from __future__ import annotations

import csv
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import IO, Any

from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop

from .cells import CELLS, Cells, find_signs, read_cells
from .faults import Limits, Lost, Report, Row, StopReading
from .files import Format, damaged, describe_long_row, read_lines
from .strict_json import NUL, DoubledKey, decode_object, explain_json, explain_utf8, has_nul, identify, identify_line
from .writer import GUARD, list_readable_columns

#: The maximum number of rows with duplicate keys, because the fast reader leaks memory for them.
_MOST_DOUBLED = 1000
_DOUBLED = gettext_noop(
    "More than a thousand rows up to here have duplicate keys. Correct these first; the rest was not read."
)
_NO_OBJECT = gettext_noop(
    "The line is not a JSON object. Write one object { ... } per line, without a list around them."
)
_BLANK = gettext_noop("The file has only blank lines. Leave it out, or write its rows.")
_EMPTY = gettext_noop("The file is empty. Leave it out, or write its rows.")
#: The approximate maximum number of values in a file with a single object.
MOST_VALUES = 2_000_000
#: Rows that are held in memory while the decimal sign of a column is not known.
MOST_HELD = 10_000
_DELIMITERS = (",", ";", "\t")


def _ignore(line: int, row: Row) -> None:
    """Ignores faulty rows, which are reported anyway."""


def read_jsonl(
    plain: IO[bytes], limits: Limits, report: Report, lost: Lost = _ignore, table: str = ""
) -> Iterator[tuple[int, Row]]:
    known = frozenset(list_readable_columns(table))
    rows = lines = doubled = 0
    for number, raw in read_lines(plain, limits):
        lines = number
        if raw is not None and not raw.strip():
            continue
        rows += 1
        if rows > limits.rows:
            raise StopReading(limits.describe_rows(), number)
        row: Any = None
        fault, key = "", {}
        if raw is None:
            size = f"{limits.row_bytes:,}"
            fault = _("The row is longer than %(bytes)s bytes. Shorten it or raise MAX_ROW_KB.", bytes=size)
        else:
            try:
                row = decode_object(raw)
            except ValueError as error:
                fault, key = explain_json(raw, error), identify_line(raw)
                doubled += isinstance(error, DoubledKey)
            else:
                if b"\\u0000" in raw and has_nul(row):
                    fault, key = _(NUL), identify(row)
                elif type(row) is not dict:
                    fault = _(_NO_OBJECT)
        if fault:
            report(number, "", fault)
            lost(number, key)
            if doubled > _MOST_DOUBLED:
                raise StopReading(_(_DOUBLED), number)
            continue
        if known and not known.issuperset(row):
            row = dict(zip(lower_known(list(row), table), row.values(), strict=True))
        yield number, row
    if not rows:
        raise StopReading(_(_BLANK) if lines else _(_EMPTY))


class PhysicalLines:
    """Text lines for `csv.reader`, which joins quoted lines; checks the length of the joined row."""

    def __init__(self, plain: IO[bytes], limits: Limits) -> None:
        self.lines = read_lines(plain, limits, joined=True)
        self.limit = limits.row_bytes
        self.number = 0
        self.length = 0

    def __iter__(self) -> PhysicalLines:
        return self

    def __next__(self) -> str:
        self.number, raw = next(self.lines)
        assert raw is not None
        self.length += len(raw)
        if self.length > self.limit:
            raise StopReading(describe_long_row(self.limit), self.number)
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise StopReading(explain_utf8(raw, error), self.number) from error
        if "\0" in text:
            raise StopReading(_("The row has a NUL byte. The file is binary or damaged."), self.number)
        return text


def read_table(
    plain: IO[bytes],
    delimiter: str,
    limits: Limits,
    report: Report,
    table: str = "",
    guarded: bool = False,
    lost: Lost = _ignore,
) -> Iterator[tuple[int, Row]]:
    csv.field_size_limit(max(csv.field_size_limit(), min(limits.row_bytes, sys.maxsize)))
    lines = PhysicalLines(plain, limits)
    first, delimiter = _find_delimiter(lines, delimiter, table)
    kind = replace(CELLS.get(table, Cells()), comma=delimiter == ";", signs={})
    names: list[str] = []
    doubled: list[int] = []
    rows = 0
    found = read_csv_cells(lines, first, delimiter)
    if header := next(found, None):
        names = _header(header[1], header[0], table)
    for line, cells in find_signs(found, names, kind, MOST_HELD) if kind.comma else found:
        rows += 1
        if rows > limits.rows:
            raise StopReading(limits.describe_rows(), line)
        if len(cells) != len(names):
            message = _("The row has %(cells)d cells, the header %(names)d. Quote texts with separators.")
            report(line, "", message % {"cells": len(cells), "names": len(names)})
            lost(line, {})
            continue
        if guarded:
            cells = [cell.removeprefix(GUARD) for cell in cells]
        row = read_cells(names, cells, line, report, kind, lost, doubled)
        if len(doubled) > _MOST_DOUBLED:
            raise StopReading(_(_DOUBLED), line)
        if row is not None and any("\\u0000" in cell for cell in cells) and has_nul(row):
            report(line, "", _(NUL))
            lost(line, identify(row))
        elif row is not None:
            yield line, row
    if not names:
        raise StopReading(_(_EMPTY))
    if not rows:
        raise StopReading(_("The file has a header but no rows. Leave it out, or write its rows."))


def read_csv_cells(lines: PhysicalLines, first: list[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(number of the first line, cells) of each row that is not empty. `first`: lines that have been read already."""
    reader = csv.reader(chain(first, lines), delimiter=delimiter, strict=True)
    before = lines.number - len(first)
    while True:
        lines.length = 0
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise StopReading(_why_not_csv(error), before + 1) from error
        if cells and cells != [""]:
            yield before + 1, cells
        before = lines.number


def _find_delimiter(lines: PhysicalLines, usual: str, table: str) -> tuple[list[str], str]:
    """(lines that were read for it, the delimiter): from a first line `sep=;`, as written by spreadsheets, otherwise
    the one that gives the most columns of the table, then the most columns."""
    first = next(lines, "")
    while first and not first.strip():
        first = next(lines, "")
    if named := re.fullmatch(r"\ufeff?\"?sep=([,;|\t])\"?[,;|\t]*\r?\n?", first, re.IGNORECASE):
        lines.length = 0
        return [], named[1]
    known = set(list_readable_columns(table))

    def fitness(delimiter: str) -> tuple[int, int, bool]:
        try:
            cells = next(csv.reader([first], delimiter=delimiter), [])
        except csv.Error:
            cells = []
        return sum(cell.strip().lower() in known for cell in cells), len(cells), delimiter == usual

    return ([first] if first else []), max((usual, *_DELIMITERS), key=fitness)


def lower_known(names: list[str], table: str) -> list[str]:
    """Column names with those of the table in lower case: `Item` is `item` unless that exists as well."""
    known = list_readable_columns(table)
    return [name.lower() if name.lower() in known and name.lower() not in names else name for name in names]


def _header(cells: list[str], line: int, table: str) -> list[str]:
    names = lower_known([cell.strip() for cell in cells], table)
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise StopReading(
            _("The header has the column “%(column)s” twice. Rename or remove one.", column=doubled[0]), line
        )
    if "" in names:
        raise StopReading(
            _("Column %(number)d of the header has no name. Name or remove it.", number=names.index("") + 1), line
        )
    return names


def _why_not_csv(error: csv.Error) -> str:
    text = str(error)
    if "unexpected end of data" in text:
        return _("A quote is opened here and never closed.")
    if "new-line character" in text:
        return _("The lines end in a lone carriage return. Save the file with LF or CRLF line ends.")
    if "expected after" in text:
        return _(
            "A quote inside a quoted text must be doubled, and nothing may follow a closing quote, not even a space."
        )
    return _("This is not valid CSV: %(text)s.", text=text)


def read_rows(
    plain: IO[bytes], form: Format, limits: Limits, report: Report, table: str = "", lost: Lost = _ignore
) -> Iterator[tuple[int, Row]]:
    """(line, row) of the whole file. `report` gets each faulty row; `StopReading` ends the reading. `table` determines
    the types of CSV or TSV cells; `lost` gets the identifying values of a faulty row."""
    if form == "jsonl":
        return read_jsonl(plain, limits, report, lost, table)
    if form == "parquet":
        from .parquet import read_parquet

        return read_parquet(plain, limits, report, lost, table)
    delimiter, guarded = "\t" if form == "tsv" else ",", form == "safe-csv"
    return read_table(plain, delimiter, limits, report, table, guarded, lost)


def read_document(plain: IO[bytes], limits: Limits) -> Row:
    """A file with a single JSON object (dataset.json)."""
    try:
        raw = plain.read(limits.row_bytes + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise StopReading(damaged(error)) from error
    if len(raw) > limits.row_bytes:
        raise StopReading(_("The file is longer than %(bytes)s bytes.", bytes=f"{limits.row_bytes:,}"))
    if sum(map(raw.count, (b",", b"[", b"{"))) > MOST_VALUES:
        # Each value takes some hundred bytes of memory.
        raise StopReading(
            _(
                "The file has more than %(most)s values. Leave out what is not needed.",
                most=f"{MOST_VALUES:,}",
            )
        )
    if not raw.strip():
        raise StopReading(_("The file is empty."))
    try:
        document = decode_object(raw)
    except ValueError as error:
        raise StopReading(explain_json(raw, error)) from error
    if type(document) is not dict:
        raise StopReading(_("The file is not a JSON object. Write { ... }."))
    if b"\\u0000" in raw and has_nul(document):
        raise StopReading(_(NUL))
    return document
