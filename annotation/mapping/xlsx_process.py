"""The process that reads a spreadsheet for `xlsx.XlsxSource`: the file on stdin, sheet and limits as arguments, lines
of JSON on stdout. `[0, sheets]` comes first; `[row, cells]` is a row, `[row, cells, wrong]` one with cells that cannot
be read (each with its position and a message), `[row, message]` a faulty one, and `[row, message, "stop"]` the reason
why reading stopped.

openpyxl reads the list of sheets and the formats of dates. Cells and their texts, which are nearly all of a file, are
read here in pieces: it is several times as fast, and memory does not grow with the number of rows."""

from __future__ import annotations

import re
import sys
import zipfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import IO, Any
from xml.parsers import expat

from openpyxl.packaging.manifest import Manifest
from openpyxl.reader.excel import ExcelReader
from openpyxl.styles.numbers import BUILTIN_FORMATS_MAX_SIZE, builtin_format_code
from openpyxl.styles.stylesheet import apply_stylesheet
from openpyxl.utils import get_column_letter
from openpyxl.utils.datetime import from_excel, from_ISO8601
from openpyxl.utils.escape import unescape
from openpyxl.xml.constants import ARC_SHARED_STRINGS, SHARED_STRINGS

from annotation.parsers.faults import Limits, StopReading
from annotation.parsers.limited_process import print_lines
from evalapp.translation import gettext as _

_CHUNK = 1 << 17
_MEMORY = 1 << 30
#: Columns of a sheet; a place further right is damaged.
_MOST_COLUMNS = 16_384
_WRONG = (zipfile.BadZipFile, expat.ExpatError, SyntaxError, ValueError, KeyError, TypeError, AttributeError,
          IndexError, OSError, EOFError, NotImplementedError)  # fmt: skip


def read_all(raw: IO[bytes], sheet: str, limits: Limits) -> Iterator[list[Any]]:
    """The lines to write, see above."""
    try:
        book = Workbook(raw)
        names = list(book.sheets)
        if not names:
            raise StopReading(_("The spreadsheet has no sheet with cells."))
        if sheet and sheet not in names:
            listed = ", ".join(f"“{name}”" for name in names[:10])
            raise StopReading(_("There is no sheet “%(sheet)s”. There are %(names)s.", sheet=sheet, names=listed))
        yield [0, names]
        for count, (number, cells) in enumerate(book.read_rows(sheet or names[0], limits.row_bytes)):
            if count > limits.rows:
                raise StopReading(limits.describe_rows(), number)
            yield [number, *cells] if type(cells) is tuple else [number, cells]
    except _WRONG as error:
        raise StopReading(_("The spreadsheet is damaged (%(error)s). Save it again.", error=error)) from error


class Workbook:
    """`sheets`: by name, the part of the archive with its cells."""

    def __init__(self, raw: IO[bytes]) -> None:
        reader = ExcelReader(raw, read_only=True, data_only=True, keep_links=False)
        reader.read_manifest()
        reader.read_workbook()
        apply_stylesheet(reader.archive, reader.wb)
        self.archive: zipfile.ZipFile = reader.archive
        self.sheets: dict[str, str] = {
            sheet.name: link.target
            for sheet, link in reader.parser.find_sheets()
            if link.target in reader.valid_files and "chartsheet" not in link.Type
        }
        self.epoch = reader.wb.epoch
        self.dates, self.durations = reader.wb._date_formats, reader.wb._timedelta_formats
        custom = reader.wb._number_formats
        formats = [_find_format(style.numFmtId, custom) for style in reader.wb._cell_styles]
        #: Styles that show a date without its time, and styles that show a percentage.
        self.days = {k for k in self.dates if k < len(formats) and not re.search("[hs]", formats[k], re.IGNORECASE)}
        self.percents = {k for k, one in enumerate(formats) if "%" in one}
        self.texts = self._open_texts(reader.package)

    def _open_texts(self, package: Manifest) -> SharedTexts:
        stated = package.find(SHARED_STRINGS)
        name = stated.PartName[1:] if stated is not None else ARC_SHARED_STRINGS
        return SharedTexts(self.archive.open(name) if name in self.archive.namelist() else None)

    def read_rows(self, sheet: str, longest: int) -> Iterator[tuple[int, Any]]:
        """(row, cells); (row, (cells, wrong)) if some cannot be read, see above; (row, message) for a faulty row. Rows
        without cells are left out."""
        with self.archive.open(self.sheets[sheet]) as part:
            parser = SheetParser(self, longest)
            for _piece in parse_pieces(part, parser.open, parser.close, parser.add_text):
                yield from parser.rows
                parser.rows.clear()

    def read_date(self, number: float, style: int) -> str:
        """A date, a time or a duration as text; `number` counts days."""
        value = from_excel(number, self.epoch, timedelta=style in self.durations)
        return str(value) if style in self.durations else self.write_date(value, style)

    def write_date(self, value: Any, style: int) -> str:
        """A date or a time in ISO 8601; without its time if the cell does not show it, as in the same sheet in CSV."""
        is_day = style in self.days and isinstance(value, datetime)
        return str(value.date().isoformat() if is_day else value.isoformat())


