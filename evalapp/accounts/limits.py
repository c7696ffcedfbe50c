"""Rate limits for tokens, links, mails and sign-in. Counters are rows, so they are shared by all web processes. For
sign-in, django-axes also counts each pair of name and address."""

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
    """At most `most` attempts per `seconds` and key. Only failed tokens and links are counted, and only those are
    refused (docs/decisions/a-working-token-is-never-refused.md)."""

    name: str
    most: int
    seconds: int


#: Many names from one address, and one name from many addresses.
SIGN_IN_BY_ADDRESS = Limit("sign-in-ip", 100, 900)
SIGN_IN_BY_NAME = Limit("sign-in-name", 50, 900)
TOKEN_FAILURES = Limit("token", 30, 300)
LINK_FAILURES = Limit("link", 30, 300)
#: New participants from one address: invented ids must not use up the places of a study, but a whole class may come.
PARTICIPANTS_BY_ADDRESS = Limit("participant-ip", 200, 900)
#: Ids of participants from browsers in which they did not begin: nobody tries all ids of a study.
OTHER_BROWSERS = Limit("participant-browser", 100, 900)
#: Sign-ins that begin at a provider of OpenID Connect; each makes a session.
OIDC_BY_ADDRESS = Limit("oidc-ip", 300, 900)
#: Mails to strangers by one user.
INVITATIONS_BY_USER = Limit("invitation-mail", 500, 3600)
RESETS_BY_ADDRESS = Limit("reset-ip", 10, 3600)
RESETS_BY_MAIL = Limit("reset-mail", 3, 3600)


def client_ip(request: HttpRequest) -> str:
    """Return the address for which attempts are counted; behind the TLS proxy, the one that the proxy added last."""
    forwarded = ""
    if settings.SECURE_SSL_REDIRECT:
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")[-1].strip()
    return normalise_address(forwarded or request.META.get("REMOTE_ADDR", ""))


def normalise_address(text: str) -> str:
    """Return the 64-bit network of an IPv6 address, which belongs to one subscriber, and the IPv4 address of a mapped
    one. Other texts are unchanged."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv6Address):
        network = ipaddress.ip_network((address, 64), strict=False)
        address = address.ipv4_mapped or network.network_address
    return str(address)


def _find_window(limit: Limit, key: str) -> tuple[str, int]:
    digest = hashlib.sha256(f"{limit.name}:{key.lower()}".encode()).hexdigest()
    return digest, int(time.time() // limit.seconds)


def check(limit: Limit, key: str) -> None:
    """Raise `TooMany` if the attempts of this window are used up. Does not count."""
    digest, window = _find_window(limit, key)
    if AttemptCount.objects.filter(key=digest, window=window, count__gte=limit.most).exists():
        wait = limit.seconds - int(time.time() % limit.seconds)
        raise TooMany(
            _("Too many attempts. Try again in %(minutes)d min.") % {"minutes": max(1, wait // 60)}, wait=wait
        )


def count(limit: Limit, key: str) -> None:
    """Count an attempt, in a single UPDATE so that concurrent processes lose none."""
    digest, window = _find_window(limit, key)
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
    """Check, then count an attempt, whether it succeeds or not."""
    check(limit, key)
    count(limit, key)
