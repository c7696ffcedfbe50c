"""Tables as a backup sees them: which there are and in which order they can be filled, their rows in the order of their
keys, and filling them in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.db import models

from ..copying import copy_line
from ..errors import EvalappError
from . import values
from .values import Column

#: What is not worth a copy, and why. It is emptied by a restore.
LEFT_OUT = {
    "django_session": "people sign in again",
    "common_workerbeat": "workers that ran here",
    "common_idempotencykey": "answers of the last day, to programs that lost them",
}
#: Filled by `migrate` itself; an installation that holds only these is empty.
MADE_BY_MIGRATE = frozenset({"django_content_type", "auth_permission"})
BATCH = 2000
#: Rows of one COPY: foreign keys are checked at its end, from a list in memory.
COPY_ROWS = 20_000


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    key: str
    needs: frozenset[str]


def tables_of(apps: Any) -> list[Table]:
    """Every table of `apps` (those of Django, or of a state of the migrations), each after those it refers to."""
    found = {}
    for model in apps.get_models(include_auto_created=True):
        meta = model._meta
        if meta.managed and not meta.proxy and not meta.swapped:
            found[meta.db_table] = _table(meta)
    return _in_order({name: table for name, table in found.items() if name not in LEFT_OUT})


def _table(meta: Any) -> Table:
    fields = [field for field in meta.local_fields if field.column]
    needs = {field.related_model._meta.db_table for field in fields if field.is_relation}
    columns = tuple(Column(field.column, kind_of(field)) for field in fields)
    return Table(meta.db_table, columns, meta.pk.column, frozenset(needs - {meta.db_table}))


def kind_of(field: models.Field) -> str:
    while field.is_relation:
        field = field.target_field
    name = field.get_internal_type()
    if name not in values.KINDS:
        raise TypeError(f"{field} is a {name}, which backups do not know: add it to evalapp.common.backup.values")
    return values.KINDS[name]


def _in_order(found: dict[str, Table]) -> list[Table]:
    ordered: dict[str, Table] = {}
    while len(ordered) < len(found):
        ready = [name for name, table in sorted(found.items()) if name not in ordered and table.needs <= set(ordered)]
        if not ready:
            rest = ", ".join(sorted(set(found) - set(ordered)))
            raise TypeError(f"these tables refer to each other in a circle: {rest}")
        ordered.update((name, found[name]) for name in ready)
    return list(ordered.values())


# ---- reading ------------------------------------------------------------------------------------------------


def rows_of(connection: Any, table: Table) -> Iterator[list[Any]]:
    """All rows as a backup has them, by key; memory does not grow with them."""
    quote = connection.ops.quote_name
    names = ", ".join(quote(column.name) for column in table.columns)
    convert = values.leaving(table.columns)
    with connection.chunked_cursor() as cursor:
        cursor.execute(f"SELECT {names} FROM {quote(table.name)} ORDER BY {quote(table.key)}")
        while batch := cursor.fetchmany(BATCH):
            yield from map(convert, batch)


def digest_of(connection: Any, table: Table) -> tuple[int, str]:
    """How many rows, and a hash over all of them: the same in every database that holds the same."""
    digest, count = hashlib.sha256(), 0
    line = values.hashed_line(table.columns)
    for row in rows_of(connection, table):
        digest.update(line(row))
        count += 1
    return count, digest.hexdigest()


def is_filled(connection: Any, table: Table | str) -> bool:
    name = table if isinstance(table, str) else table.name
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {connection.ops.quote_name(name)} LIMIT 1")
        return cursor.fetchone() is not None


def last_key(connection: Any, table: Table) -> int | None:
    """The last number that a new row got, so that no number is given twice; None where keys are not counted."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            sequence = _sequence(cursor, table)
            if sequence is None:
                return None
            cursor.execute(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}")
            return int(cursor.fetchone()[0])
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table.name])
        row = cursor.fetchone()
        return int(row[0]) if row else None


def _sequence(cursor: Any, table: Table) -> str | None:
    cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [f'"{table.name}"', table.key])
    return cursor.fetchone()[0]


# ---- writing ------------------------------------------------------------------------------------------------


