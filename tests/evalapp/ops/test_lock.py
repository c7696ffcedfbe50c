import os
import subprocess
import sys

import pytest

from evalapp.ops import lock
from evalapp.ops.errors import AlreadyRunning


def test_second_holder_is_refused_and_learns_who_holds_it(tmp_path):
    first = lock.FolderLock(tmp_path)
    first.acquire("http://127.0.0.1:8000")
    with pytest.raises(AlreadyRunning) as caught:
        lock.FolderLock(tmp_path).acquire("http://127.0.0.1:9000", patience=5)
    assert caught.value.pid == os.getpid()
    message = str(caught.value)
    assert "http://127.0.0.1:8000" in message
    assert f"kill {os.getpid()}" in message
    assert "EVALAPP_DATA" in message
    first.release()
    assert not lock.held(tmp_path)
    second = lock.FolderLock(tmp_path)
    second.acquire("http://127.0.0.1:9000")
    assert lock.held(tmp_path)
    assert lock.read(tmp_path) == {"pid": os.getpid(), "address": "http://127.0.0.1:9000"}
    second.release()


def test_killed_holder_leaves_no_lock(tmp_path):
    code = (
        "import os, pathlib, sys; from evalapp.ops.lock import FolderLock;"
        "FolderLock(pathlib.Path(sys.argv[1])).acquire('x'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert lock.read(tmp_path) is not None  # its name is still written there ...
    assert not lock.held(tmp_path)  # ... but no process holds it
    again = lock.FolderLock(tmp_path)
    again.acquire("y")
    again.release()


def test_helpers_of_a_dead_holder_are_waited_for(tmp_path):
    """The holder is gone, but a process that inherited the lock is still cleaning up."""
    held = lock.FolderLock(tmp_path)
    held.acquire("x")
    helper = subprocess.Popen(["sleep", "0.5"], pass_fds=[held.descriptor])
    dead = subprocess.Popen(["true"])
    dead.wait()
    os.pwrite(held.descriptor, f'{{"pid": {dead.pid}, "address": "x"}}      '.encode(), 0)
    os.close(held.descriptor)
    with pytest.raises(AlreadyRunning):
        lock.FolderLock(tmp_path).acquire("y", patience=0)
    patient = lock.FolderLock(tmp_path)
    patient.acquire("y", patience=10)
    assert helper.wait() == 0
    patient.release()


@pytest.mark.parametrize("content", ["", "not json", "[1]", '{"pid": "x"}'])
def test_damaged_lock_file_names_nobody(tmp_path, content):
    (tmp_path / lock.NAME).write_text(content)
    assert lock.read(tmp_path) is None
    assert not lock.held(tmp_path)
