"""CSV and TSV files, with the separator and the encoding found in the file."""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

from charset_normalizer import from_bytes

from annotation.parsers.faults import Limits, StopReading
from annotation.parsers.files import open_plain
from annotation.parsers.rows import PhysicalLines, read_csv_cells
from annotation.parsers.writer import GUARD
from evalapp.translation import gettext as _

from .mapping import Reading
from .sources import HEAD, Report, Row, Source, join_headers, name_columns

SEPARATORS = (",", ";", "\t", "|")
#: Bytes that are read to find encoding and separator.
_SAMPLE = 1 << 18
#: At most so many columns; more are a wrong separator or a table on its side.
MOST_COLUMNS = 10_000
_SEP_LINE = re.compile(r"\ufeff?\"?sep=([,;|\t])\"?[,;|\t]*\r?\n", re.IGNORECASE)


class _Recoded(io.RawIOBase):
    """A file of another encoding as UTF-8."""

    def __init__(self, raw: IO[bytes], encoding: str) -> None:
        self.raw = raw
        self.decoder = codecs.getincrementaldecoder(encoding)()
        self.left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self.left:
            chunk = self.raw.read(1 << 16)
            try:
                self.left = self.decoder.decode(chunk, final=not chunk).encode()
            except UnicodeDecodeError as error:
                raise StopReading(
                    _(
                        "The file is not %(encoding)s. State its encoding under “reading”, or save it as UTF-8.",
                        encoding=error.encoding,
                    )
                ) from error
            if not chunk and not self.left:
                return 0
        size = min(len(buffer), len(self.left))
        buffer[:size], self.left = self.left[:size], self.left[size:]
        return size


def open_text(path: Path, encoding: str) -> tuple[IO[bytes], IO[bytes]]:
    """(the file, its content unpacked as UTF-8)."""
    raw = path.open("rb")
    try:
        if encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig"):
            return raw, open_plain(raw)
        if raw.read(2) == b"\x1f\x8b":
            raise StopReading(_("A gzip file must be UTF-8 inside. Unpack it first."))
        raw.seek(0)
        plain = io.BufferedReader(_Recoded(raw, encoding), 1 << 16)
        if plain.peek(3)[:3] == codecs.BOM_UTF8:
            plain.read(3)
        return raw, plain
    except BaseException:
        raw.close()
        raise


def find_encoding(path: Path, stated: str) -> tuple[str, str]:
    """(encoding, note about it, empty if it is stated or plain)."""
    if stated:
        try:
            codecs.lookup(stated)
        except LookupError as error:
            raise StopReading(_("There is no encoding “%(name)s”.", name=stated[:100])) from error
        return stated, ""
    with path.open("rb") as raw:
        head = raw.read(_SAMPLE)
    if head[:2] == b"\x1f\x8b":
        return "utf-8", ""
    for mark, name in ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if head.startswith(mark):
            return name, ""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
        return "utf-8", ""
    except UnicodeDecodeError:
        name = _guess_encoding(head[: 1 << 16])
        return name, _("The file is not UTF-8. It is read as %(encoding)s; check accents and quotes.", encoding=name)


#: Encodings of files that people still write.
_USUAL_ENCODINGS = [
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp932", "gb18030", "big5", "cp949", "koi8_r",
]  # fmt: skip


def _guess_encoding(head: bytes) -> str:
    """The most likely encoding; Windows-1252, the most common one, unless another is clearly better."""
    found = from_bytes(head, cp_isolation=_USUAL_ENCODINGS)
    best = found.best()
    if best is None:
        return "cp1252"
    usual = (one for one in found if one.encoding == "cp1252" and one.chaos <= best.chaos + 0.1)
    return next((one.encoding for one in usual if one.coherence >= best.coherence - 0.1), best.encoding)


def _count_cells(sample: str, separator: str) -> tuple[float, int]:
    """(share of rows with as many cells as the first, number of cells)."""
    try:
        rows = [row for row in csv.reader(io.StringIO(sample, newline=""), delimiter=separator) if row]
    except csv.Error:
        return 0, 0
    if not rows or len(rows[0]) < 2:
        return 0, 0
    return sum(len(row) == len(rows[0]) for row in rows) / len(rows), len(rows[0])


