"""The table in a file, by its name, and its content line by line, unpacked and within limits."""

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Literal, cast

from evalapp.names import strip_hidden
from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop

from .faults import Limits, StopReading
from .writer import DERIVED

#: `safe-csv`: CSV with cells that are safe for spreadsheets, `NAME.safe.csv`.
Format = Literal["jsonl", "csv", "safe-csv", "tsv", "parquet", "json"]
TABLES = (
    "systems", "items", "outputs", "dialogues", "ratings", "comparisons", "corpus", "references", "attempts", "filters",
    "campaigns", "score_sets", "scores", "judge_answers",
)  # fmt: skip
#: Files with a single JSON object, by kind.
DOCUMENTS = {"dataset.json": "dataset", "leaderboard.json": "leaderboard"}

_NAME = re.compile(
    rf"(?P<kind>{'|'.join(TABLES)})(?:[-_.][^/\\]*?)?(?:\.(?:jsonl|ndjson|csv|tsv)(?:\.gz)?|\.parquet)", re.IGNORECASE
)
_DERIVED = re.compile(rf"(?:{'|'.join(re.escape(name) for name in DERIVED)})(?:(?:\.safe)?\.[a-z]+)?")
_ENDING = re.compile(r"(?:\.safe)?\.(?:jsonl|ndjson|json|csv|tsv|parquet)(?:\.gz)?$", re.IGNORECASE)
_GZIP = b"\x1f\x8b"
_WIDE = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_ARCHIVES = {
    b"PK\x03\x04": gettext_noop("a ZIP archive"),
    b"PAR1": gettext_noop("a Parquet file"),
    b"7z\xbc\xaf": gettext_noop("a 7z archive"),
}


@dataclass(frozen=True)
class FileName:
    """`kind` is a name from `TABLES`, `dataset` or `leaderboard`."""

    name: str
    kind: str
    format: Format
    zipped: bool


def name_file(name: str, kind: str = "") -> FileName | None:
    """The content of a file by its name: `outputs.jsonl`, `outputs-gpt.csv.gz`, `dataset.json`. None if the name is
    unknown. A given `kind` replaces the one in the name; then only the ending determines the format."""
    base = name.replace("\\", "/").rsplit("/", 1)[-1]
    document = DOCUMENTS.get(base.lower())
    if document is not None and kind in ("", document):
        return FileName(base, document, "json", False)
    if kind in DOCUMENTS.values():
        return FileName(base, kind, "json", False)
    if kind:
        return FileName(base, kind, *_read_format(base)) if kind in TABLES else None
    match = _NAME.fullmatch(base)
    return None if match is None else FileName(base, match["kind"].lower(), *_read_format(base))


def _read_format(base: str) -> tuple[Format, bool]:
    """The format by the ending; JSONL if it is unknown."""
    stem = base.lower().removesuffix(".gz")
    form: Format = "jsonl"
    for ending, named in ((".safe.csv", "safe-csv"), (".csv", "csv"), (".tsv", "tsv"), (".parquet", "parquet")):
        if stem.endswith(ending):
            form = cast(Format, named)
            break
    return form, base.lower().endswith(".gz")


def shorten_name(name: str, longest: int = 200) -> str:
    """At most `longest` characters for which `name_file` returns the same: beginning and ending stay. Characters that
    are not allowed in names are removed."""
    name = strip_hidden(name)
    if len(name) <= longest:
        return name
    match = _ENDING.search(name)
    ending = match[0] if match else ""
    return f"{name[: longest - 1 - len(ending)]}…{ending}"


def is_derived(name: str) -> bool:
    """Whether an export derives a file of that name from its other files, so that it is not imported."""
    return _DERIVED.fullmatch(name.replace("\\", "/").rsplit("/", 1)[-1]) is not None


def open_plain(raw: IO[bytes], *, named_gzip: bool = False) -> IO[bytes]:
    """`raw` (seekable), decompressed and without byte order mark. Gzip is recognized by its first bytes. Raises
    `StopReading` for content that is certainly not text."""
    head = raw.read(4)
    raw.seek(0)
    if head[:2] == _GZIP:
        plain: IO[bytes] = io.BufferedReader(gzip.GzipFile(fileobj=raw), 1 << 16)
    elif named_gzip and head:
        raise StopReading(_("The name ends in .gz, but the content is not gzip. Rename the file or compress it."))
    else:
        plain = raw if hasattr(raw, "peek") else io.BufferedReader(cast(io.RawIOBase, raw), 1 << 16)
    try:
        start = plain.peek(4)[:4]  # type: ignore[attr-defined]
    except (EOFError, OSError, zlib.error) as error:
        raise StopReading(damaged(error)) from error
    for mark, name in _ARCHIVES.items():
        if start.startswith(mark):
            raise StopReading(
                _("This is %(name)s. Upload JSONL, CSV or TSV files, plain or gzip, one by one.", name=_(name))
            )
    if start[:2] in _WIDE:
        raise StopReading(_("The file is %(encoding)s. Save it as UTF-8.", encoding=_WIDE[start[:2]]))
    if start[:3] == b"\xef\xbb\xbf":
        plain.read(3)
    return plain


def damaged(error: Exception) -> str:
    if isinstance(error, EOFError):
        return _("The gzip file ends in the middle. Compress or transfer it again.")
    return _("The gzip file is damaged (%(error)s). Compress or transfer it again.", error=error)


def read_lines(plain: IO[bytes], limits: Limits, joined: bool = False) -> Iterator[tuple[int, bytes | None]]:
    """(line number, bytes with line end); None for a line that is too long, which is skipped. `joined`: the caller
    joins lines to rows and checks their length; then a long line stops the reading."""
    limit, total = limits.row_bytes, 0
    readline = plain.readline
    number = 0
    while True:
        number += 1
        try:
            line = readline(limit + 1)
            if not line:
                return
            total += len(line)
            if len(line) > limit and not line.endswith(b"\n"):
                if joined:
                    raise StopReading(describe_long_row(limit), number)
                while line and not line.endswith(b"\n"):
                    line = readline(limit)
                    total += len(line)
                    if total > limits.total_bytes:
                        break
                yield number, None
            else:
                yield number, line
        except (EOFError, OSError, zlib.error) as error:
            raise StopReading(damaged(error), number) from error
        if total > limits.total_bytes:
            raise StopReading(limits.describe_size(), number)
        if number > limits.rows * 2 + 1000:
            raise StopReading(limits.describe_rows(), number)


def describe_long_row(limit: int) -> str:
    return _(
        "The row is longer than %(limit)s bytes, or a quote was opened and not closed. Close it, "
        "shorten the text, or raise MAX_ROW_KB.",
        limit=f"{limit:,}",
    )
