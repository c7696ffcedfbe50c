"""Rows that workers send, such as mails: written in the transaction of what they report, and tried again after growing
waits until they arrive. The row is the only state, as for runs; the queue carries only its id."""

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import F, Q, QuerySet
from django.utils import timezone

log = logging.getLogger(__name__)

#: Not `live`: a server that does not respond would keep people waiting for scores.
QUEUE = "cpu"
#: A message that was not handled after this time was lost by the queue; sending another one is harmless.
RESEND = timedelta(minutes=10)
#: Messages that one call of `resend` sends.
MOST = 200


def send_message(row: Any, task: str, queue: str) -> bool:
    """Send the message for a row to the queue. Returns False if Redis cannot be reached; it is sent later."""
    from evalapp.celery import app

    try:
        app.send_task(task, args=[row.pk], queue=queue, retry=False)
    except Exception as error:  # noqa: BLE001 - kombu raises what its transport raises; all mean "queue is down"
        name = row._meta.verbose_name
        log.warning("%s %s stays in the database: the queue cannot be reached (%s)", name, row.pk, error)
        return False
    return True


@dataclass(frozen=True)
class Outbox:
    """A table of rows to send: it has the states `WAITING` and `FAILED`, and the columns `attempts`, `due_at` (time of
    the next attempt), `queued_at` and `finished_at`.

    task: the Celery task that sends a row.
    waits: after each failed attempt; after the last one, the row is given up.
    lease: a worker that has not reported after this time has died.
    retention: rows that were sent or given up are deleted after this time."""

    model: type[Any]
    task: str
    waits: tuple[timedelta, ...]
    lease: timedelta
    retention: timedelta

    def dispatch(self, row: Any) -> bool:
        """Send the message for a waiting row to the queue, if it can be reached; `resend` does it later otherwise."""
        if not send_message(row, self.task, QUEUE):
            return False
        self._find_waiting(row.pk).update(queued_at=timezone.now())
        return True

    def claim(self, pk: int) -> bool:
        """Begin an attempt to send a row. Returns False if it is not due or another worker has it."""
        # Without a join: PostgreSQL would check the conditions in a subquery that it does not repeat after a wait.
        now = timezone.now()
        due = self._find_waiting(pk).filter(due_at__lte=now)
        return bool(due.update(attempts=F("attempts") + 1, due_at=now + self.lease))

    def note_failure(self, row: Any, *, is_final: bool, **fields: Any) -> bool:
        """Plan the next attempt, or give the row up if `is_final` or after the last wait. `fields`: what else to store
        about the attempt. Returns whether this gave it up; rows that were withdrawn meanwhile stay as they are."""
        is_final = is_final or row.attempts > len(self.waits)
        if is_final:
            fields |= {"state": self.model.State.FAILED, "finished_at": timezone.now()}
        else:
            fields |= {"due_at": timezone.now() + self.waits[row.attempts - 1], "queued_at": None}
        changed = self._find_waiting(row.pk).update(**fields)
        row.refresh_from_db(fields=["state", *fields])
        return bool(changed) and is_final

    def resend(self) -> int:
        """Send the messages of rows that are due or that the queue has lost. Returns their number."""
        now = timezone.now()
        due = self.model.objects.filter(state=self.model.State.WAITING, due_at__lte=now)
        unsent = due.filter(Q(queued_at=None) | Q(queued_at__lt=now - RESEND)).order_by("pk")
        return sum(self.dispatch(row) for row in unsent.only("pk")[:MOST])

    def delete_old(self) -> int:
        """Delete the rows whose retention has passed, once a day because it reads the whole table. Returns their
        number."""
        old = self.model.objects.filter(finished_at__lt=timezone.now() - self.retention)
        return int(old.delete()[0])

    def _find_waiting(self, pk: int) -> QuerySet:
        rows: QuerySet = self.model.objects.filter(pk=pk, state=self.model.State.WAITING)
        return rows
