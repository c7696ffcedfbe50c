"""Read an exported folder (JSONL, CSV, TSV or Parquet) as columns to recompute tables. Rows are checked only for the
members that are read."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from evalapp.stats.agreement.judged import FLIPPED, JudgementColumns, RaterJudgements, collect_judgements, is_among
from evalapp.stats.core.coding import IntArray
from scoring.boards.data.columns import (
    NO_SYSTEM,
    Comparisons,
    Labels,
    Ratings,
    Scores,
    Units,
    build_comparisons,
    build_ratings,
)

Row: TypeAlias = dict[str, Any]
#: item, system, step
Place: TypeAlias = tuple[str, str, int | None]
#: Gives the number of an output.
Number: TypeAlias = Callable[[Place], int]

_ENDINGS = (".jsonl", ".jsonl.gz", ".parquet", ".safe.csv", ".csv", ".csv.gz", ".tsv", ".tsv.gz")
#: Columns with JSON cells in CSV files; an empty cell is null. A cell of `system_b` is JSON if it is an object.
_JSON = frozenset({"step", "step_a", "step_b", "value", "simulated", "in_training", "systems", "raters"})
#: Required members of the rows of each table.
_NEEDED: dict[str, tuple[str, ...]] = {
    "items": ("id",),
    "outputs": ("item", "system"),
    "systems": ("id",),
    "ratings": ("rater", "aspect", "value"),
    "comparisons": ("rater", "aspect", "verdict", "system_a", "system_b"),
    "filters": ("name", "raters"),
    "score_sets": ("id",),
    "scores": ("set", "item", "system"),
}
_NUMBERS = ("value",)
_TEXTS = ("id", "item", "system", "system_a", "rater", "aspect", "verdict", "name", "set")
#: File names that `load` accepts.
_TABLE_FILE = re.compile(
    rf"(?:{'|'.join(_NEEDED)})(?:[-_.][^/]*?)?(?:\.(?:jsonl|ndjson|csv|tsv)(?:\.gz)?|\.parquet)", re.IGNORECASE
)
#: Problem of a missing file that other files refer to.
_LOST = "the folder has no such file, but others refer to it; copy every file of the export"
#: Advice for files that are no export.
OWN_FORM = "recompute reads exported files: correct the row, or load the folder into a project and export it again"
#: Prefix of spreadsheet-safe cells that could be read as a formula.
_GUARD = "'"


class FolderError(ValueError):
    """A folder cannot be read; has `file` and `problem`."""

    def __init__(self, file: str, problem: str) -> None:
        self.file = file
        self.problem = problem
        super().__init__(f"{file}: {problem}")


class ExportFolder:
    """The files of an export. Each table is read on first use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_dir():
            raise FolderError(str(path), "this is not a folder")
        self._refuse_unread()

    def _refuse_unread(self) -> None:
        """Raise `FolderError` for a file of a table that would be ignored, because its rows would be missing."""
        read = {result[0].name for table in _NEEDED if (result := self._file(table)) is not None}
        for file in sorted(self.path.iterdir()):
            if _TABLE_FILE.fullmatch(file.name) and file.name not in read:
                raise FolderError(
                    file.name,
                    "it would not be read: a folder to recompute has one file per table, named like exported files "
                    "(outputs.jsonl, outputs.csv.gz ...). Move the rows there, or load the folder and export it",
                )

    def document(self, name: str) -> Any:
        """Read a file with a JSON object."""
        file = self.path / name
        if not file.is_file():
            raise FolderError(name, "the folder has no such file; export the project with its tables")
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise FolderError(name, f"this is not JSON ({error})") from error

    def has(self, table: str) -> bool:
        return self._file(table) is not None

    def rows(self, table: str) -> Iterator[Row]:
        """Yield the rows of a table in file order, none without a file."""
        result = self._file(table)
        if result is None:
            return
        file, ending = result
        read = enumerate(_READERS[ending](file), start=1)
        while True:
            try:
                number, row = next(read, (0, None))
            except (ValueError, KeyError) as error:
                raise FolderError(file.name, f"it cannot be read ({error})") from error
            if row is None:
                return
            if fault := _fault(table, row):
                raise FolderError(f"{file.name}, row {number}", f"{fault}; {OWN_FORM}")
            yield row

    def _file(self, table: str) -> tuple[Path, str] | None:
        for ending in _ENDINGS:
            file = self.path / f"{table}{ending}"
            if file.is_file():
                return file, ending
        return None

    @cached_property
    def groups(self) -> dict[str, str]:
        return {row["id"]: row.get("group") or row["id"] for row in self.rows("items")}

    @cached_property
    def metas(self) -> dict[str, Row]:
        return {row["id"]: _object(row.get("meta")) for row in self.rows("items")}

    def outputs(self, subset: str) -> tuple[list[Place], IntArray, IntArray]:
        """Return all outputs of a subset of systems by item and system, with codes of their groups and systems."""
        units, items, groups = self.units(), Labels(), Labels()
        rows = [(row["item"], row["system"], row.get("step")) for row in self.rows("outputs")]
        result = [
            (items.code(item), groups.code(self.group(item)), units.code(system, step)) for item, system, step in rows
        ]
        columns = np.array(result, dtype=np.int64).reshape(-1, 3)
        item_, cluster, unit = items.sort()[columns[:, 0]], groups.sort()[columns[:, 1]], units.sort()[columns[:, 2]]
        order = np.lexsort((unit, item_))
        order = order[units.wanted(subset)[unit[order]]] if len(order) else order
        return [rows[k] for k in order.tolist()], cluster[order], unit[order]

    @cached_property
    def kinds(self) -> dict[str, str]:
        return {row["id"]: row.get("kind") or "machine" for row in self.rows("systems")}

    def units(self) -> Units:
        return Units(_NamedSystems(self.kinds))

    @cached_property
    def filters(self) -> dict[str, frozenset[str]]:
        """Raters excluded by each filter."""
        return {row["name"]: frozenset(row["raters"]) for row in self.rows("filters")}

    def left_out(self, name: str) -> Callable[[str], bool]:
        """Return whether the named filter excludes a rater, including repeats; without a name it excludes none."""
        if not name:
            return lambda rater: False
        if name not in self.filters:
            raise FolderError("filters", f"there is no filter “{name}”")
        raters = self.filters[name]
        return lambda rater: is_among(rater, raters)

    def ratings(self, aspect: str, number: Number, *, filter: str = "") -> Ratings:
        """Return ratings of outputs for an aspect; `number` returns the number of an output."""
        self.must_have("ratings")
        rows = (row for row in self.rows("ratings") if row.get("aspect") == aspect and row.get("item"))
        shaped = (
            (
                number((row["item"], row["system"], row.get("step"))), row["item"], self.group(row["item"]),
                row["system"], row.get("step"), row["rater"], float(row["value"]), bool(row.get("simulated")),
            )
            for row in rows
        )  # fmt: skip
        return build_ratings(shaped, self.units(), self.left_out(filter))

    def dialogues(self, aspect: str, number: Callable[[str], int], *, filter: str = "") -> Ratings:
        """Return ratings of dialogues for an aspect, each dialogue as the only output of an item; `number` returns the
        number of a dialogue."""
        self.must_have("ratings")
        rows = (row for row in self.rows("ratings") if row.get("aspect") == aspect and row.get("dialogue"))
        shaped = (
            (
                number(row["dialogue"]), row["dialogue"], row["dialogue"],
                self.dialogue_systems.get(row["dialogue"]) or NO_SYSTEM, None, row["rater"], float(row["value"]),
                bool(row.get("simulated")),
            )
            for row in rows
        )  # fmt: skip
        return build_ratings(shaped, self.units(), self.left_out(filter))

    def turns(self, dialogues: Sequence[str]) -> tuple[list[Place], list[int]]:
        """Return the outputs that are turns of the dialogues, and the position of the dialogue of each. Their item
        has the dialogue as group, and their system is that of the dialogue, if any."""
        number = {key: place for place, key in enumerate(dialogues)}
        result = []
        for row in self.rows("outputs"):
            group = self.group(row["item"])
            if group in number and self.dialogue_systems.get(group) in (None, "", row["system"]):
                result.append(((row["item"], row["system"], row.get("step")), number[group]))
        return [place for place, _ in result], [dialogue for _, dialogue in result]

    @cached_property
    def dialogue_systems(self) -> dict[str, str | None]:
        """The system of each dialogue that has one."""
        return {row["id"]: row.get("system") for row in self.rows("dialogues")}

    def comparisons(
        self, aspect: str, number: Number, *, turing: bool, filter: str = "", may_lack: bool = False
    ) -> Comparisons:
        """Return comparisons of two outputs, or (`turing`) of an output with a reference, for an aspect; `number`
        returns the number of an output. A missing file is an error unless `may_lack`."""
        if not may_lack:
            self.must_have("comparisons")

        def side(row: Row, letter: str) -> tuple[str, int | None, int, int]:
            place = row["item"], row[f"system_{letter}"], row.get(f"step_{letter}")
            return place[1], place[2], number(place), 0 if turing else self._lengths[place]

        rows = (row for row in self.rows("comparisons") if row.get("aspect") == aspect)
        meant = ((row, _object(row.get("meta"))) for row in rows if isinstance(row["system_b"], dict) == turing)
        shaped = (
            (
                row["item"], self.group(row["item"]), side(row, "a"), None if turing else side(row, "b"),
                row["verdict"], bool(row.get("simulated")), row["rater"], meta.get("propensity", np.nan),
                bool(meta.get("swapped")),
            )
            for row, meta in meant
        )  # fmt: skip
        return build_comparisons(shaped, self.units(), self.left_out(filter), turing=turing)

    def judged(self, aspect: str, way: str, *, filter: str = "") -> RaterJudgements:
        """Return judgements of an aspect in one way (ratings, dialogues, comparisons, turing) for tables of agreement.
        Exports do not contain campaigns and times."""
        numeric = way in ("ratings", "dialogues")
        table = "ratings" if numeric else "comparisons"
        self.must_have(table)
        out = self.left_out(filter)
        result: list[tuple[Any, ...]] = []
        n_filtered = 0
        for row in self.rows(table):
            if row.get("aspect") != aspect or _get_way(row) != way:
                continue
            if out(row["rater"]):
                n_filtered += 1
                continue
            result.append((*_judged_unit(row, way), row["rater"], bool(row.get("simulated"))))
        columns = JudgementColumns(*(zip(*result, strict=True) if result else ((),) * 6))
        return collect_judgements(columns, numeric=numeric, n_filtered=n_filtered)

    @cached_property
    def _lengths(self) -> dict[Place, int]:
        """Number of characters of every output."""
        return {(row["item"], row["system"], row.get("step")): len(row["text"]) for row in self.rows("outputs")}

    @cached_property
    def score_sets(self) -> dict[str, Row]:
        return {row["id"]: row for row in self.rows("score_sets")}

    @cached_property
    def _scores(self) -> dict[str, list[tuple[Place, float, bool]]]:
        result: dict[str, list[tuple[Place, float, bool]]] = {name: [] for name in self.score_sets}
        for row in self.rows("scores"):
            value = row.get("value")
            place = (sys.intern(row["item"]), sys.intern(row["system"]), row.get("step"))
            result[row["set"]].append((place, np.nan if value is None else float(value), bool(row.get("in_training"))))
        return result

    def values(self, score_set: str) -> dict[Place, float]:
        """Return the scores of a set by output, nan if undefined."""
        self.check_set(score_set)
        return {place: value for place, value, _ in self._scores[score_set]}

    def trained_on(self, score_set: str) -> set[Place]:
        """Return the outputs in the training data of the evaluator of a set."""
        self.check_set(score_set)
        return {place for place, _, seen in self._scores[score_set] if seen}

    def score_columns(self, score_set: str) -> Scores:
        self.check_set(score_set)
        units, items, groups = self.units(), Labels(), Labels()
        rows = [
            (items.code(item), groups.code(self.group(item)), units.code(system, step), value)
            for (item, system, step), value, _ in self._scores[score_set]
        ]
        item_, cluster, system_, value_ = zip(*rows, strict=True) if rows else ((),) * 4
        codes = items.sort()[np.array(item_, dtype=np.int64)], groups.sort()[np.array(cluster, dtype=np.int64)]
        unit = units.sort()[np.array(system_, dtype=np.int64)]
        order = np.lexsort((unit, codes[0]))
        values = np.array(value_, dtype=np.float64)
        return Scores(codes[0][order], codes[1][order], unit[order], values[order], units)

    def must_have(self, table: str) -> None:
        if not self.has(table):
            raise FolderError(table, "the folder has no judgements by rater; export them per rater")

    def check_set(self, score_set: str) -> None:
        if score_set not in self.score_sets:
            raise FolderError("score_sets", f"there is no score set “{score_set}”; export with scores")
        # Without outputs there are no scores, and exports have no empty files.
        if not self.has("scores") and self.has("outputs"):
            raise FolderError("scores", _LOST)

    def group(self, item: str) -> str:
        try:
            return self.groups[item]
        except KeyError:
            raise FolderError("items", f"there is no item “{item}”" if self.has("items") else _LOST) from None

    def lost(self, *tables: str) -> str:
        """Return the error for the first of the tables without a file, "" if all have one."""
        return next((str(FolderError(table, _LOST)) for table in tables if not self.has(table)), "")


