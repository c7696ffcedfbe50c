"""Send one request of a webhook: to a checked address, within a time limit, without following redirects. Neither the
address nor the answer is stored or logged."""

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Mapping

from ..models import Delivery
from .addresses import Target, Undelivered, read_address, resolve

#: Seconds for a connection, and for the whole request.
CONNECT_SECONDS, TOTAL_SECONDS = 5.0, 15.0
#: Bytes of the answer that are read, so that the receiver can finish, and dropped.
ANSWER_BYTES = 16_384


class _Line:
    """A connection to one of the addresses, which ends by itself after `TOTAL_SECONDS`: limits of a socket count anew
    with each byte that arrives."""

    def __init__(self, target: Target, addresses: list[str]) -> None:
        self.socket = _open_socket(addresses, target.port)
        self.is_late = False
        self._timer = threading.Timer(TOTAL_SECONDS, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def secure(self, host: str) -> None:
        context = ssl.create_default_context()
        self.socket = context.wrap_socket(self.socket, server_hostname=host, do_handshake_on_connect=False)
        self.socket.do_handshake()

    def _cut(self) -> None:
        self.is_late = True
        with contextlib.suppress(OSError):
            # The method of a TLS socket would take its state away while another thread reads.
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)

    def close(self) -> None:
        self._timer.cancel()
        self.socket.close()


def _open_socket(addresses: list[str], port: int) -> socket.socket:
    last: OSError = OSError("no address")
    for address in addresses[:3]:
        try:
            return socket.create_connection((address, port), timeout=CONNECT_SECONDS)
        except OSError as error:
            last = error
    raise last


def post(url: str, body: bytes, headers: Mapping[str, str]) -> int:
    """Send a POST request; return the status of the answer if it is 2xx. Raises `Undelivered` otherwise."""
    target = read_address(url)
    addresses = resolve(target)
    try:
        with contextlib.closing(_Line(target, addresses)) as line:
            try:
                status = _exchange(line, target, body, headers)
            except (OSError, http.client.HTTPException):
                if line.is_late:
                    raise TimeoutError from None
                raise
    except ssl.SSLCertVerificationError as error:
        raise Undelivered(Delivery.Problem.CERTIFICATE) from error
    except TimeoutError as error:
        raise Undelivered(Delivery.Problem.SLOW) from error
    except OSError as error:
        raise Undelivered(Delivery.Problem.CONNECTION) from error
    except http.client.HTTPException as error:
        raise Undelivered(Delivery.Problem.ANSWER) from error
    if 300 <= status < 400:
        raise Undelivered(Delivery.Problem.REDIRECT, status)
    if not 200 <= status < 300:
        raise Undelivered(Delivery.Problem.STATUS, status)
    return status


def _exchange(line: _Line, target: Target, body: bytes, headers: Mapping[str, str]) -> int:
    if target.scheme == "https":
        line.secure(target.host)
    connection = http.client.HTTPConnection(target.host, target.port)
    connection.sock = line.socket
    connection.request("POST", target.path, body, {"Host": target.authority, "Connection": "close", **headers})
    response = connection.getresponse()
    if line.is_late:  # a cut among the headers looks like their end
        raise TimeoutError
    with contextlib.suppress(OSError, http.client.HTTPException):
        response.read(ANSWER_BYTES)
    return response.status
