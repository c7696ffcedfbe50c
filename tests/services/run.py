"""Runs the tests with the servers they need: `run.py test [PYTEST ARGUMENTS]` asks pytest for the needs of the selected
tests, starts these servers, runs the tests and stops the servers; `run.py stay [NAME ...]` starts servers and keeps
them running until Ctrl-C; `run.py with NAME,NAME -- COMMAND` runs a command with servers that store data durably, as in
production."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from evalapp.ops.processes import Family  # noqa: E402
from tests.services import servers  # noqa: E402
from tests.services.installing import ServerUnavailable  # noqa: E402
from tests.services.plugin import REASONS_VARIABLE, SERVERS  # noqa: E402


class Interrupted(Exception):
    """TERM or HUP was received."""


def _interrupt(number: int, frame: object) -> None:
    raise Interrupted(signal.Signals(number).name)


@contextmanager
def start_servers(names: list[str], durable: bool = False) -> Iterator[dict[str, str]]:
    """Start servers; yield environment variables with their addresses and the reasons for missing ones."""
    folder = Path(tempfile.mkdtemp(prefix="evalapp-servers-"))
    folder.chmod(0o755)  # servers that run as another user must be able to enter
    variables: dict[str, str] = {}
    missing: dict[str, str] = {}
    try:
        with Family() as family:
            for name in names:
                variable, title = SERVERS[name]
                if os.environ.get(variable):
                    variables[variable] = os.environ[variable]
                    log(f"{title}: uses the one in {variable}")
                    continue
                started = time.monotonic()
                try:
                    variables[variable] = servers.start(name, family, folder, durable)
                    log(f"{title}: {variables[variable]} ({time.monotonic() - started:.1f} s)")
                except ServerUnavailable as error:
                    missing[name] = str(error)
                    log(f"{title} is unavailable: {error}")
            if missing:
                variables[REASONS_VARIABLE] = json.dumps(missing)
            yield variables
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def log(text: str) -> None:
    print(f"servers | {text}", file=sys.stderr, flush=True)


def pytest(arguments: list[str], env: dict[str, str] | None = None, quiet: bool = False) -> int:
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if quiet else None,
        check=False,
    ).returncode


def get_needed_servers(arguments: list[str]) -> list[str]:
    """Return the servers that the selected tests need. The whole suite needs all, so it is not collected. If collection
    fails, no server is needed: the run itself will report the error."""
    if not arguments:
        return sorted(SERVERS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "needed.json"
        pytest(["--collect-only", "-q", "-p", "no:cacheprovider", f"--servers-needed={path}", *arguments], quiet=True)
        return json.loads(path.read_text()) if path.exists() else []


def get_parallel_options(arguments: list[str]) -> list[str]:
    """Return the pytest options for several processes. The whole suite uses one process more than cores, because tests
    wait for servers, workers and browsers a third of the time. Tests of a file stay in one process, where they may
    share a server; the plugin decides which files come first."""
    requested = os.environ.get("WORKERS", "")
    count = int(requested) if requested.isdigit() else (0 if arguments else min(len(os.sched_getaffinity(0)) + 1, 6))
    return ["-n", str(count), "--dist", "loadfile", "--no-loadscope-reorder"] if count > 1 else []


def is_compiled() -> bool:
    return any((ROOT / "tests" / "__pycache__").glob("conftest.*-pytest-*.pyc"))


def test(arguments: list[str]) -> int:
    names = get_needed_servers(arguments)
    log("needed: " + (", ".join(SERVERS[name][1] for name in names) or "none"))
    with Family() as family:
        collecting = None
        if not arguments and not is_compiled():
            # Compile the six thousand modules once while the servers start, instead of in every process of the run.
            command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
            collecting = family.spawn("collecting", command, cwd=ROOT, output=subprocess.DEVNULL)
        with start_servers(names) as variables:
            if collecting:
                collecting.process.wait()
            return pytest([*get_parallel_options(arguments), *arguments], {**os.environ, **variables})


def stay(names: list[str]) -> int:
    if has_unknown_names(names):
        return 2
    with start_servers(names or list(SERVERS)) as variables:
        if not variables.keys() - {REASONS_VARIABLE}:
            return 1
        log("Ctrl-C stops them. In another terminal:")
        for variable, value in variables.items():
            if variable != REASONS_VARIABLE:
                print(f"export {variable}={value}", flush=True)
        threading.Event().wait()
    return 0


def run_with(arguments: list[str]) -> int:
    if len(arguments) < 3 or arguments[1] != "--":
        log("usage: run.py with NAME,NAME -- COMMAND")
        return 2
    names = arguments[0].split(",")
    if has_unknown_names(names):
        return 2
    with start_servers(names, durable=True) as variables:
        return subprocess.run(arguments[2:], cwd=ROOT, env={**os.environ, **variables}, check=False).returncode


def has_unknown_names(names: list[str]) -> bool:
    unknown = sorted(set(names) - set(SERVERS))
    if unknown:
        log(f"unknown: {', '.join(unknown)}; the servers are {', '.join(SERVERS)}")
    return bool(unknown)


def main(arguments: list[str]) -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    verb, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if verb not in VERBS:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        return VERBS[verb](rest)
    except (KeyboardInterrupt, Interrupted):
        return 0 if verb == "stay" else 130


VERBS = {"test": test, "stay": stay, "with": run_with}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
