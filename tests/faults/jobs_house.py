"""An installation whose workers are killed, and queries about it; see `test_jobs` and `test_jobs_at_random`."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalapp.common.models import Run, RunLog
from scoring.ml import registry
from tests.evalapp.common.conftest import wait_until
from tests.scoring.training import put_toy_into_catalogue
from tests.services.plugin import _database

from .jobs_done import KINDS, Done, Result
from .jobs_points import ORDER, POINTS
from .stack import Stack


class House:
    """An installation with one worker for every kind of run, and the results of undisturbed runs."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        self.order = folder / "die-at"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._kinds: dict[str, tuple[Done, Result, float]] = {}

    def start_worker(self) -> None:
        env = {ORDER: str(self.order), "TMPDIR": str(self.temporary)}
        self.stack.start("work", more=["--include", "tests.faults.jobs_worker"], env=env)
        self.usual = set(self.temporary.iterdir())  # held by a worker as long as it lives

    def undisturbed(self, kind: str) -> tuple[Done, Result, float]:
        """The kind, its result, and its duration in seconds; `long import` has more rows than `import`."""
        if kind not in self._kinds:
            name = kind.removeprefix("long ")
            done = KINDS[name](self.folder, long=name != kind)
            run = ended(done.begin())
            assert run.state == (Run.State.FAILED if kind == "faulty" else Run.State.SUCCEEDED), run.error
            assert (run.attempt, run.started_at is None) == (1, False)
            result = done.result(run)
            self.nothing_is_left(run)
            done.clear(run)
            self._kinds[kind] = done, result, (run.finished_at - run.started_at).total_seconds()
        return self._kinds[kind]

    def die_at(self, point: str, number: int = 1, times: int | str = 1) -> None:
        assert point in POINTS
        self.order.write_text(f"{point}\t{number}\t{times}")

    def nothing_is_left(self, run: Run) -> None:
        """Checks for leftovers: no staging file, no stored or refused upload, no checkpoint, no partial artefact, no
        temporary file."""
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
    """The parameter is its database."""
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


def read_run(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def ended(run: Run, seconds: float = 300.0) -> Run:
    wait_until(lambda: not read_run(run).is_active, seconds)
    return read_run(run)


def running(run: Run) -> Run:
    wait_until(lambda: read_run(run).state != Run.State.QUEUED, 300)
    return read_run(run)


def read_process(run: Run) -> int:
    return int(run.worker.split(":")[1])


def kill_after(run: Run, seconds: float) -> bool:
    """Kills the process that executes the run; False if the run was faster."""
    found = running(run)
    time.sleep(max(0.0, seconds - (time.time() - found.started_at.timestamp())))
    if not read_run(run).is_active:
        return False
    os.kill(read_process(found), signal.SIGKILL)
    return True


def losses(run: Run) -> int:
    return RunLog.objects.filter(run=run, text__contains="was lost").count()
