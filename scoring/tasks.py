"""Celery tasks of this room: answer one online request. One call; and the worker that answers gets ready for it."""

from __future__ import annotations

import threading
from typing import Any

from celery.signals import worker_process_init

from evalapp.celery import app

from .live.asking import TASK
from .live.libraries import load_libraries

#: The first page comes before the first online score.
WARM_UP_AFTER_SECONDS = 10.0


# Not given to another worker when this one dies: whoever asked has long stopped waiting.
@app.task(name=TASK, acks_late=False)
def live(number: str) -> bool:
    from .live.answering import answer

    return answer(number)


@worker_process_init.connect
def warm_up(**_: Any) -> threading.Timer | None:
    """In a worker of the queue `live` alone, load the libraries soon after it started, beside its work."""
    if set(app.amqp.queues.consume_from) != {"live"}:
        return None
    timer = threading.Timer(WARM_UP_AFTER_SECONDS, load_libraries)
    timer.daemon = True
    timer.start()
    return timer
