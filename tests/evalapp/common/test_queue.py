"""Runs as rows: joining, claiming, ending, cancelling, retrying, reconciling."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from evalapp.celery import app
from evalapp.common import queue
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.models import AuditEvent, Run, RunLog, WorkerBeat
from evalapp.common.queue import send_run
from evalapp.common.runner import RunContext
from tests.evalapp.common import run_jobs  # noqa: F401 - registers the kinds of job

LONG_AGO = timedelta(minutes=2)


@pytest.fixture(autouse=True)
def sent(monkeypatch):
    """Ids of the runs sent to the queue, which does not exist here."""
    numbers: list[int] = []

    def send(run: Run) -> bool:
        numbers.append(run.pk)
        Run.objects.filter(pk=run.pk).update(sent_at=timezone.now())
        return True

    monkeypatch.setattr(queue, "send_run", send)
    return numbers


def enqueue(cast, steps=3, **more):
    return queue.enqueue_run(
        kind="test-count", project=cast.project, user=cast.owner, params={"steps": steps}, title="Count", **more
    )


def test_same_request_joins_the_active_run(cast):
    first, second, other = enqueue(cast), enqueue(cast), enqueue(cast, steps=4)
    assert first.pk == second.pk != other.pk
    assert AuditEvent.objects.filter(verb="run.queued").count() == 2


def test_same_request_after_the_end_is_a_new_run(cast):
    first = enqueue(cast)
    queue.finish_run(queue.claim_run(first.pk), Run.State.SUCCEEDED)
    assert enqueue(cast).pk != first.pk


def test_order_of_parameters_does_not_matter():
    assert queue.input_hash("k", 1, {"a": 1, "b": 2}) == queue.input_hash("k", 1, {"b": 2, "a": 1})
    assert queue.input_hash("k", 1, {"a": 1}) != queue.input_hash("k", 2, {"a": 1})


def test_sent_after_commit_and_only_on_request(cast, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        run = enqueue(cast)
        assert sent == []
    assert sent == [run.pk]
    with django_capture_on_commit_callbacks(execute=True):
        enqueue(cast, steps=9, send=False)
    assert sent == [run.pk]


def test_unknown_kind_lists_the_known_ones(cast):
    with pytest.raises(BadInput, match="test-count"):
        queue.enqueue_run(kind="bake", project=cast.project, params={}, title="Bake")


def test_only_one_claim_succeeds(cast):
    run = enqueue(cast)
    claimed = queue.claim_run(run.pk)
    assert claimed.state == Run.State.RUNNING
    assert claimed.attempt == 1
    assert claimed.worker == queue.worker_name()
    assert claimed.process == f"{socket.gethostname()}:{os.getpid()}"
    assert queue.claim_run(run.pk) is None


def test_worker_that_lost_its_run_cannot_end_it(cast):
    run = enqueue(cast)
    lost = queue.claim_run(run.pk)
    Run.objects.filter(pk=run.pk).update(state=Run.State.QUEUED)
    again = queue.claim_run(run.pk)
    assert queue.finish_run(lost, Run.State.SUCCEEDED) is False
    assert queue.finish_run(again, Run.State.SUCCEEDED) is True


@pytest.mark.promise("job")
@pytest.mark.parametrize("life", ["retried", "given back"])
def test_earlier_worker_never_owns_a_later_attempt(cast, life):
    """Attempts restart at one: once, a frozen worker that woke up took its successor's run for its own."""
    run = enqueue(cast)
    frozen = queue.claim_run(run.pk)
    if life == "retried":
        queue.finish_run(Run.objects.get(pk=run.pk), Run.State.FAILED)
        queue.retry_run(run=run)
    else:
        queue.return_all_running()
    again = queue.claim_run(run.pk)
    assert again.attempt == frozen.attempt
    assert RunContext(frozen).look() == "lost"
    assert queue.finish_run(frozen, Run.State.SUCCEEDED) is False
    assert RunContext(again).look() == ""
    assert queue.finish_run(again, Run.State.SUCCEEDED) is True


