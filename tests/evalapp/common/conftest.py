"""A real installation for tests of the queue: a database file, a real Redis, real workers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evalapp.ops.processes import Family

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def _django_on_file(path: Path) -> Iterator[None]:
    """Makes Django's default connection, in this thread and threads started meanwhile, use this SQLite file, set up as
    in production."""
    from django.db import connections

    from evalapp.settings import base

    usual, before = connections["default"], connections.settings["default"]
    config = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path), "OPTIONS": dict(base._SQLITE_OPTIONS)}
    connections.settings["default"] = connections.configure_settings({"default": config})["default"]
    del connections["default"]
    try:
        yield
    finally:
        connections["default"].close()
        connections.settings["default"] = before
        connections["default"] = usual


@contextmanager
def database_file(folder: Path, migrated_file: Path, blocker: Any) -> Iterator[Path]:
    """Django on a new SQLite file with all tables: threads and other processes see written rows. Yields the data
    folder."""
    shutil.copy(migrated_file, folder / "evalapp.sqlite3")
    with blocker.unblock(), _django_on_file(folder / "evalapp.sqlite3"):
        yield folder


@pytest.fixture
def file_database(tmp_path: Path, migrated_file: Path, django_db_blocker: Any) -> Iterator[Path]:
    """`database_file` for one test."""
    with database_file(tmp_path, migrated_file, django_db_blocker) as folder:
        yield folder


class Installation:
    """Starts workers on the data folder; they end with the process that started them, even if that is killed."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.redis_url = redis_url
        self.env = {
            **os.environ,
            "EVALAPP_DATA": str(folder),
            "REDIS_URL": redis_url,
            "DJANGO_SETTINGS_MODULE": "evalapp.settings",
            "OMP_NUM_THREADS": "1",
        }
        self.env.pop("DATABASE_URL", None)
        self.workers: list[subprocess.Popen[bytes]] = []
        self.family = Family()

    def spawn(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        worker = self.family.spawn(name, command, env=self.env, cwd=ROOT).process
        self.workers.append(worker)
        return worker

    def start_worker(self, name: str = "one", queues: str = "cpu") -> subprocess.Popen:
        """Starts a worker; without `queues` it serves all."""
        command = [
            sys.executable, "-m", "celery", "--quiet", "-A", "evalapp", "worker", "--include",
            "tests.evalapp.common.run_jobs,tests.evalapp.common.quick_pool", "--pool", "prefork", "--concurrency", "1",
            "--hostname", f"{name}@%h", "--without-gossip", "--without-mingle", "--loglevel", "WARNING",
        ]  # fmt: skip
        return self.spawn(name, [*command, *(["--queues", queues] if queues else [])])

    def kill(self, worker: subprocess.Popen) -> None:
        """Simulates a machine failure: kills the worker and its child processes at once."""
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(timeout=10)

    def stop(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                self.kill(worker)

    def close(self) -> None:
        self.stop()
        self.family.close()


def wait_until(condition: Any, seconds: float = 120.0) -> None:
    """Waits for a true result. The limit is long: a worker loads its libraries for seconds, and for much longer on a
    busy machine."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise AssertionError(f"still not after {seconds} s")
        time.sleep(0.05)


def point_queue_to(url: str) -> None:
    """Makes this process send runs to another broker."""
    from kombu import pools

    from evalapp import celery

    pools.reset()
    celery.app._pool = None
    celery.app.amqp._producer_pool = None
    celery.app.conf.broker_url = celery.broker(url)


@contextmanager
def installed(folder: Path, redis_url: str) -> Iterator[Installation]:
    """Workers on this data folder; runs sent by this process go to their Redis."""
    from django.conf import settings
    from django.test import override_settings

    before = settings.REDIS_URL
    house = Installation(folder, redis_url)
    with override_settings(REDIS_URL=redis_url):
        point_queue_to(redis_url)
        try:
            yield house
        finally:
            house.close()
            point_queue_to(before)


@pytest.fixture
def installation(file_database: Path, redis_url: str) -> Iterator[Installation]:
    """`installed` for one test."""
    with installed(file_database, redis_url) as house:
        yield house
