"""Workers are killed with SIGKILL at the worst points, or too often: every run ends as if undisturbed, or fails with a
reason; nothing is stored twice, partly done or left over. At random moments: `test_jobs_at_random`."""

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

from . import job_installation
from .crash_points import FREEZE, POINTS
from .job_installation import count_losses, get_process_id, on_databases, read_run, wait_for_end, wait_for_start

pytestmark = [pytest.mark.slow, pytest.mark.promise("job")]
installation = job_installation.installation

LOST = "The worker was lost 3 times. See the log, then retry."


def is_frozen(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


# ---- at the worst points -----------------------------------------------------------------------------------

WORST = [(point, 1) for point in POINTS if not point.startswith("any")]
WORST = [
    (point, {"score: a chunk is stored": 2, "select-references: a line is half written": 20}.get(point, n))
    for point, n in WORST
]


@on_databases("sqlite")
@pytest.mark.parametrize(("point", "number"), WORST, ids=[point for point, _ in WORST])
def test_run_killed_at_the_worst_point_has_the_same_result(installation, point, number):
    kind = "faulty" if "faults" in point else point.partition(":")[0]
    case, expected, _ = installation.run_undisturbed(kind)
    installation.die_at(point, number)
    run = wait_for_end(case.begin())
    assert not installation.order.exists(), "the point was not reached"
    assert run.state == (Run.State.FAILED if kind == "faulty" else Run.State.SUCCEEDED), run.error
    assert (run.attempt, count_losses(run)) == (2, 1)
    assert case.result(run) == expected
    installation.assert_nothing_is_left(run)
    case.clear(run)


@on_databases("sqlite")
@pytest.mark.parametrize("kind", ["import", "faulty", "score", "train", "select-references", "export"])
def test_run_killed_before_recording_its_end_has_the_same_result(installation, kind):
    case, expected, _ = installation.run_undisturbed(kind)
    installation.die_at("any: the end is not written")
    run = wait_for_end(case.begin())
    assert not installation.order.exists()
    assert (run.attempt, count_losses(run)) == (2, 1)
    assert case.result(run) == expected
    installation.assert_nothing_is_left(run)
    case.clear(run)


# ---- presumed dead ----------------------------------------------------------------------------------------

FROZEN = {
    "import": "import: rows are checked", "score": "score: a chunk is stored", "train": "train: a phase is over",
    "select-references": "select-references: all is in the tables", "export": "export: the archive is half written",
}  # fmt: skip


@on_databases("sqlite")
@pytest.mark.parametrize("kind", FROZEN)
def test_frozen_worker_presumed_dead_changes_nothing_when_it_continues(installation, monkeypatch, kind):
    """This process acts as another worker, which finishes the run before the first one continues."""
    case, expected, _ = installation.run_undisturbed(kind)
    installation.die_at(FROZEN[kind], times=FREEZE)
    run = wait_for_start(case.begin())
    wait_until(lambda: is_frozen(get_process_id(run)), 300)
    monkeypatch.setattr(queue, "SILENT", timedelta(0))
    monkeypatch.setattr(queue, "GONE", timedelta(0))
    try:
        assert reconcile_runs()["returned"] == 1
        again = execute_run(run.pk)
        assert again is not None
        assert (again.state, again.attempt) == (Run.State.SUCCEEDED, 2), again.error
    finally:
        os.kill(get_process_id(run), signal.SIGCONT)
    following = wait_for_end(
        request_export(project=run.project, user=None, format="csv")
    )  # the worker has only one process
    assert following.state == Run.State.SUCCEEDED, following.error
    delete_export(run=following, user=None)
    run = read_run(run)
    assert (run.state, run.attempt) == (Run.State.SUCCEEDED, 2)
    assert case.result(run) == expected
    installation.assert_nothing_is_left(run)
    case.clear(run)


# ---- too often --------------------------------------------------------------------------------------------


@on_databases("sqlite")
@pytest.mark.parametrize(
    "point",
    ["import: all is in the tables", "export: the archive is half written", "select-references: half is in the tables"],
)
def test_run_lost_three_times_fails_with_the_reason_and_can_be_retried(installation, point):
    case, expected, _ = installation.run_undisturbed(point.partition(":")[0])
    installation.die_at(point, times=3)
    run = wait_for_end(case.begin())
    assert (run.state, run.error, run.attempt) == (Run.State.FAILED, LOST, 3)
    assert count_losses(run) == 2
    upload = Upload.objects.filter(run=run).first()
    if upload is not None:
        assert upload.state == Upload.State.FAILED
        assert not run.project.items.exists()
        assert not list((installation.stack.folder / "staging").iterdir())
    if run.kind == "export":
        assert not list((installation.stack.folder / "exports").iterdir())
    run = wait_for_end(retry_run(run=run))
    assert run.state == Run.State.SUCCEEDED, run.error
    assert case.result(run) == expected
    installation.assert_nothing_is_left(run)
    case.clear(run)


@on_databases("sqlite")
def test_run_cancelled_while_its_worker_is_lost_ends_cancelled(installation, monkeypatch):
    case, _, _ = installation.run_undisturbed("long import")
    installation.die_at("import: half is in the tables")
    run = case.begin()
    wait_until(lambda: read_run(run).state == Run.State.RUNNING, 300)
    queue.cancel_run(run=read_run(run))
    run = wait_for_end(run)
    assert run.state == Run.State.CANCELLED
    assert Upload.objects.get(run=run).state == Upload.State.CANCELLED
    assert not run.project.items.exists()
    installation.order.unlink(missing_ok=True)
    run = wait_for_end(retry_run(run=run))
    assert run.state == Run.State.SUCCEEDED, run.error
    installation.assert_nothing_is_left(run)
    case.clear(run)


@on_databases("sqlite")
def test_another_machine_continues_from_the_checkpoint_of_a_lost_one(installation, monkeypatch):
    monkeypatch.setattr(queue, "GONE", timedelta(seconds=1))
    case, expected, _ = installation.run_undisturbed("long train")
    run = case.begin()
    wait_for_start(run)
    wait_until(lambda: checkpoints_in(installation.stack.folder / "artefacts" / "work"), 300)
    installation.stack.kill("work")
    installation.start_worker()
    assert read_run(run).state == Run.State.RUNNING
    wait_until(lambda: reconcile_runs()["returned"] == 1, 300)
    run = wait_for_end(run)
    assert run.state == Run.State.SUCCEEDED, run.error
    assert (run.attempt, count_losses(run)) == (2, 1)
    assert case.result(run) == expected
    installation.assert_nothing_is_left(run)
    case.clear(run)