def test_waiting_run_is_cancelled_at_once_and_a_running_one_is_asked(cast):
    waiting, running = enqueue(cast), enqueue(cast, steps=4)
    queue.claim_run(running.pk)
    assert queue.cancel_run(run=waiting, user=cast.owner).state == Run.State.CANCELLED
    asked = queue.cancel_run(run=running, user=cast.owner)
    assert (asked.state, asked.cancel_requested) == (Run.State.RUNNING, True)
    with pytest.raises(Conflict, match="already ended"):
        queue.cancel_run(run=waiting)


def test_request_during_cancellation_waits_for_its_turn(cast, sent):
    """Once, it joined the run that was about to stop and was lost with it."""
    first = enqueue(cast)
    claimed = queue.claim_run(first.pk)
    queue.cancel_run(run=first)
    second = enqueue(cast)
    assert second.pk != first.pk
    assert enqueue(cast).pk == second.pk
    assert queue.claim_run(second.pk, in_turn=True) is None
    sent.clear()
    assert queue.finish_run(claimed, Run.State.CANCELLED)
    assert sent == [second.pk]
    with pytest.raises(Conflict, match="already waiting or running"):
        queue.retry_run(run=first)
    assert queue.finish_run(queue.claim_run(second.pk, in_turn=True), Run.State.SUCCEEDED)
    assert queue.retry_run(run=first).input_hash == queue.input_hash("test-count", cast.project.pk, {"steps": 3})


def test_repeated_end_sends_the_waiting_run(cast, sent):
    """The database was down between the end and the message; the runner ends the run again."""
    first = enqueue(cast)
    claimed = queue.claim_run(first.pk)
    queue.cancel_run(run=first)
    second = enqueue(cast)
    Run.objects.filter(pk=first.pk).update(state=Run.State.CANCELLED)
    sent.clear()
    assert queue.finish_run(claimed, Run.State.CANCELLED) is False
    assert sent == [second.pk]


def test_run_waiting_for_a_cancelled_one_is_sent_when_the_worker_is_lost(cast, sent):
    first = enqueue(cast)
    queue.claim_run(first.pk)
    queue.cancel_run(run=first)
    second = enqueue(cast)
    Run.objects.filter(pk=first.pk).update(heartbeat=timezone.now() - LONG_AGO, worker="elsewhere:1")
    assert queue.reconcile_runs()["cancelled"] == 1
    assert second.pk in sent


def test_failed_run_is_retried_with_fresh_attempts(cast):
    run = enqueue(cast)
    queue.finish_run(queue.claim_run(run.pk), Run.State.FAILED, error="broken", result=None)
    again = queue.retry_run(run=run, user=cast.owner)
    assert (again.state, again.attempt, again.error, again.sent_at) == (Run.State.QUEUED, 0, "", None)
    with pytest.raises(Conflict, match="failed or cancelled"):
        queue.retry_run(run=run)


def test_no_retry_while_the_same_work_is_active(cast):
    run = enqueue(cast)
    queue.finish_run(queue.claim_run(run.pk), Run.State.FAILED)
    enqueue(cast)
    with pytest.raises(Conflict, match="already waiting or running"):
        queue.retry_run(run=run)


def test_queue_position_counts_earlier_runs(cast):
    runs = [enqueue(cast, steps=n) for n in (1, 2, 3)]
    assert [queue.queue_place(run) for run in runs] == [1, 2, 3]
    queue.claim_run(runs[0].pk)
    assert queue.queue_place(runs[2]) == 2
    runs[0].refresh_from_db()
    assert queue.queue_place(runs[0]) is None


def lose(run: Run, *, worker: str, attempt: int = 1, ago: timedelta = LONG_AGO, **more) -> Run:
    """The state in which a worker leaves a run when its machine dies."""
    when = timezone.now() - ago
    Run.objects.filter(pk=run.pk).update(
        state=Run.State.RUNNING, worker=worker, attempt=attempt, heartbeat=when, started_at=when, **more
    )
    return run


