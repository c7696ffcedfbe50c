"""Celery tasks of events: deliver one, find and resend others. Each is a single call."""

from evalapp.celery import app
from evalapp.common.hooks import EVENT_FINDERS
from evalapp.common.outages import by_the_clock

from .services.delivering import deliver, resend_deliveries


@app.task(name="evalapp.deliver_event")
def deliver_event(delivery_id: int) -> None:
    deliver(delivery_id)


@app.task(name="evalapp.watch_events")
def watch_events() -> int | None:
    by_the_clock(EVENT_FINDERS.call)
    return by_the_clock(resend_deliveries)
