"""For benchmarks of an installation: the processes of docker-compose.yml on PostgreSQL, Django code in their
environment, and their memory and CPU time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


@contextmanager
def start_installation(*names: str, variables: dict[str, str] | None = None) -> Iterator[Any]:
    """Start these services on a durable database, as in production; yield a `Composed`."""
    from tests.services.composed import Composed
    from tests.services.run import start_servers

    with (
        tempfile.TemporaryDirectory(prefix="evalapp-bench-") as folder,
        start_servers(["postgres"], durable=True) as servers,
    ):
        if "TEST_DATABASE_URL" not in servers:
            raise SystemExit("PostgreSQL is unavailable here.")
        url = servers["TEST_DATABASE_URL"]
        with Composed(Path(folder) / "made", database_url=url, variables=variables) as made:
            made.start("redis")
            made.run_once("prepare", seconds=300)
            made.start(*names, seconds=180)
            made.database_pid = postgres_pid(url)
            yield made


def run_django_code(made: Any, code: str, **values: Any) -> Any:
    """Run code in a process with Django; return its last output line, parsed as JSON. `values` are its variables."""
    head = "import json, sys; import django; django.setup(); globals().update(json.loads(sys.argv[1]))\n"
    env = {**made.build_environment("web"), "DJANGO_SETTINGS_MODULE": "evalapp.settings", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", head + code, json.dumps(values)],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def postgres_pid(url: str) -> int:
    """Return the process id of the server at this address."""
    import psutil

    port = int(url.rsplit(":", 1)[1].split("/")[0])
    for process in psutil.process_iter(["name"]):
        if process.info["name"] != "postgres":
            continue
        if any(row.laddr.port == port for row in process.net_connections() if row.status == psutil.CONN_LISTEN):
            return int(process.pid)
    raise SystemExit(f"no PostgreSQL of this machine listens on port {port}")


def memory(made: Any) -> dict[str, dict[str, float]]:
    """Return for each service the megabytes of all its processes: `mb` counts shared memory once (proportional set
    size), `largest` is the resident size of the largest process."""
    import psutil

    found = {}
    for name, pid in {**made.pids(), "postgres": made.database_pid}.items():
        tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        sizes = []
        for process in tree:
            try:
                sizes.append(process.memory_full_info())
            except (psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
        found[name] = {
            "processes": len(sizes),
            "mb": round(sum(size.pss for size in sizes) / 1e6, 1),
            "largest": round(max(size.rss for size in sizes) / 1e6, 1),
        }
    return found


def cpu(made: Any) -> dict[str, float]:
    """Return for each service the CPU seconds used so far."""
    import psutil

    found = {}
    for name, pid in {**made.pids(), "postgres": made.database_pid}.items():
        tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        total = 0.0
        for process in tree:
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system + times.children_user + times.children_system
        found[name] = round(total, 1)
    return found


def machine() -> dict[str, Any]:
    import psutil

    return {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "load": round(os.getloadavg()[0], 1),
    }
