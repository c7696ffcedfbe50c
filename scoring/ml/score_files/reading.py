"""Reads text files with a line per segment, checks that they fit each other, and makes records."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from scoring.ml.errors import ScoringError
from scoring.ml.types import Record

STDIN = "-"
#: The texts of a segment in one file: references, or turns of a context.
TextsOfLine: TypeAlias = tuple[str, ...]
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_GZIP = b"\x1f\x8b"
_BOM = "\ufeff"


class FileFault(ScoringError):
    """A file that cannot be scored: `file`, `line` (None: the whole file) and `message`, which names the way out."""

    def __init__(self, file: str, line: int | None, message: str) -> None:
        self.file, self.line, self.message = file, line, message
        super().__init__(f"{file}: {message}" if line is None else f"{file}:{line}: {message}")


@dataclass(frozen=True, slots=True)
class TextFile:
    """The lines of a file; each is one text or, in JSON Lines and files with tabs, several."""

    path: str
    lines: list[TextsOfLine]

    @property
    def name(self) -> str:
        """The name of the file without its folder."""
        return "stdin" if self.path == STDIN else Path(self.path).name

    def texts(self) -> list[str]:
        """The texts of a file with one per line. Raises `FileFault` for a line with several."""
        for number, line in enumerate(self.lines, start=1):
            if len(line) != 1:
                raise FileFault(self.path, number, f"holds {len(line)} texts, one is needed")
        return [line[0] for line in self.lines]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Outputs of systems, line by line, with what they are scored against.

    `references` and `contexts` (n,): the texts of each segment, none where all files have an empty line. `groups` (n,):
    the number of each segment's document. `notes` are remarks on the files."""

    systems: dict[str, list[str]]
    references: list[TextsOfLine] | None
    sources: list[str] | None
    contexts: list[TextsOfLine] | None
    groups: list[int] | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_segments(self) -> int:
        """The number of lines of each file."""
        return len(next(iter(self.systems.values())))

    def make_records(self, system: str) -> list[Record]:
        """The outputs of a `system` as records."""
        texts = self.systems[system]
        nothing: list[TextsOfLine] = [()] * len(texts)
        references, contexts = self.references or nothing, self.contexts or nothing
        sources: Sequence[str | None] = self.sources or [None] * len(texts)
        return [
            Record(text, refs, turns, source, f"line {number}", system)
            for number, (text, refs, turns, source) in enumerate(
                zip(texts, references, contexts, sources, strict=True), start=1
            )
        ]


def read_inputs(
    systems: Sequence[str],
    references: Sequence[str] = (),
    source: str | None = None,
    context: str | None = None,
    groups: str | None = None,
    *,
    encoding: str = "utf-8",
    tabs: bool = False,
) -> Inputs:
    """Read the files of `systems`, of `references` (each file one more reference per segment), and of a `source`, a
    `context` and a document id per segment (`groups`). `-` is standard input, at most once.

    Each line is a segment. A `.jsonl` file has a text or a list of texts in JSON per line. With `tabs`, tab characters
    separate several references, and the turns of a context. An empty line is a missing reference, source or context; in
    `groups` it is a segment that belongs to no document. Raises `FileFault`.
    """
    paths = [*systems, *references, *(path for path in (source, context, groups) if path is not None)]
    if paths.count(STDIN) > 1:
        raise FileFault(STDIN, None, "standard input can be read only once: name a file for the other")

    def read(path: str, *, split: bool = False) -> TextFile:
        return read_file(path, encoding=encoding, tabs=tabs and split)

    outputs = [read(path) for path in systems]
    refs = [read(path, split=True) for path in references]
    sources = None if source is None else read(source)
    contexts = None if context is None else read(context, split=True)
    documents = None if groups is None else read(groups)
    _check_lengths([*refs, *outputs, *(file for file in (sources, contexts, documents) if file is not None)])
    for file in outputs:
        if not any(text.strip() for line in file.lines for text in line):
            raise FileFault(file.path, None, "all lines are empty: there is no output to score")
    joined = None if not refs else _join_references(refs)
    return Inputs(
        systems=dict(zip(_name_systems(outputs), (file.texts() for file in outputs), strict=True)),
        references=joined,
        sources=None if sources is None else sources.texts(),
        contexts=None if contexts is None else [_drop_empty(line) for line in contexts.lines],
        groups=None if documents is None else _number_groups(documents.texts()),
        notes=() if joined is None else _explain_missing(joined, refs),
    )