def test_run_of_a_silent_machine_returns_to_the_queue(cast, sent):
    run = lose(enqueue(cast), worker="elsewhere:17")
    assert queue.reconcile_runs()["returned"] == 1
    run.refresh_from_db()
    assert (run.state, run.worker, run.attempt) == (Run.State.QUEUED, "", 1)
    assert sent == [run.pk]
    assert "elsewhere:17 was lost" in RunLog.objects.get(run=run).text


def test_fresh_remote_heartbeat_is_trusted(cast):
    lose(enqueue(cast), worker="elsewhere:17", ago=timedelta(seconds=20))
    assert queue.reconcile_runs()["returned"] == 0


@pytest.fixture
def ended_process():
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    return process.pid


def test_dead_local_process_is_detected_within_seconds(cast, ended_process):
    lose(enqueue(cast), worker=f"{socket.gethostname()}:{ended_process}", ago=timedelta(seconds=6))
    assert queue.reconcile_runs()["returned"] == 1


def test_zombie_counts_as_dead(cast):
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    try:
        # Not waited for: it stays a zombie until the end of this test.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        lose(enqueue(cast), worker=f"{socket.gethostname()}:{process.pid}", ago=timedelta(seconds=6))
        assert queue.reconcile_runs()["returned"] == 1
    finally:
        process.wait()


def test_restarted_container_reuses_process_numbers(cast):
    """Host name and process number are the same as before: only the start time differs."""
    host, pid, began = queue.worker_name().split(":")
    run = lose(enqueue(cast), worker=f"{host}:{pid}:{int(began) - 1}", ago=timedelta(seconds=6))
    assert queue.return_lost_run(run.pk) is True
    lose(run, worker=queue.worker_name(), ago=timedelta(seconds=6))
    assert queue.reconcile_runs()["returned"] == 0
    lose(run, worker=f"{host}:{pid}:{int(began) - 1}", ago=timedelta(seconds=6))
    assert queue.reconcile_runs()["returned"] == 1


@pytest.mark.parametrize("end", ["lost too often", "cancelled while it ran", "cancelled while it waited"])
def test_run_does_not_end_before_cleanup(cast, monkeypatch, end):
    """The worker dies in between: the row must not claim that all is done."""
    run = enqueue(cast)
    if end == "lost too often":
        lose(run, worker="elsewhere:17", attempt=queue.MAX_ATTEMPTS)
    elif end == "cancelled while it ran":
        lose(run, worker="elsewhere:17", cancel_requested=True)
    tidied: list[str] = []

    def broken(_: Run) -> None:
        raise KeyboardInterrupt

    def act() -> None:
        if end == "cancelled while it waited":
            queue.cancel_run(run=Run.objects.get(pk=run.pk))
        else:
            queue.reconcile_runs()

    monkeypatch.setattr(queue, "tidy_up", broken)
    with pytest.raises(KeyboardInterrupt):
        act()
    assert Run.objects.get(pk=run.pk).is_active
    monkeypatch.setattr(queue, "tidy_up", lambda run: tidied.append(run.state))
    act()
    assert tidied == [Run.objects.get(pk=run.pk).state]
    assert tidied == [Run.State.FAILED if end == "lost too often" else Run.State.CANCELLED]


def test_undeletable_files_delay_no_other_run(cast, monkeypatch):
    first, second = (lose(enqueue(cast, steps=n), worker="elsewhere:17", attempt=queue.MAX_ATTEMPTS) for n in range(2))

    def tidy_up(run: Run) -> None:
        if run.pk == first.pk:
            raise PermissionError("a file of another user")

    monkeypatch.setattr(queue, "tidy_up", tidy_up)
    assert queue.reconcile_runs()["failed"] == 1
    assert Run.objects.get(pk=first.pk).is_active
    assert not Run.objects.get(pk=second.pk).is_active
    monkeypatch.setattr(queue, "tidy_up", lambda run: None)
    assert queue.reconcile_runs()["failed"] == 1


