"""A database server that still holds its connections but answers nothing (stopped, its machine frozen) would keep a
request waiting for ever: while the kernel acknowledges what is sent, no time-out of the connection fires. In web
processes a thread looks once a second and cuts what has been silent for too long; workers wait, and go on with it."""

from __future__ import annotations

import logging
import os
import socket
import struct
import threading
import time
import weakref
from typing import Any

from django.db import connections
from django.db.backends.signals import connection_created

log = logging.getLogger(__name__)

EVERY = 1.0
#: libpq's PQTRANS_ACTIVE: a command was sent and its end has not come.
_WAITING = 1
#: Of Linux' tcp_info: milliseconds since data were sent and since data came.
_INFO = struct.Struct("=44xI4xI")


def silence(line: socket.socket) -> float:
    """Seconds in which nothing was sent and nothing came; 0 where the kernel does not tell (a Unix socket)."""
    try:
        sent, came = _INFO.unpack(line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size))
    except OSError:
        return 0.0
    return float(min(sent, came)) / 1000


class Watch:
    """The connections of one process and the thread that looks at them. Queries pass it by: it costs them nothing."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._lines: list[tuple[weakref.ref[Any], socket.socket]] = []
        self._lock = threading.Lock()
        self._process = 0

    def add(self, connection: Any) -> None:
        """A connection of psycopg, just opened. The second name of its socket cannot become another's, as a number
        could."""
        line = socket.socket(fileno=os.dup(connection.fileno()))
        with self._lock:
            if self._process != os.getpid():  # threads stay behind where a process forks
                self._process, self._lines = os.getpid(), []
                threading.Thread(target=self._look, name="silence", daemon=True).start()
            self._lines.append((weakref.ref(connection), line))

    def sweep(self) -> int:
        """Cut what is silent, forget what is closed. Gives how many were cut."""
        cut = 0
        with self._lock:
            kept = []
            for known, line in self._lines:
                connection = known()
                if connection is None or connection.closed:
                    line.close()
                    continue
                kept.append((known, line))
                if connection.get_transaction_status() == _WAITING and (quiet := silence(line)) > self.seconds:
                    log.warning("The database has been silent for %.0f s; the connection that waits is cut.", quiet)
                    line.shutdown(socket.SHUT_RDWR)
                    cut += 1
            self._lines = kept
        return cut

    def _look(self) -> None:
        while True:
            time.sleep(EVERY)
            try:
                self.sweep()
            except OSError as error:  # the other side was quicker
                log.info("A silent connection was gone before it was cut: %s", error)


def bound_waits(seconds: float) -> Watch | None:
    """For this web process and those it forks: no statement runs longer (the server ends it), none waits much longer
    for a server that is silent. None where PostgreSQL is not the database or the kernel does not tell."""
    wanted = connections.settings["default"]
    if "postgresql" not in wanted["ENGINE"]:
        return None
    options = wanted.setdefault("OPTIONS", {})
    milliseconds = int(seconds * 1000)
    options["options"] = (
        f"{options.get('options', '')} -c statement_timeout={milliseconds}"
        f" -c idle_in_transaction_session_timeout={2 * milliseconds}"
    ).strip()
    if not hasattr(socket, "TCP_INFO"):
        return None
    watch = Watch(seconds + 1)  # a server that lives ends the statement itself, and says so

    def opened(connection: Any, **_: Any) -> None:
        if connection.alias == "default":
            watch.add(connection.connection)

    connection_created.connect(opened, weak=False, dispatch_uid="evalapp.common.silence")
    return watch
