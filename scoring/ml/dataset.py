"""Reads an interchange folder into the records of `types.py`, with the same readers as `evalapp load`
(`annotation.parsers`).

In addition it checks what evaluators rely on: unique keys, and references between files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import orjson

from annotation import parsers
from scoring.ml.errors import DatasetError
from scoring.ml.types import Aspect, Comparison, Dataset, Dialogue, Item, Output, Rating, System

Row: TypeAlias = dict[str, Any]
T = TypeVar("T")
_Steps: TypeAlias = Mapping[tuple[str, str], Sequence[int | None]]
_Files: TypeAlias = Mapping[str, Sequence[tuple[Path, parsers.FileName]]]
#: File endings of data: an unread file with such an ending is an error.
# `excluded` is a table of the format that nothing reads: outputs that were taken out, with the reason.
_UNREAD = ("excluded",)
_DATA = (
    ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".json", ".gz", ".zip", ".7z", ".bz2", ".xz", ".zst", ".xlsx",
    ".xls", ".ods", ".arrow", ".feather",
)  # fmt: skip


def read_dataset(folder: str | Path) -> Dataset:
    """The interchange folder as one frozen `Dataset`: JSONL, CSV, spreadsheet-safe CSV, TSV and Parquet, plain or gzip,
    one file or several per table (`outputs.jsonl`, `outputs-gpt.csv`); `dataset.json` is optional.

    Missing files count as empty. Raises `DatasetError` with file, line and reason at the first faulty row, for a data
    file whose name does not begin with a table's name, and if there is no folder or nothing to read.
    """
    root = Path(folder)
    if not root.is_dir():
        raise DatasetError(str(root), None, "there is no such folder")
    files = _find_files(root)
    header = _read_header(files)
    systems = _rows(files, "systems", _system)
    items = _rows(files, "items", _item)
    known_items = {item.id for item in items}
    outputs = _rows(files, "outputs", _output)
    dialogues = _rows(files, "dialogues", _dialogue)
    ratings = _rows(files, "ratings", _rating)
    comparisons = _rows(files, "comparisons", _comparison)
    _check_known(files, "outputs", ((row.item,) for row in outputs), {(name,) for name in known_items}, "item")
    steps: dict[tuple[str, str], list[int | None]] = {}
    for row in outputs:
        steps.setdefault((row.item, row.system), []).append(row.step)
    ratings = tuple(_rating_with_step(files, row, steps) for row in ratings)
    known_dialogues = {(dialogue.id,) for dialogue in dialogues} | {(None,)}
    _check_known(files, "ratings", ((row.dialogue,) for row in ratings), known_dialogues, "dialogue")
    comparisons = tuple(_comparison_with_steps(files, row, steps) for row in comparisons)
    return replace(
        header,
        name=header.name or root.name,
        aspects=header.aspects if "dataset" in files else _observed_aspects(ratings, comparisons),
        systems=systems,
        items=items,
        outputs=outputs,
        ratings=ratings,
        comparisons=comparisons,
        dialogues=dialogues,
    )


def _find_files(root: Path) -> _Files:
    """The files of a folder by table, sorted by name."""
    result: dict[str, list[tuple[Path, parsers.FileName]]] = {}
    for path in sorted(path for path in root.iterdir() if path.is_file() and not path.name.startswith(".")):
        name = parsers.name_file(path.name)
        if name is not None:
            result.setdefault(name.kind, []).append((path, name))
            continue
        derived = parsers.is_derived(path.name) or _stem(path.name) in _UNREAD
        if path.name.lower().endswith(_DATA) and not derived:
            text = (
                "would not be read, because its name does not begin with that of a table: items, outputs, ratings, "
                "comparisons, dialogues, systems. Rename it (outputs-gpt.jsonl), save it in one of the formats, or "
                "move it away"
            )
            raise DatasetError(path.name, None, text)
    if not result:
        raise DatasetError(str(root), None, "holds no file of the interchange format: items.jsonl, outputs.csv ...")
    for kind, files in result.items():
        stems = [_stem(path.name) for path, _ in files]
        twice = next((stem for stem in stems if stems.count(stem) > 1), None)
        if twice is not None:
            names = " and ".join(path.name for (path, _), stem in zip(files, stems, strict=True) if stem == twice)
            raise DatasetError(kind, None, f"exists twice ({names}): keep one")
    return result


def _stem(name: str) -> str:
    """A file's name without its endings."""
    for ending in (".gz", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".safe"):
        name = name[: -len(ending)] if name.lower().endswith(ending) else name
    return name


def _read_header(files: _Files) -> Dataset:
    """The dataset's header from dataset.json; empty without the file."""
    if "dataset" not in files:
        return Dataset("")
    ((path, _),) = files["dataset"]
    try:
        with path.open("rb") as raw:
            document = parsers.read_document(parsers.open_plain(raw), parsers.Limits())
    except parsers.StopReading as error:
        raise DatasetError(path.name, error.line, error.message) from error
    row = parsers.check_dataset(document, partial(_refuse_field, path.name, None))
    meta: dict[str, Any] = {name: row.fields[name] for name in ("licence", "source", "notes") if name in row.fields}
    aspects = tuple(Aspect(aspect.name, aspect.low, aspect.high) for aspect in row.aspects)
    name, task, lang = (row.fields.get(key, "") for key in ("name", "task", "lang"))
    return Dataset(name, task, lang, aspects, meta=meta)


def _refuse_field(file: str, line: int | None, field: str, message: str) -> None:
    raise DatasetError(file, line, message)


