"""An HTTP receiver of webhooks on a port of its own, which answers as a test asks."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Request:
    path: str
    headers: Message
    body: bytes


@dataclass
class Receiver:
    """`answers` are the statuses of the next requests, the last one again and again; `pause` the seconds before an
    answer, `drip` the number of lines of headers that come one per tenth of a second, `size` the bytes of the body."""

    port: int = 0
    answers: list[int] = field(default_factory=lambda: [204])
    pause: float = 0.0
    drip: int = 0
    size: int = 0
    requests: list[Request] = field(default_factory=list)
    #: Bytes of the body that the sender took.
    written: int = 0

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.authority}/in?token=hidden-token"


def make_handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.requests.append(Request(self.path, self.headers, body))
            time.sleep(receiver.pause)
            status = receiver.answers.pop(0) if len(receiver.answers) > 1 else receiver.answers[0]
            try:
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", f"http://{receiver.authority}/elsewhere")
                for number in range(receiver.drip):
                    self.send_header(f"X-{number}", "drip")
                    self.flush_headers()
                    time.sleep(0.1)
                self.send_header("Content-Length", str(receiver.size))
                self.end_headers()
                for _ in range(receiver.size // 1000):
                    self.wfile.write(bytes(1000))
                    receiver.written += 1000
            except OSError:
                pass  # the sender has hung up

        def log_message(self, *arguments: object) -> None:
            pass

    return Handler


@contextmanager
def run_receiver(certificate: Path | None = None) -> Iterator[Receiver]:
    """A receiver; with TLS if there is a file with key and certificate."""
    receiver = Receiver()
    server = ThreadingHTTPServer(("127.0.0.1", 0), make_handler(receiver))
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
