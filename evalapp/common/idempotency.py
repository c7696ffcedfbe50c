"""Idempotency keys: a client names a request and repeats it under that name if the response was lost. The first
response is stored for a day and returned again; nothing is done twice. `api.idempotency` reads the requests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError
from django.utils import timezone
from django.utils.translation import gettext as _

from .errors import InProgress, KeyReused
from .models import IdempotencyKey
from .queue import state_of_process, worker_name

KEPT = timedelta(hours=24)
#: Time after which a process that works on a request is considered lost, unless it is known to be dead.
LEASE = timedelta(hours=1)
#: Seconds after which a client should ask again for a request in progress.
WAIT_SECONDS = 5


def begin_request(*, user: Any, token: int, key: str, request: str) -> IdempotencyKey:
    """Return the row of this key: without `status` the caller does the work, with `status` the response is stored.
    `request` is method and address. Raises KeyReused for a different request, InProgress while another process works on
    it."""
    while True:
        now = timezone.now()
        anew = {"request": request, "worker": worker_name(), "begun_at": now}
        try:
            row, made = IdempotencyKey.objects.get_or_create(user=user, token=token, key=key, defaults=anew)
        except IntegrityError:
            continue  # another request was faster, and has failed by now
        if made:
            return row
        if now - row.begun_at < KEPT:
            if row.request != request:
                raise reused(row)
            if row.status is not None:
                return row
            if not _is_left(row, now):
                raise InProgress(
                    _(
                        "The first request with this idempotency key is still in progress. Send it again in a moment "
                        "to get the response to the first."
                    ),
                    wait=WAIT_SECONDS,
                )
        anew |= {"status": None, "body": "", "answer": "", "location": ""}
        if IdempotencyKey.objects.filter(pk=row.pk, begun_at=row.begun_at).update(**anew):
            row.refresh_from_db()
            return row


def _is_left(row: IdempotencyKey, now: datetime) -> bool:
    """Return whether the process that worked on the request is lost."""
    return now - row.begun_at > LEASE or state_of_process(row.worker) == "gone"


def reused(row: IdempotencyKey) -> KeyReused:
    return KeyReused(
        _("The key was used for %(request)s with another address or body. Use a new key for each new request.")
        % {"request": row.request}
    )


def keep_answer(row: IdempotencyKey, *, body: str, status: int, answer: str, location: str) -> None:
    """Return a row for the key. `body` is the fingerprint of the request body."""
    _mine(row).update(body=body, status=status, answer=answer, location=location)


def forget_request(row: IdempotencyKey) -> None:
    """Release the key: the request was refused or failed, and nothing was done."""
    _mine(row).delete()


def _mine(row: IdempotencyKey) -> Any:
    """Store the response. Returns None if another process has taken over."""
    return IdempotencyKey.objects.filter(pk=row.pk, begun_at=row.begun_at, status=None)


def sweep_keys() -> int:
    """Delete keys that are older than a day; return their number."""
    return IdempotencyKey.objects.filter(begun_at__lt=timezone.now() - KEPT).delete()[0]
