"""Spreadsheets (.xlsx) as tables. A separate process with limited memory reads them (`xlsx_process`)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from openpyxl.utils import get_column_letter

from annotation.parsers.faults import Limits, StopReading
from annotation.parsers.limited_process import read_process
from evalapp.translation import gettext as _

from .mapping import Reading
from .sources import HEAD, Report, Row, Source, join_headers, name_columns
from .values import WrongCell

_MODULE = "annotation.mapping.xlsx_process"
_OLE = b"\xd0\xcf\x11\xe0"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
#: A spreadsheet unpacks to 5 to 50 times its size.
_MOST_RATIO, _FREE_BYTES = 200, 100_000_000
#: Parts that are read as a whole: the texts of all cells, styles, the list of sheets.
MOST_PART = 400_000_000
#: So many sheets are named in a note, and tried for a table.
_LISTED = 6


def check_workbook(path: Path) -> None:
    """Raises `StopReading` for files that are no spreadsheet, or unpack to too much."""
    with path.open("rb") as raw:
        if raw.read(4) == _OLE:
            raw.seek(0)
            if _ENCRYPTED in raw.read(1 << 20):
                raise StopReading(
                    _("The spreadsheet is protected by a password. Remove it in your program, and save the file again.")
                )
            raise StopReading(_("This is an old Excel file (.xls). Save it as .xlsx or CSV."))
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise StopReading(_("The file is no spreadsheet (.xlsx), or is damaged. Save it again.")) from error
    names = {part.filename for part in parts}
    if "xl/workbook.xml" not in names:
        raise StopReading(_("The file is an archive without a spreadsheet (.xlsx) in it."))
    if any(part.flag_bits & 1 for part in parts):
        raise StopReading(_("The spreadsheet is protected by a password. Save it without one."))
    total = sum(part.file_size for part in parts)
    if total > _FREE_BYTES + _MOST_RATIO * path.stat().st_size:
        raise StopReading(
            _("The spreadsheet unpacks to %(total)s MB, far more than its size allows.", total=f"{total >> 20:,}")
        )
    for part in parts:
        if part.file_size > MOST_PART and not part.filename.startswith("xl/worksheets/"):
            message = _("The part %(name)s of the spreadsheet has %(size)s MB. Save the sheet as CSV.")
            raise StopReading(message % {"name": part.filename[:100], "size": f"{part.file_size >> 20:,}"})


class XlsxSource(Source):
    format = "xlsx"

    def __init__(self, path: Path, name: str, reading: Reading, limits: Limits) -> None:
        super().__init__(path, name, reading, limits)
        check_workbook(path)
        with self._read_cells() as rows:
            first = next(rows, None)
            sheets = first[1] if first else []
            if reading.sheet or len(sheets) < 2:
                self.columns = self._read_header(rows)
        if self.columns is None:
            chosen = self._choose_sheet(sheets)
            listed = ", ".join(f"“{sheet}”" for sheet in sheets[:_LISTED] if sheet != chosen)
            self.notes.append(_("The sheet “%(sheet)s” is read. Others are %(others)s.", sheet=chosen, others=listed))
            self.reading = replace(reading, sheet=chosen)
            with self._read_cells() as rows:
                next(rows, None)
                self.columns = self._read_header(rows)
        self.letters = {name: get_column_letter(k) for k, name in enumerate(self.columns, 1)}

    def _choose_sheet(self, sheets: list[str]) -> str:
        """The first sheet with two cells in a row, which a cover or instructions do not have."""
        for sheet in sheets[:_LISTED]:
            self.reading = replace(self.reading, sheet=sheet)
            if any(sum(cell is not None for cell in cells) > 1 for cells in self.read_head()):
                return sheet
        return sheets[0]

    @contextmanager
    def _read_cells(self) -> Iterator[Iterator[Any]]:
        """(0, names of the sheets), then the lines of `xlsx_process`."""
        with ExitStack() as stack:
            raw = stack.enter_context(self.path.open("rb"))
            arguments = [self.reading.sheet, str(self.limits.row_bytes), str(self.limits.rows)]
            damaged = _("The spreadsheet is damaged, or its texts need too much memory. Save the sheet as CSV.")
            yield read_process(stack, _MODULE, arguments, raw, lambda _rows: damaged)

    def _read_header(self, rows: Iterator[Any]) -> list[str]:
        first = self.reading.skip_above
        found = list(islice(rows, first, first + self.reading.header_rows))
        if not found:
            raise StopReading(_("The sheet is empty. Write the names of the columns in its first row."))
        for number, _cells, *wrong in found:
            for _column, message in wrong[0] if wrong else ():
                raise StopReading(message, number)
        names = join_headers([_read_names(cells) for _number, cells, *_wrong in found])
        while names and not names[-1].strip():
            names.pop()
        return name_columns(names)

    def read_head(self) -> list[list[Any]]:
        with self._read_cells() as rows:
            return [cells for _number, cells, *_wrong in islice(rows, 1, HEAD + 1) if isinstance(cells, list)]

    def read(self, report: Report) -> Iterator[tuple[int, Row]]:
        columns = self.columns
        assert columns is not None
        width, count, below = len(columns), 0, self.reading.skip_below
        with self._read_cells() as rows:
            next(rows, None)
            self._read_header(rows)
            for number, cells, *wrong in rows:
                if below:
                    below -= 1
                    continue
                count += 1
                if type(cells) is str:
                    report(number, "", cells)
                    continue
                for column, message in wrong[0] if wrong else ():
                    cells[column] = WrongCell(str(cells[column]), message)
                if len(cells) > width and any(cell is not None for cell in cells[width:]):
                    report(number, "", _("The row has cells to the right of the last named column. Name that column."))
                    continue
                yield number, dict(zip(columns, cells + [None] * (width - len(cells)), strict=False))
        if not count:
            raise StopReading(_("The sheet has a header but no rows."))


def _read_names(cells: Any) -> list[str]:
    return ["" if cell is None else str(cell) for cell in cells] if isinstance(cells, list) else []
