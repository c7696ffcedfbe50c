"""Reads an interchange folder (JSONL, CSV or TSV, plain or gzip) into the frozen records of `types.py`.

It checks what the evaluators rely on: fields and their types, unique keys, references between files. Uploads
into a project go through the stricter importer of the application, not through this module.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast, get_args

from scoring.ml.errors import DatasetError
from scoring.ml.types import (
    Aspect,
    Comparison,
    Dataset,
    Dialogue,
    Item,
    Output,
    Rating,
    System,
    SystemKind,
    Verdict,
)

Row = Mapping[str, Any]
T = TypeVar("T")
_Steps: TypeAlias = Mapping[tuple[str, str], Sequence[int | None]]
FORMATS = (".jsonl", ".csv", ".tsv")


def read_dataset(folder: str | Path) -> Dataset:
    """The interchange folder as one frozen `Dataset`.

    Files that are absent are empty. Raises `DatasetError` with file, line and reason at the first faulty row,
    and when the folder or its dataset.json is missing.
    """
    root = Path(folder)
    if not root.is_dir():
        raise DatasetError(str(root), None, "there is no such folder")
    header = _read_header(root / "dataset.json")
    systems = _rows(root, "systems", _system, key=lambda row: row.id)
    items = _rows(root, "items", _item, key=lambda row: row.id)
    known_items = {item.id for item in items}
    outputs = _rows(root, "outputs", _output, key=lambda row: (row.item, row.system, row.step))
    dialogues = _rows(root, "dialogues", _dialogue, key=lambda row: row.id)
    ratings = _rows(
        root,
        "ratings",
        _rating,
        key=lambda row: (row.item, row.system, row.step, row.dialogue, row.rater, row.aspect),
    )
    comparisons = _rows(root, "comparisons", _comparison, key=None)
    _check_known(root, "outputs", ((row.item,) for row in outputs), {(name,) for name in known_items}, "item")
    steps: dict[tuple[str, str], list[int | None]] = {}
    for row in outputs:
        steps.setdefault((row.item, row.system), []).append(row.step)
    ratings = tuple(_rating_with_step(root, row, steps) for row in ratings)
    known_dialogues = {(dialogue.id,) for dialogue in dialogues} | {(None,)}
    _check_known(root, "ratings", ((row.dialogue,) for row in ratings), known_dialogues, "dialogue")
    comparisons = tuple(_comparison_with_steps(root, row, steps) for row in comparisons)
    return Dataset(
        name=str(header.get("name") or root.name),
        task=str(header.get("task") or ""),
        lang=str(header.get("lang") or ""),
        aspects=tuple(_aspect(entry) for entry in header.get("aspects") or ()),
        systems=systems,
        items=items,
        outputs=outputs,
        ratings=ratings,
        comparisons=comparisons,
        dialogues=dialogues,
        meta={key: value for key, value in header.items() if key in ("licence", "source", "notes")},
    )


def _read_header(path: Path) -> Row:
    if not path.is_file():
        raise DatasetError(path.name, None, "is missing: every interchange folder needs it")
    header = _parse_json(path.read_bytes(), path.name, None)
    if not isinstance(header, dict):
        raise DatasetError(path.name, None, "must hold one JSON object")
    return header


def _aspect(entry: Any) -> Aspect:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise DatasetError("dataset.json", None, f"aspects: each needs a name, found {entry!r}")
    ends = entry.get("min"), entry.get("max")
    for end in ends:
        if end is not None and (isinstance(end, bool) or not isinstance(end, int | float)):
            raise DatasetError("dataset.json", None, f"aspects: min and max of {entry['name']!r} must be numbers")
    return Aspect(entry["name"], *ends)


def _rows(root: Path, stem: str, build: Callable[[_Fields], T], key: Callable[[T], object] | None) -> tuple[T, ...]:
    path = _find(root, stem)
    if path is None:
        return ()
    seen: dict[object, int] = {}
    result: list[T] = []
    for line, row in _read_rows(path):
        value = build(_Fields(row, path.name, line))
        if key is not None:
            first = seen.setdefault(key(value), line)
            if first != line:
                raise DatasetError(path.name, line, f"the same key stands in line {first}")
        result.append(value)
    return tuple(result)


def _find(root: Path, stem: str) -> Path | None:
    found = [path for form in FORMATS for end in ("", ".gz") if (path := root / f"{stem}{form}{end}").is_file()]
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise DatasetError(stem, None, f"stands there twice ({names}): keep one")
    return found[0] if found else None


def _read_rows(path: Path) -> Iterator[tuple[int, Row]]:
    opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    form = path.name.removesuffix(".gz").rpartition(".")[2]
    try:
        with opener(path, "rb") as raw:
            if form == "jsonl":
                yield from _json_rows(raw, path.name)
            else:
                text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
                yield from _table_rows(text, path.name, "," if form == "csv" else "\t")
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError) as error:
        raise DatasetError(path.name, None, f"is not readable as UTF-8 text: {error}") from error


def _json_rows(raw: Iterator[bytes], name: str) -> Iterator[tuple[int, Row]]:
    for line, content in enumerate(raw, start=1):
        if line == 1:
            content = content.removeprefix(b"\xef\xbb\xbf")
        if not content.strip():
            continue
        row = _parse_json(content, name, line)
        if not isinstance(row, dict):
            raise DatasetError(name, line, "must hold one JSON object a line")
        yield line, row


def _table_rows(text: io.TextIOWrapper, name: str, delimiter: str) -> Iterator[tuple[int, Row]]:
    csv.field_size_limit(sys.maxsize)
    reader = csv.DictReader(text, delimiter=delimiter, restkey="")
    for row in reader:
        if "" in row:
            raise DatasetError(name, reader.line_num, "has more cells than the heading has names")
        cells = {key: _cell(value, key, name, reader.line_num) for key, value in row.items()}
        yield reader.line_num, {key: value for key, value in cells.items() if value is not None}


def _cell(value: str | None, column: str, name: str, line: int) -> Any:
    """Lists, objects and numbers stand in a cell as JSON; an empty cell is an absent field."""
    if column in ("text", "id", "item", "system", "rater", "aspect", "group", "dialogue", "source"):
        return value if value or column == "text" else None
    if not value:
        return None
    if value[0] in "[{" or column in ("value", "step", "step_a", "step_b", "simulated"):
        return _parse_json(value.lower().encode() if column == "simulated" else value.encode(), name, line)
    return value


def _parse_json(content: bytes, name: str, line: int | None) -> Any:
    def refuse(constant: str) -> float:
        raise DatasetError(name, line, f"{constant} is not a value: leave the row out instead")

    try:
        return json.loads(content.decode("utf-8-sig"), parse_constant=refuse)
    except UnicodeDecodeError as error:
        raise DatasetError(name, line, "is not UTF-8: save the file in that encoding") from error
    except json.JSONDecodeError as error:
        raise DatasetError(name, line, f"is not JSON: {error.msg} at character {error.pos + 1}") from error


class _Fields:
    """One raw row with typed access; says file, line and field when something does not fit."""

    def __init__(self, row: Row, file: str, line: int) -> None:
        self.row, self.file, self.line = row, file, line

    def fail(self, message: str) -> DatasetError:
        return DatasetError(self.file, self.line, message)

    def text(self, name: str, *, blank: bool = False) -> str:
        value = self.row.get(name)
        if not isinstance(value, str) or not (blank or value):
            raise self.fail(f"field {name!r} must be a text, found {value!r}")
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self.row.get(name) is None else self.text(name, blank=True)

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.row.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise self.fail(f"field {name!r} must be a list of texts")
        return tuple(value)

    def number(self, name: str) -> float:
        value = self.row.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.fail(f"field {name!r} must be a finite number, found {value!r}")
        return float(value)

    def step(self, name: str) -> int | None:
        value = self.row.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise self.fail(f"field {name!r} must be a whole number or null, found {value!r}")
        return value

    def flag(self, name: str) -> bool:
        value = self.row.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.fail(f"field {name!r} must be true or false, found {value!r}")
        return bool(value)

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        value = self.row.get(name)
        if value not in allowed:
            raise self.fail(f"field {name!r} must be one of {', '.join(allowed)}, found {value!r}")
        return cast(str, value)

    def meta(self, *known: str) -> dict[str, Any]:
        """The row's `meta` and every column that is not part of the format."""
        meta = self.row.get("meta") or {}
        if not isinstance(meta, dict):
            raise self.fail("field 'meta' must be an object")
        return {**meta, **{k: v for k, v in self.row.items() if k not in known and k != "meta"}}