def _fault(table: str, row: Row) -> str:
    """Return why a row cannot be read, "" if it can."""
    if not isinstance(row, dict):
        return "it is not an object"
    for name in _NEEDED.get(table, ()):
        value = row.get(name)
        if value is None:
            return f"{name} is missing"
        if name in _NUMBERS and (isinstance(value, bool) or not isinstance(value, int | float) or value - value != 0):
            return f"{name} is {value!r}, not a number"
        if name in _TEXTS and not isinstance(value, str):
            return f"{name} is {value!r}, not a text"
    return ""


def _object(value: Any) -> Row:
    """Return an object given as such or as JSON text; {} for nothing."""
    parsed: Row = json.loads(value) if isinstance(value, str) and value else value or {}
    return parsed


def _get_way(row: Row) -> str:
    if "verdict" in row:
        return "turing" if isinstance(row["system_b"], dict) else "comparisons"
    return "dialogues" if row.get("dialogue") else "ratings"


def _judged_unit(row: Row, way: str) -> tuple[Any, str, str, str]:
    """Return value, unit, item and system like `project_judgements`: verdicts with the sides in order."""
    if way == "dialogues":
        return float(row["value"]), row["dialogue"], row["dialogue"], ""
    if way == "ratings":
        system = _label(row["system"], row.get("step"))
        return float(row["value"]), f"{row['item']}\t{system}", row["item"], system
    a, verdict = _label(row["system_a"], row.get("step_a")), row["verdict"]
    if way == "turing":
        return verdict, f"{row['item']}\t{a}\t{row['system_b']['reference']}", row["item"], a
    b = _label(row["system_b"], row.get("step_b"))
    if b < a:
        a, b, verdict = b, a, FLIPPED.get(verdict, verdict)
    return verdict, f"{row['item']}\t{a}\t{b}", row["item"], ""


