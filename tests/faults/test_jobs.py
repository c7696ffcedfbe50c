"""Workers killed with SIGKILL, at random moments and at the worst ones: every run ends as if nobody had disturbed it,
or failed with a reason; nothing is doubled, half done or left over. `SOAK_KILLS` says how often each kind is killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Upload
from evalapp.common import queue
from evalapp.common.models import Run, RunLog
from evalapp.common.queue import reconcile_runs, retry_run
from scoring.ml import registry
from tests.evalapp.common.conftest import wait_until
from tests.scoring.training import put_toy_into_catalogue
from tests.services.plugin import _database

from .jobs_done import KINDS, Done, Result
from .jobs_points import ORDER, POINTS
from .stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.promise("job")]

KILLS = int(os.environ.get("SOAK_KILLS", "4"))
SEED = os.environ.get("SOAK_SEED", "13")
RANDOM_KINDS = ("import", "score", "train", "annotate", "export")
LOST = "The worker was lost 3 times. See the log, then retry."


class House:
    """An installation with one worker for every kind of run, and what an undisturbed run comes to."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        self.order = folder / "die-at"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._kinds: dict[str, tuple[Done, Result, float]] = {}

    def start_worker(self) -> None:
        env = {ORDER: str(self.order), "TMPDIR": str(self.temporary)}
        self.stack.start("work", more=["--include", "tests.faults.jobs_worker"], env=env)
        self.usual = set(self.temporary.iterdir())  # what a worker has as long as it lives

    def undisturbed(self, kind: str) -> tuple[Done, Result, float]:
        """The kind, its result, and the seconds it takes."""
        if kind not in self._kinds:
            done = KINDS[kind](self.folder)
            run = ended(done.begin())
            assert run.state == (Run.State.FAILED if kind == "faulty" else Run.State.SUCCEEDED), run.error
            assert (run.attempt, run.started_at is None) == (1, False)
            result = done.result(run)
            self.nothing_is_left(run)
            done.clear(run)
            self._kinds[kind] = done, result, (run.finished_at - run.started_at).total_seconds()
        return self._kinds[kind]

    def die_at(self, point: str, number: int = 1, times: int = 1) -> None:
        assert point in POINTS
        self.order.write_text(f"{point}\t{number}\t{times}")

    def nothing_is_left(self, run: Run) -> None:
        """No staging file, no upload that is stored or refused, no checkpoint, no half artefact, no passing file."""
        data = self.stack.folder
        left = [path for part in ("uploads", "staging", "artefacts/work") for path in (data / part).glob("*")]
        left += (data / "artefacts").rglob(".*")
        left += [path for path in (data / "exports").glob("*") if run.kind != "export" or path.name != str(run.pk)]
        left += set(self.temporary.iterdir()) - self.usual
        assert left == []


@pytest.fixture(scope="module")
def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Iterator[House]:
    """Its database is the parameter."""
    folder = tmp_path_factory.mktemp(request.param)
    with contextlib.ExitStack() as open_things:
        url = ""
        if request.param == "postgres":
            url = open_things.enter_context(_database("jobs", request.getfixturevalue("_migrated_database")))
        stack = open_things.enter_context(Stack(folder / "data", database_url=url))
        if not url:
            migrated = request.getfixturevalue("migrated_file")
            (stack.folder / "evalapp.sqlite3").write_bytes(migrated.read_bytes())
        open_things.enter_context(django_db_blocker.unblock())
        open_things.enter_context(stack.django())
        put_toy_into_catalogue(open_things.enter_context(pytest.MonkeyPatch.context()))
        open_things.callback(registry.catalogue.cache_clear)
        made = House(stack, folder)
        stack.start("redis")
        made.start_worker()
        yield made


def on(*names: str) -> pytest.MarkDecorator:
    marks = {"postgres": [pytest.mark.server("postgres")], "sqlite": [pytest.mark.server]}
    return pytest.mark.parametrize("house", [pytest.param(name, marks=marks[name]) for name in names], indirect=True)


