"""The processes of an installation on one machine, and how each is started."""

import os
import signal
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import redis
from .processes import Ending
from .supervisor import Service

REDIS, WEB, REST = 0, 1, 2
_MODULE = "evalapp"

# On TERM a worker finishes its run or returns it to the queue after three seconds (see common.tasks); during a long
# computation, Celery returns the message on QUIT.
_WORKER_ENDING = Ending(((signal.SIGTERM, 10.0), (signal.SIGQUIT, 3.0)))


@dataclass(frozen=True)
class Layout:
    """The options of `evalapp up`."""

    folder: Path  # data folder
    listener: socket.socket
    redis_url: str = ""  # empty: run one in the data folder
    web_workers: int = 2
    cpu_processes: int = 2
    fill: tuple[str, ...] = ()  # the command for a step that fills the installation


def services(layout: Layout) -> list[Service]:
    result = []
    if not layout.redis_url:
        address = redis.url(layout.folder)
        result.append(
            Service(
                "redis",
                tuple(redis.command(redis.find_program(), layout.folder)),
                stage=REDIS,
                needed=True,
                ready=lambda: redis.answers(address),
                patience=20.0,
                quiet=True,
            )
        )
    result.append(_web(layout))
    cores = os.cpu_count() or 1
    # If each process used all cores, they would wait for each other at each matrix product.
    share = os.environ.get("OMP_NUM_THREADS") or str(max(1, cores // layout.cpu_processes))
    half = str(max(1, cores // 2))
    # A worker per queue, as in docker-compose.yml, so that no other run waits for trainings.
    result.append(_worker("cpu", "cpu", layout.cpu_processes, {"OMP_NUM_THREADS": share}))
    for name in ("gpu", "train"):
        result.append(_worker(name, name, 1, {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or half}))
    # A loaded model next to everything else: few threads, so that it does not compete with a training.
    result.append(_worker("live", "live", 1, {"OMP_NUM_THREADS": half}))
    schedule = layout.folder / "beat-schedule"
    beat = ("beat", "--schedule", str(schedule), "--pidfile", "", "--loglevel", "WARNING")
    result.append(Service("beat", _celery(*beat), stage=REST))
    if layout.fill:
        again = " ".join(layout.fill)
        result.append(
            Service(
                "demo",
                (sys.executable, "-m", _MODULE, *layout.fill),
                stage=REST,
                once=True,
                failed_hint=f"The other processes continue; try again with: evalapp {again}",
            )
        )
    return result


def environment(layout: Layout, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of all processes."""
    return {
        **environ,
        "EVALAPP_DATA": str(layout.folder),
        "REDIS_URL": layout.redis_url or redis.url(layout.folder),
        "PYTHONUNBUFFERED": "1",
    }


def _web(layout: Layout) -> Service:
    descriptor = layout.listener.fileno()
    host, port = reachable(layout.listener)
    command = (
        sys.executable, "-m", "gunicorn", f"{_MODULE}.wsgi:application",
        "--bind", f"fd://{descriptor}", "--preload", "--workers", str(layout.web_workers),
        "--worker-class", f"{_MODULE}.ops.web.Worker", "--threads", "4", "--timeout", "60", "--graceful-timeout", "10",
        "--keep-alive", "15", "--limit-request-line", "8190", "--log-level", "warning", "--no-control-socket",
        *_memory_folder(),
    )  # fmt: skip
    health = f"http://{_bracketed(host)}:{port}/health/live"
    return Service(
        "web",
        command,
        stage=WEB,
        # A page fits many small models; with several threads each, they would take several times as long.
        env={"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or "1"},
        ready=lambda: web_answers(health),
        pass_fds=(descriptor,),
        ending=Ending(((signal.SIGTERM, 11.0),)),  # requests in progress have ten seconds
    )


def _worker(name: str, queues: str, processes: int, env: Mapping[str, str]) -> Service:
    command = _celery(
        "worker", "--pool", "prefork", "--concurrency", str(processes), "--queues", queues,
        "--hostname", f"{name}@%h", "--loglevel", "INFO", "--without-gossip", "--without-mingle",
    )  # fmt: skip
    # Celery warns root about pickle; here the queue is a private socket and messages are JSON.
    quiet = {"PYTHONWARNINGS": ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), "ignore:::celery.platforms"]))}
    return Service(name, command, stage=REST, env={**quiet, **env}, ending=_WORKER_ENDING)


def _celery(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "celery", "--quiet", "--no-color", "-A", _MODULE, *arguments)


def _memory_folder() -> tuple[str, ...]:
    # gunicorn's heartbeat is a file; on a slow disk, healthy processes would seem stuck.
    shared = Path("/dev/shm")
    return ("--worker-tmp-dir", str(shared)) if os.access(shared, os.W_OK) else ()


def reachable(listener: socket.socket) -> tuple[str, int]:
    """Return host and port by which this machine reaches the listening socket."""
    host, port = listener.getsockname()[:2]
    if host in {"0.0.0.0", "::"}:
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return host, port


def address(listener: socket.socket) -> str:
    host, port = reachable(listener)
    return f"http://{_bracketed(host)}:{port}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def web_answers(url: str, timeout: float = 1.0) -> bool:
    """Return whether the web process responds, with any status: it may refuse the host name."""
    request = urllib.request.Request(url, headers={"User-Agent": "evalapp-up"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
