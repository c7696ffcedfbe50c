"""Celery tasks: answer one online request, and prepare the workers that do."""

from __future__ import annotations

import threading
from typing import Any

from celery.signals import worker_process_init

from evalapp.celery import app

from .live.asking import TASK
from .live.libraries import load_libraries

#: Libraries are loaded some time after the start, so that other processes start faster.
WARM_UP_AFTER_SECONDS = 10.0


# Not redelivered when the worker dies: the request has timed out by then.
@app.task(name=TASK, acks_late=False)
def live(number: str) -> bool:
    from .live.answering import answer

    return answer(number)


@worker_process_init.connect
def warm_up(**_: Any) -> threading.Timer | None:
    """In a worker of only the queue `live`, load the libraries in the background soon after the start."""
    if set(app.amqp.queues.consume_from) != {"live"}:
        return None
    timer = threading.Timer(WARM_UP_AFTER_SECONDS, load_libraries)
    timer.daemon = True
    timer.start()
    return timer
