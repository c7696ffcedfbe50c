"""Child processes that never outlive their owner: each has its own process group and is ended with it; a watchdog
process ends them if the owner is killed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

from .watchdog import group_alive

_WATCHDOG = Path(__file__).with_name("watchdog.py")


@dataclass(frozen=True)
class Ending:
    """Signals sent in order, each with the seconds that the group has to react; KILL comes last."""

    steps: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 5.0),)


@dataclass(frozen=True)
class User:
    """The account and main group under which a child runs."""

    name: str
    group: str | int


@dataclass
class Child:
    """A running process and the group it leads."""

    name: str
    process: subprocess.Popen[bytes]
    ending: Ending = field(default_factory=Ending)

    @property
    def pid(self) -> int:
        return self.process.pid

    def group_alive(self) -> bool:
        self.process.poll()  # reaps the leader, which would otherwise count as a member
        return group_alive(self.pid)

    def signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


class Family:
    """Starts children and ends them all; a context manager."""

    def __init__(self, keep_open: Sequence[int] = (), idle: Callable[[], None] | None = None) -> None:
        """`keep_open`: descriptors (a lock) that the watchdog holds until the last child has ended. `idle`: called
        while children end, to read their remaining output; it must wait briefly."""
        self.children: list[Child] = []
        self._idle = idle or (lambda: time.sleep(0.02))
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_WATCHDOG)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=tuple(keep_open),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def spawn(
        self,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        output: int | IO[bytes] | None = None,
        pass_fds: Sequence[int] = (),
        user: User | None = None,
        ending: Ending | None = None,
    ) -> Child:
        """Start `command` in a new session. `output` receives stdout and stderr (None: the owner's)."""
        process = subprocess.Popen(
            [os.fspath(part) for part in command],
            env=None if env is None else dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if output is not None else None,
            pass_fds=tuple(pass_fds),
            start_new_session=True,
            user=user.name if user else None,
            group=user.group if user else None,
            extra_groups=[] if user else None,
        )
        child = Child(name, process, ending or Ending())
        self._tell(f"+{process.pid}")
        self.children.append(child)
        return child

    def forget(self, child: Child) -> None:
        """Forget a child whose leader has ended, after ending the rest of its group."""
        if child.group_alive():
            child.signal_group(signal.SIGKILL)
        child.process.wait()
        self._tell(f"-{child.pid}")
        self.children.remove(child)

    def end(self, children: Sequence[Child] | None = None, *, at_once: Callable[[], bool] = lambda: False) -> None:
        """End these children (default: all) together and wait until their groups are gone. `at_once` is called
        repeatedly, because users may lose patience meanwhile."""
        waiting = [child for child in (self.children if children is None else children) if child in self.children]
        sent = {child.pid: 0 for child in waiting}
        due = {child.pid: time.monotonic() for child in waiting}
        orphaned: set[int] = set()
        hurried: set[int] = set()
        while waiting:
            now = time.monotonic()
            for child in list(waiting):
                if not child.group_alive():
                    waiting.remove(child)
                    self.forget(child)
                elif child.process.poll() is not None and child.pid not in orphaned:
                    # The leader ended but members remain: signal them directly.
                    orphaned.add(child.pid)
                    child.signal_group(signal.SIGTERM)
                    due[child.pid] = now + 1.0
                elif now >= due[child.pid] or (at_once() and child.pid not in hurried):
                    if at_once():
                        hurried.add(child.pid)
                    steps = () if child.pid in hurried else child.ending.steps
                    step = sent[child.pid]
                    number, patience = steps[step] if step < len(steps) else (signal.SIGKILL, 1.0)
                    self._signal(child, number)
                    sent[child.pid], due[child.pid] = step + 1, now + patience
            if waiting:
                self._idle()

    @staticmethod
    def _signal(child: Child, number: signal.Signals) -> None:
        # A gentle signal goes to the leader, which ends its own children; after that to the remaining group.
        if number is not signal.SIGKILL and child.process.poll() is None:
            child.process.send_signal(number)
        else:
            child.signal_group(number)

    def close(self) -> None:
        self.end()
        if self._watchdog.stdin and not self._watchdog.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._watchdog.stdin.close()
        self._watchdog.wait()

    def _tell(self, line: str) -> None:
        assert self._watchdog.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._watchdog.stdin.write(f"{line}\n".encode())
            self._watchdog.stdin.flush()
