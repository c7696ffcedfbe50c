"""Write a backup: everything at one moment, while the installation is in use."""

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
from .container import MAX_LINE, Manifest, TableEntry, Writer
from .files import CHUNK, hold_files
from .progress import Say, throttle

#: A file that is removed between reading rows and folders is looked for again at a later moment, this many times.
LOOKS = 3


@dataclass(frozen=True)
class BackupReport:
    """The backup that was written; `fingerprint` identifies every byte of it."""

    file: str
    bytes: int
    fingerprint: str
    tables: int
    rows: int
    files: int
    missing: tuple[str, ...]
    seconds: float


def make_backup(*, target: Path | None, overwrite: bool = False, say: Say = lambda text: None) -> BackupReport:
    """Write a backup to `target`, readable by its owner only, or to stdout (None). The file appears when complete."""
    began = time.monotonic()
    try:
        with contextlib.nullcontext(sys.stdout.buffer) if target is None else _replacing(target, overwrite) as file:
            counted = _CountedFile(file)
            manifest, fingerprint = _write(counted, say)
            counted.flush()
    except OSError as error:
        way = "Free some space or choose another path." if error.errno == errno.ENOSPC else "Choose another path."
        raise Unavailable(f"{target or 'stdout'} cannot be written: {error.strerror or error}. {way}") from error
    except DatabaseError as error:
        raise explain_damage(error) or Unavailable(f"The database cannot be read: {str(error).strip()}") from error
    seconds = round(time.monotonic() - began, 1)
    return BackupReport(str(target or "-"), counted.size, fingerprint, **manifest.summary, seconds=seconds)


@contextlib.contextmanager
def _replacing(target: Path, overwrite: bool) -> Iterator[IO[bytes]]:
    """Yield a file in the folder of `target` that gets its name if the block succeeds."""
    exists = Conflict(f"{target} exists already. Choose another file, or pass --overwrite.")
    if not target.parent.is_dir():
        raise EvalappError(f"The folder {target.parent} does not exist. Create it first.")
    if target.is_dir():
        raise EvalappError(f"{target} is a folder. Name a file in it.")
    if target.exists() and not overwrite:
        raise exists
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
                except FileExistsError:
                    raise exists from None
                except OSError:  # a file system without hard links
                    if target.exists():
                        raise exists from None
                    part.replace(target)
        disk.sync(target.parent)
    finally:
        part.unlink(missing_ok=True)


def _remove_stale(target: Path) -> None:
    """Remove files of killed backups: no process holds their lock."""
    for path in target.parent.iterdir():
        if path.name.startswith(f".{target.name}.") and path.name.endswith(".part") and path.is_file():
            with path.open("rb") as file, contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)


class _CountedFile:
    """Counts the bytes written. It cannot seek, so that pipes and files get the same archive."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.size, self.flush = file, 0, file.flush

    def write(self, data: bytes) -> int:
        self.file.write(data)
        self.size += len(data)
        return len(data)


# ---- content ------------------------------------------------------------------------------------------------


def _write(file: Any, say: Say) -> tuple[Manifest, str]:
    connection = connections[DEFAULT_DB_ALIAS]
    state = states.read_state(connection)
    if not state:
        raise Conflict("The database has no tables, so there is no installation in it. Check DATABASE_URL.")
    states.check_not_newer(connection)
    apps = states.load_apps(state)
    writer, tell = Writer(file), throttle(say)
    with _freeze(connection, apps) as (files, missing):
        entries = [_write_table(connection, writer, table, tell) for table in tables.list_tables(apps)]
        for number, (name, path) in enumerate(files):
            tell(f"files: {number:,} of {len(files):,}")
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
        missing=tuple(missing),
    )
    return manifest, writer.finish(manifest)


@contextlib.contextmanager
def _freeze(connection: Any, apps: Any) -> Iterator[tuple[list[tuple[str, Path]], list[str]]]:
    """Keep the database at one moment, and yield the files to which its rows refer."""
    for look in range(1, LOOKS + 1):
        with _snapshot(connection), hold_files(BACKUP_FILES.collect(apps)) as held:
            if held[1] and look < LOOKS:
                continue
            yield held
            return


@contextlib.contextmanager
def _snapshot(connection: Any) -> Iterator[None]:
    """Read the database as it is at the first query, without blocking writers."""
    first_query = "SELECT count(*) FROM django_migrations"
    if connection.vendor == "postgresql":
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SET LOCAL statement_timeout = 0")
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute(first_query)
            yield
        return
    with connection.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")  # the default, IMMEDIATE, would block writers
        try:
            cursor.execute(first_query)
            yield
        finally:
            cursor.execute("ROLLBACK")


def _write_table(connection: Any, writer: Writer, table: tables.Table, tell: Say) -> TableEntry:
    dump_for_hash = values.make_hash_dumper(table.columns)
    digest, count = hashlib.sha256(), 0
    with writer.member(f"tables/{table.name}.jsonl") as write:
        batch: list[bytes] = []
        for row in tables.read_rows(connection, table):
            line = values.dump_row(row)
            if len(line) > MAX_LINE:
                raise EvalappError(f"A row of {table.name} has more than {MAX_LINE // 1_000_000} MB ({row[0]}).")
            batch.append(line)
            digest.update(dump_for_hash(row))
            count += 1
            if len(batch) >= 500 or len(line) > CHUNK:
                write(b"".join(batch))
                batch.clear()
                tell(f"{table.name}: {count:,} rows")
        write(b"".join(batch))
    return TableEntry(table.name, table.columns, count, digest.hexdigest(), tables.read_last_key(connection, table))
