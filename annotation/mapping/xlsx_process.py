"""The process that reads a spreadsheet for `xlsx.XlsxSource`: the file on stdin, sheet and limits as arguments, lines
of JSON on stdout. `[0, sheets]` comes first; `[row, cells]` is a row, `[row, column, message]` a faulty one, and
`[row, message, "stop"]` the reason why reading stopped."""

from __future__ import annotations

import datetime
import re
import sys
import zipfile
from collections.abc import Iterator
from typing import IO, Any

import openpyxl
from openpyxl.utils import get_column_letter
from openpyxl.utils.escape import unescape

from annotation.parsers.faults import Limits, StopReading
from annotation.parsers.limited_process import print_lines
from evalapp.translation import gettext as _

#: A formula whose value is not stored: programs that write files do not compute them.
_NO_VALUE = re.compile(rb'<c r="([A-Z]+)(\d+)"[^>]*><f[^>]*(?:/>|>[^<]*</f>)(?:<v ?/>|<v></v>)?</c>')
_ERRORS = frozenset(["#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#SPILL!", "#CALC!"])
_CHUNK, _OVERLAP = 1 << 20, 1 << 14
_MEMORY = 1 << 30


def read_all(raw: IO[bytes], sheet: str, limits: Limits) -> Iterator[list[Any]]:
    """The lines to write, see above."""
    try:
        book = openpyxl.load_workbook(raw, read_only=True, data_only=True, keep_links=False)
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, OSError, AttributeError, SyntaxError) as error:
        raise StopReading(_("The spreadsheet is damaged (%(error)s). Save it again.", error=error)) from error
    names = [one.title for one in book.worksheets]
    if not names:
        raise StopReading(_("The spreadsheet has no sheet with cells."))
    if sheet and sheet not in names:
        listed = ", ".join(f"“{name}”" for name in names[:10])
        raise StopReading(_("There is no sheet “%(sheet)s”. There are %(names)s.", sheet=sheet, names=listed))
    yield [0, names]
    wanted = book[sheet] if sheet else book.worksheets[0]
    _check_formulas(raw, wanted)
    try:
        yield from _read_rows(wanted, limits)
    except (SyntaxError, ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise StopReading(_("The spreadsheet is damaged (%(error)s). Save it again.", error=error)) from error


def _check_formulas(raw: IO[bytes], sheet: Any) -> None:
    """Raises `StopReading` if a formula has no stored value; the cell would look empty."""
    with zipfile.ZipFile(raw) as archive, archive.open(sheet._worksheet_path.lstrip("/")) as part:
        before = b""
        while chunk := part.read(_CHUNK):
            text = before + chunk
            if b"<f" in text and (found := _NO_VALUE.search(text)) is not None:
                message = _(
                    "The cell %(cell)s has a formula without a stored value. Open the file in a spreadsheet program "
                    "and save it, or paste the values."
                )
                raise StopReading(message % {"cell": (found[1] + found[2]).decode()}, int(found[2]))
            before = text[-_OVERLAP:]


def _read_rows(sheet: Any, limits: Limits) -> Iterator[list[Any]]:
    sheet.reset_dimensions()  # the stated size may be wrong
    rows = 0
    for number, cells in enumerate(sheet.iter_rows(values_only=True), 1):
        if not any(cell is not None for cell in cells):
            continue
        rows += 1
        if rows > limits.rows + 1:
            raise StopReading(limits.describe_rows(), number)
        values = [_convert(cell) for cell in cells]
        while values and values[-1] is None:
            values.pop()
        if wrong := next((k for k, value in enumerate(values, 1) if value in _ERRORS), 0):
            message = _("The formula gives the error %(error)s. Correct it.", error=values[wrong - 1])
            yield [number, get_column_letter(wrong), message]
        elif sum(len(value) for value in values if type(value) is str) > limits.row_bytes:
            size = f"{limits.row_bytes:,}"
            yield [number, "", _("The row is longer than %(bytes)s bytes. Shorten it or raise MAX_ROW_KB.", bytes=size)]
        else:
            yield [number, values]


def _convert(value: Any) -> Any:
    if type(value) is float and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return str(value)
    if type(value) is int and not -(2**63) <= value < 2**63:
        return str(value)
    if type(value) is str and "_x" in value:
        return _unescape(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _unescape(text: str) -> str:
    """The text with `_x000D_` as the character; unchanged if the result is not a text that can be stored."""
    plain = unescape(text)
    try:
        plain.encode()
    except UnicodeEncodeError:
        return text
    return text if "\0" in plain else plain


def main() -> int:
    sheet, row_bytes, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    raw = open(0, "rb", closefd=False)  # noqa: SIM115
    return print_lines(read_all(raw, sheet, Limits(row_bytes, rows)), _MEMORY)


if __name__ == "__main__":
    sys.exit(main())
