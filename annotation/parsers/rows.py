"""Rows of a JSONL, CSV or TSV file as dicts with their line number. Faulty rows are reported and skipped; reading stops
only if the rest is unreadable."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import IO, Any

import orjson

from .faults import Limits, Lost, Report, Row, StopReading
from .files import Format, _too_long, damaged, read_lines
from .writer import COLUMNS, GUARD

_COLON = re.compile(rb'"\s*:')
_LONG_NUMBER = re.compile(rb"\d{19}")
_NOT_JSON = re.compile(rb"(?<![\w\"])(NaN|-?Infinity)(?![\w\"])")
#: Longer JSON is read by the slow reader, and the number of rows with duplicate keys is limited, because the fast
#: reader leaks memory for them.
_LONG, _MOST_DOUBLED = 1 << 16, 1000
_DOUBLED = "More than a thousand rows up to here have duplicate keys. Correct these first; the rest was not read."
_EMPTY = "The file is empty. Leave it out, or write its rows."
_NUL = "A text has a NUL character (\\u0000), which databases cannot store. Remove it."
_HALF = "A text has half of a surrogate pair ({}), which UTF-8 cannot encode. Write the whole pair, or remove it."
_SURROGATE = re.compile(r"[\ud800-\udfff]")
#: The identifying columns of tables that other rows refer to.
_KEYS = ("id", "item", "system", "step", "evaluator")
_MEMBER = re.compile(rb'"(' + "|".join(_KEYS).encode() + rb')"\s*:\s*("(?:[^"\\]|\\.)*"|\d{1,19}(?![\d.eE]))')
#: The maximum depth of nesting; deeper values could be stored but not exported.
DEEPEST = 100
#: The approximate maximum number of values in a file with a single object.
MOST_VALUES = 2_000_000

#: Columns with JSON cells in CSV and TSV.
JSON_CELLS = frozenset({"context", "references", "turns", "speakers", "meta", "simulated", "value"})
WHOLE_CELLS = frozenset({"step", "step_a", "step_b"})
_OBJECTS = frozenset({"meta", "written", "candidate_source"})
#: Lists of texts that can be a single text.
TEXT_LISTS = frozenset({"context", "references"})
_LIST_OF_TEXTS = re.compile(r"\A\s*\[\s*[\"\]]")
#: 3.5 with a decimal comma.
_DECIMAL_COMMA = re.compile(r"^(\s*-?\d+),(\d+\s*)$")
#: Ambiguous between a thousands separator and a decimal comma.
_THOUSANDS = re.compile(r"\A\s*-?[1-9]\d{0,2}(,\d{3})+\s*")
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class DoubledKey(ValueError):
    """An object has the same key twice."""


def _pairs(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name, n in Counter(names).items() if n > 1)
        raise DoubledKey(f"the key “{twice[:200]}” is there twice")
    return row


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON; write null or a number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def _keys(value: Any) -> int:
    """The number of keys in a JSON value at any depth."""
    if isinstance(value, dict):
        return len(value) + sum(_keys(v) for v in value.values() if isinstance(v, (dict, list)))
    if isinstance(value, list):
        return sum(_keys(v) for v in value if isinstance(v, (dict, list)))
    return 0


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [part for part in level if isinstance(part, (dict, list))]
        level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part)]
    return any(isinstance(part, (dict, list)) for part in level)


def decode_object(raw: bytes) -> Any:
    """JSON as strict as RFC 8259: no NaN, no duplicate keys, exact integers. Raises ValueError with the error.

    orjson is fast, but keeps the last of two equal keys and rounds integers beyond 64 bits. A count of the keys in the
    raw bytes shows whether that may have happened; only then a slower reader is used."""
    if len(raw) > _LONG:
        return _decode_slowly(raw)
    value = orjson.loads(raw)
    if raw.count(b"[") + raw.count(b"{") > DEEPEST and _is_deep(value):
        raise ValueError("it is nested too deeply")
    colons = len(_COLON.findall(raw))
    exact = type(value) is dict and colons == len(value)
    if not exact and colons == _keys(value):
        exact = _LONG_NUMBER.search(raw) is None
    elif exact and _LONG_NUMBER.search(raw) is not None:
        exact = False
    return value if exact else _decode_slowly(raw)


def _decode_slowly(raw: bytes) -> Any:
    try:
        value = json.loads(raw.decode(), object_pairs_hook=_pairs, parse_constant=_refuse, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} (column {error.colno})") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if len(raw) > _LONG and _is_deep(value):
        raise ValueError("it is nested too deeply")
    if len(raw) > _LONG and _has_half(value):
        raise ValueError("a text has half of a surrogate pair")
    return value


def _has_half(value: Any) -> bool:
    return _SURROGATE.search(json.dumps(value, ensure_ascii=False)) is not None


def half_pair(raw: bytes) -> str | None:
    """The unpaired surrogate in this JSON as written there, if that is the error."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    found = _SURROGATE.search(json.dumps(value, ensure_ascii=False))
    return None if found is None else f"\\u{ord(found[0]):04x}"


