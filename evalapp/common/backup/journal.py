"""The journal of a restore: a file written before anything is changed, with which a restore that was killed is finished
or undone."""

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections

from evalapp.ops import disk
from evalapp.ops.checks import MISSING, Check

from . import files
from .progress import Say

NAME = "restore.json"
#: Verb of the audit entry of a restore, written in the transaction of the rows.
VERB = "installation.restored"


@dataclass(frozen=True)
class Entry:
    """`placing`: files may have been moved, and some not moved back."""

    token: str
    file: str
    began: str
    placing: bool = False


def _path() -> Path:
    return Path(settings.DATA_DIR) / NAME


def write(entry: Entry) -> None:
    part = _path().with_suffix(".new")
    with part.open("w", encoding="utf-8") as file:
        json.dump(asdict(entry), file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(_path())
    disk.sync(_path().parent)


def read() -> Entry | None:
    try:
        return Entry(**json.loads(_path().read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def remove() -> None:
    _path().unlink(missing_ok=True)
    disk.sync(_path().parent)


def was_committed(connection: Any, token: str) -> bool:
    """Return whether the rows of a restore are in the database; its audit entry shows it."""
    with connection.cursor() as cursor:
        if "common_auditevent" not in connection.introspection.table_names(cursor):
            return False
        cursor.execute("SELECT 1 FROM common_auditevent WHERE verb = %s AND object = %s", [VERB, token])
        return cursor.fetchone() is not None


def settle(say: Say = lambda text: None) -> None:
    """Finish or undo a killed restore: files follow the database. The caller holds the lock of the data folder."""
    entry = read()
    if entry is None:
        return
    if was_committed(connections[DEFAULT_DB_ALIAS], entry.token):
        say(f"The restore of {entry.file} was complete; its leftovers are removed.")
    else:
        if entry.placing:
            files.take_back(entry.token)
            write(replace(entry, placing=False))  # from now on a missing folder was removed, not moved
        say(f"The restore of {entry.file} was interrupted; the state before it is restored.")
    files.forget(entry.token)
    remove()


def checks() -> list[Check]:
    """Return the line for `evalapp doctor`; none if there is no killed restore."""
    entry = read()
    if entry is None:
        return []
    try:
        done = was_committed(connections[DEFAULT_DB_ALIAS], entry.token)
    except DatabaseError:
        return []  # another check reports it
    if done:
        text = f"of {entry.file}: the rows are there, its leftovers are not removed"
    else:
        text = f"of {entry.file}, begun {entry.began}, was interrupted; nothing of it counts"
    way = "Run `evalapp restore --settle` or `up`, or restore again."
    return [Check("restore", MISSING, text, way)]
