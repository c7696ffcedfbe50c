"""Reads and checks the pairs of a corpus: a JSONL file, plain or gzip, or any iterable."""

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from evalapp.translation import gettext as _
from retrieval.index.errors import CorpusError

LONGEST_LINE = 16 << 20
Source = str | os.PathLike[str] | Iterable[Mapping[str, Any]]

_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
_scan: Callable[[str, int], tuple[Any, int]] = vars(json.JSONDecoder())["scan_once"]


class Pair(NamedTuple):
    """One row as given. `place` is its line in the file, or its number in the iterable, from 1."""

    place: int
    query: str
    response: str
    meta: dict[str, Any] | None


class Reader:
    """The pairs of a source, with progress: `done` of `total` bytes of a file, or `done` rows (total 0) of an
    iterable."""

    def __init__(self, source: Source) -> None:
        self.name = "rows"
        self.done = self.total = 0
        self._rows: Iterable[Mapping[str, Any]] | None = None
        if isinstance(source, str | os.PathLike):
            self.path = Path(source)
            self.name = self.path.name
            try:
                self.total = self.path.stat().st_size
            except OSError as error:
                raise CorpusError(
                    str(source), 0, _("cannot be read (%(reason)s); check the path", reason=error.strerror)
                ) from error
        else:
            self._rows = source

    def __iter__(self) -> Iterator[Pair]:
        if self._rows is None:
            yield from self._read_file()
            return
        for place, row in enumerate(self._rows, 1):
            self.done = place
            yield self.check(place, row)

    def _read_file(self) -> Iterator[Pair]:
        place = 0
        with self.path.open("rb") as raw:
            zipped = raw.read(2) == _GZIP
            raw.seek(0)
            plain: IO[bytes] = gzip.GzipFile(fileobj=raw) if zipped else raw  # type: ignore[assignment]
            try:
                while line := plain.readline(LONGEST_LINE + 1):
                    place += 1
                    if place == 1:
                        line = line.removeprefix(_MARK)
                    if len(line) > LONGEST_LINE:
                        message = _(
                            "is longer than %(limit)s bytes; shorten the row or leave it out", limit=f"{LONGEST_LINE:,}"
                        )
                        raise self.fault(place, message)
                    if place & 1023 == 0:
                        self.done = raw.tell()
                    if not line.isspace():
                        yield self.check(place, self._parsed(place, line))
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                message = _("the gzip file is damaged or ends in the middle; compress or transfer it again")
                raise self.fault(place + 1, message) from error
        self.done = self.total

    def _parsed(self, place: int, line: bytes) -> Any:
        try:
            text = line.decode("utf-8").strip()
            try:
                row, end = _scan(text, 0)  # what json.loads calls in the end
            except StopIteration:
                end = -1
            return row if end == len(text) else json.loads(text)
        except UnicodeDecodeError as error:
            raise self.fault(place, _("is not UTF-8; save the file as UTF-8")) from error
        except (ValueError, RecursionError) as error:
            message = _('is not JSON (%(reason)s); write one {"query", "response"} a line', reason=error)
            raise self.fault(place, message) from error

    def check(self, place: int, row: Any) -> Pair:
        if type(row) is not dict and not isinstance(row, Mapping):
            raise self.fault(place, _('is not an object; write one {"query", "response"} a line'))
        query: Any = row.get("query")
        response: Any = row.get("response")
        meta = row.get("meta")
        for name, value in (("query", query), ("response", response)):
            if type(value) is not str or not value or value.isspace():
                if value is None:
                    message = _('"%(name)s" is missing; give every row a query and a response', name=name)
                elif isinstance(value, str):
                    message = _('"%(name)s" is empty; give every row a query and a response', name=name)
                else:
                    message = _('"%(name)s" is not a text; give every row a query and a response', name=name)
                raise self.fault(place, message)
        if meta is not None and not isinstance(meta, dict):
            raise self.fault(place, _('"meta" is not an object; write {"meta": {...}} or leave it out'))
        return Pair(place, query, response, meta or None)

    def fault(self, place: int, message: str) -> CorpusError:
        return CorpusError(self.name, place, message)