def _told_by(row: Any) -> Row:
    """The identifying values of a row."""
    if not isinstance(row, dict):
        return {}
    told = {name: row[name] for name in _KEYS if type(row.get(name)) in (str, int)}
    return {
        name: value
        for name, value in told.items()
        if type(value) is int or ("\0" not in value and _SURROGATE.search(value) is None)
    }


def _told_by_bytes(raw: bytes) -> Row:
    """The identifying values of a line that is not JSON, from its first members with these names."""
    told: Row = {}
    for name, value in _MEMBER.findall(raw):
        if name.decode() not in told:
            try:
                told[name.decode()] = json.loads(value.decode(errors="replace"))
            except ValueError:
                continue
    return _told_by(told)


def _nobody(line: int, row: Row) -> None:
    """Ignores faulty rows, which are reported anyway."""


def _why_not_json(raw: bytes, error: ValueError) -> str:
    try:
        raw.decode()
    except UnicodeDecodeError as wrong:
        return not_utf8(raw, wrong)
    if (half := half_pair(raw)) is not None:
        return _HALF.format(half)
    if (constant := _NOT_JSON.search(raw)) is not None:
        return f"{constant[1].decode()} is not JSON. Write null, or leave the row out."
    if isinstance(error, orjson.JSONDecodeError):
        return f"This is not JSON: {error.msg} (column {error.pos + 1}). Write one JSON object a line."
    return f"This is not JSON: {error}."


def not_utf8(raw: bytes, error: UnicodeDecodeError) -> str:
    return (
        f"Not UTF-8: byte 0x{raw[error.start]:02X} at byte {error.start + 1} of the line. "
        "Save the file as UTF-8 (it looks like Latin-1 or Windows-1252)."
    )


def read_jsonl(
    plain: IO[bytes], limits: Limits, report: Report, lost: Lost = _nobody, table: str = ""
) -> Iterator[tuple[int, Row]]:
    known = frozenset(COLUMNS.get(table, ()))
    rows = lines = doubled = 0
    loads = decode_object
    for number, raw in read_lines(plain, limits):
        lines = number
        if raw is None:
            rows += 1
            report(number, "", f"The row is longer than {limits.row_bytes:,} bytes. Shorten it or raise MAX_ROW_KB.")
            lost(number, {})
            continue
        if not raw.strip():
            continue
        rows += 1
        if rows > limits.rows:
            raise StopReading(f"The file has more than {limits.rows:,} rows. Split it into several uploads.", number)
        try:
            row = loads(raw)
        except ValueError as error:
            report(number, "", _why_not_json(raw, error))
            lost(number, _told_by_bytes(raw))
            doubled += isinstance(error, DoubledKey)
            if doubled > _MOST_DOUBLED:
                raise StopReading(_DOUBLED, number) from error
            continue
        if b"\\u0000" in raw and has_nul(row):
            report(number, "", _NUL)
            lost(number, _told_by(row))
            continue
        if type(row) is not dict:
            report(number, "", "The line is not a JSON object. Write one object { ... } a line, no list around them.")
            lost(number, {})
            continue
        if known and not known.issuperset(row):
            row = dict(zip(lower_known(list(row), table), row.values(), strict=True))
        yield number, row
    if not rows:
        raise StopReading(_EMPTY if not lines else "The file has only blank lines. Leave it out, or write its rows.")


