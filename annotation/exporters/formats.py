"""The formats an export can have. Each writer opens its file at the first row, so that an empty table leaves no
file."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import IO, Any, Protocol

from annotation.parsers import encode_cell, encode_row
from annotation.parsers.writer import COLUMNS

FORMATS = ("jsonl", "csv", "parquet")


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
    """Exact: lists and objects are JSON in their cell, nothing is neutralised. Line ends are CRLF, so that line
    breaks inside texts are quoted and survive."""

    def __init__(self, folder: Path, table: str) -> None:
        self.path = folder / f"{table}.csv"
        self.rows = 0
        self.columns = COLUMNS[table]
        self.file: IO[str] = self.path.open("w", encoding="utf-8", newline="", buffering=1 << 17)
        self.writer = csv.writer(self.file, lineterminator="\r\n")
        self.writer.writerow(self.columns)

    def write(self, row: dict[str, Any]) -> None:
        self.writer.writerow([encode_cell(row.get(name)) for name in self.columns])
        self.rows += 1

    def close(self) -> None:
        self.file.close()


class ParquetWriter:
    """Typed columns, in row groups; objects (`meta`, a reference in `system_b`, provenance) are JSON text."""

    GROUP = 20_000
    LISTS = frozenset({"context", "references", "turns", "speakers"})
    WHOLE = frozenset(
        {"step", "step_a", "step_b", "position", "annotator_group", "number", "round", "references_before"}
    )
    NUMBERS = frozenset({"value", "score_before", "score_after", "seconds"})
    FLAGS = frozenset({"simulated", "relevant", "edited", "counted", "unscored", "improved"})

    def __init__(self, folder: Path, table: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path = folder / f"{table}.parquet"
        self.rows = 0
        self.columns = COLUMNS[table]
        self.pa = pa
        types = {name: pa.float64() for name in self.NUMBERS} | {name: pa.bool_() for name in self.FLAGS}
        types |= {name: pa.list_(pa.string()) for name in self.LISTS} | {name: pa.int64() for name in self.WHOLE}
        self.schema = pa.schema([(name, types.get(name, pa.string())) for name in self.columns])
        self.writer = pq.ParquetWriter(self.path, self.schema, compression="zstd")
        self.group: list[dict[str, Any]] = []

    def _cell(self, name: str, value: Any) -> Any:
        if name == "simulated":
            return bool(value)
        return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value

    def write(self, row: dict[str, Any]) -> None:
        self.group.append({name: self._cell(name, row.get(name)) for name in self.columns})
        self.rows += 1
        if len(self.group) >= self.GROUP:
            self._flush()

    def _flush(self) -> None:
        self.writer.write_table(self.pa.Table.from_pylist(self.group, schema=self.schema))
        self.group.clear()

    def close(self) -> None:
        if self.group:
            self._flush()
        self.writer.close()


_WRITERS: dict[str, Any] = {"jsonl": JsonlWriter, "csv": CsvWriter, "parquet": ParquetWriter}


def writer(format: str, folder: Path, table: str) -> Writer:
    made: Writer = _WRITERS[format](folder, table)
    return made