def _find_format(number: int, custom: Sequence[str]) -> str:
    """The format of a style, without texts, colours and languages in it."""
    at = number - BUILTIN_FORMATS_MAX_SIZE
    text = custom[at] if 0 <= at < len(custom) else builtin_format_code(number) or ""
    return re.sub(r'"[^"]*"|\[(?![hms])[^\[\]]{0,80}\]|\\.', "", text, flags=re.IGNORECASE)


def _write_percent(number: float) -> str:
    """A percentage as it is shown, with all its digits. Three decimals get a fourth one, because `1.125` may be read as
    thousands."""
    shown = round(100 * number, 10)
    text = str(int(shown)) if shown.is_integer() and abs(shown) < 2**53 else str(shown)
    return f"{text}{'0' if text[-4:-3] == '.' else ''}%"


def parse_pieces(
    part: IO[bytes], open: Callable[[str, dict[str, str]], None], close: Callable[[str], None],
    add_text: Callable[[str], None],
) -> Iterator[None]:  # fmt: skip
    """Parse XML; gives control back after each piece. Names come without their namespace. Entities, which can grow
    without end, are refused."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    names: dict[str, str] = {}

    def find_name(name: str) -> str:
        return names.get(name) or names.setdefault(name, name.rpartition(" ")[2])

    parser.StartElementHandler = lambda name, attributes: open(find_name(name), attributes)
    parser.EndElementHandler = lambda name: close(find_name(name))
    parser.CharacterDataHandler = add_text
    parser.EntityDeclHandler = _refuse_entity
    while chunk := part.read(_CHUNK):
        parser.Parse(chunk, False)
        yield
    parser.Parse(b"", True)
    yield


def _refuse_entity(*declared: Any) -> None:
    raise ValueError(_("it declares entities"))


class SharedTexts:
    """The texts that cells refer to by number, read as far as they are needed, and kept as UTF-8 without objects."""

    def __init__(self, part: IO[bytes] | None) -> None:
        self.content = bytearray()
        self.ends = array("Q")
        self.pieces: list[str] = []
        self.is_text = self.is_phonetic = False
        self.parsing = iter(()) if part is None else parse_pieces(part, self.open, self.close, self.add_text)

    def __getitem__(self, number: int) -> str:
        while number >= len(self.ends):
            if next(self.parsing, self) is self:
                raise ValueError(_("the text %(number)d is missing", number=number))
        start = self.ends[number - 1] if number else 0
        return self.content[start : self.ends[number]].decode()

    def open(self, name: str, attributes: dict[str, str]) -> None:
        if name == "t":
            self.is_text = not self.is_phonetic
        elif name == "rPh":
            self.is_phonetic = True

    def close(self, name: str) -> None:
        if name == "t":
            self.is_text = False
        elif name == "rPh":
            self.is_phonetic = False
        elif name == "si":
            self.content += _join(self.pieces).encode()
            self.ends.append(len(self.content))
            self.pieces.clear()

    def add_text(self, text: str) -> None:
        if self.is_text:
            self.pieces.append(text)


def _join(pieces: list[str]) -> str:
    """A text, with `_x000D_` as the character; unchanged if the result could not be stored."""
    text = "".join(pieces)
    if "_x" not in text:
        return text
    plain = unescape(text)
    try:
        plain.encode()
    except UnicodeEncodeError:
        return text
    return text if "\0" in plain else plain


class SheetParser:
    """The cells of a sheet. `rows`: those that are complete, see `Workbook.read_rows`."""

    def __init__(self, book: Workbook, longest: int) -> None:
        self.book, self.longest = book, longest
        self.rows: list[tuple[int, Any]] = []
        self.row = self.column = self.size = self.style = 0
        self.cells: list[Any] = []
        self.kind, self.pieces = "n", list[str]()
        self.is_value = self.is_phonetic = self.has_formula = False
        #: Cells that cannot be read: their number in the row, and why.
        self.wrong: list[tuple[int, str]] = []
        self.columns: dict[str, int] = {}

    def open(self, name: str, attributes: dict[str, str]) -> None:
        if name == "c":
            place = attributes.get("r")
            self.column = self._find_column(place) if place else self.column + 1
            self.kind, self.style = attributes.get("t", "n"), int(attributes.get("s", 0))
            self.has_formula = False
        elif name == "v" or name == "t":
            self.is_value = not self.is_phonetic
        elif name == "row":
            self.row = int(attributes.get("r", self.row + 1))
            self.column, self.size, self.cells, self.wrong = 0, 0, [], []
        elif name == "f":
            self.has_formula = True
        elif name == "rPh":
            self.is_phonetic = True

    def close(self, name: str) -> None:
        if name == "c":
            self._add_cell()
        elif name == "v" or name == "t":
            self.is_value = False
        elif name == "row":
            self._add_row()
        elif name == "rPh":
            self.is_phonetic = False

    def add_text(self, text: str) -> None:
        if self.is_value:
            self.size += len(text)
            if self.size <= self.longest:
                self.pieces.append(text)

    def _find_column(self, place: str) -> int:
        """The number of the column of a cell such as AB12."""
        letters = place.rstrip("0123456789")
        number = self.columns.get(letters, 0)
        if not number:
            for letter in letters.replace("$", "").upper():
                number = 26 * number + "ABCDEFGHIJKLMNOPQRSTUVWXYZ".index(letter) + 1
            if not 0 < number <= _MOST_COLUMNS:
                raise ValueError(_("there is no cell “%(cell)s”", cell=place[:40]))
            self.columns[letters] = number
        return number

    def _add_cell(self) -> None:
        pieces = self.pieces
        text = pieces[0] if len(pieces) == 1 else "".join(pieces)
        pieces.clear()
        if not text:
            if not (self.has_formula and self.kind != "str"):
                return
            message = _(
                "The cell %(cell)s has a formula without a stored value. Open the file in a spreadsheet program and "
                "save it, or paste the values."
            )
            self._fail(message % {"cell": f"{get_column_letter(self.column)}{self.row}"})
            value: Any = "=…"
        else:
            value = self._read_value(text)
        if type(value) is str:
            self.size += len(value) if self.kind == "s" else 0
        cells, gap = self.cells, self.column - len(self.cells) - 1
        if gap < 0:
            cells[self.column - 1] = value
        else:
            if gap:
                cells.extend([None] * gap)
            cells.append(value)

    def _read_value(self, text: str) -> Any:
        kind = self.kind
        if kind == "s":
            return self.book.texts[int(text)]
        if kind == "n":
            number = float(text)
            if self.style in self.book.dates:
                return self._read_date(number)
            if self.style in self.book.percents:
                return _write_percent(number)
            if number.is_integer() and abs(number) < 2**53:
                return int(number)
            if text.lstrip("-").isdigit():
                return int(text) if abs(number) < 2**63 else text
            return number
        if kind == "inlineStr" or kind == "str":
            return _join([text])
        if kind == "b":
            return text.strip() in ("1", "true")
        if kind == "d":
            return self.book.write_date(from_ISO8601(text), self.style)
        if kind == "e":
            self._fail(_("The formula gives the error %(error)s. Correct it.", error=text[:40]))
            return text[:40]
        raise ValueError(_("the cell type “%(type)s” is unknown", type=kind[:40]))

    def _read_date(self, number: float) -> str:
        try:
            return self.book.read_date(number, self.style)
        except (ValueError, OverflowError):
            self._fail(_("“%(text)s” is no date. Correct it, or format the cell as a number.", text=number))
            return str(number)

    def _fail(self, message: str) -> None:
        self.wrong.append((self.column - 1, message))

    def _add_row(self) -> None:
        if self.size > self.longest:
            size = f"{self.longest:,}"
            message = _("The row is longer than %(bytes)s bytes. Shorten it or raise MAX_ROW_KB.", bytes=size)
            self.rows.append((self.row, message))
        elif self.cells:
            self.rows.append((self.row, (self.cells, self.wrong) if self.wrong else self.cells))


def main() -> int:
    sheet, row_bytes, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    raw = open(0, "rb", closefd=False)  # noqa: SIM115
    return print_lines(read_all(raw, sheet, Limits(row_bytes, rows)), _MEMORY)


if __name__ == "__main__":
    sys.exit(main())