def _label(system: str, step: int | None) -> str:
    return system if step is None else f"{system} @ {step}"


class _NamedSystems(Mapping[str, tuple[str, str]]):
    """Name and kind by name; systems without description are machines."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self.kinds = kinds

    def __getitem__(self, name: str) -> tuple[str, str]:
        return name, self.kinds.get(name, "machine")

    def __iter__(self) -> Iterator[str]:
        return iter(self.kinds)

    def __len__(self) -> int:
        return len(self.kinds)


def _open(file: Path) -> IO[str]:
    """Open a text file without changing line ends, without byte order mark."""
    if file.suffix == ".gz":
        return io.TextIOWrapper(gzip.GzipFile(file), encoding="utf-8-sig", newline="")
    return file.open(encoding="utf-8-sig", newline="")


def _read_jsonl(file: Path) -> Iterator[Row]:
    with _open(file) as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def _read_cells(file: Path, delimiter: str, guarded: bool) -> Iterator[Row]:
    csv.field_size_limit(1 << 30)
    with _open(file) as lines:
        for row in csv.DictReader(lines, delimiter=delimiter, strict=True):
            plain = {name: cell.removeprefix(_GUARD) for name, cell in row.items()} if guarded else row
            yield {name: _decoded(name, cell) for name, cell in plain.items()}


def _decoded(name: str, cell: str | None) -> Any:
    if name in _JSON:
        return json.loads(cell) if cell else None
    if name == "system_b" and cell and cell.startswith("{"):
        return json.loads(cell)
    return None if name == "scored_at" and not cell else cell


def _read_parquet(file: Path) -> Iterator[Row]:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise FolderError(file.name, "reading Parquet needs pyarrow: pip install pyarrow") from None
    with pq.ParquetFile(file) as opened:
        for batch in opened.iter_batches(batch_size=10_000):
            for row in batch.to_pylist():
                for name in ("system_b", "systems", "raters"):
                    if isinstance(row.get(name), str) and row[name][:1] in ("{", "["):
                        row[name] = json.loads(row[name])
                yield row


_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": _read_jsonl,
    ".jsonl.gz": _read_jsonl,
    ".parquet": _read_parquet,
    ".safe.csv": lambda file: _read_cells(file, ",", True),
    ".csv": lambda file: _read_cells(file, ",", False),
    ".csv.gz": lambda file: _read_cells(file, ",", False),
    ".tsv": lambda file: _read_cells(file, "\t", False),
    ".tsv.gz": lambda file: _read_cells(file, "\t", False),
}
