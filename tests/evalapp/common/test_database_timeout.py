"""Only unanswered requests are cut; between real sockets, without a server."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from evalapp.common.database_timeout import Watch, limit_waits, seconds_silent

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="the kernel does not tell")
ACTIVE, IDLE = 1, 0


class Connection:
    """The attributes of a psycopg connection that the watch uses."""

    def __init__(self, line: socket.socket, state: int) -> None:
        self.line, self.state, self.closed = line, state, 0

    def fileno(self) -> int:
        return self.line.fileno()

    def get_transaction_status(self) -> int:
        return self.state


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        mine = socket.create_connection(server.getsockname())
        yours, _ = server.accept()
    with mine, yours:
        yield mine, yours


def test_silence_counts_from_the_last_data_in_either_direction(pair):
    mine, yours = pair
    mine.sendall(b"asked")
    time.sleep(0.3)
    assert 0.25 <= seconds_silent(mine) < 5
    before = time.monotonic()
    yours.sendall(b"answered")
    mine.recv(100)
    assert seconds_silent(mine) < time.monotonic() - before + 0.05  # the kernel counts in steps of several milliseconds
    assert seconds_silent(socket.socketpair()[0]) == 0.0  # of this machine


def test_only_unanswered_requests_are_cut(pair):
    mine, yours = pair
    mine.sendall(b"asked")
    time.sleep(0.3)
    watch, idle = Watch(0.1), Connection(mine, IDLE)
    watch.add(idle)
    assert watch.sweep() == 0
    idle.state = ACTIVE
    patient = Watch(60)
    patient.add(idle)
    assert patient.sweep() == 0
    assert watch.sweep() == 1
    assert mine.recv(100) == b""  # as if the server had closed it
    assert yours.recv(100) == b"asked"


def test_closed_connection_is_forgotten(pair):
    mine, _ = pair
    watch, known = Watch(0.0), Connection(mine, ACTIVE)
    watch.add(known)
    known.closed = 1
    assert watch.sweep() == 0
    assert watch._lines == []


def test_limit_applies_only_to_web_processes_on_postgresql(monkeypatch):
    config: dict[str, Any] = {"ENGINE": "django.db.backends.sqlite3", "OPTIONS": {}}
    monkeypatch.setitem(connections.settings, "default", config)
    assert limit_waits(7) is None
    assert config["OPTIONS"] == {}
