"""Explain errors that a dead service or a full disk raised: one line for the user instead of an internal error. Other
errors stay as they are."""

import errno
import logging
import shutil
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import django.db
from django.conf import settings
from django.db import connection
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from .errors import BadInput, Unavailable

T = TypeVar("T")

log = logging.getLogger(__name__)

#: PostgreSQL's classes and codes: connection lost or refused, server starting or stopping, too many connections.
_GONE = ("08", "57P", "53300")
_FULL = ("53100",)
#: Deadlock, serialisation failure, lock or statement timeout: a retry may succeed.
_BUSY = ("40", "55P03", "57014")
#: Messages of libraries that pass no error number: Rust and SQLite. NumPy says “N requested and M written”.
_FULL_WORDS = ("no space left", "os error 28", "disk is full", "disk quota exceeded")
_FULL_NUMBERS = {errno.ENOSPC, errno.EDQUOT}
#: SQLite's messages if it has no space for its temporary files, and if the disk is broken.
_SQLITE_FILES = ("disk i/o error", "unable to open database file", "disk image is malformed")
_LITTLE_ROOM = 1 << 20
#: SQLite's messages for a file that is not a database, or is inconsistent.
_DAMAGED_WORDS = ("file is not a database", "file is encrypted", "disk image is malformed", "malformed database schema")
#: How PostgreSQL and its driver name the character NUL, the only one that they refuse.
_NUL = ("NUL (0x00)", "\\u0000")


class DatabaseGone(Unavailable):
    title = _lazy("The database cannot be reached")


class DatabaseBusy(Unavailable):
    title = _lazy("The database is busy")


class DatabaseDamaged(Unavailable):
    title = _lazy("The database file is damaged")


class DiskFull(Unavailable):
    title = _lazy("The disk is full")


def explain(error: BaseException) -> Unavailable | None:
    """Return the error for users if a service or the disk is the cause; None otherwise."""
    for each in _chain(error):
        if explained := _explain(each):
            return explained
    return None


def explain_damage(error: BaseException) -> DatabaseDamaged | None:
    """Return the error for users if the database file is damaged; None otherwise."""
    explained = explain(error)
    return explained if isinstance(explained, DatabaseDamaged) else None


def unstorable(error: BaseException) -> BadInput | None:
    """Return an error for users if PostgreSQL refused the character NUL; None otherwise."""
    if isinstance(error, (ValueError, django.db.DataError)) and any(words in str(error) for words in _NUL):
        return BadInput(_("A text contains the character NUL, which cannot be stored. Remove it."))
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes. At the end of a transaction the first error is often hidden."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        hidden = None if following.__suppress_context__ else following.__context__
        following = following.__cause__ or hidden


def _explain(error: BaseException) -> Unavailable | None:
    text = str(error).lower()
    code = str(getattr(error, "pgcode", None) or getattr(error.__cause__, "pgcode", None) or "")
    # Bulk copies call the driver directly, whose errors Django does not wrap.
    driver = connection.Database
    is_database = isinstance(error, (django.db.Error, driver.Error))
    if _is_full(error, text, code):
        return DiskFull(
            _("The disk of the server is full. Nothing was stored incompletely. Free some space, then try again.")
        )
    if not is_database:
        return None
    if any(words in text for words in _DAMAGED_WORDS):
        return DatabaseDamaged(
            _(
                "The database file %(file)s is damaged or is not a database. Stop all processes, move it and the files "
                "that begin with its name to another folder, then restore a backup: "
                "evalapp restore FILE --replace"
            )
            % {"file": connection.settings_dict["NAME"]}
        )
    if code.startswith(_BUSY) or "database is locked" in text or "table is locked" in text:
        return DatabaseBusy(
            _("Too many processes write to the database. Nothing was stored incompletely; try again in a moment.")
        )
    lost = isinstance(error, (django.db.InterfaceError, driver.InterfaceError)) or (
        isinstance(error, (django.db.OperationalError, driver.OperationalError)) and not code
    )
    if code.startswith(_GONE) or (lost and connection.vendor == "postgresql") or _is_file_trouble(text):
        return DatabaseGone(_("The database does not answer. Nothing was stored incompletely; try again in a moment."))
    return None


def _is_full(error: BaseException, text: str, code: str) -> bool:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _FULL_NUMBERS
    if isinstance(error, OSError) and " requested and " in text and text.endswith(" written"):
        return True
    if code.startswith(_FULL) or any(words in text for words in _FULL_WORDS):
        return True
    return _is_file_trouble(text) and shutil.disk_usage(settings.DATA_DIR).free < _LITTLE_ROOM


def _is_file_trouble(text: str) -> bool:
    return any(words in text for words in _SQLITE_FILES)


def persist(act: Callable[[], T], seconds: float, pause: float = 0.2) -> T:
    """Call `act` until it succeeds or `seconds` have passed, while the database is unavailable, busy or out of space.
    `act` must be idempotent: the response may be lost after its work is done."""
    until = time.monotonic() + seconds
    while True:
        try:
            return act()
        except (django.db.Error, OSError) as error:
            if connection.in_atomic_block or explain(error) is None or time.monotonic() > until:
                raise
        drop_connection()
        time.sleep(pause)
        pause = min(2 * pause, 5.0)


def by_the_clock(act: Callable[[], T]) -> T | None:
    """Call `act`, which is repeated soon. While the database is unavailable, log a line without traceback."""
    try:
        return act()
    except django.db.Error as error:
        if (outage := explain(error)) is None:
            raise
        log.warning("%s: %s (%s)", act.__name__, outage.title, " ".join(str(error).split()))
        return None


def drop_connection() -> None:
    """Close a broken connection. Django does this only at the end of a request."""
    if not connection.in_atomic_block:
        connection.close()
