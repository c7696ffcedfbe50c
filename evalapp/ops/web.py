"""The worker class of the web process: gunicorn's threads, protected from slow clients without a proxy.

gunicorn's `gthread` gives each accepted connection to a thread, which then waits for the client. A few dozen clients
that send byte by byte occupy all threads. Here the event loop receives the request without blocking: its head and a
body of at most `SMALL_BODY` bytes. Only complete requests go to a thread.

Requests with a larger body (uploads) have their own threads, where a minimum rate applies; slower clients are
disconnected, sooner while other uploads wait for a thread. The same rate applies to clients that receive a response.
Closing a connection also waits for the client and has a thread of its own."""

from __future__ import annotations

import contextlib
import errno
import math
import re
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from selectors import EVENT_READ
from typing import Any

from gunicorn import util
from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import TConn, ThreadWorker

from . import SMALL_BODY

LONGEST_HEAD = 64 * 1024
#: Seconds for a request with a small body, from the start of the connection or its first byte after another request.
SMALL_SECONDS = 60.0
#: Seconds that a thread waits for a larger body, plus one for each `LEAST_PACE` bytes received. The shorter time
#: applies while other uploads wait for a thread.
GRACE_SECONDS, CROWDED_BODY_SECONDS = 60.0, 2.0
#: Seconds to discard the rest of an unread body before the connection is reused.
DRAIN_SECONDS = 5.0
#: Seconds that a thread waits for a client to receive a response, plus one for each `LEAST_PACE` bytes sent. The
#: shorter time applies while half of the threads wait for clients.
ANSWER_SECONDS, CROWDED_SECONDS = 20.0, 1.0
LEAST_PACE = 8 * 1024
#: Bytes of a response per send call.
PIECE = 64 * 1024

