"""Aligned text files as a table: a line per item, a file per column. They are several files, a folder or an archive.
Files of segment scores (`NAME.seg.score`, lines of system and score) are a column per system: `NAME.seg.score:gpt`. So
are those of whole systems in a folder `metric-scores` (`NAME.sys.score`), with all scores in the first row."""

from __future__ import annotations

import math
import re
import zipfile
from array import array
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from annotation.parsers.faults import Limits, StopReading
from annotation.parsers.files import open_plain, read_lines
from evalapp.translation import gettext as _

from .mapping import Reading
from .sources import Report, Row, Source, ignore

MOST_FILES = 1000
SCORES, OF_SYSTEMS = ".seg.score", ".sys.score"
#: The folder of metrics' scores; scores in other files are people's.
METRICS = "metric-scores"
#: Files without a line per item, next to the others in folders of mt-metrics-eval and of exports.
_OTHERS = (".domain.score", ".md", ".json")
#: Scores are held in memory.
_MOST_SCORES = 200_000_000
#: Numbers that `Scores` writes as they are, but for zeros; longer ones stay texts.
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,15})?")
_NO_SCORE = frozenset(["", "none", "nan", "null"])


@dataclass(frozen=True)
class AlignedFile:
    """A file: its name, its size, and how to open it."""

    name: str
    size: int
    open: Callable[[], IO[bytes]]


def list_folder(folder: Path) -> list[AlignedFile]:
    """The files of a folder and of the folders in it, without hidden ones."""
    found = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not any(part.startswith(".") for part in PurePosixPath(name).parts):
            found.append(AlignedFile(name, path.stat().st_size, lambda path=path: path.open("rb")))  # type: ignore[misc]
    return found


def list_archive(archive: zipfile.ZipFile) -> list[AlignedFile]:
    """The files of a zip archive, without hidden ones."""
    return [
        AlignedFile(part.filename, part.file_size, lambda part=part: archive.open(part))  # type: ignore[misc]
        for part in sorted(archive.infolist(), key=lambda part: part.filename)
        if not part.is_dir() and not any(name.startswith((".", "__")) for name in PurePosixPath(part.filename).parts)
    ]


def is_archive_of_texts(path: Path) -> bool:
    """Whether a zip archive is no spreadsheet."""
    try:
        with zipfile.ZipFile(path) as archive:
            return not any(name.startswith("xl/") for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError):
        return False


class Scores:
    """The scores of a system in the order of the items, in eight bytes each; what is no plain number stays a text."""

    def __init__(self) -> None:
        self.numbers = array("d")
        self.texts: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, text: str) -> None:
        number = math.nan
        if _NUMBER.fullmatch(text):
            number = float(text)
        elif text.lower() not in _NO_SCORE:
            self.texts[len(self.numbers)] = text
        self.numbers.append(number)

    def get(self, place: int) -> str:
        """A score as text; empty if there is none."""
        number = self.numbers[place]
        if math.isnan(number):
            return self.texts.get(place, "")
        return str(int(number)) if number.is_integer() else repr(number)


def _is_read(name: str) -> bool:
    """Whether a file is a part of the table. The mean ratings of systems follow from those of segments."""
    if name.endswith(OF_SYSTEMS):
        return METRICS in PurePosixPath(name).parts
    return not name.endswith(_OTHERS)


