"""Tables in files of any format, row by row in little memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from annotation.parsers.faults import Limits, StopReading
from evalapp.translation import gettext as _

from .aligned import AlignedSource, is_archive_of_texts
from .delimited import DelimitedSource
from .headers import find_header
from .json_table import JsonSource
from .mapping import Reading
from .sources import Report, Row, Source, ignore

#: Rows that are read to know the columns, and to propose a mapping.
SAMPLE = 1000


@dataclass
class Table:
    """A table in a file. Iterating gives (number of the row in the file, {column: value}) and leaves out rows that
    cannot be read; `read` reports them. Parts of nested values are columns of their own, as `author.name`."""

    path: Path
    name: str
    format: str
    source: Source
    #: What was found in the file and is not stated in it, such as the encoding.
    notes: list[str] = field(default_factory=list)
    #: Rows that the last conversion has read, imported or not.
    rows_read: int = 0
    _sample: list[tuple[int, Row]] | None = None
    _columns: list[str] | None = None

    @property
    def columns(self) -> list[str]:
        """The columns in their order; in JSON those of the first rows."""
        if self._columns is None:
            self._columns = self.source.columns
            if self._columns is None:
                self._columns = list(dict.fromkeys(name for _, row in self.sample for name in row))
        return self._columns

    @property
    def is_open(self) -> bool:
        """Whether rows can have columns that the first rows do not have."""
        return self.source.columns is None

    @property
    def reading(self) -> Reading:
        """How the file is read."""
        return self.source.reading

    @property
    def sample(self) -> list[tuple[int, Row]]:
        """The first rows."""
        if self._sample is None:
            self._sample = list(islice(self, SAMPLE))
        return self._sample

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        return self.read()

    def read(self, report: Report = ignore) -> Iterator[tuple[int, Row]]:
        """All rows. `report` gets (row, column, message) of each that cannot be read; `StopReading` is raised if the
        rest of the file cannot be read."""
        return self.source.read(report)

    def with_rows(self, sample: list[tuple[int, Row]], columns: list[str]) -> Table:
        """The same table with other first rows and columns, to propose a mapping for."""
        return replace(self, _sample=sample, _columns=columns)

    def describe_column(self, name: str) -> str:
        """The column in messages: in spreadsheets with its letter."""
        letter = self.source.letters.get(name)
        return f"{name} ({letter})" if letter else name

    def tell(self) -> int:
        """The number of bytes of the file that have been read."""
        return self.source.position


def open_table(path: str | Path, name: str = "", reading: Reading | None = None, limits: Limits | None = None) -> Table:
    """The table in a file. `name`: the file's name if the path has another one; its ending states the format.
    `reading`: how to read the file where it does not say so; without it, titles above the names of the columns and
    names in two rows are found, and noted. Raises `StopReading` with what to do about a file that cannot be read."""
    path = Path(path)
    name = name or path.name
    if path.is_dir():
        return _as_table(AlignedSource(path, name, reading or Reading(), limits or Limits()))
    limits = (limits or Limits()).for_file(path.stat().st_size)
    with path.open("rb") as raw:
        head = raw.read(1 << 12)
    if not head:
        raise StopReading(_("The file is empty. Leave it out, or write its rows."))
    read = _find_reader(path, name, head)
    source = read(path, name, reading or Reading(), limits)
    if reading is None and (found := find_header(source.read_head())) != (0, 1):
        above, count = found
        source = read(path, name, Reading(skip_above=above, header_rows=count), limits)
        if above:
            source.notes.append(_("The names of the columns are below %(n)s rows of title.", n=above))
        if count > 1:
            source.notes.append(_("The names of the columns are in %(n)s rows.", n=count))
    return _as_table(source)


def open_files(files: Sequence[tuple[str, Path]], limits: Limits | None = None) -> Table:
    """The table of aligned text files: names and paths. Raises `StopReading`."""
    name, path = files[0]
    return _as_table(AlignedSource(Path(path), name, Reading(), limits or Limits(), files))


def _as_table(source: Source) -> Table:
    return Table(source.path, source.name, source.format, source, source.notes)


def _find_reader(path: Path, name: str, head: bytes) -> type[Source]:
    """The reader of a file by its first bytes and the ending of its name. Those of large libraries are imported when
    they are needed."""
    stem = name.lower().removesuffix(".gz")
    if head.startswith(b"PAR1") or stem.endswith(".parquet"):
        from .parquet import ParquetSource

        return ParquetSource
    if head.startswith(b"PK") and is_archive_of_texts(path):
        return AlignedSource
    if head.startswith((b"PK", b"\xd0\xcf\x11\xe0")) or stem.endswith((".xlsx", ".xlsm")):
        from .xlsx import XlsxSource

        return XlsxSource
    if stem.endswith((".txt", ".src", ".ref", ".hyp", ".out")) and b"\t" not in head:
        return AlignedSource
    if stem.endswith((".json", ".jsonl", ".ndjson")):
        return JsonSource
    return DelimitedSource
