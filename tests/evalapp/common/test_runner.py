"""One run in this process: its end, messages, figures and cancellation."""

from __future__ import annotations

import gc
import threading
import time
from types import SimpleNamespace

import pytest
from django.db import connection
from django.db.models import F
from django.urls import reverse
from lxml import html

from evalapp.common import runner
from evalapp.common.models import Run, RunLog
from evalapp.common.queue import cancel_run, claim_run, enqueue_run, retry_run
from evalapp.common.runner import RunCancelled, RunContext, RunLost, _Heart, _heartbeat, execute_run
from tests.cast import make_cast
from tests.evalapp.common import run_jobs

from .conftest import wait_until


def here(cast, kind, **params):
    return enqueue_run(kind=kind, project=cast.project, user=cast.owner, params=params, title=kind, send=False)


def test_run_ends_with_result_figures_and_log(cast):
    told: list[str] = []
    run = execute_run(here(cast, "test-count", steps=3, pause=0).pk, echo=told.append)
    assert run.state == Run.State.SUCCEEDED
    assert run.result == {"counted": 3, "attempt": 1}
    assert (run.done, run.total, run.unit, run.phase) == (3, 3, "steps", "counting")
    assert told == ["counting to 3"] == list(RunLog.objects.filter(run=run).values_list("text", flat=True))
    assert execute_run(run.pk) is None


def test_full_collections_skip_what_exists_before_a_run(cast, monkeypatch):
    frozen: list[int] = []
    pipeline = lambda context, **params: frozen.append(gc.get_freeze_count())  # noqa: E731
    monkeypatch.setattr(runner, "get_job", lambda kind: SimpleNamespace(load=lambda: pipeline))
    gc.unfreeze()
    runner._is_frozen.cache_clear()
    try:
        assert execute_run(here(cast, "test-count", steps=1, pause=0).pk).state == Run.State.SUCCEEDED
        assert frozen[0] > 1000
        assert gc.get_freeze_count() == 0
    finally:
        gc.freeze()
        runner._is_frozen.cache_clear()


def test_frozen_objects_are_counted_once_in_a_process(cast, monkeypatch):
    """Counting visits every object, which took a third of the time of all tests."""
    counted: list[int] = []
    runner._is_frozen.cache_clear()
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(1) or 1)
    try:
        for _ in range(2):
            assert execute_run(here(cast, "test-count", steps=1, pause=0).pk).state == Run.State.SUCCEEDED
        assert counted == [1]
    finally:
        runner._is_frozen.cache_clear()


def test_domain_error_is_a_message_with_its_details(cast):
    run = execute_run(here(cast, "test-refuse").pk)
    assert (run.state, run.error) == (Run.State.FAILED, run_jobs.REFUSED)
    assert run.faults == [{"message": "No text.", "field": "text", "file": "o.csv", "line": 3}]


def test_unexpected_error_leaves_its_traceback_only_in_the_log(cast):
    run = execute_run(here(cast, "test-break", zero=0).pk)
    assert run.state == Run.State.FAILED
    assert "Unexpected error (TypeError" in run.error
    assert "Traceback" not in run.error
    assert "Traceback" in RunLog.objects.get(run=run).text


def test_unstorable_result_still_ends_the_run(cast):
    run = execute_run(here(cast, "test-nothing").pk)
    assert run.state == Run.State.SUCCEEDED
    assert run.result == {"mean": None, "by system": [{"name": "a\\x00b", "value": None}], "n": 0}
    assert RunLog.objects.get(run=run).text == "half a character: \\ud800, and none: \\x00"


def test_out_of_memory_suggests_a_remedy(cast):
    assert "smaller batches" in execute_run(here(cast, "test-memory").pk).error


@pytest.mark.parametrize(
    ("kind", "cause"), [("test-refuse", "input"), ("test-break", "unexpected"), ("test-memory", "machine")]
)
def test_cause_tells_the_data_from_a_failure(cast, client, kind, cause):
    """On the page, in lists and for programs; a retried run has none."""
    run = execute_run(here(cast, kind).pk)
    assert (run.state, run.cause) == (Run.State.FAILED, cause)
    client.force_login(cast.researcher)
    page = html.fromstring(client.get(reverse("run", args=["alpha", run.pk])).content)
    assert page.xpath("//*[@id='run-state']//@data-cause") == [cause]
    looks = page.xpath("//*[@id='run-error']/@class")[0].split()
    assert ("warn" in looks, "bad" in looks) == (cause == "input", cause != "input")
    assert (run.state_label == run.get_state_display()) == (cause != "input")
    assert client.get(reverse("api-run", args=[run.pk])).json()["cause"] == cause
    assert retry_run(run=run).cause == ""


