"""Restore a backup. The whole file is checked before anything is changed. Rows are written in one transaction, within
which files are renamed and every table is compared with the manifest."""

import contextlib
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction
from django.db.utils import InterfaceError

from evalapp.ops.errors import OpsError
from evalapp.ops.lock import FolderLock

from ..errors import Conflict, Unavailable
from ..hooks import AFTER_RESTORE
from ..outages import explain_damage
from . import files, journal, states, tables
from .container import Damaged, Manifest, Reader, TableEntry
from .progress import Say, throttle
from .tables import DoesNotFit, Filling, Table

#: Disk space that stays free, in bytes.
RESERVE = 50_000_000


@dataclass(frozen=True)
class RestoreReport:
    """The restored backup. `runs`: new states of the runs that were running; `left`: tasks that are left to do."""

    file: str
    made_at: str
    product_version: str
    fingerprint: str
    tables: int
    rows: int
    files: int
    missing: tuple[str, ...]
    runs: dict[str, int]
    left: tuple[str, ...]
    seconds: float


def check_backup(*, path: Path, fingerprint: str = "", say: Say = lambda text: None) -> Reader:
    """Read a backup completely and compare it with its manifest. Changes nothing; the caller closes the reader."""
    reader = Reader(path)
    try:
        if fingerprint and reader.fingerprint != fingerprint.strip().lower():
            raise Damaged(f"{path} is another backup: its fingerprint is {reader.fingerprint}. Nothing was changed.")
        tell = throttle(say)
        reader.check(lambda name: tell(f"checking {name}"))
    except BaseException:
        reader.__exit__()
        raise
    return reader


def restore_backup(
    *, path: Path, replace: bool = False, fingerprint: str = "", index: bool = True, say: Say = lambda text: None
) -> RestoreReport:
    """Restore into an empty installation, or replace its content. `index`: also build search indexes."""
    began = time.monotonic()
    connection = connections[DEFAULT_DB_ALIAS]
    with check_backup(path=path, fingerprint=fingerprint, say=say) as reader:
        manifest = reader.manifest
        try:
            with _lock():
                journal.settle(say)
                apps = _check_target(connection, manifest, replace)
                states.migrate_to(connection, manifest.migrations)
                _restore(connection, apps, reader, replace, say)
        except DatabaseError as error:
            refused = Unavailable(f"The database refused: {str(error).strip()}\nNothing was changed.")
            raise explain_damage(error) or refused from error
    say("migrating to this version and returning runs to the queue")
    states.migrate_to_newest(connection)
    from ..queue import return_all_running

    runs = return_all_running()
    left = AFTER_RESTORE.collect(say) if index else ["Build the search indexes: evalapp reindex SLUG"]
    return RestoreReport(
        file=str(path),
        made_at=manifest.made_at,
        product_version=manifest.product_version,
        fingerprint=reader.fingerprint,
        **manifest.summary,
        runs=runs,
        left=tuple(left),
        seconds=round(time.monotonic() - began, 1),
    )


def settle(*, say: Say = lambda text: None) -> None:
    """Finish or undo a killed restore, and nothing else."""
    with _lock():
        journal.settle(say)


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    lock = FolderLock(settings.DATA_DIR)
    try:
        lock.acquire("a restore")
    except OpsError as error:
        raise Conflict(f"{error} A restore needs the installation for itself.") from error
    try:
        yield
    finally:
        lock.release()


# ---- checks before any change -------------------------------------------------------------------------------


def _check_target(connection: Any, manifest: Manifest, replace: bool) -> Any:
    """Check that the backup may be restored here; return the models from which it was made."""
    current = states.read_state(connection)
    states.check_not_newer(connection)
    apps = states.load_apps(manifest.migrations)
    _compare_tables(tables.list_tables(apps), manifest.tables)
    if current:
        _check_no_workers(connection)
        existing = tables.list_tables(states.load_apps(current))
        full = [t.name for t in existing if t.name not in tables.MADE_BY_MIGRATE and tables.is_filled(connection, t)]
        if full and not replace:
            raise Conflict(
                f"The database is not empty ({', '.join(full[:5])}). Set DATABASE_URL to an empty one, or pass "
                "--replace to delete its content."
            )
        if full and current != manifest.migrations:
            raise Conflict(
                "The database has other migrations than the backup, so its rows cannot be replaced. Restore into an "
                "empty database: set DATABASE_URL to one (for SQLite: move the file away)."
            )
    if not replace and (roots := files.list_filled_roots()):
        raise Conflict(
            f"There are files in {', '.join(map(str, roots))}. Move them away, set EVALAPP_DATA to another folder, or "
            "pass --replace to delete them."
        )
    _check_space(connection, manifest)
    return apps


