import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from django.conf import settings

from evalapp.ops.ports import answers, wait_until
from evalapp.ops.processes import Family
from tests.services import installing, run, servers
from tests.services.installing import ServerUnavailable

RUN = [sys.executable, "tests/services/run.py"]


def test_number_of_processes(monkeypatch):
    monkeypatch.delenv("WORKERS", raising=False)
    for cores, processes in ((1, "2"), (2, "3"), (64, "6")):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        assert run.get_parallel_options([]) == ["-n", processes, "--dist", "loadfile", "--no-loadscope-reorder"]
    assert run.get_parallel_options(["tests/flows"]) == []
    monkeypatch.setenv("WORKERS", "4")
    assert run.get_parallel_options(["tests/flows"])[:2] == ["-n", "4"]
    monkeypatch.setenv("WORKERS", "1")
    assert run.get_parallel_options([]) == []


def test_whole_suite_needs_all_servers_without_collection(monkeypatch):
    monkeypatch.setattr(run, "pytest", lambda *_, **__: pytest.fail("must not collect"))
    assert run.get_needed_servers([]) == ["chromium", "elasticsearch", "postgres", "redis"]


@pytest.mark.parametrize(
    ("arguments", "compiled", "first"), [([], False, 1), ([], True, 0), (["tests/flows"], False, 0)]
)
def test_new_checkout_is_compiled_once_before_the_run(monkeypatch, arguments, compiled, first):
    done = []

    def spawn(family, name, command, **_):
        assert "--collect-only" in command
        return SimpleNamespace(process=SimpleNamespace(wait=lambda: done.append(name)))

    monkeypatch.setattr(run.Family, "spawn", spawn)
    monkeypatch.setattr(run, "is_compiled", lambda: compiled)
    monkeypatch.setattr(run, "get_needed_servers", lambda _: [])
    monkeypatch.setattr(run, "pytest", lambda *_: len(done))
    assert run.test(arguments) == first


def test_message_without_root_names_the_packages_to_install(monkeypatch):
    monkeypatch.setattr(installing, "can_install", lambda: False)
    monkeypatch.setattr(installing, "_postgres_binaries", lambda: None)
    with pytest.raises(ServerUnavailable, match="apt-get install postgresql"):
        installing.postgres_binaries()


def test_unavailable_server_is_named_with_its_reason(monkeypatch, capsys):
    def refuse(*_):
        raise ServerUnavailable("no initdb")

    monkeypatch.delenv("TEST_DATABASE_URL", raising=False)
    monkeypatch.setattr(servers, "start", refuse)
    with run.start_servers(["postgres"]) as variables:
        assert variables == {"TEST_SERVERS_MISSING": '{"postgres": "no initdb"}'}
    assert "PostgreSQL is unavailable: no initdb" in capsys.readouterr().err


def test_server_given_by_a_variable_is_used(monkeypatch):
    monkeypatch.setenv("TEST_REDIS_URL", "redis://127.0.0.1:7/0")
    monkeypatch.setattr(servers, "start", lambda *_: pytest.fail("must not start another"))
    with run.start_servers(["redis"]) as variables:
        assert variables == {"TEST_REDIS_URL": "redis://127.0.0.1:7/0"}


def test_server_that_dies_at_start_is_reported_with_its_output(tmp_path):
    log = tmp_path / "log"
    with Family() as family, log.open("wb") as output:
        child = family.spawn("x", ["sh", "-c", "echo bad option; echo '  at Java.stack'; exit 1"], output=output)
        with pytest.raises(ServerUnavailable, match=r"X ended: bad option$"):
            servers._wait_until_ready("X", child, lambda: False, 5, log)


def test_unknown_arguments_are_a_usage_error():
    for words in ([], ["tets"], ["stay", "mysql"], ["with", "redis"]):
        assert subprocess.run([*RUN, *words], cwd=settings.BASE_DIR, capture_output=True, check=False).returncode == 2


@pytest.mark.server
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_servers_stop_with_their_runner_even_if_it_is_killed(number, tmp_path):
    env = {k: v for k, v in os.environ.items() if k != "TEST_REDIS_URL"} | {"TMPDIR": str(tmp_path)}
    runner = subprocess.Popen(
        [*RUN, "stay", "redis"],
        cwd=settings.BASE_DIR,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert runner.stdout is not None
    line = runner.stdout.readline()
    assert line.startswith("export TEST_REDIS_URL=redis://127.0.0.1:")
    port = int(line.rpartition(":")[2].split("/")[0])
    assert answers("127.0.0.1", port)
    runner.send_signal(number)
    runner.wait(20)
    assert wait_until(lambda: not answers("127.0.0.1", port), 10)
    runner.stdout.close()


@pytest.mark.server
def test_command_runs_with_servers():
    env = {k: v for k, v in os.environ.items() if k != "TEST_REDIS_URL"}
    command = [*RUN, "with", "redis", "--", "sh", "-c", "echo $TEST_REDIS_URL; exit 7"]
    started = time.monotonic()
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 7
    assert done.stdout.startswith("redis://127.0.0.1:")
    assert time.monotonic() - started < 30
