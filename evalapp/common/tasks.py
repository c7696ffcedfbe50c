"""Celery tasks of evalapp: execute a run, send a mail, reconcile both. Each is a single call."""

import contextlib
import logging
import os
import signal
import socket
import threading
from typing import Any

from billiard.process import active_children
from celery.signals import worker_ready, worker_shutdown, worker_shutting_down
from django.db import Error as DatabaseTrouble
from django.db import connection
from django.utils import timezone

from evalapp.celery import app

from .audit_chain import seal
from .backup.nightly import make_nightly_backup
from .idempotency import sweep_keys
from .mails import delete_old_mails, deliver_mail, resend_mails
from .models import WorkerBeat
from .outages import by_the_clock
from .queue import reconcile_runs, return_lost_run
from .runner import execute_run

log = logging.getLogger(__name__)

BEAT_SECONDS = 5.0
#: Seconds that a worker has to finish its work when it shuts down; longer work goes back to the queue.
DRAIN_SECONDS = 3.0
_stop = threading.Event()
_beating: list[threading.Thread] = []
_no_fork = threading.Lock()
os.register_at_fork(before=_no_fork.acquire, after_in_parent=_no_fork.release, after_in_child=_no_fork.release)


@app.task(name="evalapp.run")
def run(run_id: int) -> None:
    if execute_run(run_id, by_worker=True) is None and return_lost_run(run_id):
        execute_run(run_id, by_worker=True)


@app.task(name="evalapp.send_mail")
def send_mail(mail_id: int) -> None:
    deliver_mail(mail_id)


@app.task(name="evalapp.reconcile")
def reconcile() -> dict[str, int] | None:
    counts = by_the_clock(reconcile_runs)
    by_the_clock(resend_mails)
    by_the_clock(sweep_keys)
    return counts


@app.task(name="evalapp.delete_old_mails")
def delete_old_mails_daily() -> None:
    by_the_clock(delete_old_mails)


@app.task(name="evalapp.back_up")
def back_up() -> None:
    make_nightly_backup()


@app.task(name="evalapp.seal_audit")
def seal_audit() -> int | None:
    return by_the_clock(seal)


def _write_beat(name: str, queues: list[str]) -> None:
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 1000")  # a missed heartbeat is better than a late fork
    now = timezone.now()
    facts = {"queues": queues, "pid": os.getpid(), "host": socket.gethostname(), "at": now}
    WorkerBeat.objects.update_or_create(name=name, defaults=facts)


def _beat(name: str, queues: list[str]) -> None:
    """Stop heartbeats during forks. A process forked in the middle of a transaction would inherit SQLite's lock on the
    file forever; so no heartbeat is written and no connection is open while the pool forks."""
    while True:
        with _no_fork:
            try:
                _write_beat(name, queues)
            except DatabaseTrouble as error:
                log.debug("the beat of %s was not written: %s", name, error)
            finally:
                connection.close()
        if _stop.wait(BEAT_SECONDS):
            with _no_fork:
                try:
                    WorkerBeat.objects.filter(name=name).delete()
                except DatabaseTrouble as error:
                    log.debug("the beat of %s was not taken back: %s", name, error)
                finally:
                    connection.close()
            return


@worker_ready.connect
def _start_beating(sender: Any = None, **_: Any) -> None:
    queues = sorted(sender.app.amqp.queues.consume_from)
    _stop.clear()
    thread = threading.Thread(target=_beat, args=(sender.hostname, queues), daemon=True, name="worker-beat")
    thread.start()
    _beating.append(thread)


@worker_shutting_down.connect
def _drain(**_: Any) -> None:
    timer = threading.Timer(DRAIN_SECONDS, _end_processes)
    timer.daemon = True
    timer.start()


def _end_processes() -> None:
    for process in active_children():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)


@worker_shutdown.connect
def _stop_beating(**_: Any) -> None:
    """Remove this worker's heartbeat before the process ends, so that pages know at once."""
    _stop.set()
    while _beating:
        _beating.pop().join(timeout=2)
