"""Deliver events to webhooks, again after growing waits until the receiver accepts them."""

import json
import logging
import time
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from evalapp import __version__
from evalapp.common import audit
from evalapp.common.errors import EvalappError
from evalapp.common.mails import site_address
from evalapp.common.outbox import Outbox

from ..models import Delivery, Event
from . import signing
from .addresses import Undelivered
from .sending import post

log = logging.getLogger(__name__)

OUTBOX = Outbox(
    Delivery,
    "evalapp.deliver_event",
    waits=tuple(timedelta(minutes=minutes) for minutes in (1, 5, 30, 120, 360, 720)),
    lease=timedelta(minutes=2),
    retention=timedelta(days=60),
)


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
    if not OUTBOX.claim(delivery_id):
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
    log.warning("delivery %s failed, attempt %d: %s", delivery.pk, delivery.attempts, failure.problem)
    is_off = failure.problem == Delivery.Problem.OFF
    with transaction.atomic():
        if OUTBOX.note_failure(delivery, is_final=is_off, problem=failure.problem, status=failure.status):
            webhook = delivery.webhook
            audit.record(
                verb="webhook.failed", project=webhook.project, object=webhook, event=delivery.event.kind,
                problem=delivery.problem,
            )  # fmt: skip


def resend_deliveries() -> int:
    """Send the messages of deliveries that are due or that the queue has lost. Returns their number."""
    return OUTBOX.resend()


def delete_old_events() -> None:
    """Delete events and deliveries whose retention has passed. Events with a key remain, so that they are not found
    again."""
    old = Event.objects.filter(created_at__lt=timezone.now() - OUTBOX.retention)
    old.exclude(deliveries__state=Delivery.State.WAITING).filter(key="").delete()
    OUTBOX.delete_old()
