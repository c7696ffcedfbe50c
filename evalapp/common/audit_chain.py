"""The hash chain of the audit log: seal new entries, find changed ones, erase a user without breaking the chain.

Each entry is sealed by two hashes. `content` is SHA-256 of a random salt and the entry's fields; `link` is SHA-256 of
the previous link and `content`. Changing, removing or inserting an entry therefore changes all later links. Sealing is
a separate task, so that writers do not wait for each other. An erased entry loses its fields and salt but keeps
`content`, so the chain stays valid and its text cannot be guessed."""

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
MAX_FAULTS = 20


@dataclass(frozen=True)
class Report:
    """Result of verifying the whole chain. `head` is the last link; store it elsewhere to compare with it later."""

    sealed: int
    waiting: int
    erased: int
    head: str
    faults: tuple[str, ...]


def _rows() -> QuerySet[AuditEvent]:
    """Return all rows without the manager's protection; only this module changes them."""
    return QuerySet(AuditEvent)


def hash_content(row: AuditEvent) -> str:
    fields = {
        "at": row.at.isoformat(timespec="microseconds"), "by": row.by, "detail": row.detail, "object": row.object,
        "scope": row.scope, "verb": row.verb,
    }  # fmt: skip
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(f"{row.salt}{text}".encode(errors="surrogatepass")).hexdigest()


def hash_link(before: str, content: str) -> str:
    return hashlib.sha256(f"{before}{content}".encode()).hexdigest()


def seal(most: int = BATCH) -> int:
    """Seal up to `most` entries, oldest first; return their number. Concurrent calls wait for each other."""
    with transaction.atomic():
        AuditHead.objects.get_or_create(pk=1)
        head = AuditHead.objects.select_for_update().get(pk=1)
        rows = list(_rows().filter(position=None).order_by("pk")[:most])
        for row in rows:
            row.salt = secrets.token_hex(16)
            row.position = head.position = head.position + 1
            row.content = hash_content(row)
            row.link = head.link = hash_link(head.link, row.content)
        if rows:
            _rows().bulk_update(rows, ["position", "salt", "content", "link"], batch_size=200)
            head.at = timezone.now()
            head.save()
    return len(rows)


def verify() -> Report:
    """Verify the chain from its beginning."""
    faults: list[str] = []
    expected, link, erased = 0, "", 0
    for row in _rows().exclude(position=None).order_by("position").iterator(chunk_size=BATCH):
        expected += 1
        name = f"entry {row.position} ({row.verb}, {row.at:%Y-%m-%d %H:%M})"
        assert row.position is not None
        if row.position != expected:
            faults.append(f"{row.position - expected} entries are missing before {name}")
            expected = row.position
        elif row.link != hash_link(link, row.content):
            faults.append(f"{name} does not follow the one before it")
        if row.erased_at is not None:
            erased += 1
        elif row.content != hash_content(row):
            faults.append(f"{name} was changed")
        link = row.link
        if len(faults) >= MAX_FAULTS:
            break
    head = AuditHead.objects.filter(pk=1).first() or AuditHead()
    if not faults and (head.position, head.link) != (expected, link):
        faults.append(f"the last entries are missing: {head.position} were sealed, {expected} exist")
    return Report(expected, waiting(), erased, head.link, tuple(faults))


def waiting() -> int:
    """Return the number of entries that are not sealed yet."""
    return _rows().filter(position=None).count()


def erase(which: Q) -> int:
    """Erase what entries say; user id, time and verb remain. They are sealed first, so that each keeps its place.
    Returns their number."""
    while seal():
        pass
    rows = _rows().filter(which, erased_at=None)
    return rows.update(object="", detail={}, salt="", erased_at=timezone.now())


def erase_person(*, pk: int, username: str) -> int:
    """Erase what names this user; the id remains, as it does for ratings."""
    named = Q(object=username) & (Q(verb__startswith="member.") | Q(verb__startswith="account."))
    return erase(named | (Q(by=pk) & Q(verb__startswith="account.") & ~Q(verb="account.closed")))


def checks() -> list[Check]:
    """Return the line for `evalapp doctor`."""
    report = verify()
    text = f"{report.sealed} entries, {report.waiting} not sealed yet"
    if not report.faults:
        return [Check("audit", OK, f"{text}; head {report.head[:16] or '-'}")]
    way = "The table common_auditevent was changed. Keep this database, and compare it with a backup."
    return [Check("audit", MISSING, f"{text}; {'; '.join(report.faults[:3])}", way)]
