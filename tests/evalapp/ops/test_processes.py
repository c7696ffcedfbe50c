import signal
import sys
import time

import pytest

from evalapp.ops.processes import Ending, Family
from evalapp.ops.watchdog import group_alive

STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(99)"


@pytest.fixture
def family():
    with Family() as family:
        yield family


def test_leaving_the_context_ends_whole_groups():
    with Family() as family:
        child = family.spawn("sh", ["sh", "-c", "sleep 99 & sleep 98 & wait"])
        time.sleep(0.1)
    assert not group_alive(child.pid)
    assert family.children == []


def test_steps_follow_each_other_until_the_group_is_gone(family, tmp_path):
    log = tmp_path / "log"
    with log.open("wb") as output:
        steps = Ending(((signal.SIGTERM, 0.2), (signal.SIGTERM, 0.2)))
        child = family.spawn("stubborn", [sys.executable, "-c", STUBBORN], output=output, ending=steps)
    while not log.read_text():
        time.sleep(0.01)
    started = time.monotonic()
    family.end([child])
    assert child.process.returncode == -signal.SIGKILL
    assert time.monotonic() - started >= 0.4
    assert family.children == []


def test_at_once_waits_for_nobody(family, tmp_path):
    child = family.spawn("patient", ["sleep", "99"], ending=Ending(((signal.SIGCONT, 60.0),)))
    family.end(at_once=lambda: True)
    assert child.process.returncode == -signal.SIGKILL


def test_members_left_by_their_leader_are_asked_before_they_are_killed(family, tmp_path):
    member = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(15, lambda *_: (time.sleep(0.02), pathlib.Path('ended').touch(), sys.exit()))\n"
        "pathlib.Path('up').touch(); time.sleep(99)"
    )
    leader = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {member!r}]); time.sleep(99)"
    child = family.spawn("leader", [sys.executable, "-c", leader], cwd=tmp_path)
    while not (tmp_path / "up").exists():
        time.sleep(0.01)
    family.end([child])
    assert (tmp_path / "ended").exists()
    assert not group_alive(child.pid)


def test_forgetting_a_dead_leader_ends_its_children(family):
    child = family.spawn("sh", ["sh", "-c", "sleep 99 & exit 0"])
    child.process.wait()
    assert child.group_alive()
    family.forget(child)
    deadline = time.monotonic() + 60
    while group_alive(child.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not group_alive(child.pid)


def test_children_inherit_only_given_descriptors(family, tmp_path):
    with (tmp_path / "secret").open("w") as secret, (tmp_path / "out").open("wb") as output:
        code = f"import os\ntry:\n os.fstat({secret.fileno()})\n print('open')\nexcept OSError:\n print('closed')"
        child = family.spawn("peek", [sys.executable, "-c", code], output=output, env={"PATH": "/usr/bin:/bin"})
        child.process.wait()
    assert (tmp_path / "out").read_text() == "closed\n"