def _system(fields: _Fields) -> System:
    kind = fields.choice("kind", get_args(SystemKind)) if fields.row.get("kind") else "machine"
    return System(fields.text("id"), cast(SystemKind, kind), fields.meta("id", "kind"))


def _item(fields: _Fields) -> Item:
    return Item(
        id=fields.text("id"),
        context=fields.texts("context"),
        source=fields.optional_text("source"),
        references=fields.texts("references"),
        group=fields.optional_text("group") or "",
        meta=fields.meta("id", "context", "source", "references", "group"),
    )


def _output(fields: _Fields) -> Output:
    return Output(
        item=fields.text("item"),
        system=fields.text("system"),
        text=fields.text("text", blank=True),
        step=fields.step("step"),
        meta=fields.meta("item", "system", "text", "step"),
    )


def _rating(fields: _Fields) -> Rating:
    dialogue = fields.optional_text("dialogue")
    return Rating(
        rater=fields.text("rater"),
        aspect=fields.text("aspect"),
        value=fields.number("value"),
        item=None if dialogue is not None else fields.text("item"),
        system=None if dialogue is not None else fields.text("system"),
        step=fields.step("step"),
        dialogue=dialogue,
        simulated=fields.flag("simulated"),
    )


def _comparison(fields: _Fields) -> Comparison:
    other = fields.row.get("system_b")
    reference: int | None = None
    if isinstance(other, dict):
        reference = other.get("reference")
        if isinstance(reference, bool) or not isinstance(reference, int):
            raise fields.fail("field 'system_b' must be a system or {\"reference\": number}")
    return Comparison(
        item=fields.text("item"),
        system_a=fields.text("system_a"),
        system_b=None if reference is not None else fields.text("system_b"),
        rater=fields.text("rater"),
        aspect=fields.text("aspect"),
        verdict=cast(Verdict, fields.choice("verdict", get_args(Verdict))),
        reference_b=reference,
        step_a=fields.step("step_a"),
        step_b=fields.step("step_b"),
        simulated=fields.flag("simulated"),
    )


