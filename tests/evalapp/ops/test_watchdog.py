import os
import subprocess
import sys
import time

import pytest

from evalapp.ops import watchdog
from evalapp.ops.ports import wait_until

OWNER = """
import sys, time
from evalapp.ops.processes import Family
family = Family()
child = family.spawn("child", ["sh", "-c", "sleep 300 & sleep 300"])
forgotten = family.spawn("forgotten", ["true"])
print(child.pid, flush=True)
time.sleep(300)
"""


@pytest.mark.promise("supervisor")
def test_children_end_when_their_owner_is_killed():
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    group = int(owner.stdout.readline())
    assert watchdog.group_alive(group)
    owner.kill()
    owner.wait()
    assert wait_until(lambda: not watchdog.group_alive(group), 60)  # left alone they would live for five minutes
    owner.stdout.close()


def test_group_that_ignores_term_is_killed():
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(99)",
        ],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    started = time.monotonic()
    watchdog.end_groups({child.pid}, grace=0.3)
    assert child.wait() == -9
    assert time.monotonic() - started < 60  # out of 99 seconds
    child.stdout.close()


def test_zombie_process_does_not_count():
    child = subprocess.Popen(["true"], start_new_session=True)
    assert wait_until(lambda: not watchdog.group_alive(child.pid), 60)
    os.kill(child.pid, 0)  # still in the process table
    child.wait()


def test_group_that_never_existed_is_not_alive():
    child = subprocess.Popen(["true"], start_new_session=True)
    child.wait()
    assert not watchdog.group_alive(child.pid)