class Filling:
    """Within a transaction: nobody else gets at the tables, triggers rest, and foreign keys are checked."""

    def __init__(self, connection: Any, tables: Sequence[Table]) -> None:
        self.connection, self.tables = connection, tables
        self._triggers: list[str] = []

    def begin(self) -> None:
        with self.connection.cursor() as cursor:
            if self.connection.vendor == "postgresql":
                cursor.execute("SET LOCAL lock_timeout = '10s'")
                cursor.execute("SET LOCAL statement_timeout = 0")
                cursor.execute(f"LOCK TABLE {self._names()} IN ACCESS EXCLUSIVE MODE")
                for table in self.tables:
                    cursor.execute(f"ALTER TABLE {self._quote(table.name)} DISABLE TRIGGER USER")
                # Checked after each statement, else the list of what is to be checked grows with the rows.
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
                return
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            for name, statement in cursor.fetchall():
                self._triggers.append(statement)
                cursor.execute(f"DROP TRIGGER {self._quote(name)}")

    def end(self) -> None:
        self.connection.check_constraints()
        with self.connection.cursor() as cursor:
            if self.connection.vendor == "postgresql":
                for table in self.tables:
                    cursor.execute(f"ALTER TABLE {self._quote(table.name)} ENABLE TRIGGER USER")
                return
            for statement in self._triggers:
                cursor.execute(statement)

    def clear(self) -> None:
        """Empty every table, those that are left out of backups, too."""
        with self.connection.cursor() as cursor:
            if self.connection.vendor == "postgresql":
                cursor.execute(f"TRUNCATE {self._names()}")
                return
            for name in [*self._left_out(), *(table.name for table in reversed(self.tables))]:
                cursor.execute(f"DELETE FROM {self._quote(name)}")

    def fill(self, table: Table, rows: Iterable[Sequence[Any]], source: str, seen: Callable[[int], None]) -> None:
        """`source` is the kind of database the rows come from; `seen` is told how many are in."""
        put = self._copy if self.connection.vendor == "postgresql" else self._insert
        iterator = map(values.entering(table.columns, self.connection.vendor, source), rows)
        size = COPY_ROWS if self.connection.vendor == "postgresql" else BATCH
        count = 0
        with self.connection.cursor() as cursor:
            while batch := list(islice(iterator, size)):
                put(cursor, table, batch)
                count += len(batch)
                seen(count)

    def count_on(self, table: Table, last: int | None) -> None:
        """New rows get numbers after `last` and after every number there is."""
        if last is None:
            return
        quoted, key = self._quote(table.name), self._quote(table.key)
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT coalesce(max({key}), 0) FROM {quoted}")
            last = max(last, cursor.fetchone()[0])
            if self.connection.vendor == "postgresql":
                sequence = _sequence(cursor, table)
                if sequence is not None:
                    cursor.execute("SELECT setval(%s, %s, %s)", [sequence, max(last, 1), last > 0])
                return
            cursor.execute("UPDATE sqlite_sequence SET seq = %s WHERE name = %s", [last, table.name])
            if cursor.rowcount == 0 and last:
                cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table.name, last])

    def _copy(self, cursor: Any, table: Table, batch: list[list[Any]]) -> None:
        from io import BytesIO

        names = ", ".join(self._quote(column.name) for column in table.columns)
        lines = "".join(map(copy_line, batch)).encode()
        cursor.copy_expert(f"COPY {self._quote(table.name)} ({names}) FROM STDIN", BytesIO(lines))

    def _insert(self, cursor: Any, table: Table, batch: list[list[Any]]) -> None:
        names = ", ".join(self._quote(column.name) for column in table.columns)
        places = ", ".join(["%s"] * len(table.columns))
        cursor.executemany(f"INSERT INTO {self._quote(table.name)} ({names}) VALUES ({places})", batch)

    def _quote(self, name: str) -> str:
        return self.connection.ops.quote_name(name)

    def _names(self) -> str:
        return ", ".join(map(self._quote, [*self._left_out(), *(table.name for table in self.tables)]))

    def _left_out(self) -> list[str]:
        """Those of the tables that backups leave out which this state of the database has: older ones lack some."""
        there = set(self.connection.introspection.table_names())
        return [name for name in LEFT_OUT if name in there]


class DoesNotFit(EvalappError):
    """The tables of a backup are not those of its own migrations, or of this version."""

    status, code, title = 409, "does-not-fit", "The backup does not fit"
