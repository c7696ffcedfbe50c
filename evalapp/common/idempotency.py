"""Idempotency keys: a program names a request, and sends it again under that name where the answer was lost. The first
answer is kept for a day and given again; nothing is done twice. How requests are read is in `api.idempotency`."""

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
#: For so long a process is believed to work on a request, unless it is known to be gone.
LEASE = timedelta(hours=1)
#: When to ask again for what is being worked on.
WAIT_SECONDS = 5


def begin_request(*, user: Any, token: int, key: str, request: str) -> IdempotencyKey:
    """The row of this key: without `status` the caller has to do the work, with it the answer is there. `request` is
    method and address. Raises KeyReused for another request, InProgress while somebody else is at it."""
    while True:
        now = timezone.now()
        anew = {"request": request, "worker": worker_name(), "begun_at": now}
        try:
            row, made = IdempotencyKey.objects.get_or_create(user=user, token=token, key=key, defaults=anew)
        except IntegrityError:
            continue  # somebody was quicker, and failed by now
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
    """Whoever worked on it will not end it any more."""
    return now - row.begun_at > LEASE or state_of_process(row.worker) == "gone"


def reused(row: IdempotencyKey) -> KeyReused:
    return KeyReused(
        _("The key was used for %(request)s with another address or body. Use a new key for each new request.")
        % {"request": row.request}
    )


def keep_answer(row: IdempotencyKey, *, body: str, status: int, answer: str, location: str) -> None:
    """`body` is the fingerprint of what was sent."""
    _mine(row).update(body=body, status=status, answer=answer, location=location)


def forget_request(row: IdempotencyKey) -> None:
    """It was refused or failed, and nothing was done: the key is free."""
    _mine(row).delete()


def _mine(row: IdempotencyKey) -> Any:
    """None once somebody else has taken it over."""
    return IdempotencyKey.objects.filter(pk=row.pk, begun_at=row.begun_at, status=None)


def sweep_keys() -> int:
    """Remove the keys whose day is over; gives their number."""
    return IdempotencyKey.objects.filter(begun_at__lt=timezone.now() - KEPT).delete()[0]
