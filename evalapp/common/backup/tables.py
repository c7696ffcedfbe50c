"""Tables of a backup: their order, reading rows in the order of their keys, and filling them in one transaction."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from io import BytesIO
from itertools import islice
from typing import Any

from django.db import models

from ..copying import copy_line
from ..errors import EvalappError
from .values import KINDS, Column, Kind, make_exporter, make_hash_dumper, make_importer

#: Tables that are not backed up, with the reason. A restore empties them.
LEFT_OUT = {
    "django_session": "people sign in again",
    "common_workerbeat": "workers that ran here",
    "common_idempotencykey": "answers of the last day, to programs that lost them",
    "common_mail": "mails, which would be sent a second time",
}
#: Filled by `migrate` itself; an installation with rows only in these is empty.
MADE_BY_MIGRATE = frozenset({"django_content_type", "auth_permission"})
BATCH = 2000
#: Rows per COPY, which keeps a list of foreign keys in memory and checks them at its end.
COPY_ROWS = 20_000


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    key: str


def list_tables(apps: Any) -> list[Table]:
    """Return all tables of `apps` (Django's or a migration state's); each follows those that it refers to."""
    tables: dict[str, Table] = {}
    references: dict[str, list[str]] = {}
    for model in sorted(apps.get_models(include_auto_created=True), key=lambda model: model._meta.db_table):
        meta = model._meta
        if not meta.managed or meta.proxy or meta.swapped or meta.db_table in LEFT_OUT:
            continue
        fields = [field for field in meta.local_fields if field.column]
        columns = tuple(Column(field.column, find_kind(field)) for field in fields)
        tables[meta.db_table] = Table(meta.db_table, columns, meta.pk.column)
        targets = {field.related_model._meta.db_table for field in fields if field.is_relation}
        references[meta.db_table] = sorted(targets - {meta.db_table})
    try:
        return [tables[name] for name in TopologicalSorter(references).static_order()]
    except CycleError as error:
        raise TypeError(f"tables refer to each other in a circle: {error.args[1]}") from error


def find_kind(field: models.Field) -> Kind:
    while field.is_relation:
        field = field.target_field
    name = field.get_internal_type()
    if name not in KINDS:
        raise TypeError(f"backups do not support {name} ({field}): add it to evalapp.common.backup.values")
    return KINDS[name]


# ---- reading ------------------------------------------------------------------------------------------------


def read_rows(connection: Any, table: Table) -> Iterator[list[Any]]:
    """Yield all rows in backup form, ordered by key, in constant memory."""
    quote = connection.ops.quote_name
    names = ", ".join(quote(column.name) for column in table.columns)
    convert = make_exporter(table.columns)
    with connection.chunked_cursor() as cursor:
        cursor.execute(f"SELECT {names} FROM {quote(table.name)} ORDER BY {quote(table.key)}")
        while batch := cursor.fetchmany(BATCH):
            yield from map(convert, batch)


def compute_digest(connection: Any, table: Table) -> tuple[int, str]:
    """Return the number of rows and a hash over them, which is the same in every database with the same rows."""
    digest, count = hashlib.sha256(), 0
    dump = make_hash_dumper(table.columns)
    for row in read_rows(connection, table):
        digest.update(dump(row))
        count += 1
    return count, digest.hexdigest()


def is_filled(connection: Any, table: Table) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {connection.ops.quote_name(table.name)} LIMIT 1")
        return cursor.fetchone() is not None


def read_last_key(connection: Any, table: Table) -> int | None:
    """Return the last automatic key, so that no key is used twice; None for tables without automatic keys."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            sequence = _find_sequence(cursor, table)
            if sequence is None:
                return None
            cursor.execute(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}")
        else:
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table.name])
        row = cursor.fetchone()
        return int(row[0]) if row else None


def _find_sequence(cursor: Any, table: Table) -> str | None:
    cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [f'"{table.name}"', table.key])
    return cursor.fetchone()[0]


# ---- writing ------------------------------------------------------------------------------------------------


class Filling:
    """Replaces the content of tables in the caller's transaction: other connections are locked out, triggers are
    disabled, foreign keys are checked."""

    def __init__(self, connection: Any, tables: Sequence[Table]) -> None:
        self.connection, self.tables = connection, tables
        self.is_postgres = connection.vendor == "postgresql"
        self._quote = connection.ops.quote_name
        # Databases of older versions lack some of these.
        existing = set(connection.introspection.table_names())
        self._names = [self._quote(name) for name in LEFT_OUT if name in existing]
        self._names += [self._quote(table.name) for table in reversed(tables)]
        self._triggers: list[str] = []

    def begin(self) -> None:
        with self.connection.cursor() as cursor:
            if self.is_postgres:
                cursor.execute("SET LOCAL lock_timeout = '10s'")
                cursor.execute("SET LOCAL statement_timeout = 0")
                cursor.execute(f"LOCK TABLE {', '.join(self._names)} IN ACCESS EXCLUSIVE MODE")
                for table in self.tables:
                    cursor.execute(f"ALTER TABLE {self._quote(table.name)} DISABLE TRIGGER USER")
                # Check after each statement; otherwise the list of pending checks grows with the rows.
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
                return
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            for name, statement in cursor.fetchall():
                self._triggers.append(statement)
                cursor.execute(f"DROP TRIGGER {self._quote(name)}")

    def end(self) -> None:
        self.connection.check_constraints()
        statements = self._triggers
        if self.is_postgres:
            statements = [f"ALTER TABLE {self._quote(table.name)} ENABLE TRIGGER USER" for table in self.tables]
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def clear(self) -> None:
        """Empty all tables, including those that backups leave out."""
        statements = [f"DELETE FROM {name}" for name in self._names]
        if self.is_postgres:
            statements = [f"TRUNCATE {', '.join(self._names)}"]
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def fill(self, table: Table, rows: Iterable[Sequence[Any]], source: str, report: Callable[[int], None]) -> None:
        """Insert `rows`, which come from a database of kind `source`; call `report` with the number so far."""
        names = ", ".join(self._quote(column.name) for column in table.columns)
        target = f"{self._quote(table.name)} ({names})"
        places = ", ".join(["%s"] * len(table.columns))
        iterator = map(make_importer(table.columns, self.connection.vendor, source), rows)
        count = 0
        with self.connection.cursor() as cursor:
            while batch := list(islice(iterator, COPY_ROWS if self.is_postgres else BATCH)):
                if self.is_postgres:
                    lines = BytesIO("".join(map(copy_line, batch)).encode())
                    cursor.copy_expert(f"COPY {target} FROM STDIN", lines)
                else:
                    cursor.executemany(f"INSERT INTO {target} VALUES ({places})", batch)
                count += len(batch)
                report(count)

    def set_next_key(self, table: Table, last: int | None) -> None:
        """Let automatic keys continue after `last` and after all existing keys."""
        if last is None:
            return
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT coalesce(max({self._quote(table.key)}), 0) FROM {self._quote(table.name)}")
            last = max(last, cursor.fetchone()[0])
            if self.is_postgres:
                if (sequence := _find_sequence(cursor, table)) is not None:
                    cursor.execute("SELECT setval(%s, %s, %s)", [sequence, max(last, 1), last > 0])
                return
            cursor.execute("UPDATE sqlite_sequence SET seq = %s WHERE name = %s", [last, table.name])
            if cursor.rowcount == 0 and last:
                cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table.name, last])


class DoesNotFit(EvalappError):
    """The tables of a backup differ from those of its migrations or of this version."""

    status, code, title = 409, "does-not-fit", "The backup does not fit"
