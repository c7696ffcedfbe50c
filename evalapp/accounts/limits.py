"""Counting attempts, so that nobody tries tokens, links or mails without end. The counters are rows, hence right
with several web processes; django-axes counts sign-in by name and address
together."""

from __future__ import annotations

import hashlib
import ipaddress
import time
from dataclasses import dataclass

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F
from django.http import HttpRequest
from django.utils.translation import gettext as _

from evalapp.common.errors import TooMany

from .models import AttemptCount


@dataclass(frozen=True)
class Limit:
    """At most `most` attempts per `seconds` and key. Of tokens and links only those that fail count, and only those are
    refused (docs/decisions/a-working-token-is-never-refused.md)."""

    name: str
    most: int
    seconds: int


#: Beside what django-axes counts for each name and address: many names from one address, one name from many.
SIGN_IN_BY_ADDRESS = Limit("sign-in-ip", 100, 900)
SIGN_IN_BY_NAME = Limit("sign-in-name", 50, 900)
TOKEN_FAILURES = Limit("token", 30, 300)
LINK_FAILURES = Limit("link", 30, 300)
RESETS_BY_ADDRESS = Limit("reset-ip", 10, 3600)
RESETS_BY_MAIL = Limit("reset-mail", 3, 3600)


def client_ip(request: HttpRequest) -> str:
    """The address that attempts are counted for. Behind the TLS proxy it is what the proxy added last."""
    if settings.SECURE_SSL_REDIRECT:
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")[-1].strip()
        if forwarded:
            return counted(forwarded)
    return counted(request.META.get("REMOTE_ADDR", ""))


def counted(address: str) -> str:
    """An IPv6 address stands for the 64-bit network it is in, which one subscriber has whole; one that wraps an IPv4
    address is that one. What is no address stays as it is."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False).network_address)


def _where(limit: Limit, key: str) -> tuple[str, int]:
    digest = hashlib.sha256(f"{limit.name}:{key.lower()}".encode()).hexdigest()
    return digest, int(time.time() // limit.seconds)


def check(limit: Limit, key: str) -> None:
    """Refuse if the attempts of this window are used up; counts nothing."""
    digest, window = _where(limit, key)
    found = AttemptCount.objects.filter(key=digest, window=window).values_list("count", flat=True).first()
    if found is not None and found >= limit.most:
        wait = limit.seconds - int(time.time() % limit.seconds)
        raise TooMany(
            _("Too many attempts. Try again in %(minutes)d min.") % {"minutes": max(1, wait // 60)}, wait=wait
        )


def count(limit: Limit, key: str) -> None:
    """Note one attempt. One UPDATE, so that no two processes lose a count."""
    digest, window = _where(limit, key)
    row = AttemptCount.objects.filter(key=digest, window=window)
    if row.update(count=F("count") + 1):
        return
    try:
        with transaction.atomic():
            AttemptCount.objects.create(key=digest, window=window, count=1, limit=limit.name)
    except IntegrityError:
        row.update(count=F("count") + 1)
    else:
        AttemptCount.objects.filter(limit=limit.name, window__lt=window - 1).delete()


def spend(limit: Limit, key: str) -> None:
    """Check, then count: for doors where every use costs, whether it succeeds or not."""
    check(limit, key)
    count(limit, key)