class AlignedSource(Source):
    """`path`: a folder or a zip archive, or `files`: names and paths."""

    format = "lines"

    def __init__(
        self, path: Path, name: str, reading: Reading, limits: Limits, files: Sequence[tuple[str, Path]] = ()
    ) -> None:
        super().__init__(path, name, reading, limits)
        self.paths = [(label, Path(one)) for label, one in files]
        with ExitStack() as stack:
            found = [one for one in self._list(stack) if _is_read(one.name)]
            if not found:
                raise StopReading(_("There are no text files in it."))
            if len(found) > MOST_FILES:
                raise StopReading(_("There are more than %(most)s files.", most=f"{MOST_FILES:,}"))
            if sum(one.size for one in found) > limits.total_bytes:
                raise StopReading(limits.describe_size())
            endings = (SCORES, OF_SYSTEMS)
            self.scores = {one.name: self._read_scores(one) for one in found if one.name.endswith(endings)}
        self.texts = [one.name for one in found if one.name not in self.scores]
        self.columns = [
            *self.texts, *(f"{name}:{system}" for name, systems in self.scores.items() for system in systems),
        ]  # fmt: skip

    def _list(self, stack: ExitStack) -> list[AlignedFile]:
        if self.paths:
            return [AlignedFile(name, path.stat().st_size, lambda path=path: path.open("rb"))  # type: ignore[misc]
                    for name, path in self.paths]  # fmt: skip
        if self.path.is_dir():
            return list_folder(self.path)
        if not zipfile.is_zipfile(self.path):
            return [AlignedFile(self.name, self.path.stat().st_size, lambda: self.path.open("rb"))]
        try:
            return list_archive(stack.enter_context(zipfile.ZipFile(self.path)))
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise StopReading(_("The archive is damaged. Pack it again.")) from error

    def _read_scores(self, file: AlignedFile) -> dict[str, Scores]:
        if file.size > _MOST_SCORES:
            raise StopReading(_("%(file)s is too large for a file of scores.", file=file.name))
        scores: defaultdict[str, Scores] = defaultdict(Scores)
        for number, line in self._read_texts(file):
            system, cut, score = line.rpartition("\t")
            if not cut:
                message = _("%(file)s: write the system, a tab and the score.", file=file.name)
                raise StopReading(message, number)
            scores[system.strip()].add(score.strip())
        return scores

    def _split_scores(self) -> tuple[dict[str, Scores], dict[str, str]]:
        """Columns with the score of each segment, and with that of a whole system, which is in the first row."""
        scores: dict[str, Scores] = {}
        first: dict[str, str] = {}
        for name, systems in self.scores.items():
            for system, values in systems.items():
                if not name.endswith(OF_SYSTEMS):
                    scores[f"{name}:{system}"] = values
                elif len(values) == 1:
                    first[f"{name}:{system}"] = values.get(0)
                else:
                    message = _("%(file)s: “%(system)s” has several scores.", file=name, system=system)
                    raise StopReading(message)
        return scores, first

    def _read_texts(self, file: AlignedFile) -> Generator[tuple[int, str], None, None]:
        with file.open() as raw:
            for number, line in read_lines(open_plain(raw), self.limits):
                if line is None:
                    message = _("%(file)s: the line is longer than %(bytes)s bytes.", file=file.name,
                                bytes=f"{self.limits.row_bytes:,}")  # fmt: skip
                    raise StopReading(message, number)
                try:
                    yield number, line.decode().rstrip("\r\n")
                except UnicodeDecodeError as error:
                    message = _("%(file)s: the line is not UTF-8. Save the file as UTF-8.", file=file.name)
                    raise StopReading(message, number) from error
                except zipfile.BadZipFile as error:
                    raise StopReading(_("The archive is damaged. Pack it again."), number) from error

    def read(self, report: Report = ignore) -> Iterator[tuple[int, Row]]:
        with ExitStack() as stack:
            found = {one.name: one for one in self._list(stack)}
            readers = [self._read_texts(found[name]) for name in self.texts]
            for reader in readers:
                stack.callback(reader.close)
            scores, first = self._split_scores()
            number, n_columns = 0, len(self.texts) + len(scores)
            while True:
                lines = [next(reader, None) for reader in readers]
                ended = [name for name, line in zip(self.texts, lines, strict=True) if line is None]
                ended += [name for name, values in scores.items() if len(values) <= number]
                if len(ended) == n_columns:
                    break
                if ended:
                    longer = next(name for name in (*self.texts, *scores) if name not in ended)
                    message = _("%(shorter)s has %(n)s lines, %(longer)s has more. Every file needs a line per item.")
                    raise StopReading(message % {"shorter": ended[0], "n": f"{number:,}", "longer": longer}, number + 1)
                number += 1
                row: Row = {name: line[1] for name, line in zip(self.texts, lines, strict=True) if line is not None}
                row.update({name: values.get(number - 1) for name, values in scores.items()})
                row.update(first if number == 1 else dict.fromkeys(first, ""))
                self.position += sum(len(line[1]) for line in lines if line is not None)
                yield number, row
            if not number:
                raise StopReading(_("The files have no lines."))
