"""Which errors come from a service or the disk, and how they are handled. Services are really stopped in
`tests/faults`."""

from __future__ import annotations

import errno
import sqlite3
from typing import Any

import django.db
import pytest

from evalapp.common import outages
from evalapp.common.errors import Unavailable
from evalapp.common.outages import DatabaseBusy, DatabaseGone, DiskFull, explain


def make_driver_error(kind: type[Exception], text: str, code: str) -> Exception:
    """An error of PostgreSQL's driver with this code, as raised by Django."""
    inner = type("DriverError", (Exception,), {"pgcode": code})(text)
    error = kind(text)
    error.__cause__ = inner
    return error


def raised_from(error: Exception, *, hidden: bool = False) -> Exception:
    later = ValueError("later")
    later.__context__, later.__suppress_context__ = error, hidden
    return later


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FULL, DiskFull),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), DiskFull),
        (OSError("1000 requested and 234 written"), DiskFull),  # NumPy's tofile
        (RuntimeError("I/O error: No space left on device (os error 28)"), DiskFull),  # safetensors
        (sqlite3.OperationalError("database or disk is full"), DiskFull),
        (make_driver_error(django.db.OperationalError, "could not extend file", "53100"), DiskFull),
        (raised_from(FULL), DiskFull),
        (django.db.OperationalError("database is locked"), DatabaseBusy),
        (make_driver_error(django.db.OperationalError, "deadlock detected", "40P01"), DatabaseBusy),
        (make_driver_error(django.db.OperationalError, "terminating connection", "57P01"), DatabaseGone),
        (make_driver_error(django.db.OperationalError, "too many clients", "53300"), DatabaseGone),
        (django.db.OperationalError("disk I/O error"), DatabaseGone),
    ],
)
def test_dead_service_or_full_disk_is_one_line(error: Exception, kind: type[Unavailable]):
    found = explain(error)
    assert type(found) is kind
    assert found.status == 503
    assert "\n" not in found.detail
    assert "try again" in found.detail


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOENT, "No such file or directory"),
        ValueError("3 columns requested and 2 written"),
        django.db.IntegrityError("UNIQUE constraint failed"),
        django.db.OperationalError("no such table: x"),
        make_driver_error(django.db.ProgrammingError, "syntax error", "42601"),
        raised_from(FULL, hidden=True),
    ],
)
def test_other_errors_are_unchanged(error: Exception):
    assert explain(error) is None


def test_retries_until_the_time_limit(monkeypatch):
    monkeypatch.setattr(outages.time, "sleep", lambda seconds: None)
    errors: list[Any] = [django.db.OperationalError("database is locked")] * 3
    assert outages.persist(lambda: (_ for _ in ()).throw(errors.pop()) if errors else "done", 60) == "done"
    with pytest.raises(django.db.OperationalError):
        outages.persist(lambda: (_ for _ in ()).throw(django.db.OperationalError("database is locked")), 0)
    with pytest.raises(django.db.IntegrityError):
        outages.persist(lambda: (_ for _ in ()).throw(django.db.IntegrityError("twice")), 60)


def test_beat_logs_one_line(caplog):
    def seal() -> None:
        raise django.db.OperationalError("database is locked")

    assert outages.by_the_clock(seal) is None
    assert caplog.messages == ["seal: The database is busy (database is locked)"]
    assert outages.by_the_clock(lambda: 3) == 3