def _compare_tables(expected: list[Table], entries: tuple[TableEntry, ...]) -> None:
    """Check that the tables of the backup are those of its migrations; the order of columns may differ."""
    want = {table.name: sorted(table.columns) for table in expected}
    have = {entry.name: sorted(entry.columns) for entry in entries}
    for name in sorted(want.keys() | have.keys()):
        if want.get(name) != have.get(name):
            raise DoesNotFit(f"The table {name[:100]} of the backup is not the one its migrations create.")


def _check_no_workers(connection: Any) -> None:
    from ..queue import live_workers

    if "common_workerbeat" in connection.introspection.table_names() and (beats := live_workers()):
        raise Conflict(f"Workers are running ({beats[0].name}). Stop web and workers, wait 20 seconds, then restore.")


def _check_space(connection: Any, manifest: Manifest) -> None:
    needed = RESERVE + sum(manifest.members[name][0] for name in manifest.files)
    if connection.vendor == "sqlite":  # rows and their indexes are stored in the same folder
        needed += 2 * sum(size for name, (size, _) in manifest.members.items() if name.startswith("tables/"))
    free = shutil.disk_usage(settings.DATA_DIR).free
    if needed > free:
        raise Unavailable(
            f"{settings.DATA_DIR} has {free / 1e9:.1f} GB of free space, {needed / 1e9:.1f} GB are needed. Free some "
            "space, or set EVALAPP_DATA to another folder."
        )


# ---- all or nothing -----------------------------------------------------------------------------------------


def _restore(connection: Any, apps: Any, reader: Reader, replacing: bool, say: Say) -> None:
    """Write rows and files together. After any error everything is as before, now or after `journal.settle`."""
    entry = journal.Entry(secrets.token_hex(16), str(reader.path), datetime.now(UTC).isoformat(timespec="seconds"))
    journal.write(entry)
    tell, names = throttle(say), reader.manifest.files
    try:
        files.make_staging(entry.token)
        for number, name in enumerate(names):
            files.write_staged(name.removeprefix("files/"), entry.token, reader.read_chunks(name))
            tell(f"files: {number + 1:,} of {len(names):,}")
        with transaction.atomic(using=connection.alias, durable=True):
            _fill_tables(connection, tables.list_tables(apps), reader, replacing, tell)
            detail = {"made_at": reader.manifest.made_at, "fingerprint": reader.fingerprint}
            events = apps.get_model("common", "AuditEvent").objects.using(connection.alias)
            events.create(verb=journal.VERB, object=entry.token, detail=detail)
            journal.write(replace(entry, placing=True))
            files.place_all(entry.token)
    except BaseException as error:
        try:
            connection.close_if_unusable_or_obsolete()  # the connection may be the reason
            journal.settle(say)
        except (DatabaseError, InterfaceError, OSError):
            say("The next restore, or `evalapp restore --settle`, removes what this one left.")
        if isinstance(error, OSError):
            where = error.filename or settings.DATA_DIR
            reason = error.strerror or error
            text = f"{where}: {reason}. Free some space or correct the cause, then restore again; nothing was changed."
            raise Unavailable(text) from error
        raise
    files.forget(entry.token)
    journal.remove()
    ContentType.objects.clear_cache()


def _fill_tables(connection: Any, expected: list[Table], reader: Reader, replacing: bool, tell: Say) -> None:
    entries = {entry.name: entry for entry in reader.manifest.tables}
    # Columns in the order of the backup.
    contents = [(replace(table, columns=entries[table.name].columns), entries[table.name]) for table in expected]
    filling = Filling(connection, expected)
    filling.begin()
    for table in expected:
        if not replacing and table.name not in tables.MADE_BY_MIGRATE and tables.is_filled(connection, table):
            raise Conflict(f"The installation is in use: {table.name} is not empty any more. Stop it first.")
    filling.clear()
    for table, entry in contents:
        report = partial(_report_rows, tell, entry)
        filling.fill(table, reader.read_rows(entry), reader.manifest.vendor, report)
        filling.set_next_key(table, entry.last)
    filling.end()
    for table, entry in contents:
        tell(f"comparing {table.name}")
        if tables.compute_digest(connection, table) != (entry.rows, entry.digest):
            raise DoesNotFit(
                f"The rows of {table.name} differ from the backup once they are in this database. Nothing was "
                "changed; restore into the kind of database it was made from, and report this."
            )


def _report_rows(tell: Say, entry: TableEntry, count: int) -> None:
    tell(f"{entry.name}: {count:,} of {entry.rows:,} rows")
