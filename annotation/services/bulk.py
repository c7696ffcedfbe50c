"""Inserts many rows into a table: COPY on PostgreSQL, batches of INSERT on SQLite. Values are those of the columns
(JSON as text); the database checks constraints and foreign keys."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Model

from evalapp.common.copying import copy_line

_Row = TypeVar("_Row", bound=Sequence[Any])

BATCH = 2000
_CHUNK = 1 << 17
#: The maximum number of characters in memory at the same time.
_HELD = 8 << 20


def measure_row(row: Sequence[Any]) -> int:
    """The number of characters in the texts of a row."""
    size = 0
    for value in row:
        if type(value) is str:
            size += len(value)
    return size


def split_by_size(rows: Iterable[_Row], most: int = BATCH) -> Iterator[list[_Row]]:
    """Batches of at most `most` rows, and fewer if their texts are long: a row may have a megabyte."""
    batch: list[_Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += measure_row(row)
        if len(batch) >= most or size >= _HELD:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def insert_rows(model: type[Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert `rows` (values in the order of `columns`, which are column names, not field names)."""
    table = model._meta.db_table
    if connection.vendor == "postgresql":
        names = ", ".join(connection.ops.quote_name(name) for name in columns)
        with connection.cursor() as cursor:
            cursor.copy_expert(
                f"COPY {connection.ops.quote_name(table)} ({names}) FROM STDIN", _CopyFeed(rows), size=_CHUNK
            )
        return
    names = ", ".join(connection.ops.quote_name(name) for name in columns)
    places = ", ".join(["%s"] * len(columns))
    statement = f"INSERT INTO {connection.ops.quote_name(table)} ({names}) VALUES ({places})"
    with connection.cursor() as cursor:
        for batch in split_by_size(rows):
            cursor.executemany(statement, batch)


def update_rows(model: type[Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Set `columns` (column names) of existing rows; each of `rows` gives their values and then the primary key."""
    quote = connection.ops.quote_name
    sets = ", ".join(f"{quote(name)} = %s" for name in columns)
    statement = f"UPDATE {quote(model._meta.db_table)} SET {sets} WHERE id = %s"
    flags = [
        index for index, name in enumerate(columns) if model._meta.get_field(name).get_internal_type() == "BooleanField"
    ]
    with connection.cursor() as cursor:
        for batch in split_by_size(rows):
            values = [list(row) for row in batch]
            for row in values:
                for index in flags:
                    row[index] = bool(row[index])
            cursor.executemany(statement, values)


def extend_ranges(ranges: list[list[int]], ids: Iterable[int]) -> None:
    """Append ascending primary keys to their ranges, [first, last] each."""
    for pk in ids:
        if ranges and ranges[-1][1] == pk - 1:
            ranges[-1][1] = pk
        else:
            ranges.append([pk, pk])


def reserve_ids(model: type[Model], count: int) -> list[int]:
    """Primary keys for new rows, reserved for the caller. On SQLite call it inside the writing transaction, and use the
    keys before reserving more."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)", [f'"{table}"', count]
            )
            return [row[0] for row in cursor.fetchall()]
        cursor.execute(
            "SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = %s), 0), "
            f"coalesce((SELECT max(id) FROM {connection.ops.quote_name(table)}), 0))",
            [table],
        )
        first = cursor.fetchone()[0] + 1
        last = first + count - 1
        cursor.execute("UPDATE sqlite_sequence SET seq = %s WHERE name = %s", [last, table])
        if cursor.rowcount == 0:
            cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table, last])
    return list(range(first, last + 1))


class _CopyFeed:
    """Rows as the file that COPY reads, created while it is read."""

    def __init__(self, rows: Iterable[Sequence[Any]]) -> None:
        self.lines: Iterator[str] = map(copy_line, rows)
        self.rest = b""

    def read(self, size: int = _CHUNK) -> bytes:
        parts, have = [self.rest], len(self.rest)
        while have < size and (line := next(self.lines, "")):
            parts.append(line.encode())
            have += len(parts[-1])
        self.rest = b"".join(parts)
        data, self.rest = self.rest[:size], self.rest[size:]
        return data