def read_file(path: str, *, encoding: str = "utf-8", tabs: bool = False) -> TextFile:
    """Read one file, also if it is packed by gzip; see `read_inputs`. Only line feeds end a line, alone or after a
    carriage return."""
    text = _decode(path, _read_bytes(path), encoding).removeprefix(_BOM)
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise FileFault(path, None, "is empty: it needs a line for each segment")
    if path.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        return TextFile(path, list(_parse_json(path, lines)))
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    return TextFile(path, [tuple(line.split("\t")) for line in lines] if tabs else [(line,) for line in lines])


def _read_bytes(path: str) -> bytes:
    try:
        content = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
        return gzip.decompress(content) if content.startswith(_GZIP) else content
    except FileNotFoundError:
        raise FileFault(path, None, "there is no such file") from None
    except IsADirectoryError:
        raise FileFault(path, None, "is a folder: name a text file") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise FileFault(path, None, "is a damaged gzip file: copy it again") from None
    except OSError as error:
        raise FileFault(path, None, f"cannot be read: {error.strerror}") from error


def _decode(path: str, content: bytes, encoding: str) -> str:
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8") and content.startswith(_UTF16):
        raise FileFault(path, None, "is UTF-16, not UTF-8: add --encoding utf-16, or save it as UTF-8")
    try:
        return content.decode(encoding)
    except LookupError:
        raise ScoringError(
            f"--encoding {encoding}: there is no such encoding; usual are utf-8, utf-16, cp1252"
        ) from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        wrong = f"0x{content[error.start]:02X}" if error.start < len(content) else "its end"
        raise FileFault(
            path, line, f"is not {encoding.upper()} at byte {wrong}: name the encoding of the files, such as "
            "--encoding cp1252, or save them as UTF-8"
        ) from None  # fmt: skip


def _parse_json(path: str, lines: Sequence[str]) -> Iterator[TextsOfLine]:
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FileFault(path, number, f"is not JSON ({error}): a .jsonl file has a text or a list of texts in "
                            "JSON on each line") from None  # fmt: skip
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            raise FileFault(path, number, "is neither a text nor a list of texts in JSON, such as \"yes\" or "
                            '["yes", "no"]')  # fmt: skip
        yield tuple(texts)


def _check_lengths(files: Sequence[TextFile]) -> None:
    first = files[0]
    for file in files[1:]:
        if len(file.lines) == len(first.lines):
            continue
        short, long = sorted((first, file), key=lambda each: len(each.lines))
        counts = ", ".join(dict.fromkeys(f"{each.path} {len(each.lines):,}" for each in files))
        raise FileFault(
            long.path, len(short.lines) + 1, f"has no partner in {short.path}, which ends at line "
            f"{len(short.lines):,}: line n of every file is segment n. Lines: {counts}"
        )  # fmt: skip


def _join_references(files: Sequence[TextFile]) -> list[TextsOfLine]:
    """The references of each segment from all files, without empty ones."""
    for file in files:
        if not any(_drop_empty(line) for line in file.lines):
            raise FileFault(file.path, None, "all lines are empty: there is no reference")
    if len(files) == 1:
        return [_drop_empty(line) for line in files[0].lines]
    return [_drop_empty(sum(lines, ())) for lines in zip(*(file.lines for file in files), strict=True)]


def _drop_empty(texts: TextsOfLine) -> TextsOfLine:
    return texts if all(text.strip() for text in texts) else tuple(text for text in texts if text.strip())


def _number_groups(names: Sequence[str]) -> list[int]:
    """A number for each name in order of appearance, and for each empty name one of its own."""
    numbers: dict[str | int, int] = {}
    return [numbers.setdefault(name.strip() or place, len(numbers)) for place, name in enumerate(names)]


def _explain_missing(references: Sequence[TextsOfLine], files: Sequence[TextFile]) -> tuple[str, ...]:
    without = [number for number, texts in enumerate(references, start=1) if not texts]
    if not without:
        return ()
    names = ", ".join(file.path for file in files)
    return (f"{len(without):,} segments have no reference in {names} and no score, the first at line {without[0]:,}",)


def _name_systems(files: Sequence[TextFile]) -> list[str]:
    """A name for each file: without its folder unless two files have the same name."""
    paths = [file.path for file in files]
    twice = next((path for place, path in enumerate(paths) if path in paths[:place]), None)
    if twice is not None:
        raise FileFault(twice, None, "is given twice as a system: give each file once")
    names = [file.name for file in files]
    return names if len(set(names)) == len(names) else paths