def test_rate_counts_only_this_attempt(cast, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    context = RunContext(here(cast, "test-count", steps=1))
    context.progress(500, 1000)  # an earlier attempt got this far
    clock[0] += 10
    context.progress(600, 1000)
    assert context.figures["rate"] == pytest.approx(10.0)  # 100 in 10 s
    clock[0] += 10
    context.progress(60, 100, "%", "of all", left=80.0)
    assert context.figures["rate"] == 0.5, "which is what leaves 80 s of the 40 %"
    context.progress(100, 100, "%", "of all", left=0.0)
    assert context.figures["rate"] is None
    context.progress(0, 50, phase="next")
    assert context.figures["rate"] is None


def test_check_stops_a_cancelled_pipeline(cast):
    context = RunContext(here(cast, "test-count", steps=1))
    context.check()
    context.cancelled.set()
    with pytest.raises(RunCancelled):
        context.progress(1, 2)


@pytest.mark.promise("job")
def test_pipeline_of_a_reassigned_run_stops_as_lost_not_cancelled(cast):
    """A cancelled pipeline cleans up; a lost one would delete its successor's work."""
    first = claim_run(here(cast, "test-count", steps=1).pk)
    context, heart = RunContext(first), _Heart(RunContext(first), main=False)
    context.make_sure()
    Run.objects.filter(pk=first.pk).update(state=Run.State.QUEUED)
    claim_run(first.pk)
    heart.beat()
    assert heart.context.lost.is_set()
    for act in (heart.context.check, context.make_sure):
        with pytest.raises(RunLost):
            act()
    cancel_run(run=first)
    heart.beat()
    with pytest.raises(RunLost):
        heart.context.progress(1, 2)


def _meanwhile(run: Run, seconds: float, action) -> threading.Thread:
    """Calls it in another thread, this many seconds after the run started."""

    def work() -> None:
        wait_until(lambda: Run.objects.get(pk=run.pk).state == Run.State.RUNNING)
        time.sleep(seconds)
        action()
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_database_in_memory_gets_no_heartbeat(transactional_db):
    """Its second connection made statements of the pipeline fail as "table is locked", now and then."""
    with _heartbeat(SimpleNamespace(), by_worker=False):
        assert "run-heartbeat" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "params"), [("test-count", {"steps": 4000}), ("test-sleep", {"seconds": 200})])
def test_running_pipeline_is_stopped(file_database, kind, params):
    run = here(make_cast(), kind, **params)
    asked: list[float] = []

    def cancel() -> None:
        cancel_run(run=Run.objects.get(pk=run.pk))
        asked.append(time.monotonic())

    thread = _meanwhile(run, 0.2, cancel)
    ended = execute_run(run.pk)
    thread.join()
    assert ended.state == Run.State.CANCELLED
    assert time.monotonic() - asked[0] < 60  # out of two hundred seconds


@pytest.mark.slow
def test_heartbeat_and_log_appear_during_the_run(file_database, monkeypatch):
    run = here(make_cast(), "test-sleep", seconds=0)
    seen = threading.Event()
    monkeypatch.setattr(run_jobs, "time", SimpleNamespace(sleep=lambda seconds: seen.wait(60)))

    def look() -> None:
        wait_until(
            lambda: (
                Run.objects.filter(pk=run.pk, state=Run.State.RUNNING, heartbeat__gt=F("started_at")).exists()
                and RunLog.objects.filter(run=run).count() == 1
            ),
            50,
        )
        seen.set()

    thread = _meanwhile(run, 0, look)
    assert execute_run(run.pk).state == Run.State.SUCCEEDED
    thread.join()
    assert seen.is_set()


def test_ctrl_c_ends_the_run(cast):
    """Otherwise a worker would consider it abandoned and continue it."""

    def stop(text: str) -> None:
        raise KeyboardInterrupt

    run = here(cast, "test-count", steps=3, pause=0)
    with pytest.raises(KeyboardInterrupt):
        execute_run(run.pk, echo=stop)
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLED
    assert run.finished_at is not None
