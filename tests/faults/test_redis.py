"""The queue stops, is emptied, runs out of memory, falls silent: no run is lost, none is done twice, pages answer and
report it. One installation for all tests, started once."""

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

from evalapp.common.errors import Unavailable
from evalapp.common.models import Run, RunLog, WorkerBeat
from evalapp.common.queue import enqueue_run, queue_has_worker, reconcile_runs
from evalapp.ops.checks import MISSING, redis_server
from scoring.live.asking import QUEUE, ask_live
from tests.cast import Cast, make_cast
from tests.evalapp.common import run_jobs  # noqa: F401 - registers the kinds of job
from tests.evalapp.common.conftest import wait_until
from tests.faults.asking import BUSY, PATIENCE, get_page, measure
from tests.faults.stack import Stack

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.promise("queue")]
WORKER = ["--include", "tests.evalapp.common.run_jobs", "--queues", "cpu,gpu,live"]
NOT_REACHED = "The queue could not be reached"


class House:
    def __init__(self, stack: Stack, cast: Cast) -> None:
        self.stack, self.cast = stack, cast

    def ask_for(self, title: str, steps: int = 1, pause: float = 0.05) -> Run:
        return enqueue_run(
            kind="test-count", project=self.cast.project, params={"steps": steps, "pause": pause}, title=title
        )

    def keep_working(self) -> None:
        """Restarts workers like the supervisor of `manage.py up`: Celery exits cleanly when Redis cannot write."""
        if not self.stack.alive("work"):
            self.stack.start("work", more=WORKER)

    def page(self, run: Run) -> Any:
        return get_page(self.cast.owner, reverse("run", args=[self.cast.project.slug, run.pk]))


@pytest.fixture(scope="module")
def house(tmp_path_factory: Any, migrated_file: Path, django_db_blocker: Any) -> Iterator[House]:
    """Redis, a worker of all queues and the clock, as `manage.py up` starts them; ended services are not restarted."""
    with Stack(tmp_path_factory.mktemp("redis") / "data") as stack, django_db_blocker.unblock():
        shutil.copy(migrated_file, stack.folder / "evalapp.sqlite3")
        with stack.django():
            stack.start("redis")
            stack.start("work", more=WORKER)
            stack.start("beat")
            yield House(stack, make_cast())


def read_state(run: Run) -> str:
    run.refresh_from_db()
    return run.state


def is_done(run: Run) -> bool:
    """Also checks that it took a single attempt."""
    if read_state(run) != Run.State.SUCCEEDED:
        assert run.state in Run.ACTIVE, run.error
        return False
    begun = RunLog.objects.filter(run=run, text__startswith="counting to").count()
    assert (run.attempt, begun) == (1, 1)
    return True


def wait_for(*runs: Run, sooner: bool = False) -> None:
    """`sooner`: does not wait for the reconciler's next ten seconds."""
    wait_until(lambda: (not sooner or reconcile_runs()) and all(is_done(run) for run in runs), 60)


def is_at_work(run: Run) -> bool:
    return read_state(run) == Run.State.RUNNING and run.done > 0


def forget_age(*runs: Run) -> None:
    """Makes messages look a minute old; a sent message counts as in transit for half a minute."""
    before = timezone.now() - timedelta(minutes=1)
    Run.objects.filter(pk__in=[run.pk for run in runs], sent_at__isnull=False).update(sent_at=before)


def test_queue_stops_and_returns_empty(house):
    running = house.ask_for("before", steps=60)
    wait_until(lambda: is_at_work(running))
    house.stack.kill("redis")
    asked = []
    for number in range(3):
        run, seconds = measure(lambda number=number: house.ask_for(f"while away {number}", steps=1 + number))
        assert seconds < PATIENCE + BUSY
        asked.append(run)
    assert all(read_state(run) == Run.State.QUEUED and run.sent_at is None for run in asked)
    wait_until(lambda: asked[0].is_unsent)
    page = house.page(asked[0])
    assert (page.status, page.in_time) == (200, True)
    assert NOT_REACHED in page.text
    listed = get_page(house.cast.owner, reverse("run-list", args=["alpha"]))
    assert (listed.status, listed.in_time, NOT_REACHED in listed.text) == (200, True, True)
    assert redis_server(house.stack.redis_url).state == MISSING
    wait_for(running)  # the active run continued
    for left in house.stack.folder.glob("*.aof*"):
        left.unlink() if left.is_file() else shutil.rmtree(left)
    shutil.rmtree(house.stack.folder / "appendonlydir", ignore_errors=True)
    house.stack.start("redis")
    wait_for(*asked)  # without intervention: the clock's reconciler sent them
    assert house.stack.alive("work")
    assert NOT_REACHED not in house.page(asked[0]).text


def test_queue_is_emptied_during_a_job(house):
    running = house.ask_for("at work", steps=40)
    wait_until(lambda: is_at_work(running))
    waiting = [house.ask_for(f"waiting {number}", steps=2 + number) for number in range(3)]
    house.stack.redis().flushall()
    forget_age(*waiting)
    wait_for(running, *waiting, sooner=True)
    assert sum(reconcile_runs().values()) == 0


def test_queue_memory_is_full(house):
    queue = house.stack.redis()
    running = house.ask_for("with room", steps=40)
    wait_until(lambda: is_at_work(running))
    before = house.ask_for("sent before", steps=3)
    queue.config_set("maxmemory-policy", "noeviction")
    queue.config_set("maxmemory", 1)
    run, seconds = measure(lambda: house.ask_for("without room"))
    assert seconds < PATIENCE + BUSY
    assert (read_state(run), run.sent_at) == (Run.State.QUEUED, None)
    wait_until(lambda: run.is_unsent)
    assert NOT_REACHED in house.page(run).text
    if queue_has_worker(QUEUE):
        with pytest.raises(Unavailable, match="The queue is full"):
            ask_live({"kind": "score", "source": {"name": "bleu"}, "pairs": []})
    wait_for(running)
    time.sleep(1.0)  # its message may or may not have been taken off the queue
    queue.config_set("maxmemory", 0)
    forget_age(before)
    wait_until(lambda: house.keep_working() or (reconcile_runs() and is_done(before) and is_done(run)), 90)


def test_queue_is_silent(house):
    """It accepts connections and answers nothing, as on a swapping machine."""
    os.kill(house.stack.pid("redis"), signal.SIGSTOP)
    try:
        run, seconds = measure(lambda: house.ask_for("into silence", steps=4))
        assert seconds < PATIENCE + BUSY
        assert read_state(run) == Run.State.QUEUED
        WorkerBeat.objects.update(at=timezone.now())

        def score() -> None:
            with pytest.raises(Unavailable, match="queue cannot be reached"):
                ask_live({"kind": "score", "source": {"name": "bleu"}, "pairs": []})

        assert measure(score)[1] < PATIENCE + BUSY
        page = house.page(run)
        assert (page.status, page.in_time) == (200, True)
    finally:
        os.kill(house.stack.pid("redis"), signal.SIGCONT)
    wait_for(run, sooner=True)
