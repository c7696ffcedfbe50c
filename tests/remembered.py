"""Rows that take long to create are created once per process; other tests get copies of them, with the same ids."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import connection, transaction

Made = TypeVar("Made")
#: Table -> row id -> the values of its columns.
Rows = dict[str, dict[int, tuple[Any, ...]]]
SEQUENCES = "sqlite_sequence"  # the last id of each table


@dataclass(frozen=True)
class Memory:
    before: Rows
    after: Rows
    result: bytes


_memories: dict[str, Memory] = {}


def make_once(name: str, make: Callable[[], Made]) -> Made:
    """Call `make`, or repeat what it did to the database and return a copy of its result.

    It is called if the rows are others than at its last call, as after a test that emptied the tables, and on other
    databases than SQLite. Files that it writes must stay.
    """
    if connection.vendor != "sqlite":
        return make()
    before, memory = _read(), _memories.get(name)
    if memory is not None and memory.before == before:
        _write(memory)
        return pickle.loads(memory.result)
    made = make()
    _memories[name] = Memory(before, _read(), pickle.dumps(made))
    return made


def _read() -> Rows:
    connection.ensure_connection()
    execute = connection.connection.execute
    rows: Rows = {}
    for (table,) in execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
        # `+` keeps the stored values: the driver would convert times.
        columns = ", ".join(f'+"{name}"' for (name,) in execute("SELECT name FROM pragma_table_info(?)", (table,)))
        rows[table] = {row[0]: row[1:] for row in execute(f'SELECT rowid, {columns} FROM "{table}"')}
    return rows


def _write(memory: Memory) -> None:
    """Foreign keys are checked at the end of the transaction, so the order of the tables does not matter."""
    with transaction.atomic():
        for table, after in memory.after.items():
            before = memory.before[table]
            if table != SEQUENCES and after != before:
                gone = [(key,) for key, row in before.items() if after.get(key) != row]
                connection.connection.executemany(f'DELETE FROM "{table}" WHERE rowid = ?', gone)
                _insert(table, [row for key, row in after.items() if before.get(key) != row])
        connection.connection.execute(f"DELETE FROM {SEQUENCES}")
        _insert(SEQUENCES, list(memory.after[SEQUENCES].values()))


def _insert(table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        connection.connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows)
