"""Executes one claimed run in this process: heartbeat, progress, log, cancellation, and the border at which
every error becomes a message on the row."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from django.db import DatabaseError, connection
from django.utils import timezone

from .errors import EvalappError
from .jobs import get_job
from .logs import run_id as run_id_of_log
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
        self._lines: queue.SimpleQueue[RunLog] = queue.SimpleQueue()
        self._phase_began = time.monotonic()
        self._phase_first: int | None = None
        self._state: dict[str, Any] = {"done": 0, "total": None, "unit": "", "phase": "", "rate": None}

    def check(self) -> None:
        """Stop here if the run was cancelled. Call it at least once a second."""
        if self.cancelled.is_set():
            raise RunCancelled

    def progress(self, done: int, total: int | None = None, unit: str = "rows", phase: str = "") -> None:
        """Cheap: it only notes the figures; the heartbeat writes them. What an earlier attempt had done already
        does not count into the rate."""
        if self._phase_first is None or phase != self._state["phase"] or done < self._phase_first:
            self._phase_began, self._phase_first = time.monotonic(), done
        elapsed = time.monotonic() - self._phase_began
        gained = done - self._phase_first
        rate = gained / elapsed if elapsed > 0.2 and gained else None
        self._state = {"done": done, "total": total, "unit": unit, "phase": phase[:100], "rate": rate}
        self.check()

    def log(self, text: str) -> None:
        """A line for the people who watch. The heartbeat writes it, so that it shows while the pipeline is inside
        a transaction and stays when that is rolled back."""
        self._lines.put(RunLog(run=self.run, text=text))
        if self._echo:
            self._echo(text)

    @property
    def figures(self) -> dict[str, Any]:
        return dict(self._state)

    def must_stop(self) -> bool:
        """Cancelled, or no longer ours."""
        mine = Run.objects.filter(pk=self.run.pk, state=Run.State.RUNNING, attempt=self.run.attempt)
        return mine.values_list("cancel_requested", flat=True).first() in (True, None)

    def save(self) -> None:
        """Write heartbeat, figures and waiting log lines."""
        mine = Run.objects.filter(pk=self.run.pk, state=Run.State.RUNNING, attempt=self.run.attempt)
        ours = mine.update(heartbeat=timezone.now(), **self._state)
        lines = []
        while not self._lines.empty():
            lines.append(self._lines.get())
        if not ours:
            return
        try:
            RunLog.objects.bulk_create(lines)
        except DatabaseError:
            for line in lines:
                self._lines.put(line)
            raise


class _Heart(threading.Thread):
    """Writes the heartbeat from a connection of its own, so that it shows while the pipeline is inside a
    transaction, and interrupts a pipeline that does not stop by itself."""

    def __init__(self, context: RunContext, main: bool) -> None:
        super().__init__(daemon=True, name="run-heartbeat")
        self.context = context
        self.main = main
        self.working = True
        self.stopped = threading.Event()
        self.asked_at: float | None = None

    def run(self) -> None:
        while not self.stopped.wait(BEAT_SECONDS):
            try:
                self.beat()
            except DatabaseError as error:
                log.debug("heartbeat of run %s was not written: %s", self.context.run.pk, error)
            overdue = self.asked_at is not None and time.monotonic() - self.asked_at > GRACE_SECONDS
            if overdue and self.main and self.working:
                os.kill(os.getpid(), signal.SIGUSR1)
        connection.close()

    def beat(self) -> None:
        """Reading comes first: on SQLite it works while the pipeline holds the write lock."""
        if connection.connection is None and connection.vendor == "sqlite":
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA busy_timeout = 500")
        if self.context.must_stop():
            self.context.cancelled.set()
            self.asked_at = self.asked_at or time.monotonic()
        self.context.save()

    def interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        """Raises in the main thread, between two of its bytecodes, as long as the pipeline has it."""
        if self.working and self.context.cancelled.is_set():
            raise RunCancelled


@contextlib.contextmanager
def _heartbeat(context: RunContext) -> Iterator[None]:
    if connection.in_atomic_block:
        # Inside somebody's transaction (tests) no other connection could see the row.
        yield
        return
    in_main_thread = threading.current_thread() is threading.main_thread()
    heart = _Heart(context, in_main_thread)
    previous: Any = signal.signal(signal.SIGUSR1, heart.interrupt) if in_main_thread else None
    heart.start()
    try:
        try:
            yield
        finally:
            heart.working = False
    finally:
        # Two steps, because the signal may come while the first is taken; the next is a second away.
        heart.working = False
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
    number = run_id_of_log.set(str(run.pk))
    try:
        state, fields = _work(run, context)
        context.save()
        finish_run(run, state, **fields, **context.figures)
    finally:
        run_id_of_log.reset(number)
    try:
        run.refresh_from_db()
    except Run.DoesNotExist:  # the deletion of a project ends with its own row
        run.state = state
    return run


def _work(run: Run, context: RunContext) -> tuple[str, dict[str, Any]]:
    """The border of a job: what comes out of the pipeline becomes a state and what people read about it."""
    try:
        with _heartbeat(context):
            result = get_job(run.kind).load()(context, **run.params)
    except RunCancelled:
        return Run.State.CANCELLED.value, {}
    except EvalappError as error:
        context.log(error.detail)
        faults = [fault.as_dict() for fault in error.faults[:1000]]
        return Run.State.FAILED.value, {"error": error.detail, "faults": faults}
    except MemoryError:
        return Run.State.FAILED.value, {
            "error": "The worker ran out of memory. Use smaller batches or a larger machine, then retry."
        }
    except Exception as error:
        log.exception("run %s failed", run.pk)
        context.log(traceback.format_exc())
        text = f"Unexpected error ({type(error).__name__}: {error}). The log has the details; retry, and report it."
        return Run.State.FAILED.value, {"error": text}
    return Run.State.SUCCEEDED.value, {"result": result}
