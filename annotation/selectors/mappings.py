"""Reads what an upload of any layout holds: its table, a proposal, earlier mappings of the project, and a preview."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from annotation.mapping import ConvertedRow, Fault, Mapping, Table, convert_rows
from annotation.models import Upload
from annotation.parsers import KINDS
from evalapp.accounts.models import Project

#: Rows of a preview in the file, rows made from them for each table.
SHOWN, MOST_MADE = 5, 12
#: Earlier uploads that are searched for mappings.
_EARLIER = 100


@dataclass(frozen=True)
class Preview:
    """The first rows as in the file and as they will be stored, by table, and what is wrong in the sample."""

    columns: list[str]
    rows: list[tuple[int, list[Any]]]
    tables: list[tuple[str, list[str], list[list[Any]], int]]
    faults: list[Fault] = field(default_factory=list)


def list_earlier_mappings(project: Project, columns: Iterable[str]) -> list[tuple[Upload, dict[str, Any]]]:
    """Different mappings of stored uploads whose columns the table has, the newest first."""
    known, found, seen = set(columns), [], set()
    rows = Upload.objects.filter(project=project, state=Upload.State.DONE, options__has_key="mapping").order_by("-pk")
    for upload in rows[:_EARLIER]:
        document = upload.options["mapping"]
        key = json.dumps(document, sort_keys=True)
        if key not in seen and (named := list_columns(document)) and named <= known:
            seen.add(key)
            found.append((upload, document))
    return found


def list_columns(document: dict[str, Any]) -> set[str]:
    """The columns that a mapping names."""
    members = [
        *document.get("columns", {}).values(),
        *document.get("meta", {}).values(),
        list(document.get("only", {})),
    ]
    named = {name for names in members for name in ([names] if isinstance(names, str) else names)}
    return named | {cells["column"] for name in ("outputs", "ratings", "scores") for cells in document.get(name, ())
                    if cells.get("column")}  # fmt: skip


def make_preview(table: Table, mapping: Mapping | None) -> Preview:
    """The preview of the first rows; without a mapping only those in the file."""
    columns = table.columns
    rows = [(number, [row.get(column) for column in columns]) for number, row in islice(table.sample, SHOWN)]
    if mapping is None:
        return Preview(columns, rows, [])
    first = {number for number, _row in rows}
    made: dict[str, list[ConvertedRow]] = {}
    faults: list[Fault] = []
    last = table.sample[-1][0] if table.sample else 0
    for row in convert_rows(table, mapping, is_preview=True):
        if row.row is not None and row.row > last:
            break
        if isinstance(row, Fault):
            faults.append(row)
        elif row.row in first:
            made.setdefault(row.table, []).append(row)
    tables = [(name, *_tabulate(made[name][:MOST_MADE]), len(made[name])) for name in KINDS if name in made]
    return Preview(columns, rows, tables, faults)


def _tabulate(rows: list[ConvertedRow]) -> tuple[list[str], list[list[Any]]]:
    names = list(dict.fromkeys(name for row in rows for name in row.values))
    return names, [[row.values.get(name) for name in names] for row in rows]
