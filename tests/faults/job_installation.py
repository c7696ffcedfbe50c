"""An installation whose workers are killed, for `test_jobs` and `test_jobs_at_random`."""

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
from tests.services.plugin import create_temporary_database

from .crash_points import ORDER, POINTS
from .job_cases import KINDS, JobCase, Result
from .stack import Stack


class JobInstallation:
    """An installation with one worker for all kinds of runs, and the results of undisturbed runs."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        self.order = folder / "die-at"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._kinds: dict[str, tuple[JobCase, Result, float]] = {}

    def start_worker(self) -> None:
        env = {ORDER: str(self.order), "TMPDIR": str(self.temporary)}
        self.stack.start("work", more=["--include", "tests.faults.crashing_worker"], env=env)
        self.usual = set(self.temporary.iterdir())  # files of the worker itself

    def run_undisturbed(self, kind: str) -> tuple[JobCase, Result, float]:
        """Return the case, its result, and its duration in seconds; `long import` has more rows than `import`."""
        if kind not in self._kinds:
            name = kind.removeprefix("long ")
            case = KINDS[name](self.folder, long=name != kind)
            run = wait_for_end(case.begin())
            assert run.state == (Run.State.FAILED if kind == "faulty" else Run.State.SUCCEEDED), run.error
            assert (run.attempt, run.started_at is None) == (1, False)
            result = case.result(run)
            self.assert_nothing_is_left(run)
            case.clear(run)
            self._kinds[kind] = case, result, (run.finished_at - run.started_at).total_seconds()
        return self._kinds[kind]

    def die_at(self, point: str, number: int = 1, times: int | str = 1) -> None:
        assert point in POINTS
        self.order.write_text(f"{point}\t{number}\t{times}")

    def assert_nothing_is_left(self, run: Run) -> None:
        """Check that no uploads, staging files, checkpoints, partial artefacts or temporary files are left."""
        data = self.stack.folder
        left = [path for part in ("uploads", "staging", "artefacts/work") for path in (data / part).glob("*")]
        left += (data / "artefacts").rglob(".*")
        left += [path for path in (data / "exports").glob("*") if run.kind != "export" or path.name != str(run.pk)]
        left += set(self.temporary.iterdir()) - self.usual
        assert left == []


@pytest.fixture(scope="module")
def installation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Iterator[JobInstallation]:
    """The parameter is the database."""
    folder = tmp_path_factory.mktemp(request.param)
    with contextlib.ExitStack() as open_things:
        url = ""
        if request.param == "postgres":
            url = open_things.enter_context(
                create_temporary_database("jobs", request.getfixturevalue("_migrated_database"))
            )
        stack = open_things.enter_context(Stack(folder / "data", database_url=url))
        if not url:
            migrated = request.getfixturevalue("migrated_file")
            (stack.folder / "evalapp.sqlite3").write_bytes(migrated.read_bytes())
        open_things.enter_context(django_db_blocker.unblock())
        open_things.enter_context(stack.django())
        put_toy_into_catalogue(open_things.enter_context(pytest.MonkeyPatch.context()))
        open_things.callback(registry.catalogue.cache_clear)
        job_installation = JobInstallation(stack, folder)
        stack.start("redis")
        job_installation.start_worker()
        yield job_installation


def on_databases(*names: str) -> pytest.MarkDecorator:
    marks = {"postgres": [pytest.mark.server("postgres")], "sqlite": [pytest.mark.server]}
    return pytest.mark.parametrize(
        "installation", [pytest.param(name, marks=marks[name]) for name in names], indirect=True
    )


def read_run(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def wait_for_end(run: Run, seconds: float = 300.0) -> Run:
    wait_until(lambda: not read_run(run).is_active, seconds)
    return read_run(run)


def wait_for_start(run: Run) -> Run:
    wait_until(lambda: read_run(run).state != Run.State.QUEUED, 300)
    return read_run(run)


def get_process_id(run: Run) -> int:
    return int(run.worker.split(":")[1])


def kill_after(run: Run, seconds: float) -> bool:
    """Kill the process that executes the run after some seconds; return False if the run ended earlier."""
    started = wait_for_start(run)
    time.sleep(max(0.0, seconds - (time.time() - started.started_at.timestamp())))
    if not read_run(run).is_active:
        return False
    os.kill(get_process_id(started), signal.SIGKILL)
    return True


def count_losses(run: Run) -> int:
    return RunLog.objects.filter(run=run, text__contains="was lost").count()
