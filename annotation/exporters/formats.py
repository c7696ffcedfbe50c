"""The formats of an export. Each writer opens its file at the first row, so that empty tables have no file."""

import csv
import json
from pathlib import Path
from typing import IO, Any, ClassVar, Protocol

from annotation.parsers import encode_cell, encode_row, guard_cell
from annotation.parsers.writer import COLUMNS as READ_BACK

from . import aggregated, traces

FORMATS = ("jsonl", "csv", "safe-csv", "parquet")
COLUMNS = {**READ_BACK, **aggregated.COLUMNS, **traces.COLUMNS}


class Writer(Protocol):
    path: Path
    rows: int

    def write(self, row: dict[str, Any]) -> None: ...

    def close(self) -> None: ...


class JsonlWriter:
    def __init__(self, folder: Path, table: str) -> None:
        self.path = folder / f"{table}.jsonl"
        self.rows = 0
        self.file: IO[str] = self.path.open("w", encoding="utf-8", newline="\n", buffering=1 << 17)

    def write(self, row: dict[str, Any]) -> None:
        self.file.write(encode_row(row) + "\n")
        self.rows += 1

    def close(self) -> None:
        self.file.close()


class CsvWriter:
    """Exact CSV: lists and objects are JSON in their cell, and nothing is escaped for spreadsheets. Line ends are CRLF,
    so that line breaks inside texts are quoted and survive."""

    ENDING = ".csv"
    cell = staticmethod(encode_cell)

    def __init__(self, folder: Path, table: str) -> None:
        self.path = folder / f"{table}{self.ENDING}"
        self.rows = 0
        self.columns = COLUMNS[table]
        self.file: IO[str] = self.path.open("w", encoding="utf-8", newline="", buffering=1 << 17)
        self.writer = csv.writer(self.file, lineterminator="\r\n")
        self.writer.writerow(self.columns)

    def write(self, row: dict[str, Any]) -> None:
        self.writer.writerow([self.cell(row.get(name)) for name in self.columns])
        self.rows += 1

    def close(self) -> None:
        self.file.close()


class SafeCsvWriter(CsvWriter):
    """CSV for spreadsheets: texts that could be read as formulas start with an apostrophe. The file name says so, and
    reading removes the apostrophe."""

    ENDING = ".safe.csv"
    cell = staticmethod(guard_cell)


class ParquetWriter:
    """Typed columns in row groups; objects (`meta`, a reference in `system_b`, origins) are JSON text."""

    #: The maximum number of rows and characters in a row group, which is in memory while it is written and read.
    GROUP, GROUP_BYTES = 20_000, 16 << 20
    #: The rows that wait as Python objects.
    BATCH = 500
    LISTS = frozenset({"context", "references", "turns", "speakers", "raters"})
    WHOLE = frozenset({
        "step", "step_a", "step_b", "position", "annotator_group", "number", "round", "references_before", "n",
        "n_in_training", "input", *aggregated.VERDICTS, *traces.WHOLE,
    })  # fmt: skip
    NUMBERS = frozenset(
        {"value", "score_before", "score_after", "seconds", "mean", "median", "sd", "low", "high", *traces.NUMBERS}
    )
    FLAGS = frozenset({
        "simulated", "relevant", "edited", "counted", "unscored", "improved", "in_training", "empty", "truncated",
        *traces.FLAGS,
    })  # fmt: skip
    #: Columns with another meaning in some tables.
    OF_TABLE: ClassVar[dict[str, dict[str, str]]] = {
        "score_sets": {"references": "string"},
        "aggregated_ratings": {"simulated": "int64"},
        "aggregated_comparisons": {"simulated": "int64"},
    }

    def __init__(self, folder: Path, table: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path = folder / f"{table}.parquet"
        self.rows = 0
        self.columns = COLUMNS[table]
        self.pa = pa
        types = {name: pa.float64() for name in self.NUMBERS} | {name: pa.bool_() for name in self.FLAGS}
        types |= {name: pa.list_(pa.string()) for name in self.LISTS} | {name: pa.int64() for name in self.WHOLE}
        types |= {name: getattr(pa, type)() for name, type in self.OF_TABLE.get(table, {}).items()}
        self.schema = pa.schema([(name, types.get(name, pa.string())) for name in self.columns])
        self.writer = pq.ParquetWriter(self.path, self.schema, compression="zstd")
        self.rows_waiting: list[dict[str, Any]] = []
        #: The row group so far: batches take a fraction of the memory of their rows.
        self.batches: list[Any] = []
        self.rows_in_group = self.size = 0

    def _cell(self, name: str, value: Any) -> Any:
        if name == "simulated" and value is None:
            return False
        if isinstance(value, dict) or (isinstance(value, list) and name not in self.LISTS):
            return json.dumps(value, ensure_ascii=False)
        # Other formats write an integral double as an integer; beyond 64 bits only a double can store it.
        return float(value) if name in self.NUMBERS and value is not None else value

    def write(self, row: dict[str, Any]) -> None:
        cells = {name: self._cell(name, row.get(name)) for name in self.columns}
        self.rows_waiting.append(cells)
        self.rows_in_group += 1
        for value in cells.values():
            self.size += (
                len(value) if isinstance(value, str) else sum(map(len, value)) if isinstance(value, list) else 8
            )
        self.rows += 1
        if self.rows_in_group >= self.GROUP or self.size >= self.GROUP_BYTES:
            self._flush()
        elif len(self.rows_waiting) >= self.BATCH:
            self._pack()

    def _pack(self) -> None:
        self.batches.append(self.pa.RecordBatch.from_pylist(self.rows_waiting, schema=self.schema))
        self.rows_waiting.clear()

    def _flush(self) -> None:
        self._pack()
        # In one piece, so that the pages of the file do not depend on the batches.
        self.writer.write_table(self.pa.Table.from_batches(self.batches).combine_chunks())
        self.batches.clear()
        self.rows_in_group = self.size = 0

    def close(self) -> None:
        if self.rows_in_group:
            self._flush()
        self.writer.close()


_WRITERS: dict[str, Any] = {
    "jsonl": JsonlWriter, "csv": CsvWriter, "safe-csv": SafeCsvWriter, "parquet": ParquetWriter,
}  # fmt: skip


def writer(format: str, folder: Path, table: str) -> Writer:
    made: Writer = _WRITERS[format](folder, table)
    return made