def _rows(files: _Files, table: str, build: Callable[[dict[str, Any], Row], T]) -> tuple[T, ...]:
    """The records of a table from all its files."""
    kind = parsers.KINDS[table]
    # The same outputs may be compared more than once; rows of every other table have a unique key.
    key = None if table == "comparisons" else kind.key
    seen: dict[tuple[Any, ...], str] = {}
    result: list[T] = []
    for path, line, row in _read_files(files.get(table, ())):
        cells = kind.check(row, partial(_refuse_field, path.name, line))
        if cells is None:
            raise DatasetError(path.name, line, "cannot be read")
        fields = dict(zip(kind.columns, cells, strict=True))
        if key is not None:
            place = f"{path.name}:{line}"
            first = seen.setdefault(tuple(fields[name] for name in key), place)
            if first != place:
                raise DatasetError(path.name, line, f"the same key is in {first}")
        result.append(build(fields, row))
    return tuple(result)


def _read_files(files: Sequence[tuple[Path, parsers.FileName]]) -> Iterator[tuple[Path, int, Row]]:
    for path, name in files:

        def report(line: int | None, field: str, message: str, file: str = path.name) -> None:
            raise DatasetError(file, line, message)

        try:
            with path.open("rb") as raw:
                plain = raw if name.format == "parquet" else parsers.open_plain(raw, named_gzip=name.zipped)
                for line, row in parsers.read_rows(plain, name.format, parsers.Limits(), report, name.kind):
                    yield path, line, row
        except parsers.StopReading as error:
            raise DatasetError(path.name, error.line, error.message) from error


def _step(number: int) -> int | None:
    """The step of a checked row, in which -1 means none."""
    return None if number < 0 else number


def _system(fields: dict[str, Any], row: Row) -> System:
    return System(fields["key"], fields["kind"], orjson.loads(fields["meta"]))


def _item(fields: dict[str, Any], row: Row) -> Item:
    return Item(
        id=fields["key"],
        context=tuple(orjson.loads(fields["context"])),
        source=fields["source"],
        references=tuple(orjson.loads(fields["refs"])),
        # The importer gives an item without a group one of its own; here it has none.
        group=fields["grp"] if row.get("group") not in (None, "") else "",
        meta=orjson.loads(fields["meta"]),
    )


def _output(fields: dict[str, Any], row: Row) -> Output:
    meta = orjson.loads(fields["meta"])
    return Output(fields["item"], fields["system"], fields["text"], _step(fields["step"]), meta)


def _rating(fields: dict[str, Any], row: Row) -> Rating:
    same = ("rater", "aspect", "value", "item", "system", "dialogue")
    step, simulated = _step(fields["step"]), bool(fields["simulated"])
    return Rating(**{name: fields[name] for name in same}, step=step, simulated=simulated)


def _comparison(fields: dict[str, Any], row: Row) -> Comparison:
    same = {name: fields[name] for name in ("item", "rater", "aspect", "verdict")}
    a, b = _step(fields["step_a"]), _step(fields["step_b"])
    sides = {"system_a": fields["a"], "system_b": fields["b"], "reference_b": fields["reference"]}
    return Comparison(**same, **sides, step_a=a, step_b=b, simulated=bool(fields["simulated"]))


def _dialogue(fields: dict[str, Any], row: Row) -> Dialogue:
    speakers = () if fields["speakers"] is None else tuple(orjson.loads(fields["speakers"]))
    return Dialogue(fields["key"], tuple(orjson.loads(fields["turns"])), fields["system"], speakers)


def _observed_aspects(ratings: Sequence[Rating], comparisons: Sequence[Comparison]) -> tuple[Aspect, ...]:
    """The judged aspects, with the range of their ratings as scale, as `load` does without dataset.json."""
    values: dict[str, list[float]] = {}
    for row in ratings:
        values.setdefault(row.aspect, []).append(row.value)
    rated = [Aspect(name, min(given), max(given)) for name, given in sorted(values.items())]
    return (*rated, *(Aspect(name) for name in sorted({row.aspect for row in comparisons} - set(values))))


def _rating_with_step(files: _Files, row: Rating, steps: _Steps) -> Rating:
    if row.dialogue is not None:
        return row
    step = _parse_step(files, "ratings", row.item, row.system, row.step, steps)
    return row if step == row.step else replace(row, step=step)


def _comparison_with_steps(files: _Files, row: Comparison, steps: _Steps) -> Comparison:
    a = _parse_step(files, "comparisons", row.item, row.system_a, row.step_a, steps)
    b = None if row.system_b is None else _parse_step(files, "comparisons", row.item, row.system_b, row.step_b, steps)
    return row if (a, b) == (row.step_a, row.step_b) else replace(row, step_a=a, step_b=b)


def _parse_step(
    files: _Files, stem: str, item: str | None, system: str | None, step: int | None, steps: _Steps
) -> int | None:
    """The step of the judged output. A row without a step means the output without one, or the only output."""
    there = steps.get((item or "", system or ""), [])
    if step in there:
        return step
    if step is None and len(there) == 1:
        return there[0]
    name = _file_name(files, stem)
    if not there:
        raise DatasetError(name, None, f"names the unknown output {system!r} of {item!r}")
    known = ", ".join("none" if one is None else str(one) for one in there)
    said = "no step" if step is None else f"step {step}"
    raise DatasetError(name, None, f"names {said} of {system!r} for {item!r}, whose outputs have the steps {known}")


def _check_known(files: _Files, stem: str, keys: Iterator[tuple[Any, ...]], known: set[Any], noun: str) -> None:
    for key in keys:
        if key not in known:
            said = " of ".join(repr(part) for part in reversed(key))
            raise DatasetError(_file_name(files, stem), None, f"names the unknown {noun} {said}")


def _file_name(files: _Files, table: str) -> str:
    """The file or files of a table, for messages."""
    return ", ".join(path.name for path, _ in files.get(table, ())) or table
