"""Executes one claimed run in this process: heartbeat, progress, log, cancellation, and the border at which
every error becomes a message on the row."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from django.db import DatabaseError, close_old_connections, connection
from django.utils import timezone

from .errors import EvalappError
from .jobs import get_job
from .models import Run, RunLog
from .queue import claim_run, finish_run

log = logging.getLogger(__name__)

BEAT_SECONDS = 1.0
GRACE_SECONDS = 2.0  # a pipeline that checks often stops by itself; after this it is interrupted


class RunCancelled(BaseException):
    """Raised inside a pipeline when its run is to stop. A BaseException, so that no handler swallows it."""


class RunContext:
    """What a pipeline sees of its run: `progress`, `log`, `check`, and who asked for it."""

    def __init__(self, run: Run, echo: Callable[[str], None] | None = None) -> None:
        self.run = run
        self.project = run.project
        self.user = run.created_by
        self.cancelled = threading.Event()
        self._echo = echo
        self._began = time.monotonic()
        self._phase_began = self._began
        self._state: dict[str, Any] = {"done": 0, "total": None, "unit": "", "phase": "", "rate": None}

    def check(self) -> None:
        """Stop here if the run was cancelled. Call it at least once a second."""
        if self.cancelled.is_set():
            raise RunCancelled

    def progress(self, done: int, total: int | None = None, unit: str = "rows", phase: str = "") -> None:
        """Cheap: it only notes the figures; the heartbeat writes them."""
        if phase != self._state["phase"]:
            self._phase_began = time.monotonic()
        elapsed = time.monotonic() - self._phase_began
        rate = done / elapsed if elapsed > 0.2 and done else None
        self._state = {"done": done, "total": total, "unit": unit, "phase": phase, "rate": rate}
        self.check()

    def log(self, text: str) -> None:
        RunLog.objects.create(run=self.run, text=text)
        if self._echo:
            self._echo(text)

    @property
    def figures(self) -> dict[str, Any]:
        return dict(self._state)

    def save(self) -> bool:
        """Write heartbeat and figures; True when the run is to stop (cancelled, or no longer ours)."""
        mine = Run.objects.filter(pk=self.run.pk, state=Run.State.RUNNING, attempt=self.run.attempt)
        if not mine.update(heartbeat=timezone.now(), **self._state):
            return True
        return bool(mine.filter(cancel_requested=True).exists())


class _Heart(threading.Thread):
    """Writes the heartbeat from a connection of its own, so that it shows while the pipeline is inside a
    transaction, and interrupts a pipeline that does not stop by itself."""

    def __init__(self, context: RunContext) -> None:
        super().__init__(daemon=True, name="run-heartbeat")
        self.context = context
        self.stopped = threading.Event()
        self.asked_at: float | None = None

    def run(self) -> None:
        while not self.stopped.wait(BEAT_SECONDS):
            try:
                if self.context.save():
                    self.context.cancelled.set()
                    self.asked_at = self.asked_at or time.monotonic()
            except DatabaseError as error:
                log.debug("heartbeat of run %s was not written: %s", self.context.run.pk, error)
            if self.asked_at and time.monotonic() - self.asked_at > GRACE_SECONDS and not self.stopped.is_set():
                os.kill(os.getpid(), signal.SIGUSR1)
        close_old_connections()
        connection.close()


@contextlib.contextmanager
def _heartbeat(context: RunContext) -> Iterator[None]:
    if connection.in_atomic_block:
        # Inside somebody's transaction (tests) no other connection could see the row.
        yield
        return
    previous: Any = None
    in_main_thread = threading.current_thread() is threading.main_thread()

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        if context.cancelled.is_set():
            raise RunCancelled

    if in_main_thread:
        previous = signal.signal(signal.SIGUSR1, interrupt)
    heart = _Heart(context)
    if not in_main_thread:
        heart.asked_at = None
    heart.start()
    try:
        yield
    finally:
        heart.stopped.set()
        heart.join(timeout=40)
        if in_main_thread:
            signal.signal(signal.SIGUSR1, previous)


def execute_run(run_id: int, *, echo: Callable[[str], None] | None = None) -> Run | None:
    """Claim and work. Returns the ended run, or None when there was nothing to claim."""
    run = claim_run(run_id)
    if run is None:
        return None
    context = RunContext(run, echo)
    try:
        with _heartbeat(context):
            result = get_job(run.kind).load()(context, **run.params)
        context.save()
        finish_run(run, Run.State.SUCCEEDED, result=result, **context.figures)
    except RunCancelled:
        finish_run(run, Run.State.CANCELLED, **context.figures)
    except EvalappError as error:
        context.log(error.detail)
        finish_run(run, Run.State.FAILED, error=error.detail, faults=[f.as_dict() for f in error.faults[:1000]])
    except MemoryError:
        finish_run(
            run,
            Run.State.FAILED,
            error="The worker ran out of memory. Use smaller batches or a larger machine.",
        )
    except Exception as error:
        log.exception("run %s failed", run.pk)
        context.log(traceback.format_exc())
        finish_run(
            run,
            Run.State.FAILED,
            error=f"Unexpected error ({type(error).__name__}: {error}). The log has the details; retry, and report it if it stays.",
        )
    run.refresh_from_db()
    return run
