"""Django's SQLite with a queue for those who write.

SQLite lets one write at a time, and who has to wait looks again every now and then: up to ten times a second, whoever
comes at the right moment gets through. With a dozen threads that write all the time some wait until the half minute is
over, and somebody reads that the database is locked. Here they stand in a queue instead, the threads of a process for
a lock of theirs, and the first of each process for a lock on a file beside the database, which the kernel gives on at
once and takes back from a process that dies. The queue only orders; what may be written is still SQLite's to say."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.sqlite3 import base
from django.db.utils import OperationalError

from . import lookups

_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


class Line:
    """A lock that goes to those who wait in the order in which they came."""

    def __init__(self) -> None:
        self.mutex, self.held, self.waiting = threading.Lock(), False, deque[threading.Event]()

    def acquire(self, seconds: float) -> bool:
        with self.mutex:
            if not self.held:
                self.held = True
                return True
            mine = threading.Event()
            self.waiting.append(mine)
        try:
            if mine.wait(seconds):
                return True
        except BaseException:  # a worker is told to end
            if not self._leave(mine):
                self.release()
            raise
        return not self._leave(mine)

    def _leave(self, mine: threading.Event) -> bool:
        """Out of the line; False where the lock came at the last moment."""
        with self.mutex:
            if mine.is_set():
                return False
            self.waiting.remove(mine)
            return True

    def release(self) -> None:
        with self.mutex:
            if self.waiting:
                self.waiting.popleft().set()  # it stays held, by the next one
            else:
                self.held = False


class Queue:
    """Those who want to write to one file."""

    def __init__(self, path: str) -> None:
        self.path, self.threads = path, Line()

    def enter(self, seconds: float) -> int:
        """Waits for one's turn, among threads at most `seconds`; gives what `leave` wants back."""
        if not self.threads.acquire(seconds):
            raise OperationalError("database is locked")
        try:
            number = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(number, fcntl.LOCK_EX)
            except BaseException:
                os.close(number)
                raise
        except BaseException:
            self.threads.release()
            raise
        return number

    def leave(self, number: int) -> None:
        # Unlocked by name: a process forked meanwhile has the same number open, and closing would not be enough.
        fcntl.flock(number, fcntl.LOCK_UN)
        os.close(number)
        self.threads.release()


_queues: dict[str, Queue] = {}
os.register_at_fork(after_in_child=_queues.clear)  # a lock held by a thread of the parent would never be given back


class Cursor(base.SQLiteCursorWrapper):
    """Single statements outside of a transaction queue, too."""

    owner: DatabaseWrapper

    def execute(self, query: str, params: Any = None) -> Any:
        if not self.owner.must_queue(query):
            return super().execute(query, params)
        with self.owner.turn():
            return super().execute(query, params)

    def executemany(self, query: str, param_list: Any) -> Any:
        if not self.owner.must_queue(query):
            return super().executemany(query, param_list)
        with self.owner.turn():
            return super().executemany(query, param_list)


class DatabaseWrapper(base.DatabaseWrapper):
    _queue: Queue | None = None
    _turn: int | None = None

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        connection.create_function(lookups.FUNCTION, 1, lookups.upper, deterministic=True)
        if self.is_in_memory_db():
            self._queue = None
        else:
            path = f"{os.path.realpath(self.settings_dict['NAME'])}-queue"
            self._queue = _queues.setdefault(path, Queue(path))
        return connection

    def create_cursor(self, name: str | None = None) -> Any:
        def make(connection: sqlite3.Connection) -> Cursor:
            cursor = Cursor(connection)
            cursor.owner = self
            return cursor

        return self.connection.cursor(factory=make)

    def must_queue(self, query: str) -> bool:
        return not self.in_atomic_block and self._turn is None and query.startswith(_WRITES)

    @contextmanager
    def turn(self) -> Iterator[None]:
        self._begin_turn()
        try:
            yield
        finally:
            self._end_turn()

    def _begin_turn(self) -> None:
        if self._queue is not None and self._turn is None:
            self._turn = self._queue.enter(float(self.settings_dict["OPTIONS"].get("timeout", 5.0)))

    def _end_turn(self) -> None:
        if self._queue is not None and self._turn is not None:
            turn, self._turn = self._turn, None
            self._queue.leave(turn)

    def _start_transaction_under_autocommit(self) -> None:
        self._begin_turn()
        try:
            super()._start_transaction_under_autocommit()
        except BaseException:
            self._end_turn()
            raise

    def _commit(self) -> Any:
        try:
            return super()._commit()
        finally:
            self._end_turn()

    def _rollback(self) -> Any:
        try:
            return super()._rollback()
        finally:
            self._end_turn()

    def _close(self) -> Any:
        try:
            return super()._close()
        finally:
            self._end_turn()
