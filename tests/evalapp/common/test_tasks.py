"""Runs through a real Redis and real worker processes: finished, cancelled, and finished although any part died
meanwhile. All tests share one installation; a worker left alive by a test serves the next."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django.utils import timezone

from evalapp.accounts.models import Project
from evalapp.common.jobs import QUEUES
from evalapp.common.mails import resend_mails, send_mail
from evalapp.common.models import Mail, Run, RunLog, WorkerBeat
from evalapp.common.queue import (
    cancel_run,
    enqueue_run,
    list_served_queues,
    queue_has_worker,
    reconcile_runs,
    send_run,
)
from tests.cast import make_cast
from tests.evalapp.common import run_jobs  # noqa: F401 - registers the kinds of job
from tests.services.plugin import empty_redis

from .conftest import Installation, database_file, installed, point_queue_to, wait_until
from .smtp_server import smtp_server

pytestmark = [pytest.mark.slow, pytest.mark.server("redis")]


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory, migrated_file: Path, django_db_blocker: Any
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("installation")
    with (
        database_file(folder, migrated_file, django_db_blocker),
        empty_redis() as url,
        installed(folder, url) as made,
    ):
        make_cast()
        yield made


def a_worker(installation: Installation) -> subprocess.Popen:
    """A worker that is still alive, or a new one."""
    living = [worker for worker in installation.workers if worker.poll() is None]
    return living[0] if living else installation.start_worker()


def without_workers(installation: Installation) -> None:
    installation.stop()
    WorkerBeat.objects.all().delete()  # a killed worker does not sign off


def start(kind: str, queue: str = "", **params) -> Run:
    return enqueue_run(kind=kind, project=Project.objects.get(slug="alpha"), params=params, title=kind, queue=queue)


def read_state(run: Run) -> str:
    run.refresh_from_db()
    return run.state


def test_run_finishes_and_the_worker_signs_on_and_off(installation):
    without_workers(installation)
    run = start("test-count", steps=3)
    worker = installation.start_worker()
    wait_until(lambda: read_state(run) == Run.State.SUCCEEDED)
    assert run.result == {"counted": 3, "attempt": 1}
    assert queue_has_worker("cpu")
    worker.send_signal(signal.SIGTERM)
    worker.wait(timeout=300)
    assert not WorkerBeat.objects.exists()


@pytest.mark.promise("job")
def test_killed_worker_process_costs_one_attempt(installation):
    run = start("test-count", steps=60)
    a_worker(installation)
    wait_until(lambda: read_state(run) == Run.State.RUNNING and run.done > 3)
    os.kill(int(run.worker.split(":")[1]), signal.SIGKILL)
    wait_until(lambda: read_state(run) == Run.State.SUCCEEDED)
    assert run.result == {"counted": 60, "attempt": 2}
    assert RunLog.objects.filter(run=run, text__contains="was lost").count() == 1


@pytest.mark.promise("job")
def test_killed_machine_costs_one_attempt_and_another_finishes(installation):
    run = start("test-count", steps=60)
    first = a_worker(installation)
    wait_until(lambda: read_state(run) == Run.State.RUNNING and run.done > 3)
    installation.kill(first)
    installation.start_worker("second")
    wait_until(lambda: queue_has_worker("cpu"))
    wait_until(lambda: reconcile_runs()["returned"] == 1)
    wait_until(lambda: read_state(run) == Run.State.SUCCEEDED)
    assert run.result == {"counted": 60, "attempt": 2}


@pytest.mark.promise("queue")
def test_emptied_queue_is_refilled(installation):
    without_workers(installation)
    run = start("test-count", steps=2)
    redis.Redis.from_url(installation.redis_url).flushdb()
    installation.start_worker()
    wait_until(lambda: queue_has_worker("cpu"))
    assert read_state(run) == Run.State.QUEUED
    Run.objects.filter(pk=run.pk).update(sent_at=timezone.now() - timedelta(minutes=1))
    assert reconcile_runs()["resent"] == 1
    wait_until(lambda: read_state(run) == Run.State.SUCCEEDED)


@pytest.mark.promise("queue")
def test_emptying_the_queue_does_not_affect_an_active_run(installation):
    run = start("test-count", steps=60)
    a_worker(installation)
    wait_until(lambda: read_state(run) == Run.State.RUNNING and run.done > 3)
    redis.Redis.from_url(installation.redis_url).flushdb()
    wait_until(lambda: read_state(run) == Run.State.SUCCEEDED)
    assert run.attempt == 1


def test_cancelling_ends_a_run_that_never_checks_and_the_worker_continues(installation):
    run = start("test-sleep", seconds=3600)
    a_worker(installation)
    wait_until(lambda: read_state(run) == Run.State.RUNNING)
    cancel_run(run=run)
    wait_until(lambda: read_state(run) == Run.State.CANCELLED)
    following = enqueue_run(kind="test-count", project=run.project, params={"steps": 1}, title="next")
    wait_until(lambda: read_state(following) == Run.State.SUCCEEDED)


def test_scoring_starts_before_a_long_training_ends(installation):
    """With a worker for trainings and one for the rest; the training can still be cancelled."""
    without_workers(installation)
    training = start("test-count", steps=10_000, queue="train")
    installation.start_worker("trainer", "train")
    wait_until(lambda: read_state(training) == Run.State.RUNNING)
    later = start("test-count", steps=10_001, queue="train")
    installation.start_worker("scorer", "cpu,gpu")
    scoring = start("test-count", steps=2, queue="gpu")
    wait_until(lambda: read_state(scoring) == Run.State.SUCCEEDED)
    assert (read_state(training), read_state(later)) == (Run.State.RUNNING, Run.State.QUEUED)
    cancel_run(run=later)
    cancel_run(run=training)
    wait_until(lambda: read_state(training) == Run.State.CANCELLED)
    without_workers(installation)


def test_one_worker_serves_all_queues_and_takes_scoring_before_trainings(installation):
    without_workers(installation)
    # Of different length: the same request would join the first run.
    runs = {name: start("test-count", steps=n, queue=name) for n, name in enumerate(("train", "gpu", "cpu"), 1)}
    installation.start_worker("only", "")
    wait_until(lambda: all(read_state(run) == Run.State.SUCCEEDED for run in runs.values()))
    assert sorted(runs, key=lambda name: runs[name].started_at) == ["cpu", "gpu", "train"]
    assert list_served_queues() == set(QUEUES)
    without_workers(installation)


def test_worker_of_an_earlier_version_runs_trainings(installation):
    """It serves gpu alone: trainings that wait in their own queue are sent there."""
    without_workers(installation)
    training = start("test-count", steps=1, queue="train")
    installation.start_worker("old", "cpu,gpu")
    wait_until(lambda: queue_has_worker("gpu"))
    Run.objects.filter(pk=training.pk).update(sent_at=timezone.now() - timedelta(minutes=1))
    assert reconcile_runs()["resent"] == 1
    wait_until(lambda: read_state(training) == Run.State.SUCCEEDED)
    without_workers(installation)


@pytest.mark.promise("queue")
def test_row_waits_without_redis(installation):
    without_workers(installation)
    run = start("test-count", steps=1)
    Run.objects.filter(pk=run.pk).update(sent_at=None)
    point_queue_to("redis://127.0.0.1:1/0")
    try:
        assert send_run(run) is False
    finally:
        point_queue_to(installation.redis_url)
    run.refresh_from_db()
    assert (run.state, run.sent_at) == (Run.State.QUEUED, None)


def test_a_worker_sends_mails_also_those_whose_message_was_lost(installation, monkeypatch):
    without_workers(installation)
    context = {"project": "Alpha", "sender": "Olga", "role": "annotator", "until": "1 May", "link": "https://site/x/"}
    with smtp_server() as server:
        monkeypatch.setitem(installation.env, "EMAIL_URL", f"smtp://127.0.0.1:{server.port}")
        for to in ("rita@example.org", "lost@example.org"):
            send_mail(to=to, template="accounts/mails/invitation", context=context)
        Mail.objects.filter(to="lost@example.org").update(queued_at=None)
        redis.Redis.from_url(installation.redis_url).ltrim("cpu", 1, -1)  # the newest message, that of the second mail
        installation.start_worker()
        wait_until(lambda: Mail.objects.get(to="rita@example.org").state == Mail.State.SENT)
        assert Mail.objects.get(to="lost@example.org").state == Mail.State.WAITING
        assert resend_mails() == 1
        wait_until(lambda: not Mail.objects.exclude(state=Mail.State.SENT).exists())
        assert sorted(mail["To"] for mail in server.mails) == ["lost@example.org", "rita@example.org"]
    without_workers(installation)
