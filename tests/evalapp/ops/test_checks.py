import os

from evalapp.ops import checks, lock
from evalapp.ops.checks import MISSING, OK, OPTIONAL


def test_python_must_be_new_enough():
    assert checks.python((3, 11, 0)).state == OK
    old = checks.python((3, 10, 9))
    assert old.state == MISSING
    assert "3.11" in old.way_out


def test_disk_space(tmp_path):
    assert checks.disk(tmp_path, least=1).state == OK
    full = checks.disk(tmp_path, least=10**18)
    assert full.state == MISSING
    assert "EVALAPP_DATA" in full.way_out


def test_supervisor_is_optional(tmp_path):
    assert checks.supervisor(tmp_path).state == OPTIONAL
    held = lock.FolderLock(tmp_path)
    held.acquire("http://127.0.0.1:8000")
    found = checks.supervisor(tmp_path)
    held.release()
    assert found.state == OK
    assert f"process {os.getpid()} at http://127.0.0.1:8000" in found.found


def test_silent_redis_is_reported_without_its_password():
    found = checks.redis_server("redis://:geheim@127.0.0.1:1/0")
    assert found.state == MISSING
    assert "geheim" not in found.found + found.way_out
    assert "evalapp up" in found.way_out


def test_encoder_comes_with_the_requirements():
    assert checks.encoder().state == OK
