"""The chain over the audit: sealing what was added, finding what was changed, and erasing a person without breaking it.

An entry is sealed by two hashes. `content` is SHA-256 over a random salt and everything the entry says; `link` is
SHA-256 over the link before it and `content`. Who changes, removes or inserts an entry changes every link after it.
Sealing is a task of its own, so that nobody who writes an entry waits for another; an entry that is erased loses its
text and its salt, and keeps `content`, so that the chain holds and nobody can guess what it said."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from evalapp.ops.checks import MISSING, OK, Check

from .models import AuditEvent, AuditHead

BATCH = 1000
MOST_FAULTS = 20


@dataclass(frozen=True)
class Report:
    """What a look at the whole chain found. `head` is the last link: note it down elsewhere to compare with later."""

    sealed: int
    waiting: int
    erased: int
    head: str
    faults: tuple[str, ...]


def _rows() -> QuerySet[AuditEvent]:
    """The rows without the guard of their manager; only this module changes them."""
    return QuerySet(AuditEvent)


def content_of(row: AuditEvent) -> str:
    said = {
        "at": row.at.isoformat(timespec="microseconds"), "by": row.by, "detail": row.detail, "object": row.object,
        "scope": row.scope, "verb": row.verb,
    }  # fmt: skip
    text = json.dumps(said, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(f"{row.salt}{text}".encode(errors="surrogatepass")).hexdigest()


def link_after(before: str, content: str) -> str:
    return hashlib.sha256(f"{before}{content}".encode()).hexdigest()


def seal(most: int = BATCH) -> int:
    """Seal up to `most` entries, oldest first; how many there were. Two that seal at once wait for each other."""
    with transaction.atomic():
        AuditHead.objects.get_or_create(pk=1)
        head = AuditHead.objects.select_for_update().get(pk=1)
        rows = list(_rows().filter(position=None).order_by("pk")[:most])
        for row in rows:
            row.salt = secrets.token_hex(16)
            row.position = head.position = head.position + 1
            row.content = content_of(row)
            row.link = head.link = link_after(head.link, row.content)
        if rows:
            _rows().bulk_update(rows, ["position", "salt", "content", "link"], batch_size=200)
            head.at = timezone.now()
            head.save()
    return len(rows)


def verify() -> Report:
    """Read the chain from its beginning."""
    faults: list[str] = []
    expected, link, erased = 0, "", 0
    for row in _rows().exclude(position=None).order_by("position").iterator(chunk_size=BATCH):
        expected += 1
        name = f"entry {row.position} ({row.verb}, {row.at:%Y-%m-%d %H:%M})"
        assert row.position is not None
        if row.position != expected:
            faults.append(f"{row.position - expected} entries are missing before {name}")
            expected = row.position
        elif row.link != link_after(link, row.content):
            faults.append(f"{name} does not follow the one before it")
        if row.erased_at is not None:
            erased += 1
        elif row.content != content_of(row):
            faults.append(f"{name} was changed")
        link = row.link
        if len(faults) >= MOST_FAULTS:
            break
    head = AuditHead.objects.filter(pk=1).first() or AuditHead()
    if not faults and (head.position, head.link) != (expected, link):
        faults.append(f"the last entries are missing: {head.position} were sealed, {expected} are there")
    return Report(expected, waiting(), erased, head.link, tuple(faults))


def waiting() -> int:
    """How many entries are not sealed yet."""
    return _rows().filter(position=None).count()


def erase(which: Q) -> int:
    """Take what these entries say out of the audit; who did it by number, when, and the verb stay. Sealed before, so
    that each entry keeps its place."""
    while seal():
        pass
    rows = _rows().filter(which, erased_at=None)
    return rows.update(object="", detail={}, salt="", erased_at=timezone.now())


def erase_person(*, pk: int, username: str) -> int:
    """What names this person; their number stays, as behind every rating."""
    named = Q(object=username) & (Q(verb__startswith="member.") | Q(verb__startswith="account."))
    return erase(named | (Q(by=pk) & Q(verb__startswith="account.") & ~Q(verb="account.closed")))


def checks() -> list[Check]:
    """The line of `manage.py doctor`."""
    found = verify()
    words = f"{found.sealed} entries, {found.waiting} wait to be sealed"
    if not found.faults:
        return [Check("audit", OK, f"{words}; head {found.head[:16] or '-'}")]
    what = "; ".join(found.faults[:3])
    way = "Somebody changed the table common_auditevent. Keep this database, and compare it with a backup."
    return [Check("audit", MISSING, f"{words}; {what}", way)]