def has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any("\0" in key or has_nul(part) for key, part in value.items())
    return isinstance(value, list) and any(has_nul(part) for part in value)


class _Physical:
    """Text lines for `csv.reader`, which joins quoted lines; checks the length of the joined row."""

    def __init__(self, plain: IO[bytes], limits: Limits) -> None:
        self.lines = read_lines(plain, limits, joined=True)
        self.limit = limits.row_bytes
        self.number = 0
        self.length = 0

    def __iter__(self) -> _Physical:
        return self

    def __next__(self) -> str:
        self.number, raw = next(self.lines)
        assert raw is not None
        self.length += len(raw)
        if self.length > self.limit:
            raise StopReading(_too_long(self.limit), self.number)
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise StopReading(not_utf8(raw, error), self.number) from error
        if "\0" in text:
            raise StopReading("The row has a NUL byte. The file is binary or damaged.", self.number)
        return text


def _cell(name: str, text: str, kind: Cells) -> Any:
    """The value of a cell; ValueError with the error. An empty list or number is absent."""
    if name in kind.whole:
        found = re.fullmatch(rf"(-?\d{{1,19}})(?:{'[.,]' if kind.comma else '[.]'}0+)?", text.strip())
        return int(found[1]) if found else text
    if name == "simulated":
        if text.strip().lower() not in _TRUTH:
            raise ValueError("write true or false")
        return _TRUTH[text.strip().lower()]
    if name in TEXT_LISTS and not text.lstrip().startswith("["):
        return text
    if name == "value":
        if not kind.comma and _THOUSANDS.fullmatch(text):
            whole, part = text.strip().replace(",", ""), text.strip().replace(",", ".", 1)
            raise ValueError(f"“{text[:40]}” may be {whole[:40]} or {part[:40]}; write it without a comma")
        try:
            return decode_object(_DECIMAL_COMMA.sub(r"\1.\2", text).encode())
        except ValueError as error:
            raise ValueError(f"“{text[:40]}” is not a number") from error
    try:
        return decode_object(text.encode())
    except ValueError as error:
        if name in TEXT_LISTS and not _LIST_OF_TEXTS.match(text):
            return text  # it starts with a bracket but is not a list: [laughs] Hello
        if (half := half_pair(text.encode())) is not None:
            raise ValueError(_HALF.format(half).rstrip(".")) from error
        example = '{"domain": "food"}' if name in _OBJECTS else '["first", "second"]'
        if name in ATTEMPT_VALUES:
            example = "true, false or a number"
        raise ValueError(f"the cell must hold JSON such as {example}") from error


def _from_cells(
    names: list[str], cells: list[str], line: int, report: Report, kind: Cells, lost: Lost, doubled: list[int]
) -> Row | None:
    row: Row = {}
    good = True
    for name, text in zip(names, cells, strict=True):
        if name in kind.json or name in kind.whole:
            if not text.strip():
                continue
            try:
                row[name] = _cell(name, text, kind)
            except ValueError as error:
                report(line, name, f"{name}: {error}.")
                good = False
                if isinstance(error.__cause__, DoubledKey):
                    doubled.append(line)
        elif name == "source" or name not in kind.text:
            if text:
                row[name] = text
        elif name == "system_b" and text.startswith('{"reference"'):
            row[name] = _reference(text)
        else:
            row[name] = text
    if not good:
        lost(line, _told_by(row))
        return None
    return row


def _reference(text: str) -> Any:
    try:
        return decode_object(text.encode())
    except ValueError:
        return text


