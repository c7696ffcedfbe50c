"""Deliver events to webhooks, again after growing waits until the receiver accepts them."""

import json
import logging
import time
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from evalapp import __version__
from evalapp.common import audit
from evalapp.common.errors import EvalappError
from evalapp.common.mails import site_address

from ..models import Delivery, Event
from . import signing
from .addresses import Undelivered
from .sending import post

log = logging.getLogger(__name__)

#: Not `live`: a slow receiver would keep people waiting for scores.
QUEUE = "cpu"
#: Waits after each failed attempt; after the last one, the delivery is given up.
WAITS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 30, 120, 360, 720))
#: A worker that has not reported after this time has died.
LEASE = timedelta(minutes=2)
#: A message that was not handled after this time was lost by the queue; sending another one is harmless.
RESEND = timedelta(minutes=10)
#: Events and deliveries are deleted after this time.
RETENTION = timedelta(days=60)


def dispatch(delivery_id: int) -> bool:
    """Send the message for a waiting delivery to the queue. Returns False if Redis cannot be reached; it is sent
    later."""
    from evalapp.celery import app

    try:
        app.send_task("evalapp.deliver_event", args=[delivery_id], queue=QUEUE, retry=False)
    except Exception as error:  # noqa: BLE001 - kombu raises what its transport raises; all mean "queue is down"
        log.warning("delivery %s stays in the database: the queue cannot be reached (%s)", delivery_id, error)
        return False
    Delivery.objects.filter(pk=delivery_id, state=Delivery.State.WAITING).update(queued_at=timezone.now())
    return True


def make_body(event: Event) -> bytes:
    """Return the body of an event, which is the same for each delivery."""
    content: dict[str, Any] = {
        "id": str(event.public),
        "type": event.kind,
        "timestamp": event.created_at.isoformat(),
        "project": event.project.slug,
        "url": site_address(event.path),
        "data": event.data,
    }
    return json.dumps(content, ensure_ascii=False).encode()


def deliver(delivery_id: int) -> Delivery | None:
    """Send a delivery that is due. Returns its row; None if it is not due or another worker has it."""
    now = timezone.now()
    # Without a join: PostgreSQL would check the conditions in a subquery that it does not repeat after a wait.
    due = Delivery.objects.filter(pk=delivery_id, state=Delivery.State.WAITING, due_at__lte=now)
    if not due.update(attempts=F("attempts") + 1, due_at=now + LEASE):
        return None
    rows = Delivery.objects.select_related("webhook__project", "event__project")
    delivery = rows.filter(pk=delivery_id, webhook__project__deleting_at=None).first()
    if delivery is None:
        return None
    try:
        status = _send(delivery)
    except Undelivered as failure:
        _note_failure(delivery, failure)
    else:
        delivery.state, delivery.status, delivery.problem = Delivery.State.DELIVERED, status, ""
        delivery.finished_at = timezone.now()
        delivery.save(update_fields=["state", "status", "problem", "finished_at"])
    return delivery


def _send(delivery: Delivery) -> int:
    webhook, event = delivery.webhook, delivery.event
    if not webhook.active:
        raise Undelivered(Delivery.Problem.OFF)
    secret = signing.find_secret(webhook)
    if secret is None:
        raise Undelivered(Delivery.Problem.SECRET)
    body, timestamp, message = make_body(event), int(time.time()), str(event.public)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"evalapp/{__version__}",
        "webhook-id": message,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signing.sign(secret, message, timestamp, body),
    }
    try:
        return post(webhook.url, body, headers)
    except EvalappError as error:  # an address that this version does not accept
        raise Undelivered(Delivery.Problem.HOST) from error


def _note_failure(delivery: Delivery, failure: Undelivered) -> None:
    """Plan the next attempt, or give up after the last one or if the webhook is off."""
    delivery.problem, delivery.status = failure.problem, failure.status
    if failure.problem == Delivery.Problem.OFF or delivery.attempts > len(WAITS):
        delivery.state, delivery.finished_at = Delivery.State.FAILED, timezone.now()
    else:
        delivery.due_at, delivery.queued_at = timezone.now() + WAITS[delivery.attempts - 1], None
    log.warning("delivery %s failed, attempt %d: %s", delivery.pk, delivery.attempts, delivery.problem)
    with transaction.atomic():
        delivery.save(update_fields=["state", "status", "problem", "due_at", "queued_at", "finished_at"])
        if delivery.state == Delivery.State.FAILED:
            webhook = delivery.webhook
            audit.record(
                verb="webhook.failed", project=webhook.project, object=webhook, event=delivery.event.kind,
                problem=delivery.problem,
            )  # fmt: skip


def resend_deliveries() -> int:
    """Send the messages of deliveries that are due or that the queue has lost, and delete old rows. Returns the number
    of messages."""
    now = timezone.now()
    due = Delivery.objects.filter(state=Delivery.State.WAITING, due_at__lte=now)
    unsent = due.filter(Q(queued_at=None) | Q(queued_at__lt=now - RESEND)).order_by("pk")
    old = Event.objects.filter(created_at__lt=now - RETENTION)
    old.exclude(deliveries__state=Delivery.State.WAITING).filter(key="").delete()
    Delivery.objects.filter(finished_at__lt=now - RETENTION).delete()
    return sum(dispatch(pk) for pk in unsent.values_list("pk", flat=True)[:200])
