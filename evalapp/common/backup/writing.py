"""Writing a backup: everything as it is at one moment, while people go on working."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction

from evalapp.ops import disk

from ..errors import Conflict, EvalappError, Unavailable
from ..hooks import BACKUP_FILES
from ..outages import explain_damage
from . import states, tables, values
from .container import MOST_LINE, Manifest, TableEntry, Writer
from .files import CHUNK, Held, holding
from .states import State
from .telling import Say, seldom

#: A file that goes between looking at the rows and at the folders is looked for again from a newer moment.
LOOKS = 3


@dataclass(frozen=True)
class Made:
    """What was written; `fingerprint` stands for every byte of it."""

    file: str
    bytes: int
    fingerprint: str
    tables: int
    rows: int
    files: int
    missing: tuple[str, ...]
    seconds: float


def make_backup(*, target: Path | None, overwrite: bool = False, say: Say = lambda text: None) -> Made:
    """Write the backup to `target`, readable by its owner alone, or to stdout. The file appears when it is whole."""
    began = time.monotonic()
    try:
        if target is None:
            manifest, fingerprint, size = _write(sys.stdout.buffer, say)
            sys.stdout.buffer.flush()
        else:
            with _appearing(target, overwrite) as file:
                manifest, fingerprint, size = _write(file, say)
    except OSError as error:
        where = "stdout" if target is None else target
        way = "Make room or name another place." if error.errno == errno.ENOSPC else "Name another place."
        raise Unavailable(f"{where} cannot be written: {error.strerror or error}. {way}") from error
    except DatabaseError as error:
        damage = explain_damage(error)
        raise damage or Unavailable(f"The database cannot be read: {str(error).strip()}") from error
    return Made(
        file="-" if target is None else str(target),
        bytes=size,
        fingerprint=fingerprint,
        tables=len(manifest.tables),
        rows=manifest.rows,
        files=len(manifest.files),
        missing=manifest.missing,
        seconds=round(time.monotonic() - began, 1),
    )


# ---- the file -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _appearing(target: Path, overwrite: bool) -> Iterator[IO[bytes]]:
    """A file beside `target` that takes its name when the block ends well."""
    there = f"{target} is there already. Name another file, or say --overwrite."
    if not target.parent.is_dir():
        raise EvalappError(f"There is no folder {target.parent}. Make it first.")
    if target.is_dir():
        raise EvalappError(f"{target} is a folder. Name a file in it.")
    if target.exists() and not overwrite:
        raise Conflict(there)
    _remove_stale(target)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)  # mode 600
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb", buffering=CHUNK) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if overwrite:
                part.replace(target)
            else:
                try:
                    os.link(part, target)
                except FileExistsError as error:
                    raise Conflict(there) from error
                except OSError:  # a file system without second names
                    if target.exists():
                        raise Conflict(there) from None
                    part.replace(target)
        disk.sync(target.parent)
    finally:
        part.unlink(missing_ok=True)


def _remove_stale(target: Path) -> None:
    """What a killed backup left behind: nobody holds its lock any more."""
    for path in target.parent.iterdir():
        if path.name.startswith(f".{target.name}.") and path.name.endswith(".part") and path.is_file():
            with path.open("rb") as file, contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)


class _Counted:
    """Counts what goes into a file, so that it may be a pipe."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.size = file, 0

    def write(self, data: bytes) -> int:
        self.file.write(data)
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        self.file.flush()


# ---- what is in it ------------------------------------------------------------------------------------------


def _write(file: IO[bytes], say: Say) -> tuple[Manifest, str, int]:
    connection = connections[DEFAULT_DB_ALIAS]
    state, apps = _known_state(connection)
    with _moment(connection, apps) as held:
        counted = _Counted(file)
        writer, tell = Writer(counted), seldom(say)  # type: ignore[arg-type]
        entries = [_write_table(connection, writer, table, tell) for table in tables.tables_of(apps)]
        for number, (name, path) in enumerate(held.found):
            tell(f"files: {number:,} of {len(held.found):,}")
            with writer.member(f"files/{name}") as write, path.open("rb") as source:
                while chunk := source.read(CHUNK):
                    write(chunk)
    manifest = Manifest(
        product_version=settings.SPECTACULAR_SETTINGS["VERSION"],
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        vendor=connection.vendor,
        migrations=state,
        tables=tuple(entries),
        members=writer.members,
        left_out=dict(tables.LEFT_OUT),
        missing=tuple(held.missing),
    )
    return manifest, writer.finish(manifest), counted.size


def _known_state(connection: Any) -> tuple[State, Any]:
    state = states.state_of(connection)
    if not state:
        raise Conflict("There is no installation in this database: it has no tables. See DATABASE_URL.")
    states.check_not_newer(connection)
    return state, states.apps_at(state)


@contextlib.contextmanager
def _moment(connection: Any, apps: Any) -> Iterator[Held]:
    """One moment of the database, with the files its rows speak of."""
    for look in range(1, LOOKS + 1):
        with _snapshot(connection), holding(BACKUP_FILES.collect(apps)) as held:
            if held.missing and look < LOOKS:
                continue
            yield held
            return


@contextlib.contextmanager
def _snapshot(connection: Any) -> Iterator[None]:
    """Everything read in this block is as at its first question; nobody who writes waits for it."""
    first = "SELECT count(*) FROM django_migrations"
    if connection.vendor == "postgresql":
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SET LOCAL statement_timeout = 0")
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute(first)
            yield
        return
    with connection.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")  # not IMMEDIATE as everywhere else: that would keep writers out
        try:
            cursor.execute(first)
            yield
        finally:
            cursor.execute("ROLLBACK")


def _write_table(connection: Any, writer: Writer, table: tables.Table, tell: Say) -> TableEntry:
    line_for_hash = values.hashed_line(table.columns)
    digest, count = hashlib.sha256(), 0
    member = TableEntry(table.name, (), 0, "", None).member
    with writer.member(member) as write:
        batch: list[bytes] = []
        for row in tables.rows_of(connection, table):
            line = values.line_of(row)
            if len(line) > MOST_LINE:
                raise EvalappError(f"A row of {table.name} has more than {MOST_LINE // 1_000_000} MB ({row[0]}).")
            batch.append(line)
            digest.update(line_for_hash(row))
            count += 1
            if len(batch) >= 500 or len(line) > CHUNK:
                write(b"".join(batch))
                batch.clear()
                tell(f"{table.name}: {count:,} rows")
        write(b"".join(batch))
    return TableEntry(table.name, table.columns, count, digest.hexdigest(), tables.last_key(connection, table))
