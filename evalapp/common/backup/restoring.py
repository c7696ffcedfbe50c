"""Putting a backup into an installation: the whole file is checked before anything is touched; rows come in one
transaction, files by rename within it; afterwards every table is compared with what the backup says of it."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction
from django.db.utils import InterfaceError

from evalapp.ops.errors import OpsError
from evalapp.ops.lock import FolderLock

from ..errors import Conflict, EvalappError, Unavailable
from ..hooks import AFTER_RESTORE
from ..outages import explain_damage
from . import files, journal, states, tables
from .container import Damaged, Manifest, Reader, TableEntry
from .tables import DoesNotFit, Filling, Table
from .telling import Say, seldom

#: Room that is left free beside what the files of a backup take.
SPARE = 50_000_000


@dataclass(frozen=True)
class Restored:
    """What came in. `runs`: what became of those that were running; `left`: what somebody has to do by hand."""

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
    """Read all of it and compare it with what it says of itself; the caller closes it. Touches nothing."""
    reader = Reader(path)
    try:
        if fingerprint and reader.fingerprint != fingerprint.strip().lower():
            raise Damaged(
                f"{path} is not the backup you name: its fingerprint is {reader.fingerprint}. Nothing was changed."
            )
        tell = seldom(say)
        reader.check(lambda name: tell(f"checking {name}"))
    except BaseException:
        reader.__exit__()
        raise
    return reader


def restore_backup(
    *, path: Path, replace: bool = False, fingerprint: str = "", index: bool = True, say: Say = lambda text: None
) -> Restored:
    """Into an installation without rows and files, or in place of what there is. `index`: build search indexes, too."""
    began = time.monotonic()
    connection = connections[DEFAULT_DB_ALIAS]
    with check_backup(path=path, fingerprint=fingerprint, say=say) as reader:
        manifest = reader.manifest
        lock = _locked()
        try:
            journal.settle(say)
            apps = _check_place(connection, manifest, replace)
            states.bring_to(connection, manifest.migrations)
            _restore(connection, apps, reader, replace, say)
        except DatabaseError as error:
            raise explain_damage(error) or _refused(error) from error
        finally:
            lock.release()
        say("bringing the tables forward and runs back to the queue")
        states.bring_forward(connection)
        runs = _return_runs()
        left = AFTER_RESTORE.collect(say) if index else ["Build the search indexes: manage.py reindex SLUG"]
        return Restored(
            file=str(path),
            made_at=manifest.made_at,
            product_version=manifest.product_version,
            fingerprint=reader.fingerprint,
            tables=len(manifest.tables),
            rows=manifest.rows,
            files=len(manifest.files),
            missing=manifest.missing,
            runs=runs,
            left=tuple(left),
            seconds=round(time.monotonic() - began, 1),
        )


def settle(*, say: Say = lambda text: None) -> None:
    """Finish or undo what a killed restore left, and nothing else."""
    lock = _locked()
    try:
        journal.settle(say)
    finally:
        lock.release()


def _refused(error: Exception) -> EvalappError:
    text = str(error).strip()
    return Unavailable(f"The database refused: {text}\nNothing was changed.")


# ---- before anything is touched -----------------------------------------------------------------------------


def _locked() -> FolderLock:
    lock = FolderLock(settings.DATA_DIR)
    try:
        lock.acquire("a restore")
    except OpsError as error:
        raise Conflict(f"{error} A restore needs the installation for itself.") from error
    return lock


def _check_place(connection: Any, manifest: Manifest, replace: bool) -> Any:
    """The models the backup was made of, if it may come in here."""
    there = states.state_of(connection)
    states.check_not_newer(connection)
    states.targets_of(manifest.migrations)  # a state this version can make
    apps = states.apps_at(manifest.migrations)
    _compare(tables.tables_of(apps), manifest.tables)
    if there:
        _check_nobody_works(connection)
        present = tables.tables_of(states.apps_at(there))
        full = [t.name for t in present if t.name not in tables.MADE_BY_MIGRATE and tables.is_filled(connection, t)]
        if full and not replace:
            raise Conflict(
                f"The database is not empty ({', '.join(full[:5])}). Name an empty one by DATABASE_URL, or say "
                "--replace to lose what is in it."
            )
        if full and there != manifest.migrations:
            raise Conflict(
                "The database has other migrations than the backup, so its rows cannot be replaced. Restore into an "
                "empty database: name one by DATABASE_URL (for SQLite: move the file away)."
            )
    if not replace and (full := files.filled_roots()):
        raise Conflict(
            f"There are files in {', '.join(str(files.root_of(name)) for name in full)}. Move them away, name another "
            "folder by EVALAPP_DATA, or say --replace to lose them."
        )
    _check_room(connection, manifest)
    return apps


def _compare(expected: list[Table], entries: tuple[TableEntry, ...]) -> None:
    """The tables of the backup are those that its migrations make; with rows in the order that suits them."""
    want = {table.name: set(table.columns) for table in expected}
    have = {entry.name: set(entry.columns) for entry in entries}
    if want != have or any(len(entry.columns) != len(set(entry.columns)) for entry in entries):
        odd = sorted(name for name in want.keys() | have.keys() if want.get(name) != have.get(name))
        raise DoesNotFit(f"The table {(odd or ['-'])[0][:100]} of the backup is not the one its migrations make.")


def _check_nobody_works(connection: Any) -> None:
    from ..queue import live_workers

    with connection.cursor() as cursor:
        if "common_workerbeat" not in connection.introspection.table_names(cursor):
            return
    if beats := live_workers():
        raise Conflict(f"Workers are running ({beats[0].name}). Stop web and workers, wait 20 seconds, then restore.")


def _check_room(connection: Any, manifest: Manifest) -> None:
    wanted = SPARE + sum(manifest.members[name][0] for name in manifest.files)
    if connection.vendor == "sqlite":  # the rows and their keys come to lie here, too
        wanted += 2 * sum(size for name, (size, _) in manifest.members.items() if name.startswith("tables/"))
    free = shutil.disk_usage(settings.DATA_DIR).free
    if wanted > free:
        raise Unavailable(
            f"{settings.DATA_DIR} has {free / 1e9:.1f} GB of free room, {wanted / 1e9:.1f} GB are needed. Make room, "
            "or name another folder by EVALAPP_DATA."
        )


# ---- all or nothing -----------------------------------------------------------------------------------------


def _restore(connection: Any, apps: Any, reader: Reader, replace: bool, say: Say) -> None:
    """Rows and files together; whatever stops it leaves everything as it was, now or by `journal.settle`."""
    note = journal.Note(secrets.token_hex(16), str(reader.path), datetime.now(UTC).isoformat(timespec="seconds"))
    journal.write(note)
    try:
        _stage_files(reader, note.token, say)
        with transaction.atomic(using=connection.alias, durable=True):
            _fill(connection, tables.tables_of(apps), reader, replace, say)
            _note_in_audit(connection, apps, reader, note.token)
            journal.write(journal.Note(**{**vars(note), "placing": True}))
            files.place_all(note.token)
    except BaseException as error:
        try:
            connection.close_if_unusable_or_obsolete()  # it may be the connection that was lost
            journal.settle(say)
        except (DatabaseError, InterfaceError, OSError):
            say("What the restore left is tidied up by the next restore, or by `manage.py restore --settle`.")
        if isinstance(error, OSError):
            where = f"{error.filename or settings.DATA_DIR}"
            raise Unavailable(
                f"{where}: {error.strerror or error}. Make room or mend it, then restore again; nothing was changed."
            ) from error
        raise
    files.forget(note.token)
    journal.remove()
    ContentType.objects.clear_cache()


def _stage_files(reader: Reader, token: str, say: Say) -> None:
    tell, names = seldom(say), reader.manifest.files
    files.make_waiting(token)
    for number, name in enumerate(names):
        files.write_new(name.removeprefix("files/"), token, reader.chunks(name))
        tell(f"files: {number + 1:,} of {len(names):,}")


def _fill(connection: Any, wanted: list[Table], reader: Reader, replace: bool, say: Say) -> None:
    manifest = reader.manifest
    entries = {entry.name: entry for entry in manifest.tables}
    filling, tell = Filling(connection, wanted), seldom(say)
    filling.begin()
    for table in wanted:
        if not replace and table.name not in tables.MADE_BY_MIGRATE and tables.is_filled(connection, table):
            raise Conflict(f"Somebody is using this installation: {table.name} is not empty any more. Stop it first.")
    filling.clear()
    for table in wanted:
        entry = entries[table.name]
        in_file = Table(table.name, entry.columns, table.key, table.needs)
        filling.fill(in_file, reader.rows(entry), manifest.vendor, _counter(tell, entry))
        filling.count_on(table, entry.last)
    filling.end()
    for table in wanted:
        entry = entries[table.name]
        tell(f"comparing {table.name}")
        in_file = Table(table.name, entry.columns, table.key, table.needs)
        if tables.digest_of(connection, in_file) != (entry.rows, entry.digest):
            raise DoesNotFit(
                f"The rows of {table.name} are not those of the backup once they are in this database. Nothing was "
                "changed; restore into the kind of database it was made from, and report this."
            )


def _counter(tell: Say, entry: TableEntry) -> Callable[[int], None]:
    return lambda count: tell(f"{entry.name}: {count:,} of {entry.rows:,} rows")


def _note_in_audit(connection: Any, apps: Any, reader: Reader, token: str) -> None:
    """Who looks at the audit later sees where its entries come from; it also shows that the rows are there."""
    event = apps.get_model("common", "AuditEvent")
    detail = {"made_at": reader.manifest.made_at, "fingerprint": reader.fingerprint}
    event.objects.using(connection.alias).create(verb=journal.VERB, object=token, detail=detail)


# ---- afterwards ---------------------------------------------------------------------------------------------


def _return_runs() -> dict[str, int]:
    """Runs that were running have no worker here: back to the queue, or ended with the reason, as after a crash."""
    from ..queue import return_all_running

    return return_all_running()
