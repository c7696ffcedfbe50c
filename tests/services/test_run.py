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
from tests.services.installing import CannotHave

RUN = [sys.executable, "tests/services/run.py"]


def test_whole_suite_runs_on_one_process_more_than_cores_and_a_selection_on_one(monkeypatch):
    monkeypatch.delenv("WORKERS", raising=False)
    for cores, processes in ((1, "2"), (2, "3"), (64, "6")):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        assert run.parallel([]) == ["-n", processes, "--dist", "loadfile", "--no-loadscope-reorder"]
    assert run.parallel(["tests/flows"]) == []
    monkeypatch.setenv("WORKERS", "4")
    assert run.parallel(["tests/flows"])[:2] == ["-n", "4"]
    monkeypatch.setenv("WORKERS", "1")
    assert run.parallel([]) == []


def test_whole_suite_is_not_collected_to_learn_its_needs(monkeypatch):
    monkeypatch.setattr(run, "pytest", lambda *_, **__: pytest.fail("must not collect"))
    assert run.wanted([]) == ["chromium", "elasticsearch", "postgres", "redis"]


@pytest.mark.parametrize(
    ("arguments", "compiled", "first"), [([], False, 1), ([], True, 0), (["tests/flows"], False, 0)]
)
def test_one_process_compiles_a_new_checkout_before_all_start(monkeypatch, arguments, compiled, first):
    done = []

    def spawn(family, name, command, **_):
        assert "--collect-only" in command
        return SimpleNamespace(process=SimpleNamespace(wait=lambda: done.append(name)))

    monkeypatch.setattr(run.Family, "spawn", spawn)
    monkeypatch.setattr(run, "is_compiled", lambda: compiled)
    monkeypatch.setattr(run, "wanted", lambda _: [])
    monkeypatch.setattr(run, "pytest", lambda *_: len(done))
    assert run.test(arguments) == first


def test_without_root_it_names_the_packages_to_install(monkeypatch):
    monkeypatch.setattr(installing, "can_install", lambda: False)
    monkeypatch.setattr(installing, "_postgres_binaries", lambda: None)
    with pytest.raises(CannotHave, match="apt-get install postgresql"):
        installing.postgres_binaries()


def test_unavailable_server_is_named_with_its_reason(monkeypatch, capsys):
    def refuse(*_):
        raise CannotHave("no initdb")

    monkeypatch.delenv("TEST_DATABASE_URL", raising=False)
    monkeypatch.setattr(servers, "start", refuse)
    with run.running(["postgres"]) as found:
        assert found == {"TEST_SERVERS_MISSING": '{"postgres": "no initdb"}'}
    assert "PostgreSQL cannot be had: no initdb" in capsys.readouterr().err


def test_server_given_by_a_variable_is_used(monkeypatch):
    monkeypatch.setenv("TEST_REDIS_URL", "redis://127.0.0.1:7/0")
    monkeypatch.setattr(servers, "start", lambda *_: pytest.fail("must not start another"))
    with run.running(["redis"]) as found:
        assert found == {"TEST_REDIS_URL": "redis://127.0.0.1:7/0"}


def test_server_that_dies_at_start_is_reported_with_its_output(tmp_path):
    log = tmp_path / "log"
    with Family() as family, log.open("wb") as output:
        child = family.spawn("x", ["sh", "-c", "echo bad option; echo '  at Java.stack'; exit 1"], output=output)
        with pytest.raises(CannotHave, match=r"X ended: bad option$"):
            servers._wait("X", child, lambda: False, 5, log)


def test_unknown_arguments_are_a_usage_error():
    for words in ([], ["tets"], ["stay", "mysql"], ["with", "redis"]):
        assert subprocess.run([*RUN, *words], cwd=settings.BASE_DIR, capture_output=True, check=False).returncode == 2


@pytest.mark.server
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_servers_end_with_their_runner_even_a_killed_one(number, tmp_path):
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
