"""Where webhooks may be sent to: only to hosts that WEBHOOK_HOSTS names, and to no internal address unless it names
that, too. Addresses are checked when they are used, because a name may lead elsewhere tomorrow."""

import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from evalapp.common.errors import BadInput

from ..models import Delivery

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: Addresses that lead to the IPv4 address in their last 32 bits (RFC 6052).
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_PORTS = {"https": 443, "http": 80}


class Undelivered(Exception):
    """An attempt that failed, with its `Delivery.Problem` and the HTTP status, if there was one."""

    def __init__(self, problem: Any, status: int | None = None) -> None:
        super().__init__(problem)
        self.problem, self.status = str(problem), status


@dataclass(frozen=True)
class Target:
    """The parts of an address. `host` is in lower case, without brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Host and port as in an address; without the port if it is that of the scheme."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def read_address(url: str) -> Target:
    """Return the parts of an address; `BadInput` if webhooks cannot be sent to it. No message contains the address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in _PORTS or not parts.hostname or not re.fullmatch(r"[!-~]+", url):
        raise BadInput.for_field("url", _("Enter an address such as https://hooks.example.org/evalapp."))
    if "@" in parts.netloc:
        raise BadInput.for_field("url", _("The address must not contain a user name or password."))
    if parts.fragment:
        raise BadInput.for_field("url", _("The address must not contain a #."))
    path = parts.path or "/"
    if parts.query:
        path += f"?{parts.query}"
    return Target(parts.scheme, parts.hostname.lower(), port or _PORTS[parts.scheme], path)


def is_host_allowed(target: Target) -> bool:
    return target.authority in settings.WEBHOOK_HOSTS


def check_address(url: str) -> None:
    """Raise `BadInput` unless the administrator allows the host of an address. The name is not resolved."""
    target = read_address(url)
    if not settings.WEBHOOK_HOSTS:
        text = _("Webhooks are off. An administrator can allow hosts by the setting WEBHOOK_HOSTS.")
        raise BadInput.for_field("url", text)
    if not is_host_allowed(target):
        text = _("The host %(host)s is not allowed. An administrator can add it to the setting WEBHOOK_HOSTS.")
        raise BadInput.for_field("url", text % {"host": target.authority})


def resolve(target: Target) -> list[str]:
    """Return the addresses of an allowed host. Raises `Undelivered` if any is internal and not allowed."""
    if not is_host_allowed(target):
        raise Undelivered(Delivery.Problem.HOST)
    try:
        rows = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Undelivered(Delivery.Problem.NAME) from error
    # An address of the local network may end with the name of an interface: fe80::1%eth0.
    found = list(dict.fromkeys(str(row[4][0]) for row in rows))
    for text in found:
        is_internal = _is_internal(ipaddress.ip_address(text.partition("%")[0]))
        if is_internal and not _is_network_allowed(ipaddress.ip_address(text.partition("%")[0])):
            raise Undelivered(Delivery.Problem.INTERNAL)
        if not is_internal and target.scheme == "http":
            raise Undelivered(Delivery.Problem.PLAIN)
    return found


def _find_inner(address: Address) -> Address:
    """Return the IPv4 address to which an IPv6 address leads; other addresses as they are."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)


def _is_internal(address: Address) -> bool:
    inner = _find_inner(address)
    return inner.is_multicast or not inner.is_global


def _is_network_allowed(address: Address) -> bool:
    inner = _find_inner(address)
    return any(inner in network for network in settings.WEBHOOK_NETWORKS)
