"""Starts the processes of an installation in order, merges their logs, restarts those that die, and stops them in
reverse order. `stack` defines the processes."""

import contextlib
import os
import selectors
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from .errors import StartFailed
from .log import MergedLog
from .processes import Child, Ending, Family

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
SETTLED = 30.0  # after running this long, a process restarts with the first pause again
ECHO = 1.0  # seconds within which further signals repeat the first
LAST_LINES = 20  # of a quiet process, shown if it fails
NAME = "evalapp"
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Service:
    """A process: how to start it, when it is ready, and what its end means."""

    name: str
    command: tuple[str, ...]
    stage: int = 0  # started after all earlier stages are ready, ended before them
    once: bool = False  # a step that ends by itself
    needed: bool = False  # nothing later works without it
    ready: Callable[[], bool] | None = None
    patience: float = 30.0  # seconds until `ready` must be true
    env: Mapping[str, str] = field(default_factory=dict)
    pass_fds: tuple[int, ...] = ()
    ending: Ending = field(default_factory=Ending)
    failed_hint: str = ""
    quiet: bool = False  # show its output only if it ends unexpectedly


@dataclass
class _State:
    service: Service
    child: Child | None = None
    output: int = -1
    started: float = 0.0
    failures: int = 0
    due: float | None = None
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_LINES))


