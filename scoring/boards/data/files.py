"""Read an exported folder (JSONL, CSV, TSV or Parquet) as columns to recompute tables. Rows are checked only for the
members that are read."""

import csv
import gzip
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from evalapp.stats.agreement.judged import is_among
from scoring.boards.data.columns import Units

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
    "judge_answers": ("evaluator", "item", "system", "model"),
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
        return {row["id"]: read_object(row.get("meta")) for row in self.rows("items")}

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

    @cached_property
    def dialogue_systems(self) -> dict[str, str | None]:
        """The system of each dialogue that has one."""
        return {row["id"]: row.get("system") for row in self.rows("dialogues")}

    @cached_property
    def lengths(self) -> dict[Place, int]:
        """Number of characters of every output."""
        return {(row["item"], row["system"], row.get("step")): len(row["text"]) for row in self.rows("outputs")}

    @cached_property
    def _rows_of_sets(self) -> dict[str, Row]:
        return {row["id"]: row for row in self.rows("score_sets")}

    def get_score_set(self, name: str) -> Row:
        """Return the row of a score set. Raises `FolderError` if there is none, or no scores."""
        self._check_set(name)
        return self._rows_of_sets[name]

    @cached_property
    def _scores(self) -> dict[str, list[tuple[Place, float, bool]]]:
        result: dict[str, list[tuple[Place, float, bool]]] = {name: [] for name in self._rows_of_sets}
        for row in self.rows("scores"):
            value = row.get("value")
            place = (sys.intern(row["item"]), sys.intern(row["system"]), row.get("step"))
            result[row["set"]].append((place, np.nan if value is None else float(value), bool(row.get("in_training"))))
        return result

    def list_scores(self, score_set: str) -> list[tuple[Place, float, bool]]:
        """Return (output, score, whether it is in the training data) of a set; undefined scores are nan."""
        self._check_set(score_set)
        return self._scores[score_set]

    def must_have(self, table: str) -> None:
        if not self.has(table):
            raise FolderError(table, "the folder has no judgements by rater; export them per rater")

    def _check_set(self, score_set: str) -> None:
        if score_set not in self._rows_of_sets:
            raise FolderError("score_sets", f"there is no score set “{score_set}”; export with scores")
        # Without outputs there are no scores, and exports have no empty files. Scores of whole systems are in the set.
        if not self.has("scores") and self.has("outputs") and not self._rows_of_sets[score_set].get("systems"):
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


def read_object(value: Any) -> Row:
    """Return an object given as such or as JSON text; {} for nothing."""
    parsed: Row = json.loads(value) if isinstance(value, str) and value else value or {}
    return parsed


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