def state_of(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def ended(run: Run, seconds: float = 300.0) -> Run:
    wait_until(lambda: not state_of(run).is_active, seconds)
    return state_of(run)


def running(run: Run) -> Run:
    wait_until(lambda: state_of(run).state != Run.State.QUEUED, 300)
    return state_of(run)


def process_of(run: Run) -> int:
    return int(run.worker.rpartition(":")[2])


def kill_after(run: Run, seconds: float) -> bool:
    """Kills the process that has the run; False when the run was quicker."""
    found = running(run)
    time.sleep(max(0.0, seconds - (time.time() - found.started_at.timestamp())))
    if not state_of(run).is_active:
        return False
    os.kill(process_of(found), signal.SIGKILL)
    return True


def losses(run: Run) -> int:
    return RunLog.objects.filter(run=run, text__contains="was lost").count()


# ---- at random moments ------------------------------------------------------------------------------------


@on(*(("postgres", "sqlite") if "SOAK_KILLS" in os.environ else ("postgres",)))
@pytest.mark.parametrize("kind", RANDOM_KINDS)
def test_killed_at_random_moments_a_run_comes_to_the_same(house, kind):
    """Each kill falls into a part of its own of the time that an undisturbed run takes."""
    done, whole, seconds = house.undisturbed(kind)
    rng = random.Random(f"{SEED} {kind}")
    for number in range(KILLS):
        moment = seconds * (number + rng.random()) / KILLS
        for _ in range(6):
            run = done.begin()
            hit = kill_after(run, moment)
            run = ended(run)
            assert run.state == Run.State.SUCCEEDED, f"killed after {moment:.3f} s of {seconds:.3f}: {run.error}"
            assert done.result(run) == whole, f"killed after {moment:.3f} s of {seconds:.3f}"
            house.nothing_is_left(run)
            # A kill in the very moment of its end costs nothing.
            assert (run.attempt, losses(run)) in ([(2, 1), (1, 0)] if hit else [(1, 0)])
            done.clear(run)
            if hit:
                break
            moment *= 0.8  # it was done already: earlier
        assert hit


# ---- at the worst moments ---------------------------------------------------------------------------------

WORST = [(point, 1) for point in POINTS if not point.startswith("any")]
WORST = [
    (point, {"score: a chunk is stored": 2, "annotate: a line is half written": 20}.get(point, n)) for point, n in WORST
]


@on("sqlite")
@pytest.mark.parametrize(("point", "number"), WORST, ids=[point for point, _ in WORST])
def test_killed_at_the_worst_moment_a_run_comes_to_the_same(house, point, number):
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
def test_killed_before_its_end_is_written_a_run_comes_to_the_same(house, kind):
    done, whole, _ = house.undisturbed(kind)
    house.die_at("any: the end is not written")
    run = ended(done.begin())
    assert not house.order.exists()
    assert (run.attempt, losses(run)) == (2, 1)
    assert done.result(run) == whole
    house.nothing_is_left(run)
    done.clear(run)


# ---- too often --------------------------------------------------------------------------------------------


@on("sqlite")
@pytest.mark.parametrize(
    "point", ["import: all is in the tables", "export: the archive is half written", "annotate: half is in the tables"]
)
def test_lost_three_times_it_fails_with_the_reason_and_can_be_tried_again(house, point):
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
def test_cancelled_while_its_worker_is_lost_a_run_ends_cancelled(house, monkeypatch):
    done, _, _ = house.undisturbed("import")
    house.die_at("import: half is in the tables")
    run = done.begin()
    wait_until(lambda: state_of(run).state == Run.State.RUNNING, 300)
    queue.cancel_run(run=state_of(run))
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
def test_when_a_whole_machine_is_gone_another_goes_on_from_the_checkpoint(house, monkeypatch):
    monkeypatch.setattr(queue, "GONE", timedelta(seconds=1))
    done, whole, seconds = house.undisturbed("train")
    run = done.begin()
    running(run)
    wait_until(lambda: list((house.stack.folder / "artefacts" / "work").rglob("complete")), 300)
    house.stack.kill("work")
    house.start_worker()
    assert state_of(run).state == Run.State.RUNNING
    wait_until(lambda: reconcile_runs()["returned"] == 1, 60)
    run = ended(run)
    assert run.state == Run.State.SUCCEEDED, run.error
    assert (run.attempt, losses(run)) == (2, 1)
    assert done.result(run) == whole
    house.nothing_is_left(run)
    done.clear(run)