def find_separator(sample: str, usual: str) -> str:
    """The separator that gives all rows the same number of cells, preferably many."""
    if named := _SEP_LINE.match(sample):
        return named[1]
    best = max(SEPARATORS, key=lambda one: (*_count_cells(sample, one), one == usual))
    return best if _count_cells(sample, best)[1] else usual


class DelimitedSource(Source):
    def __init__(self, path: Path, name: str, reading: Reading, limits: Limits) -> None:
        super().__init__(path, name, reading, limits)
        self.format = "tsv" if name.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else "csv"
        if reading.separator and len(reading.separator) != 1:
            raise StopReading(_("The separator must be a single character."))
        encoding, note = find_encoding(path, reading.encoding)
        separator = reading.separator or self._find_separator(encoding)
        if note:
            self.notes.append(note)
        #: The mapping states what is not obvious.
        stated = "" if encoding == "utf-8" else encoding
        self.reading = replace(reading, encoding=stated, separator=separator if separator != self._usual else "")
        self._encoding, self._separator = encoding, separator
        #: Cells of `NAME.safe.csv` that could be formulas begin with an apostrophe.
        self._is_guarded = name.lower().removesuffix(".gz").endswith(".safe.csv")
        with self._open() as (_raw, lines):
            self.columns = self._read_header(lines)
        if len(self.columns) > MOST_COLUMNS:
            raise StopReading(
                _("The table has more than %(most)s columns. Is it on its side?", most=f"{MOST_COLUMNS:,}")
            )

    @property
    def _usual(self) -> str:
        return "\t" if self.format == "tsv" else ","

    def _find_separator(self, encoding: str) -> str:
        raw, plain = open_text(self.path, encoding)
        with raw:
            sample = plain.read(_SAMPLE)
        whole = sample if len(sample) < _SAMPLE else sample[: sample.rfind(b"\n") + 1] or sample
        lines = whole.decode(errors="replace").splitlines(keepends=True)
        return find_separator("".join(lines[self.reading.skip_above :]), self._usual)

    def _open(self) -> _Opened:
        return _Opened(self)

    def _read_header(self, lines: Iterator[tuple[int, list[str]]]) -> list[str]:
        first = self.reading.skip_above
        if rows := [self._unguard(cells) for _number, cells in islice(lines, first, first + self.reading.header_rows)]:
            return name_columns(join_headers(rows))
        raise StopReading(_("The file has only blank lines. Leave it out, or write its rows."))

    def read_head(self) -> list[list[Any]]:
        with self._open() as (_raw, lines):
            return [list(self._unguard(cells)) for _number, cells in islice(lines, HEAD)]

    def _unguard(self, cells: list[str]) -> list[str]:
        return [cell.removeprefix(GUARD) for cell in cells] if self._is_guarded else cells

    def read(self, report: Report) -> Iterator[tuple[int, Row]]:
        columns = self.columns
        assert columns is not None
        width, rows = len(columns), 0
        with self._open() as (raw, lines):
            self._read_header(lines)
            for number, cells in islice(lines, self.reading.skip_below, None):
                rows += 1
                if rows > self.limits.rows:
                    raise StopReading(self.limits.describe_rows(), number)
                if len(cells) == width:
                    if not rows % 500:
                        self.position = raw.tell()
                    yield number, dict(zip(columns, self._unguard(cells), strict=True))
                elif not any(cells):
                    continue
                else:
                    message = _("The row has %(cells)d cells, the header %(names)d. Quote texts with separators.")
                    report(number, "", message % {"cells": len(cells), "names": width})
            self.position = raw.tell()
        if not rows:
            raise StopReading(_("The file has a header but no rows. Leave it out, or write its rows."))


class _Opened:
    """The open file and its rows of cells."""

    def __init__(self, source: DelimitedSource) -> None:
        limits = source.limits
        csv.field_size_limit(max(csv.field_size_limit(), min(limits.row_bytes, sys.maxsize)))
        self.raw, plain = open_text(source.path, source._encoding)
        lines = PhysicalLines(plain, limits)
        first = next(lines, "")
        named = _SEP_LINE.match(first)
        self.rows = read_csv_cells(lines, [] if named else [first], source._separator)

    def __enter__(self) -> tuple[IO[bytes], Iterator[tuple[int, list[str]]]]:
        return self.raw, self.rows

    def __exit__(self, *error: object) -> None:
        self.raw.close()
