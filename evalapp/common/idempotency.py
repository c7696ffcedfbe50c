"""Idempotency keys: a client that lost a response repeats its request under the same key and gets the first response;
nothing is done twice. Responses are stored for a day. `api.idempotency` reads the requests."""

from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from .errors import InProgress, KeyReused
from .models import IdempotencyKey
from .queue import state_of_process, worker_name

RETENTION = timedelta(hours=24)
#: How long a process may work on a request before it is considered dead, unless it is known to be gone earlier.
LEASE = timedelta(hours=1)
#: Value of `Retry-After` while the first request is in progress.
WAIT_SECONDS = 5


def begin_request(*, user: Any, token: int, key: str, request: str) -> IdempotencyKey:
    """Return the row of this key. Without `status` the caller must process the request; otherwise the row has the
    response. `request` is method and address.

    Raises `KeyReused` if the key belongs to another request, `InProgress` while the first request is processed."""
    while True:
        now = timezone.now()
        values = {"request": request, "worker": worker_name(), "begun_at": now}
        try:
            row, created = IdempotencyKey.objects.get_or_create(user=user, token=token, key=key, defaults=values)
        except IntegrityError:
            continue  # a concurrent request created the row and has failed since
        if created:
            return row
        if now - row.begun_at < RETENTION:
            if row.request != request:
                raise reused(row)
            if row.status is not None:
                return row
            if not _is_abandoned(row, now):
                raise InProgress(
                    _(
                        "The first request with this idempotency key is still in progress. Send it again in a moment "
                        "to get the response to the first."
                    ),
                    wait=WAIT_SECONDS,
                )
        values |= {"status": None, "body": "", "answer": "", "location": ""}
        if IdempotencyKey.objects.filter(pk=row.pk, begun_at=row.begun_at).update(**values):
            row.refresh_from_db()
            return row


def _is_abandoned(row: IdempotencyKey, now: datetime) -> bool:
    return now - row.begun_at > LEASE or state_of_process(row.worker) == "gone"


def reused(row: IdempotencyKey) -> KeyReused:
    return KeyReused(
        _("The key was used for %(request)s with another address or body. Use a new key for each new request.")
        % {"request": row.request}
    )


def keep_answer(row: IdempotencyKey, *, body: str, status: int, answer: str, location: str) -> None:
    """Store the response. `body` is the fingerprint of the request body."""
    _claimed_row(row).update(body=body, status=status, answer=answer, location=location)


def forget_request(row: IdempotencyKey) -> None:
    """Free the key after a request that failed and changed nothing."""
    _claimed_row(row).delete()


def _claimed_row(row: IdempotencyKey) -> QuerySet[IdempotencyKey]:
    """Return the row, or nothing if another request has taken it over."""
    return IdempotencyKey.objects.filter(pk=row.pk, begun_at=row.begun_at, status=None)


def sweep_keys() -> int:
    """Delete expired keys; return their number."""
    return IdempotencyKey.objects.filter(begun_at__lt=timezone.now() - RETENTION).delete()[0]
