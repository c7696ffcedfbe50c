"""Starts PostgreSQL, Redis and Elasticsearch for tests, each on its own port and in its own folder, with settings that
are fast and safe only for tests."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from evalapp.ops import redis
from evalapp.ops.ports import answers, find_free_port, wait_until
from evalapp.ops.processes import Child, Ending, Family, User
from tests.services import installing
from tests.services.installing import ServerUnavailable

# Accounts used instead of root: PostgreSQL and Elasticsearch refuse to run as root.
_POSTGRES_USERS, _UNPRIVILEGED_USERS = ("postgres", "nobody"), ("nobody", "daemon")


def start(name: str, family: Family, folder: Path, durable: bool = False) -> str:
    """Start a server and return its address, or raise ServerUnavailable. `durable`: for measurements, PostgreSQL waits
    for the disk and Elasticsearch has production memory."""
    if name == "postgres":
        return _postgres(family, folder / name, durable)
    if name == "elasticsearch":
        return _elasticsearch(family, folder / name, durable)
    return {"redis": _redis, "chromium": _chromium}[name](family, folder / name)


def _choose_account(candidates: tuple[str, ...]) -> User | None:
    """Return the account to run a server as: the first existing candidate for root, else None (the current user)."""
    if os.geteuid() != 0:
        return None
    for name in candidates:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return User(name, entry.pw_gid)
    raise ServerUnavailable(f"refuses to run as root, and none of the accounts {', '.join(candidates)} exists")


def _make_folder(folder: Path, user: User | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if user:
        shutil.chown(folder, user.name, user.group)


def _wait_until_ready(name: str, child: Child, is_ready, seconds: float, log: Path) -> None:
    wait_until(lambda: is_ready() or child.process.poll() is not None, seconds, every=0.1)
    if child.process.poll() is None and is_ready():
        return
    problem = "ended" if child.process.poll() is not None else f"did not respond within {seconds:.0f} s"
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    shown = [line for line in lines if not line.startswith("at ")][-6:]  # without Java stack traces
    raise ServerUnavailable(f"{name} {problem}: " + " / ".join(shown))


# ---- PostgreSQL -------------------------------------------------------------------------------------------

_UNSAFE_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_POSTGRES_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "300",
    "shared_buffers": "128MB",
    "autovacuum_naptime": "10s",
    "timezone": "UTC",
}


def _postgres(family: Family, folder: Path, durable: bool) -> str:
    binaries = installing.postgres_binaries()
    user = _choose_account(_POSTGRES_USERS)
    _make_folder(folder, user)
    data, port = folder / "data", find_free_port()
    done = subprocess.run(
        [binaries / "initdb", "--pgdata", data, "--auth", "trust", "--username", "evalapp", "--encoding", "UTF8",
         "--locale", "C.UTF-8", "--no-sync"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        user=user.name if user else None,
        group=user.group if user else None,
        extra_groups=[] if user else None,
    )  # fmt: skip
    if done.returncode != 0:
        raise ServerUnavailable("initdb failed: " + " / ".join(done.stdout.strip().splitlines()[-3:]))
    (data / "postgresql.auto.conf").write_text(
        "".join(
            f"{key} = '{value}'\n"
            for key, value in {
                **_POSTGRES_SETTINGS,
                **({} if durable else _UNSAFE_SETTINGS),
                "port": str(port),
                "unix_socket_directories": str(folder),
            }.items()
        )
    )
    return start_postgres(family, folder)


def start_postgres(family: Family, folder: Path) -> str:
    """Start the server of a prepared folder; a restart keeps the port and the data."""
    binaries, user, log = installing.postgres_binaries(), _choose_account(_POSTGRES_USERS), folder / "log"
    settings = (folder / "data" / "postgresql.auto.conf").read_text()
    port = settings.partition("port = '")[2].partition("'")[0]
    command = [binaries / "postgres", "-D", folder / "data"]
    with log.open("wb") as output:
        # INT is PostgreSQL's fast shutdown, which does not wait for open sessions.
        ending = Ending(((signal.SIGINT, 10.0),))
        child = family.spawn("postgres", command, cwd=folder, output=output, user=user, ending=ending)
    ready = [str(binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    _wait_until_ready("PostgreSQL", child, lambda: subprocess.run(ready, check=False).returncode == 0, 30, log)
    return f"postgres://evalapp@127.0.0.1:{port}/postgres"


# ---- Redis ------------------------------------------------------------------------------------------------


def _redis(family: Family, folder: Path) -> str:
    program = installing.redis_program()
    folder.mkdir(parents=True, exist_ok=True)
    port, log = find_free_port(), folder / "log"
    url = f"redis://127.0.0.1:{port}/0"
    command = [
        str(program), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "",
        "--appendonly", "no", "--databases", "64",
    ]  # fmt: skip
    with log.open("wb") as output:
        child = family.spawn("redis", command, cwd=folder, output=output)
    _wait_until_ready("Redis", child, lambda: redis.answers(url), 15, log)
    return url


# ---- Elasticsearch ----------------------------------------------------------------------------------------


#: A compiler and a garbage collector that do less work, for a server that runs for minutes.
_SHORT_LIFE_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def _elasticsearch(family: Family, folder: Path, durable: bool) -> str:
    home = installing.elasticsearch_home()
    user = _choose_account(_UNPRIVILEGED_USERS)
    _make_folder(folder, user)
    configuration, temporary = folder / "config", folder / "tmp"
    shutil.copytree(home / "config", configuration)
    (configuration / "elasticsearch.yml").write_text(
        json.dumps(  # JSON is YAML
            {
                "cluster.name": "evalapp-test",
                "discovery.type": "single-node",
                "xpack.security.enabled": False,
                "network.host": "127.0.0.1",
                "http.port": find_free_port(),
                "transport.port": find_free_port(),
                "path.data": str(folder / "data"),
                "path.logs": str(folder / "logs"),
                "cluster.routing.allocation.disk.threshold_enabled": False,
                "action.destructive_requires_name": False,
            }
        )
    )
    options = configuration / "jvm.options"
    # These options name files in the folder of the distribution, which the server may not write to.
    unwanted = ("-Xlog:gc", "HeapDump", "-XX:ErrorFile", *(() if durable else ("UseG1GC",)))
    lines = [line for line in options.read_text().splitlines() if not any(part in line for part in unwanted)]
    heap = "1g" if durable else "512m"
    lines += [f"-Xms{heap}", f"-Xmx{heap}", *(() if durable else _SHORT_LIFE_OPTIONS)]
    options.write_text("\n".join(lines) + "\n")
    _make_folder(temporary, user)
    if user:
        for path in [configuration, *configuration.rglob("*")]:
            shutil.chown(path, user.name, user.group)
    return start_elasticsearch(family, folder)


def start_elasticsearch(family: Family, folder: Path) -> str:
    """Start the server of a prepared folder; a restart keeps the data."""
    java, home = installing.java_home(), installing.elasticsearch_home()
    configuration, log = folder / "config", folder / "log"
    port = json.loads((configuration / "elasticsearch.yml").read_text())["http.port"]
    user = _choose_account(_UNPRIVILEGED_USERS)
    env = {
        **os.environ,
        "ES_HOME": str(home),
        "ES_PATH_CONF": str(configuration),
        "ES_JAVA_HOME": str(java),
        "ES_TMPDIR": str(folder / "tmp"),
        "HOME": str(folder),
        "CLI_JAVA_OPTS": " ".join(_SHORT_LIFE_OPTIONS),  # for the program that starts the server
    }
    with log.open("wb") as output:
        child = family.spawn(
            "elasticsearch",
            [home / "bin" / "elasticsearch"],
            env=env,
            cwd=folder,
            output=output,
            user=user,
            ending=Ending(((signal.SIGTERM, 15.0),)),
        )
    url = f"http://127.0.0.1:{port}"
    _wait_until_ready("Elasticsearch", child, lambda: answers("127.0.0.1", port) and _is_healthy(url), 240, log)
    return url


def _is_healthy(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/_cluster/health", timeout=5) as response:
            return json.load(response)["status"] in {"green", "yellow"}
    except (OSError, ValueError, urllib.error.HTTPError):
        return False


# ---- Chromium ---------------------------------------------------------------------------------------------


def _chromium(family: Family, folder: Path) -> str:
    return installing.chromium_program()
