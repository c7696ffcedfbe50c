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
from tests.services.installing import CannotHave  # noqa: E402
from tests.services.plugin import REASONS_VARIABLE, SERVERS  # noqa: E402


class Interrupted(Exception):
    """TERM or HUP was received."""


def _interrupt(number: int, frame: object) -> None:
    raise Interrupted(signal.Signals(number).name)


@contextmanager
def running(names: list[str], durable: bool = False) -> Iterator[dict[str, str]]:
    """Starts the named servers; yields the variables with their addresses, and the missing ones with reasons."""
    folder = Path(tempfile.mkdtemp(prefix="evalapp-servers-"))
    folder.chmod(0o755)  # servers that run as another user must be able to enter
    found: dict[str, str] = {}
    missing: dict[str, str] = {}
    try:
        with Family() as family:
            for name in names:
                variable, title = SERVERS[name]
                if os.environ.get(variable):
                    found[variable] = os.environ[variable]
                    say(f"{title}: the one that {variable} names")
                    continue
                started = time.monotonic()
                try:
                    found[variable] = servers.start(name, family, folder, durable)
                    say(f"{title}: {found[variable]} ({time.monotonic() - started:.1f} s)")
                except CannotHave as error:
                    missing[name] = str(error)
                    say(f"{title} cannot be had: {error}")
            if missing:
                found[REASONS_VARIABLE] = json.dumps(missing)
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def say(text: str) -> None:
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


def wanted(arguments: list[str]) -> list[str]:
    """The servers that the selected tests need; the whole suite needs all, so it is not collected for this. If
    collection fails, nothing is started: the run itself will report the error."""
    if not arguments:
        return sorted(SERVERS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "needed.json"
        pytest(["--collect-only", "-q", "-p", "no:cacheprovider", f"--servers-needed={path}", *arguments], quiet=True)
        return json.loads(path.read_text()) if path.exists() else []


def parallel(arguments: list[str]) -> list[str]:
    """For the whole suite, one process more than there are cores: a third of the time tests wait for servers, workers
    and browsers. Tests in the same file stay together because they may share a server, and the plugin decides which
    files come first."""
    chosen = os.environ.get("WORKERS", "")
    count = int(chosen) if chosen.isdigit() else (0 if arguments else min(len(os.sched_getaffinity(0)) + 1, 6))
    return ["-n", str(count), "--dist", "loadfile", "--no-loadscope-reorder"] if count > 1 else []


def is_compiled() -> bool:
    return any((ROOT / "tests" / "__pycache__").glob("conftest.*-pytest-*.pyc"))


def test(arguments: list[str]) -> int:
    names = wanted(arguments)
    say("needed: " + (", ".join(SERVERS[name][1] for name in names) or "none"))
    with Family() as family:
        collecting = None
        if not arguments and not is_compiled():
            # Otherwise every process of the run would compile the same six thousand modules; one does it for all while
            # the servers start.
            command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
            collecting = family.spawn("collecting", command, cwd=ROOT, output=subprocess.DEVNULL)
        with running(names) as found:
            if collecting:
                collecting.process.wait()
            return pytest([*parallel(arguments), *arguments], {**os.environ, **found})


def stay(names: list[str]) -> int:
    if unknown(names):
        return 2
    with running(names or list(SERVERS)) as found:
        if not found.keys() - {REASONS_VARIABLE}:
            return 1
        say("Ctrl-C ends them. In another terminal:")
        for variable, value in found.items():
            if variable != REASONS_VARIABLE:
                print(f"export {variable}={value}", flush=True)
        threading.Event().wait()
    return 0


def run_with(arguments: list[str]) -> int:
    if len(arguments) < 3 or arguments[1] != "--":
        say("usage: run.py with NAME,NAME -- COMMAND")
        return 2
    names = arguments[0].split(",")
    if unknown(names):
        return 2
    with running(names, durable=True) as found:
        return subprocess.run(arguments[2:], cwd=ROOT, env={**os.environ, **found}, check=False).returncode


def unknown(names: list[str]) -> bool:
    wrong = sorted(set(names) - set(SERVERS))
    if wrong:
        say(f"unknown: {', '.join(wrong)}; there are {', '.join(SERVERS)}")
    return bool(wrong)


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
