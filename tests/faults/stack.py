"""A real installation for tests that break it: separate data folder, database, Redis, web, workers and beat, started
with the commands of `manage.py up`, each in its own process group.

    def test_x(stack):                    # fixture: SQLite in the data folder; `postgres_stack`: PostgreSQL
        stack.start("redis", "web", "work")     # waits until each answers; also "cpu", "gpu", "live", "beat"
        stack.pid("work"), stack.alive("work"), stack.log("work")   # leader's pid; its complete output
        stack.kill("work")                # SIGKILL to leader and children at once, like a power failure
        stack.end("web", signal.SIGTERM)  # one signal to the leader; waits, returns its exit status
        stack.start("redis", more=["--maxmemory", "2mb"])           # again, with further arguments
        stack.start("work", called="second", more=["--hostname", "second@%h"], env={"X": "1"})
        stack.manage("doctor", "--json")  # manage.py in the same environment; a CompletedProcess
        stack.url, stack.redis_url, stack.folder, stack.redis()     # address of the web; queue; data; a client

Within the fixtures, Django in the test process uses the same database, queue and folders, so tests create and read rows
with models and services. `wait_until(condition, seconds)` is in `tests.evalapp.common.conftest`. All processes end with
the block, even if the test is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from evalapp.ops import ports
from evalapp.ops import redis as queue
from evalapp.ops import stack as parts
from evalapp.ops.processes import Child, Family
from tests.evalapp.common.conftest import point_queue_to

ROOT = Path(__file__).resolve().parents[2]
_FOLDERS = {"UPLOADS_DIR": "uploads", "EXPORTS_DIR": "exports", "ARTEFACTS_DIR": "artefacts",
            "CORPORA_DIR": "corpora", "STAGING_DIR": "staging"}  # fmt: skip
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}


class Stack:
    """A context manager; nothing runs until `start`."""

    def __init__(
        self, folder: Path, *, database_url: str = "", web_workers: int = 1, env: Mapping[str, str] | None = None
    ) -> None:
        """`database_url`: empty for SQLite in the data folder; the tables must exist. `env`: for all processes."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.database_url = folder, database_url
        self._listener = ports.bind("127.0.0.1", 0)
        self.url, self.redis_url = parts.address(self._listener), queue.url(folder)
        layout = parts.Layout(folder, self._listener, web_workers=web_workers, cpu_processes=1)
        self._services = {service.name: service for service in parts.services(layout)}
        # One process that takes long runs of every kind: fewer processes start faster.
        both = [{"cpu": "cpu,gpu", "cpu@%h": "work@%h"}.get(word, word) for word in self._services["cpu"].command]
        self._services["work"] = replace(self._services["cpu"], name="work", command=tuple(both))
        usual = {key: value for key, value in os.environ.items() if key not in {"DATABASE_URL", "ELASTICSEARCH_URL"}}
        self.env = {
            **parts.environment(layout, usual),
            # Plain static files and fast password hashes; database, queue and everything else are as in production.
            "DJANGO_SETTINGS_MODULE": "evalapp.settings.test",
            **({"DATABASE_URL": database_url} if database_url else {}),
            **_ONE_THREAD,
            **(env or {}),
        }
        self._family = Family()
        self._children: dict[str, Child] = {}

    def __enter__(self) -> Stack:
        return self

    def __exit__(self, *_: object) -> None:
        self._family.end(at_once=lambda: True)
        self._family.close()
        self._listener.close()

    # ---- processes ----------------------------------------------------------------------------------------

    def start(
        self, *names: str, called: str = "", more: Sequence[str] = (), env: Mapping[str, str] | None = None,
        seconds: float = 180.0,
    ) -> None:  # fmt: skip
        """Start services in this order. `called`: the name of a further process of the same service."""
        for name in names:
            service, mine = self._services[name], called or name
            assert not self.alive(mine), f"{mine} is already running"
            self._forget(mine)
            offset = len(self.log(mine))
            with self._log_file(mine).open("ab") as output:
                self._children[mine] = self._family.spawn(
                    mine,
                    (*service.command, *more),
                    env={**self.env, **service.env, **_ONE_THREAD, **(env or {})},
                    cwd=ROOT,
                    output=output,
                    pass_fds=service.pass_fds,
                    ending=service.ending,
                )
            self._wait(mine, service.ready or (lambda: name == "beat" or " ready" in self.log(mine)[offset:]), seconds)  # noqa: B023

    def _wait(self, name: str, ready: Any, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not ready():
            assert self.alive(name), f"{name} ended:\n{self.log(name)}"
            assert time.monotonic() < until, f"{name} is not ready after {seconds} s:\n{self.log(name)}"
            time.sleep(0.05)

    def pid(self, name: str) -> int:
        return self._children[name].pid

    def alive(self, name: str) -> bool:
        return name in self._children and self._children[name].process.poll() is None

    def log(self, name: str) -> str:
        path = self._log_file(name)
        return path.read_text(errors="replace") if path.exists() else ""

    def kill(self, *names: str) -> None:
        for name in names:
            self._children[name].signal_group(signal.SIGKILL)
            self._children[name].process.wait(10)
            self._forget(name)

    def end(self, name: str, number: signal.Signals = signal.SIGTERM, seconds: float = 30.0) -> int:
        process = self._children[name].process
        process.send_signal(number)
        status = process.wait(seconds)
        self._forget(name)
        return status

    def manage(self, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, env=self.env, capture_output=True, text=True,
            check=False, **more,
        )  # fmt: skip

    def redis(self) -> Any:
        import redis

        return redis.Redis.from_url(self.redis_url)

    def _forget(self, name: str) -> None:
        if name in self._children:
            self._family.forget(self._children.pop(name))

    def _log_file(self, name: str) -> Path:
        return self.folder.parent / f"{name}.log"

    # ---- Django of the test process ----------------------------------------------------------------------

    @contextmanager
    def django(self) -> Iterator[None]:
        """Connect Django to the installation, in this thread and in threads started within the block."""
        from django.conf import settings
        from django.db import connections
        from django.test import override_settings

        from evalapp.settings import base

        usual, before, before_queue = connections["default"], connections.settings["default"], settings.REDIS_URL
        url = self.database_url or f"sqlite:///{self.folder / 'evalapp.sqlite3'}"
        with patch.dict(os.environ, DATABASE_URL=url):
            config = base.database()
        connections.settings["default"] = connections.configure_settings({"default": config})["default"]
        del connections["default"]
        folders = {name: self.folder / part for name, part in _FOLDERS.items()}
        point_queue_to(self.redis_url)
        try:
            with override_settings(DATA_DIR=self.folder, REDIS_URL=self.redis_url, **folders):
                yield
        finally:
            point_queue_to(before_queue)
            connections["default"].close()
            connections.settings["default"] = before
            connections["default"] = usual