_LENGTH = re.compile(rb"\r\ncontent-length:([^\r\n]*)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_EXPECT = re.compile(rb"\r\nexpect:[ \t]*100-continue", re.IGNORECASE)


class TooSlow(TimeoutError):
    """The body arrived more slowly than the minimum rate."""


class PacedUnreader(SocketUnreader):
    """Reads from the socket and disconnects clients that send more slowly than the minimum rate, sooner while
    `is_crowded`. Only waiting counts, not storing the body."""

    def __init__(self, sock: socket.socket, is_crowded: Callable[[], bool]) -> None:
        super().__init__(sock)
        self._is_crowded = is_crowded
        self.restart()

    def restart(self) -> None:
        """Start the time of a new request."""
        #: Seconds waited beyond the minimum rate.
        self._late = 0.0
        self._end = math.inf

    def hurry(self) -> None:
        self._end = min(self._end, time.monotonic() + DRAIN_SECONDS)

    def chunk(self, size_hint: int | None = None) -> bytes:
        while True:
            limit = CROWDED_BODY_SECONDS if self._is_crowded() else GRACE_SECONDS
            left = min(limit - self._late, self._end - time.monotonic())
            if left <= 0:
                raise TooSlow("The body came too slowly.")
            # In short intervals, because `is_crowded` can change.
            data = self._receive(size_hint, min(0.25, left))
            if data is not None:
                return data

    def _receive(self, size_hint: int | None, seconds: float) -> bytes | None:
        """Return the data received within `seconds`; None if there are none."""
        began, before = time.monotonic(), self.sock.gettimeout()
        self.sock.settimeout(seconds)
        data: bytes | None = None
        try:
            data = super().chunk(size_hint)
        except TimeoutError:
            pass
        finally:
            self.sock.settimeout(before)
        self._late = max(0.0, self._late + time.monotonic() - began - len(data or b"") / LEAST_PACE)
        return data


class PacedSender:
    """A socket for responses. It disconnects clients that receive more slowly than the minimum rate, sooner while more
    than `crowd` threads wait for such clients. Only waiting counts, not computing the response."""

    def __init__(self, sock: socket.socket, senders: set[PacedSender], crowd: int) -> None:
        self._sock, self._senders, self._crowd = sock, senders, crowd
        #: Seconds waited beyond the minimum rate.
        self._late = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def sendall(self, data: Any) -> None:
        view = memoryview(data)
        while view:
            limit = CROWDED_SECONDS if len(self._senders) > self._crowd else ANSWER_SECONDS
            if self._late >= limit:
                raise OSError(errno.EPIPE, "The client receives the answer too slowly.")
            view = view[self._send(view[:PIECE], min(0.25, limit - self._late)) :]

    def _send(self, piece: memoryview, seconds: float) -> int:
        began = time.monotonic()
        self._sock.settimeout(seconds)
        self._senders.add(self)
        sent = 0
        try:
            sent = self._sock.send(piece)
        except TimeoutError:
            pass
        finally:
            self._senders.discard(self)
        self._late = max(0.0, self._late + time.monotonic() - began - sent / LEAST_PACE)
        return sent

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> int:
        file.seek(offset)
        sent = 0
        while piece := file.read(PIECE if count is None else min(PIECE, count - sent)):
            self.sendall(piece)
            sent += len(piece)
        return sent


class Connection(TConn):
    """A client connection. `received` is the part of its next request that the event loop has read."""

    def __init__(self, *arguments: Any, closer: ThreadPoolExecutor, is_crowded: Callable[[], bool]) -> None:
        super().__init__(*arguments)
        self.is_crowded = is_crowded
        self.received = bytearray()
        self.encouraged = False
        self.closer = closer

    def init(self) -> None:
        first = not self.initialized
        super().init()
        if first:
            self.parser.unreader = PacedUnreader(self.sock, self.is_crowded)

    def missing(self) -> int | None:
        """Return the number of missing bytes of a small request, at least 1 while its head is incomplete; None if a
        thread receives the body. Raises ValueError for an invalid length."""
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return 1
        head = bytes(self.received[: end + 2])
        match = _LENGTH.search(head)
        length = match[1].strip(b" \t") if match else b"0"
        if not length.isdigit() or len(length) > 18:
            raise ValueError("Content-Length is no number.")
        body = int(length)
        if body > SMALL_BODY or _CHUNKED.search(head):
            return None
        left = max(0, end + 4 + body - len(self.received))
        if left and not self.encouraged and _EXPECT.search(head):
            self.encouraged = True
            self.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not left and self.encouraged:
            # An error response was sent already; gunicorn would send a second one.
            self.received[: end + 2] = _EXPECT.sub(b"", head)
        return left

    def close(self, graceful: bool = False) -> None:
        """Close gracefully in a thread: it waits up to two seconds for the client."""
        if graceful:
            self.sock.setblocking(True)
            self.closer.submit(util.close_graceful, self.sock)
        else:
            super().close()


class Worker(ThreadWorker):
    """The class for `--worker-class evalapp.ops.web.Worker`. `--threads` is the number of threads for pages, and again
    for uploads."""

    def init_process(self) -> None:
        self.uploads = ThreadPoolExecutor(self.cfg.threads, thread_name_prefix="upload")
        self.closer = ThreadPoolExecutor(self.cfg.threads, thread_name_prefix="close")
        self.senders: set[PacedSender] = set()
        #: Uploads that wait for a thread.
        self.queued: set[Connection] = set()
        super().init_process()

    def accept(self, listener: socket.socket) -> None:
        try:
            sock, client = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self.nr_conns += 1
        name = listener.getsockname()
        crowded = partial(bool, self.queued)
        self.receive(Connection(self.cfg, sock, client, name, closer=self.closer, is_crowded=crowded))

    def receive(self, conn: Connection) -> None:
        """Let the event loop receive the next request of a connection."""
        conn.sock.setblocking(False)
        conn.timeout = time.monotonic() + SMALL_SECONDS
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def on_client_socket_readable(self, conn: Connection, client: socket.socket) -> None:
        """Start the next request of a kept-alive connection."""
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self.receive(conn)
        self.on_pending_socket_readable(conn, client)

    def on_pending_socket_readable(self, conn: Connection, client: socket.socket) -> None:
        try:
            data = client.recv(64 * 1024)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        conn.received += data
        try:
            missing = conn.missing()
        except ValueError:
            return self.drop(conn, 400, "Bad Request")
        if not data:  # the client disconnected before its request was complete
            self.drop(conn)
        elif not missing:
            self.leave(conn)
            self.hand_over(conn, self.uploads if missing is None else self.tpool)
        elif len(conn.received) > LONGEST_HEAD and b"\r\n\r\n" not in conn.received:
            self.drop(conn, 431, "Request Header Fields Too Large")

    def leave(self, conn: Connection) -> None:
        self.poller.unregister(conn.sock)
        self.pending_conns.remove(conn)

    def drop(self, conn: Connection, status: int = 0, reason: str = "") -> None:
        """Close a connection whose request stayed incomplete, with a response if one is given."""
        self.leave(conn)
        self.nr_conns -= 1
        if status:
            with contextlib.suppress(OSError):
                util.write_error(conn.sock, status, reason, "")
        conn.close(graceful=bool(status))

    def murder_pending(self) -> None:
        """Time out slow requests. A stopping worker does not wait for requests that have not begun."""
        now = time.monotonic()
        if self.alive and not (self.pending_conns and self.pending_conns[0].timeout <= now):
            return
        for conn in [conn for conn in self.pending_conns if conn.timeout <= now or not (self.alive or conn.received)]:
            self.drop(conn, *((408, "Request Timeout") if conn.received else ()))

    def hand_over(self, conn: Connection, pool: ThreadPoolExecutor) -> None:
        """Give a request to a thread: complete requests to those for pages, others to those for uploads."""
        conn.init()
        conn.parser.unreader.restart()
        conn.parser.unreader.unread(bytes(conn.received))
        conn.received.clear()
        conn.encouraged = False
        conn.data_ready = True
        if pool is self.uploads:
            self.queued.add(conn)
            done = pool.submit(self.handle_upload, conn)
        else:
            done = pool.submit(self.handle, conn)
        done.add_done_callback(lambda future: self.method_queue.defer(self.finish_request, conn, future))

    def handle_upload(self, conn: Connection) -> Any:
        self.queued.discard(conn)
        return self.handle(conn)

    def handle_request(self, req: Any, conn: Connection) -> Any:
        plain = conn.sock
        conn.sock = PacedSender(plain, self.senders, self.cfg.threads // 2)
        try:
            return super().handle_request(req, conn)
        finally:
            conn.sock = plain
            with contextlib.suppress(OSError):
                plain.setblocking(True)

    def _keepalive_after(self, conn: Connection, keepalive: bool) -> bool:
        conn.parser.unreader.hurry()
        return bool(super()._keepalive_after(conn, keepalive))

    def enqueue_req(self, conn: Connection) -> None:
        """Called by the base class for a connection whose next request was read together with the previous one."""
        conn.received += conn.parser.unreader.take_buffered()
        try:
            missing = conn.missing()
        except ValueError:
            missing = 0  # gunicorn refuses it
        if missing:
            self.receive(conn)
        else:
            self.hand_over(conn, self.uploads if missing is None else self.tpool)
