"""Celery tasks of this room: tell Elasticsearch what it was not told, at the start of a worker and by the clock."""

from __future__ import annotations

from typing import Any

from celery.signals import worker_ready
from kombu.exceptions import OperationalError

from evalapp.celery import app
from evalapp.common.outages import by_the_clock

TASK = "retrieval.catch_up"


@app.task(name=TASK)
def catch_up() -> dict[str, int] | None:
    from .pipelines.elastic import catch_up

    return by_the_clock(catch_up)


@worker_ready.connect
def catch_up_at_start(sender: Any = None, **_: Any) -> bool:
    """A worker of the queue `cpu` begins with what was left over. The clock asks again, should this not get through."""
    from .services import elastic

    if "cpu" not in sender.app.amqp.queues.consume_from or not elastic.is_used():
        return False
    try:
        app.send_task(TASK, queue="cpu", retry=False)
    except OperationalError:
        return False
    return True
