"""`manage.py up` as a user runs it: a separate process, real Redis, workers and web."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from evalapp.ops import ports
from evalapp.ops.watchdog import group_alive

pytestmark = [pytest.mark.server, pytest.mark.slow]

MARKS = {
    "redis": "redis-server", "web": "gunicorn", "cpu": "cpu@", "gpu": "gpu@", "train": "train@", "live": "live@",
    "beat": "beat-schedule",
}  # fmt: skip
NAMES = set(MARKS)


class Up:
    """A running `manage.py up`, its output and its processes."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder, self.port = folder, ports.find_free_port()
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--port", str(self.port), *arguments],
            cwd=settings.BASE_DIR,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that a test can signal the whole process group, as a terminal does
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(iter(self.process.stdout.readline, ""))

    def until(self, pattern: str, seconds: float = 300.0) -> str:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if re.search(pattern, "".join(self.lines), re.MULTILINE):
                return "".join(self.lines)
            time.sleep(0.05)
        raise AssertionError(f"{pattern!r} never came:\n{''.join(self.lines)}")

    def children(self) -> dict[str, int]:
        """The leading process of each service, by its command line."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            for name, mark in MARKS.items():
                if parent == self.process.pid and mark in words:
                    found[name] = int(entry.name)
        return found

    def get(self, path: str) -> tuple[int, bytes]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=300) as answer:
            return answer.status, answer.read()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        status = self.process.wait(300)
        self._reader.join(5)
        return status


def environment(folder: Path) -> dict[str, str]:
    unwanted = ("DJANGO_SETTINGS_MODULE", "REDIS_URL", "DATABASE_URL", "PORT", "WEB_WORKERS")
    return {k: v for k, v in os.environ.items() if k not in unwanted} | {"EVALAPP_DATA": str(folder)}


@pytest.fixture
def up(tmp_path):
    started = Up(tmp_path)
    yield started
    if started.process.poll() is None:
        started.end()


@pytest.mark.promise("supervisor")
def test_starts_heals_refuses_a_second_restarts_after_a_kill_and_ends_all(up):
    """One test for the whole life of a folder, since every start takes a while."""
    up.until(rf"open http://127\.0\.0\.1:{up.port}\b")
    assert up.get("/health/live")[0] == 200
    up.until(r"live +\| .*ready")
    up.until(r"cpu +\| .*ready")
    up.until(r"gpu +\| .*ready")
    first = up.children()
    assert set(first) == NAMES

    # neither the supervisor nor the web process has loaded torch
    for pid in (up.process.pid, first["web"]):
        assert "libtorch" not in Path(f"/proc/{pid}/maps").read_text()

    # a dead service is restarted, and no other is touched; tests/faults/test_supervisor.py lets all die at once
    for name in ("redis", "web"):
        os.kill(first[name], signal.SIGKILL)
    for name in ("redis", "web"):
        up.until(rf"starting {name} again")
    assert ports.wait_until(lambda: set(up.children()) == NAMES, 300)
    second = up.children()
    assert {name for name in NAMES if second[name] != first[name]} == {"redis", "web"}
    assert up.get("/health/live")[0] == 200  # requested while web starts: the connection waits and is not refused

    # doctor reports that everything needed exists
    doctor = [sys.executable, "manage.py", "doctor", "--json"]

    def healthy() -> bool:
        said = subprocess.run(
            doctor, cwd=settings.BASE_DIR, env=environment(up.folder), capture_output=True, check=False
        )
        return said.returncode == 0 and json.loads(said.stdout)["healthy"]

    assert ports.wait_until(healthy, 300, every=1)

    # a second one on the same folder is refused
    refused = Up(up.folder)
    assert refused.process.wait(300) == 1
    text = refused.until("already running")
    assert f"process {up.process.pid}" in text
    assert "Traceback" not in text

    # when killed, it takes its children along, and the folder can be used again
    groups = list(up.children().values())
    assert len(groups) == len(NAMES)
    up.end(signal.SIGKILL)
    assert "Traceback" not in "".join(up.lines)
    again = Up(up.folder)
    try:
        again.until(rf"open http://127\.0\.0\.1:{again.port}\b")
        assert not any(group_alive(group) for group in groups)
        assert "preparing the database" not in "".join(again.lines)
        assert ports.wait_until(lambda: set(again.children()) == NAMES, 300)
        groups = list(again.children().values())
    finally:
        # TERM ends every process
        assert again.end() == 0
    assert not any(group_alive(group) for group in groups)
    assert not ports.answers("127.0.0.1", again.port)
    assert again.lines[-1].strip().endswith("all processes have ended")
    assert "Traceback" not in "".join(again.lines)


def test_used_port_is_refused_before_anything_starts(tmp_path):
    with ports.bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        refused = subprocess.run(
            [sys.executable, "manage.py", "up", "--port", str(port)],
            cwd=settings.BASE_DIR,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert refused.returncode == 1
    assert f"Port {port} on 127.0.0.1 is used by another program" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "redis.sock").exists()


def test_invalid_folder_is_refused(tmp_path):
    with pytest.raises(CommandError, match="is not a folder") as refused:
        call_command("up", "--data", str(tmp_path / "missing"))
    assert refused.value.returncode == 2


@pytest.mark.parametrize("port", ["web", "-1", "70000"])
def test_invalid_port_is_a_usage_error(port):
    with pytest.raises(CommandError, match="is not a port"):
        call_command("up", f"--port={port}")
