import shutil
from pathlib import Path

import pytest

from evalapp.common.jobs import QUEUES
from evalapp.ops import ports, stack


@pytest.fixture
def listener():
    with ports.bind("127.0.0.1", 0) as listener:
        yield listener


def layout(listener, **more) -> stack.Layout:
    return stack.Layout(folder=Path("/data"), listener=listener, **more)


def option(command: tuple[str, ...], name: str) -> str:
    return command[command.index(name) + 1]


def test_parts_of_an_installation(listener):
    services = {service.name: service for service in stack.services(layout(listener))}
    assert list(services) == ["redis", "web", "cpu", "gpu", "train", "live", "beat"]
    assert option(services["cpu"].command, "--pool") == "prefork"
    assert services["web"].pass_fds == (listener.fileno(),)
    assert all(not service.once for service in services.values())
    assert services["redis"].stage < services["web"].stage < services["cpu"].stage


def test_trainings_cannot_block_other_runs(listener):
    """Each queue has its own worker, and no worker takes from another's queue."""
    services = {service.name: service for service in stack.services(layout(listener, cpu_processes=3))}
    workers = {
        name: (option(service.command, "--queues"), option(service.command, "--concurrency"))
        for name, service in services.items()
        if "--queues" in service.command
    }
    assert workers == {"cpu": ("cpu", "3"), **{name: (name, "1") for name in ("gpu", "train", "live")}}
    assert {option(services[name].command, "--hostname") for name in workers} == {f"{name}@%h" for name in QUEUES}
    assert set(workers) == set(QUEUES)


def test_processes_of_a_worker_share_the_cores(listener, monkeypatch):
    def threads(name: str = "cpu", **more) -> str:
        services = {service.name: service for service in stack.services(layout(listener, **more))}
        return services[name].env["OMP_NUM_THREADS"]

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert (threads(cpu_processes=2), threads(cpu_processes=4), threads(cpu_processes=16)) == ("4", "2", "1")
    assert (threads("gpu"), threads("train"), threads("live"), threads("web")) == ("4", "4", "4", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert (threads(cpu_processes=2), threads("gpu")) == ("3", "3")


def test_given_redis_is_used_and_none_is_started(listener, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    wanted = layout(listener, redis_url="redis://10.0.0.1:6379/0")
    assert [service.name for service in stack.services(wanted)] == ["web", "cpu", "gpu", "train", "live", "beat"]
    assert stack.environment(wanted, {"A": "1"})["REDIS_URL"] == "redis://10.0.0.1:6379/0"


def test_every_process_gets_the_folder_and_the_queue(listener):
    assert stack.environment(layout(listener), {"A": "1"}) == {
        "A": "1",
        "EVALAPP_DATA": "/data",
        "REDIS_URL": "unix:///data/redis.sock",
        "PYTHONUNBUFFERED": "1",
    }


def test_filling_is_a_step_that_runs_once(listener):
    fill = stack.services(layout(listener, fill=("demo", "--data", "/mine")))[-1]
    assert fill.name == "demo"
    assert fill.once
    assert fill.command[-5:] == ("-m", "evalapp", "demo", "--data", "/mine")
    assert "evalapp demo --data /mine" in fill.failed_hint


def test_addresses_people_can_open():
    with ports.bind("0.0.0.0", 0) as listener:
        port = listener.getsockname()[1]
        assert stack.address(listener) == f"http://127.0.0.1:{port}"


def test_silent_port_is_not_ready():
    assert not stack.web_answers(f"http://127.0.0.1:{ports.find_free_port()}/health/live", timeout=0.2)
