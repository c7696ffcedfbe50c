"""Deadlines for whole responses, and the progress of request bodies. The time-outs of httpx limit each read, so a
server that sends a byte now and then could block a program forever."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ssl import SSLContext
from typing import Any

import httpcore
import httpx

#: (bytes done, total bytes or None)
Meter = Callable[[int, int | None], None]

_until: ContextVar[float | None] = ContextVar("until", default=None)


@contextmanager
def set_deadline(moment: float | None) -> Iterator[None]:
    """End all reads and writes of this thread in the block at a `moment` of `time.monotonic`; None: no deadline."""
    token = _until.set(moment)
    try:
        yield
    finally:
        _until.reset(token)


def _limit_step(timeout: float | None, error: type[Exception]) -> float | None:
    """Return the time-out of a step. Raises `error` after the deadline."""
    moment = _until.get()
    if moment is None:
        return timeout
    left = moment - time.monotonic()
    if left <= 0:
        raise error("the time for the whole response is over")
    return left if timeout is None else min(timeout, left)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _limit_step(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _limit_step(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        limit = _limit_step(timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, limit))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Network(httpcore.NetworkBackend):
    def __init__(self, network: httpcore.NetworkBackend) -> None:
        self._network = network

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        limit = _limit_step(timeout, httpcore.ConnectTimeout)
        return _Stream(self._network.connect_tcp(host, port, limit, local_address, socket_options))

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        limit = _limit_step(timeout, httpcore.ConnectTimeout)
        return _Stream(self._network.connect_unix_socket(path, limit, socket_options))

    def sleep(self, seconds: float) -> None:
        self._network.sleep(seconds)


def apply_deadlines(http: httpx.Client) -> None:
    """Let the connections of `http` respect `set_deadline`. httpx has no public interface for that; private attributes
    of version 0.28 are used if they exist (a transport for tests has none)."""
    for transport in (getattr(http, "_transport", None), *getattr(http, "_mounts", {}).values()):
        pool = getattr(transport, "_pool", None)
        network = getattr(pool, "_network_backend", None)
        if isinstance(network, httpcore.NetworkBackend):
            pool._network_backend = _Network(network)  # type: ignore[union-attr]


class MeteredBody(httpx.SyncByteStream):
    """A request body that reports how much of it has been sent."""

    def __init__(self, stream: httpx.SyncByteStream, total: int | None, meter: Meter) -> None:
        self._stream, self._total, self._meter = stream, total, meter

    def __iter__(self) -> Iterator[bytes]:
        done = 0
        for chunk in self._stream:
            yield chunk
            done += len(chunk)
            self._meter(done, self._total)

    def close(self) -> None:
        """Close the stream that is sent."""
        self._stream.close()
