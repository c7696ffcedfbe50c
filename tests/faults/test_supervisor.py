"""`manage.py up` under faults: killed parts are restarted and work; TERM lets a request finish and returns a run to the
queue without costing an attempt; Ctrl-C leaves no process behind. test_up of the command covers killing `up` itself."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from annotation.models import Item, Output, Reference, ReferenceSet
from evalapp.accounts.models import Project
from evalapp.accounts.roles import SCOPES
from evalapp.accounts.services.tokens import create_token
from evalapp.common.models import Run, RunLog
from evalapp.common.queue import cancel_run
from evalapp.ops.ports import wait_until as waited
from evalapp.ops.watchdog import group_alive
from scoring.services.scores import apply_evaluator
from tests.cast import make_cast
from tests.evalapp.common.conftest import wait_until
from tests.evalapp.management.commands.test_up import NAMES, Up

from .stack import Stack

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.promise("supervisor")]

LONG = 300.0  # seconds, on a busy machine
WEB, READY = r"open http://127\.0\.0\.1:\d+", r"{} +\| .*ready"


class SlowRequest:
    """A change of the project that is in progress until the last bytes of its body are sent."""

    def __init__(self, url: str, slug: str, token: str, name: str) -> None:
        self.body = json.dumps({"name": name}).encode()
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=LONG)
        self.answer = self.socket.makefile("rb")
        self.socket.sendall(
            f"PATCH /api/v1/projects/{slug}/ HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(self.body)}\r\n"
            "Expect: 100-continue\r\nConnection: close\r\n\r\n".encode()
        )
        assert b"100 Continue" in self.answer.readline()  # a thread is handling it
        assert self.answer.readline() == b"\r\n"
        self.socket.sendall(self.body[:5])

    def finish(self) -> int:
        self.socket.sendall(self.body[5:])
        with self.socket, self.answer:
            return int(self.answer.readline().split()[1])


def make_many_texts(project: Project) -> None:
    """Create so many texts that scoring them with chrF takes ten seconds."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefgh", k=5)) for _ in range(4000)]
    original = ReferenceSet.objects.create(project=project, name="original")
    system = project.systems.create(name="busy")
    items = Item.objects.bulk_create(
        Item(project=project, key=f"i{number}", context=["Go on."], group=f"g{number}") for number in range(8000)
    )
    Reference.objects.bulk_create(
        Reference(set=original, item=item, position=0, text=" ".join(rng.choices(words, k=100))) for item in items
    )
    Output.objects.bulk_create(
        Output(project=project, item=item, system=system, text=" ".join(rng.choices(words, k=100))) for item in items
    )


def read_run(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def list_processes() -> dict[tuple[int, str], int]:
    """Return (id, start time) of all processes on this machine, with the id of the parent."""
    processes = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if words[0] not in "ZX":
                processes[int(entry.name), words[19]] = int(words[1])
    return processes


def list_family(pid: int) -> set[tuple[int, str]]:
    """Return a process and all its descendants."""
    processes, members = list_processes(), {pid}
    while children := {child for (child, _), parent in processes.items() if parent in members} - members:
        members |= children
    return {process for process in processes if process[0] in members}


def list_survivors(family: set[tuple[int, str]]) -> set[int]:
    """Return the members that still exist, and the process groups of members that are not empty."""
    return {pid for pid, _ in family & list_processes().keys()} | {pid for pid, _ in family if group_alive(pid)}


@pytest.fixture
def project(stack: Stack) -> Project:
    project = make_cast().project
    make_many_texts(project)
    return project


def test_parts_killed_drained_restarted_and_interrupted(stack, project):
    up = Up(stack.folder)
    try:
        up.until(WEB, LONG)
        for name in ("cpu", "gpu", "live"):
            up.until(READY.format(name), LONG)

        # Each child is killed and restarted.
        assert waited(lambda: set(up.children()) == NAMES, LONG)
        first = up.children()
        for pid in first.values():
            os.kill(pid, signal.SIGKILL)
        for name in NAMES:
            up.until(f"starting {name} again")
        assert waited(lambda: set(up.children()) == NAMES, LONG)
        assert not set(up.children().values()) & set(first.values())
        assert up.get("/health/live")[0] == 200

        # The new processes work; then TERM, with a run and a request in progress.
        run = apply_evaluator(project=project, evaluator="chrf")
        wait_until(lambda: read_run(run).state == Run.State.RUNNING, LONG)
        token = create_token(user=project.memberships.get(role="owner").user, name="t", scopes=list(SCOPES))[1]
        for number in range(4):
            assert SlowRequest(f"http://127.0.0.1:{up.port}", project.slug, token, f"Name {number}").finish() == 200
        request = SlowRequest(f"http://127.0.0.1:{up.port}", project.slug, token, "Finished in time")
        family = list_family(up.process.pid)
        assert len(family) > len(NAMES) + 4  # also `up` itself, the watchdog, and the processes of web and workers
        up.process.send_signal(signal.SIGTERM)
        up.until("stopping beat")
        time.sleep(0.5)
        assert request.finish() == 200
        assert up.process.wait(LONG) == 0
        assert list_survivors(family) == set()
    finally:
        up.end()
    assert Project.objects.get(pk=project.pk).name == "Finished in time"
    returned = read_run(run)
    assert (returned.state, returned.attempt) == (Run.State.QUEUED, 0)
    assert [line.text for line in RunLog.objects.filter(run=run, text__contains="back to the queue")] == [
        "The worker was shut down; the run goes back to the queue."
    ]

    # After a restart the run continues, and Ctrl-C ends all processes.
    again = Up(stack.folder)
    try:
        again.until(READY.format("cpu"), LONG)
        wait_until(lambda: read_run(run).state == Run.State.RUNNING, LONG)
        assert read_run(run).attempt == 1
        cancel_run(run=read_run(run))
        wait_until(lambda: read_run(run).state == Run.State.CANCELLED, LONG)
        family = list_family(again.process.pid)
        assert len(family) > len(NAMES) + 4
        os.killpg(again.process.pid, signal.SIGINT)
        assert again.process.wait(LONG) == 0
        assert list_survivors(family) == set()
        assert "Traceback" not in "".join(again.lines)
    finally:
        again.end()
