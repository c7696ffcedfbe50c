"""Workers killed with SIGKILL at the worst moments and too often: every run ends as if undisturbed, or fails with a
reason; nothing is doubled, half done or left over. At random moments: `test_jobs_at_random`."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from annotation.models import Upload
from annotation.services.exports import delete_export, request_export
from evalapp.common import queue
from evalapp.common.models import Run
from evalapp.common.queue import reconcile_runs, retry_run
from evalapp.common.runner import execute_run
from tests.evalapp.common.conftest import wait_until
from tests.scoring.training import checkpoints_in

from . import jobs_house
from .jobs_house import ended, losses, on, read_process, read_run, running
from .jobs_points import FREEZE, POINTS

pytestmark = [pytest.mark.slow, pytest.mark.promise("job")]
house = jobs_house.house

LOST = "The worker was lost 3 times. See the log, then retry."


def is_frozen(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


# ---- at the worst moments ---------------------------------------------------------------------------------

WORST = [(point, 1) for point in POINTS if not point.startswith("any")]
WORST = [
    (point, {"score: a chunk is stored": 2, "annotate: a line is half written": 20}.get(point, n)) for point, n in WORST
]


@on("sqlite")
@pytest.mark.parametrize(("point", "number"), WORST, ids=[point for point, _ in WORST])
def test_run_killed_at_the_worst_moment_has_the_same_result(house, point, number):
    kind = "faulty" if "faults" in point else point.partition(":")[0]
    done, whole, _ = house.undisturbed(kind)
    house.die_at(point, number)
    run = ended(done.begin())
    assert not house.order.exists(), "it never came by"
    assert run.state == (Run.State.FAILED if kind == "faulty" else Run.State.SUCCEEDED), run.error
    assert (run.attempt, losses(run)) == (2, 1)
    assert done.result(run) == whole
    house.nothing_is_left(run)
    done.clear(run)


@on("sqlite")
@pytest.mark.parametrize("kind", ["import", "faulty", "score", "train", "annotate", "export"])
def test_run_killed_before_recording_its_end_has_the_same_result(house, kind):
    done, whole, _ = house.undisturbed(kind)
    house.die_at("any: the end is not written")
    run = ended(done.begin())
    assert not house.order.exists()
    assert (run.attempt, losses(run)) == (2, 1)
    assert done.result(run) == whole
    house.nothing_is_left(run)
    done.clear(run)


# ---- presumed dead ----------------------------------------------------------------------------------------

FROZEN = {
    "import": "import: rows are checked", "score": "score: a chunk is stored", "train": "train: a phase is over",
    "annotate": "annotate: all is in the tables", "export": "export: the archive is half written",
}  # fmt: skip


@on("sqlite")
@pytest.mark.parametrize("kind", FROZEN)
def test_frozen_worker_presumed_dead_spoils_nothing_when_it_wakes(house, monkeypatch, kind):
    """This process acts as the other worker, which finishes the run before the first one continues."""
    done, whole, _ = house.undisturbed(kind)
    house.die_at(FROZEN[kind], times=FREEZE)
    run = running(done.begin())
    wait_until(lambda: is_frozen(read_process(run)), 300)
    monkeypatch.setattr(queue, "SILENT", timedelta(0))
    monkeypatch.setattr(queue, "GONE", timedelta(0))
    try:
        assert reconcile_runs()["returned"] == 1
        again = execute_run(run.pk)
        assert again is not None
        assert (again.state, again.attempt) == (Run.State.SUCCEEDED, 2), again.error
    finally:
        os.kill(read_process(run), signal.SIGCONT)
    following = ended(request_export(project=run.project, user=None, format="csv"))  # it has one process
    assert following.state == Run.State.SUCCEEDED, following.error
    delete_export(run=following, user=None)
    run = read_run(run)
    assert (run.state, run.attempt) == (Run.State.SUCCEEDED, 2)
    assert done.result(run) == whole
    house.nothing_is_left(run)
    done.clear(run)


# ---- too often --------------------------------------------------------------------------------------------


@on("sqlite")
@pytest.mark.parametrize(
    "point", ["import: all is in the tables", "export: the archive is half written", "annotate: half is in the tables"]
)
def test_run_lost_three_times_fails_with_the_reason_and_can_be_retried(house, point):
    done, whole, _ = house.undisturbed(point.partition(":")[0])
    house.die_at(point, times=3)
    run = ended(done.begin())
    assert (run.state, run.error, run.attempt) == (Run.State.FAILED, LOST, 3)
    assert losses(run) == 2
    upload = Upload.objects.filter(run=run).first()
    if upload is not None:
        assert upload.state == Upload.State.FAILED
        assert not run.project.items.exists()
        assert not list((house.stack.folder / "staging").iterdir())
    if run.kind == "export":
        assert not list((house.stack.folder / "exports").iterdir())
    run = ended(retry_run(run=run))
    assert run.state == Run.State.SUCCEEDED, run.error
    assert done.result(run) == whole
    house.nothing_is_left(run)
    done.clear(run)


@on("sqlite")
def test_run_cancelled_while_its_worker_is_lost_ends_cancelled(house, monkeypatch):
    done, _, _ = house.undisturbed("long import")
    house.die_at("import: half is in the tables")
    run = done.begin()
    wait_until(lambda: read_run(run).state == Run.State.RUNNING, 300)
    queue.cancel_run(run=read_run(run))
    run = ended(run)
    assert run.state == Run.State.CANCELLED
    assert Upload.objects.get(run=run).state == Upload.State.CANCELLED
    assert not run.project.items.exists()
    house.order.unlink(missing_ok=True)
    run = ended(retry_run(run=run))
    assert run.state == Run.State.SUCCEEDED, run.error
    house.nothing_is_left(run)
    done.clear(run)


@on("sqlite")
def test_another_machine_continues_from_the_checkpoint_of_a_lost_one(house, monkeypatch):
    monkeypatch.setattr(queue, "GONE", timedelta(seconds=1))
    done, whole, _ = house.undisturbed("long train")
    run = done.begin()
    running(run)
    wait_until(lambda: checkpoints_in(house.stack.folder / "artefacts" / "work"), 300)
    house.stack.kill("work")
    house.start_worker()
    assert read_run(run).state == Run.State.RUNNING
    wait_until(lambda: reconcile_runs()["returned"] == 1, 60)
    run = ended(run)
    assert run.state == Run.State.SUCCEEDED, run.error
    assert (run.attempt, losses(run)) == (2, 1)
    assert done.result(run) == whole
    house.nothing_is_left(run)
    done.clear(run)
