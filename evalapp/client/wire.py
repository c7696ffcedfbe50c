"""A moment until which an answer must be there as a whole. The limits of httpx hold for every single read: a server
that sends a byte now and then would keep a program for as long as it likes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ssl import SSLContext
from typing import Any

import httpcore
import httpx

_until: ContextVar[float | None] = ContextVar("until", default=None)


@contextmanager
def answered_until(moment: float | None) -> Iterator[None]:
    """Within, whatever this thread reads or writes ends at this moment of `time.monotonic`; None: there is none."""
    token = _until.set(moment)
    try:
        yield
    finally:
        _until.reset(token)


def _least(timeout: float | None, error: type[Exception]) -> float | None:
    """What one step may take. Raises `error` when the moment has passed."""
    moment = _until.get()
    if moment is None:
        return timeout
    left = moment - time.monotonic()
    if left <= 0:
        raise error("the time for the whole answer is over")
    return left if timeout is None else min(timeout, left)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _least(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _least(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        limit = _least(timeout, httpcore.ConnectTimeout)
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
        limit = _least(timeout, httpcore.ConnectTimeout)
        return _Stream(self._network.connect_tcp(host, port, limit, local_address, socket_options))

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        limit = _least(timeout, httpcore.ConnectTimeout)
        return _Stream(self._network.connect_unix_socket(path, limit, socket_options))

    def sleep(self, seconds: float) -> None:
        self._network.sleep(seconds)


def heed_moments(http: httpx.Client) -> None:
    """Connections of this client keep to `answered_until`. httpx has no door for that: what it is made of is reached
    where it lies in 0.28, and left as it is where it lies elsewhere or is not there (a transport for tests)."""
    for transport in (getattr(http, "_transport", None), *getattr(http, "_mounts", {}).values()):
        pool = getattr(transport, "_pool", None)
        network = getattr(pool, "_network_backend", None)
        if isinstance(network, httpcore.NetworkBackend):
            pool._network_backend = _Network(network)  # type: ignore[union-attr]