def _dialogue(fields: _Fields) -> Dialogue:
    return Dialogue(fields.text("id"), fields.texts("turns"), fields.optional_text("system"), fields.texts("speakers"))


def _rating_with_step(root: Path, row: Rating, steps: _Steps) -> Rating:
    if row.dialogue is not None:
        return row
    step = _step_of(root, "ratings", row.item, row.system, row.step, steps)
    return row if step == row.step else replace(row, step=step)


def _comparison_with_steps(root: Path, row: Comparison, steps: _Steps) -> Comparison:
    a = _step_of(root, "comparisons", row.item, row.system_a, row.step_a, steps)
    b = None if row.system_b is None else _step_of(root, "comparisons", row.item, row.system_b, row.step_b, steps)
    return row if (a, b) == (row.step_a, row.step_b) else replace(row, step_a=a, step_b=b)


def _step_of(
    root: Path, stem: str, item: str | None, system: str | None, step: int | None, steps: _Steps
) -> int | None:
    """The step of the output that is judged: without one the output without a step, else the only one there is."""
    there = steps.get((item or "", system or ""), [])
    if step in there:
        return step
    if step is None and len(there) == 1:
        return there[0]
    path = _find(root, stem)
    name = path.name if path else stem
    if not there:
        raise DatasetError(name, None, f"names the unknown output {system!r} of {item!r}")
    known = ", ".join("none" if one is None else str(one) for one in there)
    said = "no step" if step is None else f"step {step}"
    raise DatasetError(name, None, f"names {said} of {system!r} for {item!r}, whose outputs have the steps {known}")


def _check_known(root: Path, stem: str, keys: Iterator[tuple[Any, ...]], known: set[Any], noun: str) -> None:
    for key in keys:
        if key not in known:
            path = _find(root, stem)
            said = " of ".join(repr(part) for part in reversed(key))
            raise DatasetError(path.name if path else stem, None, f"names the unknown {noun} {said}")