def test_live_process_that_cannot_write_is_trusted_for_minutes(cast):
    me = f"{socket.gethostname()}:{os.getpid()}"
    run = lose(enqueue(cast), worker=me)
    assert queue.reconcile_runs()["returned"] == 0
    lose(run, worker=me, ago=timedelta(minutes=11))
    assert queue.reconcile_runs()["returned"] == 1


def test_run_fails_after_three_losses_with_a_remedy(cast):
    run = lose(enqueue(cast), worker="elsewhere:17", attempt=queue.MAX_ATTEMPTS)
    assert queue.reconcile_runs()["failed"] == 1
    run.refresh_from_db()
    assert run.state == Run.State.FAILED
    assert str(queue.MAX_ATTEMPTS) in run.error
    assert "retry" in run.error


def test_lost_run_marked_for_cancellation_is_cancelled(cast):
    run = lose(enqueue(cast), worker="elsewhere:17", cancel_requested=True)
    assert queue.reconcile_runs()["cancelled"] == 1
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLED


def test_redelivered_run_is_taken_over_only_from_the_dead(cast, ended_process):
    run = lose(enqueue(cast), worker=f"{socket.gethostname()}:{os.getpid()}", ago=timedelta(0))
    assert queue.return_lost_run(run.pk) is False
    lose(run, worker=f"{socket.gethostname()}:{ended_process}", ago=timedelta(0))
    assert queue.return_lost_run(run.pk) is True


def worker_for(*queues: str) -> None:
    WorkerBeat.objects.create(name="w", queues=list(queues), pid=1, host="h", at=timezone.now())


def test_run_forgotten_by_the_queue_is_sent_again(cast, sent, monkeypatch):
    run = enqueue(cast)
    Run.objects.filter(pk=run.pk).update(sent_at=timezone.now() - LONG_AGO)
    waiting = {"cpu": 1}
    monkeypatch.setattr(queue, "_waiting_messages", waiting.get)
    worker_for("cpu")
    assert queue.reconcile_runs()["resent"] == 0, "a message waits: the queue is only long"
    waiting["cpu"] = 0
    assert queue.reconcile_runs()["resent"] == 1
    assert sent == [run.pk]
    assert queue.reconcile_runs()["resent"] == 0, "it was sent just now"


def test_without_a_worker_nothing_is_sent_again(cast, sent, monkeypatch):
    enqueue(cast)
    monkeypatch.setattr(queue, "_waiting_messages", {"cpu": 0}.get)
    worker_for("live")
    assert queue.reconcile_runs()["resent"] == 0
    assert not queue.queue_has_worker("cpu")
    assert queue.queue_has_worker("live")


def test_gpu_stands_in_while_no_worker_serves_train(cast, monkeypatch):
    """Workers of earlier versions serve gpu; their trainings must not wait for ever."""
    monkeypatch.setattr(app, "send_task", lambda *args, **rest: None)
    monkeypatch.setattr(queue, "send_run", send_run)
    run = Run.objects.create(project=cast.project, kind="test-count", title="t", input_hash="t", queue="train")
    assert not queue.queue_has_worker("train")
    queue.send_run(run)
    assert run.queue == "train", "nobody serves either"
    Run.objects.update(sent_at=timezone.now() - LONG_AGO)
    worker_for("cpu", "gpu")
    assert queue.queue_has_worker("train")
    assert queue.reconcile_runs()["resent"] == 1
    run.refresh_from_db()
    assert run.queue == "gpu"
    other = Run.objects.create(project=cast.project, kind="test-count", title="o", input_hash="o", queue="train")
    WorkerBeat.objects.create(name="t", queues=["train"], pid=2, host="h", at=timezone.now())
    queue.send_run(other)
    assert other.queue == "train"


def test_worker_without_heartbeat_does_not_count(cast):
    worker_for("cpu")
    WorkerBeat.objects.update(at=timezone.now() - timedelta(seconds=21))
    assert queue.live_workers() == []