#: Text columns in which an empty cell is an empty text; in others it is absent.
KNOWN_TEXT = frozenset(
    {"id", "item", "text", "rater", "aspect", "verdict", "system_a", "system_b", "query", "response", "kind"}
)
_DELIMITERS = (",", ";", "\t")
ATTEMPT_VALUES = frozenset(
    {"relevant", "edited", "counted", "unscored", "score_before", "score_after", "improved", "seconds"}
)


@dataclass(frozen=True)
class Cells:
    """The types of a table's columns, by name; all others are text, absent if empty."""

    json: frozenset[str] = JSON_CELLS
    whole: frozenset[str] = WHOLE_CELLS
    text: frozenset[str] = KNOWN_TEXT
    #: Cells are separated by semicolons, as with decimal commas.
    comma: bool = False


def _get_columns(table: str) -> Cells:
    """A column that belongs to another table, such as references in outputs.csv, is plain text."""
    own = frozenset(COLUMNS[table])
    return Cells(JSON_CELLS & own, WHOLE_CELLS & own)


#: Tables with columns of their own meaning.
CELLS = {
    **{table: _get_columns(table) for table in ("systems", "items", "outputs", "dialogues", "corpus")},
    **{table: _get_columns(table) for table in ("ratings", "comparisons")},
    "references": Cells(
        frozenset({"meta", "written"}), frozenset({"position"}), frozenset({"set", "item", "text"})
    ),
    "filters": Cells(frozenset({"raters"}), frozenset(), frozenset({"name", "reason"})),
    "campaigns": Cells(frozenset({"told"}), frozenset(), frozenset({"campaign", "kind"})),
    "score_sets": Cells(
        frozenset({"options", "systems"}), frozenset({"n_in_training"}),
        frozenset({"id", "evaluator", "name", "kind", "aspect", "references", "signature", "short_signature", "data"}),
    ),
    "scores": Cells(
        frozenset({"value", "in_training", "empty", "truncated"}), frozenset({"step", "input"}),
        frozenset({"set", "item", "system"}),
    ),
    "attempts": Cells(
        ATTEMPT_VALUES | {"candidate_source"},
        frozenset({"annotator_group", "number", "round", "references_before"}),
        frozenset(
            {
                "campaign", "item", "annotator", "arm", "set", "decision", "why", "text_before", "text", "signature",
                "submission", "created_at",
            }
        ),
    ),
}  # fmt: skip


def read_table(
    plain: IO[bytes],
    delimiter: str,
    limits: Limits,
    report: Report,
    table: str = "",
    guarded: bool = False,
    lost: Lost = _nobody,
) -> Iterator[tuple[int, Row]]:
    csv.field_size_limit(max(csv.field_size_limit(), min(limits.row_bytes, sys.maxsize)))
    lines = _Physical(plain, limits)
    first, delimiter = _find_delimiter(lines, delimiter, table)
    reader = csv.reader(chain(first, lines), delimiter=delimiter, strict=True)
    kind = replace(CELLS.get(table, Cells()), comma=delimiter == ";")
    begins = lines.number - len(first)
    names: list[str] = []
    doubled: list[int] = []
    rows = 0
    while True:
        lines.length = 0
        begin = (begins if not names and first else lines.number) + 1
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            raise StopReading(_why_not_csv(error), begin) from error
        if not cells or cells == [""]:
            continue
        if not names:
            names = _header(cells, begin, table)
            continue
        rows += 1
        if rows > limits.rows:
            raise StopReading(f"The file has more than {limits.rows:,} rows. Split it into several uploads.", begin)
        if len(cells) != len(names):
            report(begin, "", f"The row has {len(cells)} cells, the header {len(names)}. Quote texts with separators.")
            lost(begin, {})
            continue
        if guarded:
            cells = [cell.removeprefix(GUARD) for cell in cells]
        row = _from_cells(names, cells, begin, report, kind, lost, doubled)
        if len(doubled) > _MOST_DOUBLED:
            raise StopReading(_DOUBLED, begin)
        if row is not None and any("\\u0000" in cell for cell in cells) and has_nul(row):
            report(begin, "", _NUL)
            lost(begin, _told_by(row))
        elif row is not None:
            yield begin, row
    if not names:
        raise StopReading(_EMPTY)
    if not rows:
        raise StopReading("The file has a header but no rows. Leave it out, or write its rows.")