class Supervisor:
    """Runs services until a signal (INT, TERM, HUP) arrives; a second signal ends everything at once."""

    def __init__(
        self,
        services: Sequence[Service],
        log: MergedLog,
        *,
        env: Mapping[str, str],
        cwd: Path,
        keep_open: Sequence[int] = (),
        announce: Callable[[int], None] = lambda stage: None,
    ) -> None:
        """`announce` is called with the number of each stage when it is ready."""
        self._states = [_State(service) for service in services]
        self._log, self._env, self._cwd, self._announce = log, dict(env), cwd, announce
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._family = Family(keep_open, idle=lambda: self._pump(0.02))
        self._signals = 0
        self._last_signal = -ECHO

    # ---- the whole life -----------------------------------------------------------------------------------

    def run(self) -> None:
        """Block until everything has ended. Raises StartFailed if a required service cannot be started."""
        heard = [n for n in _STOP_SIGNALS if n != signal.SIGHUP or signal.getsignal(n) is not signal.SIG_IGN]  # nohup
        previous = {number: signal.signal(number, self._on_signal) for number in heard}
        try:
            for stage in sorted({state.service.stage for state in self._states}):
                if not self._start_stage(stage):
                    break
            while not self._signals:
                self._watch()
                self._pump(self._seconds_to_next())
        finally:
            self._end()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def pids(self) -> dict[str, int]:
        """Return the running processes by name."""
        return {state.service.name: state.child.pid for state in self._states if state.child}

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Make and `timeout` forward a signal that the whole group has received already; count them as one.
        now = time.monotonic()
        if now - self._last_signal > ECHO:
            self._signals += 1
        self._last_signal = now
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"!")

    # ---- starting -----------------------------------------------------------------------------------------

    def _start_stage(self, stage: int) -> bool:
        states = [state for state in self._states if state.service.stage == stage]
        for state in states:
            self._start(state)
        for state in states:
            if state.service.ready is not None and not self._wait_ready(state):
                return False
        self._announce(stage)
        return not self._signals

    def _wait_ready(self, state: _State) -> bool:
        """Wait for a stage. Returns False if a signal arrives first; raises StartFailed if a required service dies or
        is late."""
        service = state.service
        assert service.ready is not None
        deadline = time.monotonic() + service.patience
        while not self._signals:
            if service.ready():
                return True
            if service.needed and state.child and state.child.process.poll() is not None:
                self._drain(state)
                reason = f"it {_describe_end(state.child.process.returncode)}"
                raise StartFailed(service.name, reason, "\n".join(state.last_lines))
            if time.monotonic() > deadline:
                if service.needed:
                    raise StartFailed(service.name, f"no answer after {service.patience:.0f} s")
                self._say(f"{service.name} does not respond yet; continuing without it")
                return True
            if not service.needed:
                self._watch()
            self._pump(0.05)
        return False

    def _start(self, state: _State) -> None:
        service = state.service
        read, write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(read, False)
        try:
            state.child = self._family.spawn(
                service.name,
                service.command,
                env={**self._env, **service.env},
                cwd=self._cwd,
                output=write,
                pass_fds=service.pass_fds,
                ending=service.ending,
            )
        except OSError:
            os.close(read)
            raise
        finally:
            os.close(write)
        state.output, state.started, state.due = read, time.monotonic(), None
        self._selector.register(read, selectors.EVENT_READ, state)

    # ---- watching -----------------------------------------------------------------------------------------

    def _watch(self) -> None:
        now = time.monotonic()
        for state in self._states:
            if state.child is not None and state.child.process.poll() is not None:
                self._ended(state, now)
            if state.due is not None and state.due <= now:
                self._say(f"starting {state.service.name} again")
                try:
                    self._start(state)
                except OSError as error:  # out of memory, or its program is being replaced
                    state.started = now
                    self._schedule_restart(state, now, f"cannot be started ({error.strerror})")

    def _ended(self, state: _State, now: float) -> None:
        service, child = state.service, state.child
        assert child is not None
        status = child.process.returncode
        self._family.forget(child)
        self._close_output(state)
        state.child = None
        while state.last_lines:
            self._log.line(service.name, state.last_lines.popleft())
        if service.once:
            hint = f" {service.failed_hint}" if status and service.failed_hint else ""
            self._say(f"{service.name} is done" if status == 0 else f"{service.name} {_describe_end(status)}.{hint}")
            return
        self._schedule_restart(state, now, _describe_end(status))

    def _schedule_restart(self, state: _State, now: float, why: str) -> None:
        state.failures = 1 if now - state.started > SETTLED else state.failures + 1
        pause = min(FIRST_PAUSE * 2 ** (state.failures - 1), LONGEST_PAUSE)
        state.due = now + pause
        self._say(f"{state.service.name} {why}; restarting it in {pause:.3g} s")

    def _seconds_to_next(self) -> float:
        due = [state.due - time.monotonic() for state in self._states if state.due is not None]
        return max(0.0, min([0.5, *due]))

    # ---- output -------------------------------------------------------------------------------------------

    def _pump(self, seconds: float) -> None:
        """Forward the output of the processes, for at most this long; return as soon as there is some."""
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, 64)
            elif not self._read(key.data):
                self._selector.unregister(key.data.output)

    def _read(self, state: _State) -> bool:
        try:
            data = os.read(state.output, 65536)
        except BlockingIOError:
            return True
        self._take(state, data)
        return bool(data)

    def _drain(self, state: _State) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(state.output, 65536):
                self._take(state, data)
        self._log.flush(state.service.name)

    def _take(self, state: _State, data: bytes) -> None:
        if state.service.quiet:
            state.last_lines.extend(data.decode("utf-8", "replace").splitlines())
        else:
            self._log.feed(state.service.name, data)

    def _close_output(self, state: _State) -> None:
        self._drain(state)
        with contextlib.suppress(KeyError):
            self._selector.unregister(state.output)
        os.close(state.output)
        state.output = -1

    def _say(self, text: str) -> None:
        self._log.line(NAME, text)

    # ---- ending -------------------------------------------------------------------------------------------

    def _end(self) -> None:
        running = [state for state in self._states if state.child is not None]
        if running:
            self._say("stopping " + ", ".join(state.service.name for state in reversed(running)))
        first = min((state.service.stage for state in self._states), default=0)
        later = [state.child for state in running if state.child and state.service.stage != first]
        for children in (later, None):  # the first stage (Redis) outlives its clients
            self._family.end(children, at_once=lambda: self._signals > 1)
        for state in running:
            self._close_output(state)
            state.child = None
        self._family.close()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
        self._say("all processes have ended")


def _describe_end(status: int | None) -> str:
    if status is None:
        return "is still running"
    if status < 0:
        return f"was ended by signal {signal.Signals(-status).name}"
    return f"ended with status {status}"
