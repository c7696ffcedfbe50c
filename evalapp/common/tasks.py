"""Celery tasks of the ground: execute one run, reconcile runs. Each is one call."""

from __future__ import annotations

import os
import socket
import threading
from typing import Any

from celery.signals import worker_ready, worker_shutdown
from django.db import DatabaseError, connection
from django.utils import timezone

from evalapp.celery import app

from .models import WorkerBeat
from .queue import reconcile_runs, return_lost_run
from .runner import execute_run

BEAT_SECONDS = 5.0
_stop = threading.Event()
_beating: list[threading.Thread] = []


@app.task(name="evalapp.run")
def run(run_id: int) -> None:
    if execute_run(run_id) is None and return_lost_run(run_id):
        execute_run(run_id)


@app.task(name="evalapp.reconcile")
def reconcile() -> dict[str, int]:
    return reconcile_runs()


def _beat(name: str, queues: list[str]) -> None:
    while True:
        try:
            WorkerBeat.objects.update_or_create(
                name=name,
                defaults={
                    "queues": queues,
                    "pid": os.getpid(),
                    "host": socket.gethostname(),
                    "at": timezone.now(),
                },
            )
        except DatabaseError:
            connection.close()  # a database that was away is asked again with a new connection
        if _stop.wait(BEAT_SECONDS):
            WorkerBeat.objects.filter(name=name).delete()
            connection.close()
            return


@worker_ready.connect
def _start_beating(sender: Any = None, **_: Any) -> None:
    queues = sorted(sender.app.amqp.queues.consume_from)
    _stop.clear()
    thread = threading.Thread(target=_beat, args=(sender.hostname, queues), daemon=True, name="worker-beat")
    thread.start()
    _beating.append(thread)


@worker_shutdown.connect
def _stop_beating(**_: Any) -> None:
    """Sign off before the process ends, so that pages know at once."""
    _stop.set()
    while _beating:
        _beating.pop().join(timeout=2)
