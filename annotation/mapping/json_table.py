"""JSON files as tables: an array of objects, or one object per line; of any size, in little memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from annotation.parsers.faults import Limits, StopReading
from annotation.parsers.files import open_plain
from annotation.parsers.rows import read_jsonl
from annotation.parsers.strict_json import NUL, decode_object, explain_json, has_nul
from evalapp.translation import gettext as _

from .mapping import Reading
from .sources import Report, Row, Source, flatten_row

_CHUNK = 1 << 20
#: Bytes that are searched for the array of an object such as {"data": [...]}.
_HEAD = 1 << 20
_SPACE = re.compile(r"[\s,]*")
_ARRAY = re.compile(r'"((?:[^"\\]|\\.){0,200})"\s{0,200}:\s{0,200}\[\s*(?=\{)')
_decoder = json.JSONDecoder(parse_constant=float)


class _Text:
    """The text of a file, read as far as it is needed."""

    def __init__(self, plain: IO[bytes]) -> None:
        self.plain = plain
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.text = ""
        self.at = 0
        self.is_whole = False

    def extend(self) -> bool:
        """Read more; False at the end of the file."""
        if self.is_whole:
            return False
        raw = self.plain.read(_CHUNK)
        self.is_whole = not raw
        try:
            more = self.decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            raise StopReading(_("The file is not UTF-8. Save it as UTF-8.")) from error
        self.text, self.at = self.text[self.at :] + more, 0
        return True

    def skip(self) -> str:
        """The next character that is not white space or a comma; empty at the end."""
        while True:
            match = _SPACE.match(self.text, self.at)
            assert match is not None
            self.at = match.end()
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.extend():
                return ""


class JsonSource(Source):
    format = "json"

    def __init__(self, path: Path, name: str, reading: Reading, limits: Limits) -> None:
        super().__init__(path, name, reading, limits)
        self.start = self._find_start()
        if self.start is None:
            self.format = "jsonl"

    def _find_start(self) -> int | None:
        """The position of the array in the text; None if the file has an object per line."""
        with self.path.open("rb") as raw:
            text = _Text(open_plain(raw))
            first = text.skip()
            if first == "[":
                return text.at + 1
            if first != "{":
                raise StopReading(_("The file is not JSON: it begins with “%(first)s”.", first=first))
            while len(text.text) < _HEAD and text.extend():
                pass
            line, _cut, rest = text.text[text.at :].partition("\n")
            match = _ARRAY.search(text.text, text.at)
            is_named = self.name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson"))
            if _is_object(line) and (rest.strip() or match is None or is_named):
                return None
            if match is None:
                raise StopReading(
                    _("The file has neither an array of objects nor an object per line. Write one of the two.")
                )
            self.notes.append(_("The rows are the objects under “%(name)s”.", name=match[1]))
            return match.end()

    def read(self, report: Report) -> Iterator[tuple[int, Row]]:
        with self.path.open("rb") as raw:
            rows = self._read_array(raw, report) if self.start is not None else self._read_lines(raw, report)
            for count, (number, row) in enumerate(rows):
                if not count % 500:
                    self.position = raw.tell()
                yield number, flatten_row(row)
            self.position = raw.tell()

    def _read_lines(self, raw: IO[bytes], report: Report) -> Iterator[tuple[int, Row]]:
        return read_jsonl(open_plain(raw), self.limits, report)

    def _read_array(self, raw: IO[bytes], report: Report) -> Iterator[tuple[int, Row]]:
        text = _Text(open_plain(raw))
        while len(text.text) < (self.start or 0) and text.extend():
            pass
        text.at = self.start or 0
        number, total = 0, 0
        while (first := text.skip()) != "]":
            number += 1
            if not first:
                raise StopReading(_("The file ends in the middle of the array. Save or download it again."), number)
            if number > self.limits.rows:
                raise StopReading(self.limits.describe_rows(), number)
            end = self._find_end(text, number)
            piece = text.text[text.at : end].encode()
            text.at = end
            total += len(piece)
            if total > self.limits.total_bytes:
                raise StopReading(self.limits.describe_size(), number)
            fault, row = _check(piece, self.limits)
            if fault:
                report(number, "", fault)
            else:
                yield number, row
        if not number:
            raise StopReading(_("The file has no rows. Leave it out, or write its rows."))

    def _find_end(self, text: _Text, number: int) -> int:
        """The end of the value at the current place. Raises `StopReading` if it is too long or not JSON."""
        while True:
            try:
                return _decoder.raw_decode(text.text, text.at)[1]
            except RecursionError as error:
                raise StopReading(_("The row is nested too deeply."), number) from error
            except json.JSONDecodeError as error:
                is_short = len(text.text) - text.at <= 4 * self.limits.row_bytes
                is_cut = error.pos >= len(text.text) - 32 or error.msg.startswith("Unterminated")
                if is_cut and not is_short:
                    message = _("The row is longer than %(bytes)s bytes. Shorten it or raise MAX_ROW_KB.")
                    raise StopReading(message % {"bytes": f"{self.limits.row_bytes:,}"}, number) from error
                if not is_cut or not text.extend():
                    message = _("This is not JSON: %(error)s.", error=error.msg)
                    raise StopReading(message, number) from error


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _check(piece: bytes, limits: Limits) -> tuple[str, Any]:
    """(fault or "", row), as strict as for lines."""
    if len(piece) > limits.row_bytes:
        size = f"{limits.row_bytes:,}"
        return _("The row is longer than %(bytes)s bytes. Shorten it or raise MAX_ROW_KB.", bytes=size), None
    try:
        row = decode_object(piece)
    except ValueError as error:
        return explain_json(piece, error), None
    if b"\\u0000" in piece and has_nul(row):
        return _(NUL), None
    if type(row) is not dict:
        return _("The row is not an object. Write objects { ... } in the array."), None
    return "", row
