"""Limit how long a web process waits for PostgreSQL.

`statement_timeout` ends a slow statement, but only while the server runs. A server that is stopped or whose machine
hangs sends nothing, its kernel still acknowledges packets, so neither `tcp_user_timeout` nor keepalives fire. A thread
therefore checks once a second how long each connection has been silent and shuts down those that exceed the limit
(docs/decisions/silent-databases.md). Workers have no limit: they wait and continue when the server does."""

import logging
import os
import socket
import struct
import threading
import time
import weakref
from typing import Any

from django.conf import settings
from django.db import connections
from django.db.backends.signals import connection_created

log = logging.getLogger(__name__)

INTERVAL = 1.0
#: libpq's PQTRANS_ACTIVE: a command is in progress.
_ACTIVE = 1
#: Linux' tcp_info: milliseconds since data were last sent, and since data were last received.
_INFO = struct.Struct("=44xI4xI")


def seconds_silent(line: socket.socket) -> float:
    """Return the seconds since data were last sent or received; 0 if the kernel does not know (Unix sockets)."""
    try:
        sent, received = _INFO.unpack(line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size))
    except OSError:
        return 0.0
    return float(min(sent, received)) / 1000


class Watch:
    """The database connections of a process and the thread that checks them. Queries have no overhead."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._lines: list[tuple[weakref.ref[Any], socket.socket]] = []
        self._lock = threading.Lock()
        self._process = 0

    def add(self, connection: Any) -> None:
        """Watch a new psycopg connection. Its socket is duplicated because a bare file descriptor could be reused."""
        line = socket.socket(fileno=os.dup(connection.fileno()))
        with self._lock:
            if self._process != os.getpid():  # threads do not survive a fork
                self._process, self._lines = os.getpid(), []
                threading.Thread(target=self._run, name="database-timeout", daemon=True).start()
            self._lines.append((weakref.ref(connection), line))

    def sweep(self) -> int:
        """Shut down silent connections, forget closed ones, and return how many were shut down."""
        count, open_lines = 0, []
        with self._lock:
            for reference, line in self._lines:
                connection = reference()
                if connection is None or connection.closed:
                    line.close()
                    continue
                open_lines.append((reference, line))
                if connection.get_transaction_status() == _ACTIVE and (silent := seconds_silent(line)) > self.seconds:
                    log.warning("The database has been silent for %.0f s; the waiting connection is closed.", silent)
                    line.shutdown(socket.SHUT_RDWR)
                    count += 1
            self._lines = open_lines
        return count

    def _run(self) -> None:
        while True:
            time.sleep(INTERVAL)
            try:
                self.sweep()
            except OSError as error:  # the server closed it first
                log.info("A silent connection was already closed: %s", error)


def limit_waits(seconds: float) -> Watch | None:
    """Limit statements and silence in this web process and its forks to about `seconds`. Returns None unless the
    database is PostgreSQL and the system has tcp_info. Behind a pooler the limit of statements is the pooler's."""
    config = connections.settings["default"]
    if "postgresql" not in config["ENGINE"]:
        return None
    if not settings.DATABASE_POOLER:
        options = config.setdefault("OPTIONS", {})
        milliseconds = int(seconds * 1000)
        options["options"] = (
            f"{options.get('options', '')} -c statement_timeout={milliseconds}"
            f" -c idle_in_transaction_session_timeout={2 * milliseconds}"
        ).strip()
    if not hasattr(socket, "TCP_INFO"):
        return None
    watch = Watch(seconds + 1)  # a running server ends the statement first, with a clearer message

    def opened(connection: Any, **_: Any) -> None:
        if connection.alias == "default":
            watch.add(connection.connection)

    connection_created.connect(opened, weak=False, dispatch_uid="evalapp.common.database_timeout")
    return watch