def _find_delimiter(lines: _Physical, usual: str, table: str) -> tuple[list[str], str]:
    """(lines that were read for it, the delimiter): from a first line `sep=;`, as written by spreadsheets, otherwise
    the one that gives the most columns of the table, then the most columns."""
    first = next(lines, "")
    while first and not first.strip():
        first = next(lines, "")
    if named := re.fullmatch(r"\ufeff?\"?sep=([,;|\t])\"?[,;|\t]*\r?\n?", first, re.IGNORECASE):
        lines.length = 0
        return [], named[1]
    known = set(COLUMNS.get(table, ()))

    def fitness(delimiter: str) -> tuple[int, int, bool]:
        try:
            cells = next(csv.reader([first], delimiter=delimiter), [])
        except csv.Error:
            cells = []
        return sum(cell.strip().lower() in known for cell in cells), len(cells), delimiter == usual

    return ([first] if first else []), max((usual, *_DELIMITERS), key=fitness)


def lower_known(names: list[str], table: str) -> list[str]:
    """Column names with those of the table in lower case: `Item` is `item` unless that exists as well."""
    known = COLUMNS.get(table, ())
    return [name.lower() if name.lower() in known and name.lower() not in names else name for name in names]


def _header(cells: list[str], line: int, table: str) -> list[str]:
    names = lower_known([cell.strip() for cell in cells], table)
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise StopReading(f"The column “{doubled[0]}” is twice in the header. Rename or remove one.", line)
    if "" in names:
        raise StopReading(f"Column {names.index('') + 1} of the header has no name. Name or remove it.", line)
    return names


def _why_not_csv(error: csv.Error) -> str:
    text = str(error)
    if "unexpected end of data" in text:
        return "A quote is opened here and never closed."
    if "new-line character" in text:
        return "The lines end in a lone carriage return. Save the file with LF or CRLF line ends."
    if "expected after" in text:
        return "A quote inside a quoted text must be doubled, and nothing may follow a closing quote, not even a blank."
    return f"This is not valid CSV: {text}."


def read_rows(
    plain: IO[bytes], form: Format, limits: Limits, report: Report, table: str = "", lost: Lost = _nobody
) -> Iterator[tuple[int, Row]]:
    """(line, row) of the whole file. `report` gets each faulty row; `StopReading` ends the reading. `table` determines
    the types of CSV or TSV cells; `lost` gets the identifying values of a faulty row."""
    if form == "jsonl":
        return read_jsonl(plain, limits, report, lost, table)
    if form == "parquet":
        from .parquet import read_parquet

        return read_parquet(plain, limits, report, lost, table)
    delimiter, guarded = "\t" if form == "tsv" else ",", form == "safe-csv"
    return read_table(plain, delimiter, limits, report, table, guarded, lost)


def read_document(plain: IO[bytes], limits: Limits) -> Row:
    """A file with a single JSON object (dataset.json)."""
    try:
        raw = plain.read(limits.row_bytes + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise StopReading(damaged(error)) from error
    if len(raw) > limits.row_bytes:
        raise StopReading(f"The file is longer than {limits.row_bytes:,} bytes.")
    if sum(map(raw.count, (b",", b"[", b"{"))) > MOST_VALUES:
        # Each value takes some hundred bytes of memory.
        raise StopReading(f"The file holds more than {MOST_VALUES:,} values. Leave out what is not needed.")
    if not raw.strip():
        raise StopReading("The file is empty.")
    try:
        document = decode_object(raw)
    except ValueError as error:
        raise StopReading(_why_not_json(raw, error)) from error
    if type(document) is not dict:
        raise StopReading("The file is not a JSON object. Write { ... }.")
    if b"\\u0000" in raw and has_nul(document):
        raise StopReading(_NUL)
    return document
