"""A training shared by two processes, on a real worker: cancelled, and its worker killed."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from evalapp.common.models import Run
from evalapp.common.queue import cancel_run, queue_has_worker, retry_run
from scoring.services.training import TrainingOptions, start_training
from tests.evalapp.common.conftest import Installation, wait_until
from tests.scoring.live_house import start
from tests.scoring.ml.tiny import tiny_encoder

pytestmark = [pytest.mark.slow, pytest.mark.server("redis")]

#: The time for a worker and its children to start and load their libraries on a busy machine.
PATIENCE = 180


def sharing(run: Run) -> list[psutil.Process]:
    """The processes that share a training, once it is active."""

    def under_way() -> bool:
        run.refresh_from_db()
        assert run.state in (Run.State.QUEUED, Run.State.RUNNING), run.error
        return run.state == Run.State.RUNNING and run.phase == "training" and run.done > 3

    wait_until(under_way, seconds=PATIENCE)
    found = psutil.Process(int(run.worker.split(":")[1])).children()
    assert len(found) == 2
    return found


def gone(process: psutil.Process) -> bool:
    """Also for processes that no parent waits for, such as those of a killed owner."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def ended(run: Run) -> bool:
    run.refresh_from_db()
    return run.state == Run.State.CANCELLED


def test_cancelling_and_a_killed_worker_end_all_processes(house: Installation, people, tmp_path):
    start(house, "work", "cpu,gpu")
    # Trainings go to the queue gpu only if a worker is known to serve it.
    wait_until(lambda: queue_has_worker("gpu"), seconds=PATIENCE)
    encoder = tiny_encoder("bert", tmp_path / "encoder")
    options = {"epochs": 5000, "processes": 2, "train_device": "cpu", "encoder": encoder}
    run = start_training(
        project=people.project, options=TrainingOptions("toy", options=options, folds=1), any_encoder=True
    )
    first = sharing(run)
    cancel_run(run=run)
    wait_until(lambda: ended(run))
    wait_until(lambda: all(map(gone, first)))
    retry_run(run=run)
    second = sharing(run)
    attempt = run.attempt
    os.kill(int(run.worker.split(":")[1]), signal.SIGKILL)
    wait_until(lambda: all(map(gone, second)))

    def taken_up() -> bool:
        run.refresh_from_db()
        return run.attempt > attempt

    wait_until(taken_up, seconds=PATIENCE)
    third = sharing(run)
    cancel_run(run=run)
    wait_until(lambda: ended(run))
    wait_until(lambda: all(map(gone, third)))
