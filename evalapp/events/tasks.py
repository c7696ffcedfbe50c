"""Celery tasks of events: deliver one, find, resend and delete others. Each is a single call."""

from datetime import timedelta

from django.utils import timezone

from evalapp.celery import app
from evalapp.common.hooks import EVENT_FINDERS, WEEK_REPORTERS
from evalapp.common.outages import by_the_clock

from .services.delivering import delete_old_events, deliver, resend_deliveries


@app.task(name="evalapp.deliver_event")
def deliver_event(delivery_id: int) -> None:
    deliver(delivery_id)


@app.task(name="evalapp.watch_events")
def watch_events() -> int | None:
    count = by_the_clock(resend_deliveries)
    by_the_clock(EVENT_FINDERS.call)
    return count


@app.task(name="evalapp.delete_old_events")
def delete_old_events_daily() -> None:
    by_the_clock(delete_old_events)


@app.task(name="evalapp.report_week")
def report_week() -> None:
    """Report the last full week, Monday to Sunday, UTC."""
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    end = today - timedelta(days=today.weekday())
    WEEK_REPORTERS.call(end - timedelta(days=7), end)
