"""What a restore notes down before it changes anything, so that one that was killed can be finished or undone."""

from __future__ import annotations

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
from .telling import Say

NAME = "restore.json"
#: The entry of the audit that stands for a restore; it is written with the rows.
VERB = "installation.restored"


@dataclass(frozen=True)
class Note:
    """`placing`: the files may have been moved already, and not all been taken back."""

    token: str
    file: str
    began: str
    placing: bool = False


def _path() -> Path:
    return Path(settings.DATA_DIR) / NAME


def write(note: Note) -> None:
    part = _path().with_suffix(".new")
    with part.open("w", encoding="utf-8") as file:
        json.dump(asdict(note), file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(_path())
    disk.sync(_path().parent)


def read() -> Note | None:
    try:
        return Note(**json.loads(_path().read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def remove() -> None:
    _path().unlink(missing_ok=True)
    disk.sync(_path().parent)


def was_committed(connection: Any, token: str) -> bool:
    """Whether the rows of that restore are there; they came together or not at all."""
    with connection.cursor() as cursor:
        if "common_auditevent" not in connection.introspection.table_names(cursor):
            return False
        cursor.execute("SELECT 1 FROM common_auditevent WHERE verb = %s AND object = %s", [VERB, token])
        return cursor.fetchone() is not None


def settle(say: Say = lambda text: None) -> None:
    """Finish or undo what a killed restore left. The database decides, files follow. Only under the folder's lock."""
    note = read()
    if note is None:
        return
    if was_committed(connections[DEFAULT_DB_ALIAS], note.token):
        say(f"The restore of {note.file} had done its work; what it left is removed.")
    else:
        if note.placing:
            files.take_back(note.token)
            write(replace(note, placing=False))  # from here on a missing folder was forgotten, not moved
        say(f"The restore of {note.file} was interrupted; everything is as it was before.")
    files.forget(note.token)
    remove()


def checks() -> list[Check]:
    """The line of `manage.py doctor`; none while nothing is left."""
    note = read()
    if note is None:
        return []
    try:
        done = was_committed(connections[DEFAULT_DB_ALIAS], note.token)
    except DatabaseError:
        return []  # that the database does not answer has a line of its own
    if done:
        found = f"of {note.file}: the rows are there, what it left behind is not removed"
    else:
        found = f"of {note.file}, begun {note.began}, was interrupted; nothing of it counts"
    way = "Run `python manage.py restore --settle`, or restore again; `up` tidies up, too."
    return [Check("restore", MISSING, found, way)]
