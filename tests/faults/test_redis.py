"""The queue stops, is emptied, is out of memory, or does not respond: no run is lost or executed twice, and pages
respond and report the problem. All tests use one installation."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone
from kombu import Connection
from redis.exceptions import TimeoutError as NoResponse

from evalapp.celery import broker
from evalapp.common.errors import Unavailable
from evalapp.common.models import Run, RunLog, WorkerBeat
from evalapp.common.queue import enqueue_run, queue_has_worker, reconcile_runs
from evalapp.ops.checks import MISSING, redis_server
from scoring.live.asking import QUEUE, ask_live
from tests.cast import Cast, make_cast
from tests.evalapp.common import run_jobs  # noqa: F401 - registers the kinds of job
from tests.evalapp.common.conftest import wait_until
from tests.faults.stack import Stack
from tests.faults.timed_requests import BUSY_MACHINE_SECONDS, MAX_WAIT_SECONDS, get_page, time_call

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.promise("queue")]
WORKER = ["--include", "tests.evalapp.common.run_jobs", "--queues", "cpu,gpu,live"]
NOT_REACHED = "The queue could not be reached"


class Installation:
    def __init__(self, stack: Stack, cast: Cast) -> None:
        self.stack, self.cast = stack, cast

    def enqueue(self, title: str, steps: int = 1, pause: float = 0.05) -> Run:
        return enqueue_run(
            kind="test-count", project=self.cast.project, params={"steps": steps, "pause": pause}, title=title
        )

    def restart_worker(self) -> None:
        """Restart the worker, like the supervisor of `manage.py up`: Celery exits when Redis cannot write."""
        if not self.stack.alive("work"):
            self.stack.start("work", more=WORKER)

    def page(self, run: Run) -> Any:
        return get_page(self.cast.owner, reverse("run", args=[self.cast.project.slug, run.pk]))


@pytest.fixture(scope="module")
def installation(tmp_path_factory: Any, migrated_file: Path, django_db_blocker: Any) -> Iterator[Installation]:
    """Redis, a worker for all queues and beat, started like by `manage.py up`, but without restarts."""
    with Stack(tmp_path_factory.mktemp("redis") / "data") as stack, django_db_blocker.unblock():
        shutil.copy(migrated_file, stack.folder / "evalapp.sqlite3")
        with stack.django():
            stack.start("redis")
            stack.start("work", more=WORKER)
            stack.start("beat")
            yield Installation(stack, make_cast())


def read_state(run: Run) -> str:
    run.refresh_from_db()
    return run.state


def is_done(run: Run) -> bool:
    """Return whether the run has succeeded; check that it has needed only one attempt."""
    if read_state(run) != Run.State.SUCCEEDED:
        assert run.state in Run.ACTIVE, run.error
        return False
    starts = RunLog.objects.filter(run=run, text__startswith="counting to").count()
    assert (run.attempt, starts) == (1, 1)
    return True


def wait_for(*runs: Run, reconcile: bool = False) -> None:
    """`reconcile`: reconcile now instead of waiting up to ten seconds for beat."""
    wait_until(lambda: (not reconcile or reconcile_runs()) and all(is_done(run) for run in runs), 300)


def is_in_progress(run: Run) -> bool:
    return read_state(run) == Run.State.RUNNING and run.done > 0


def make_messages_older(*runs: Run) -> None:
    """Make messages look a minute old, because a message counts as in transit for half a minute."""
    before = timezone.now() - timedelta(minutes=1)
    Run.objects.filter(pk__in=[run.pk for run in runs], sent_at__isnull=False).update(sent_at=before)


def test_queue_stops_and_returns_empty(installation):
    running = installation.enqueue("before", steps=60)
    wait_until(lambda: is_in_progress(running))
    installation.stack.kill("redis")
    runs = []
    for number in range(3):
        run, seconds = time_call(
            lambda number=number: installation.enqueue(f"during outage {number}", steps=1 + number)
        )
        assert seconds < MAX_WAIT_SECONDS + BUSY_MACHINE_SECONDS
        runs.append(run)
    assert all(read_state(run) == Run.State.QUEUED and run.sent_at is None for run in runs)
    wait_until(lambda: runs[0].is_unsent)
    page = installation.page(runs[0])
    assert (page.status, page.in_time) == (200, True)
    assert NOT_REACHED in page.text
    listed = get_page(installation.cast.owner, reverse("run-list", args=["alpha"]))
    assert (listed.status, listed.in_time, NOT_REACHED in listed.text) == (200, True, True)
    assert redis_server(installation.stack.redis_url).state == MISSING
    wait_for(running)  # the active run continued
    for path in installation.stack.folder.glob("*.aof*"):
        path.unlink() if path.is_file() else shutil.rmtree(path)
    shutil.rmtree(installation.stack.folder / "appendonlydir", ignore_errors=True)
    installation.stack.start("redis")
    wait_for(*runs)  # sent by the periodic reconciler
    assert installation.stack.alive("work")
    assert NOT_REACHED not in installation.page(runs[0]).text


def test_queue_is_emptied_during_a_job(installation):
    running = installation.enqueue("at work", steps=40)
    wait_until(lambda: is_in_progress(running))
    waiting = [installation.enqueue(f"waiting {number}", steps=2 + number) for number in range(3)]
    installation.stack.redis().flushall()
    make_messages_older(*waiting)
    wait_for(running, *waiting, reconcile=True)
    assert sum(reconcile_runs().values()) == 0


def test_queue_memory_is_full(installation):
    queue = installation.stack.redis()
    running = installation.enqueue("with room", steps=40)
    wait_until(lambda: is_in_progress(running))
    before = installation.enqueue("sent before", steps=3)
    queue.config_set("maxmemory-policy", "noeviction")
    queue.config_set("maxmemory", 1)
    run, seconds = time_call(lambda: installation.enqueue("without room"))
    assert seconds < MAX_WAIT_SECONDS + BUSY_MACHINE_SECONDS
    assert (read_state(run), run.sent_at) == (Run.State.QUEUED, None)
    wait_until(lambda: run.is_unsent)
    assert NOT_REACHED in installation.page(run).text
    if queue_has_worker(QUEUE):
        with pytest.raises(Unavailable, match="The queue is full"):
            ask_live({"kind": "score", "source": {"name": "bleu"}, "pairs": []})
    wait_for(running)
    time.sleep(1.0)  # the message may or may not have been taken from the queue
    queue.config_set("maxmemory", 0)
    make_messages_older(before)
    wait_until(lambda: installation.restart_worker() or (reconcile_runs() and is_done(before) and is_done(run)), 300)


def test_queue_does_not_respond(installation):
    """Redis accepts connections but does not respond, as on a swapping machine."""
    os.kill(installation.stack.pid("redis"), signal.SIGSTOP)
    try:
        run, seconds = time_call(lambda: installation.enqueue("without response", steps=4))
        assert seconds < MAX_WAIT_SECONDS + BUSY_MACHINE_SECONDS
        assert read_state(run) == Run.State.QUEUED
        WorkerBeat.objects.update(at=timezone.now())

        def score() -> None:
            with pytest.raises(Unavailable, match="queue cannot be reached"):
                ask_live({"kind": "score", "source": {"name": "bleu"}, "pairs": []})

        assert time_call(score)[1] < MAX_WAIT_SECONDS + BUSY_MACHINE_SECONDS
        page = installation.page(run)
        assert (page.status, page.in_time) == (200, True)
    finally:
        os.kill(installation.stack.pid("redis"), signal.SIGCONT)
    wait_for(run, reconcile=True)


def test_message_that_cannot_be_acknowledged_does_not_block(installation):
    """A worker of one process has room for the next message, although Redis does not respond to its acknowledgement."""
    url = broker(installation.stack.redis_url)
    with Connection(url, transport_options={"socket_timeout": 0.5}) as connection:
        channel = connection.channel()
        channel.basic_qos(0, 1, False)
        queue = connection.SimpleQueue("messages")
        queue.put("text")
        message = channel.basic_get("messages")
        assert not channel.qos.can_consume()
        os.kill(installation.stack.pid("redis"), signal.SIGSTOP)
        try:
            with pytest.raises(NoResponse):
                message.ack()
        finally:
            os.kill(installation.stack.pid("redis"), signal.SIGCONT)
        assert channel.qos.can_consume()
