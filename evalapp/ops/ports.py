"""TCP ports of this machine."""

import errno
import socket
import time
from collections.abc import Callable

from .errors import OpsError, PortInUse

BACKLOG = 2048


def find_free_port() -> int:
    """Return a loopback port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise `PortInUse` if the port is taken. Connections wait until a server accepts
    them."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise OpsError(f"{host} is not an address of this machine ({error.strerror}). Try --host 127.0.0.1.") from error
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(host, port) from error
        if error.errno == errno.EACCES:
            raise OpsError(f"Port {port} needs administrator rights. Choose one above 1023, such as 8000.") from error
        raise OpsError(f"Cannot listen on {host}:{port}: {error.strerror}.") from error
    return listener


def answers(host: str, port: int, timeout: float = 1.0) -> bool:
    """Return whether a server accepts connections."""
    try:
        with socket.create_connection((host, port), timeout):
            return True
    except OSError:
        return False


def wait_until(ready: Callable[[], bool], seconds: float, every: float = 0.05) -> bool:
    """Call `ready` until it returns true or `seconds` have passed. Returns whether it did."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() >= end:
            return False
        time.sleep(every)
    return True
