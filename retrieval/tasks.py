"""The Celery task that sends pending changes to Elasticsearch, at the start of a worker and periodically."""

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
    """Queue the task when a worker of the queue `cpu` starts. If that fails, the periodic task does the work."""
    from .services import elastic

    if "cpu" not in sender.app.amqp.queues.consume_from or not elastic.is_used():
        return False
    try:
        app.send_task(TASK, queue="cpu", retry=False)
    except OperationalError:
        return False
    return True
