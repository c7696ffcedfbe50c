"""A mail server on a port of its own, which accepts or refuses mails as a test asks."""

from __future__ import annotations

import email
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from email.policy import default as policy


class SmtpServer(socketserver.ThreadingTCPServer):
    """Answers recipients with `reply`; accepted mails are in `mails`."""

    daemon_threads = allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.reply = "250 accepted"
        self.mails: list[Message] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Session(socketserver.StreamRequestHandler):
    """The commands of RFC 5321 that a client needs for one mail."""

    def handle(self) -> None:
        assert isinstance(self.server, SmtpServer)
        self._say("220 test")
        for line in self.rfile:
            match line[:4].upper():
                case b"RCPT":
                    self._say(self.server.reply)
                case b"DATA":
                    self._say("354 go on")
                    self.server.mails.append(email.message_from_bytes(self._read_mail(), policy=policy))
                    self._say("250 stored")
                case b"QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self._say("250 ok")

    def _read_mail(self) -> bytes:
        lines: list[bytes] = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line)
        return b"".join(lines)

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def smtp_server() -> Iterator[SmtpServer]:
    with SmtpServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
