"""Execute a claimed run in this process: heartbeat, progress, log, cancellation. Every error becomes a message on the
run."""

import contextlib
import functools
import gc
import logging
import math
import os
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from django.db import Error as DatabaseTrouble
from django.db import connection
from django.utils import timezone

from evalapp.accounts.models import Project

from . import outages
from .errors import EvalappError, Unavailable
from .jobs import get_job
from .logs import run_id as run_id_of_log
from .models import Run, RunLog
from .queue import claim_run, finish_run, give_back_run, held

log = logging.getLogger(__name__)

BEAT_SECONDS = 1.0
#: Seconds to retry writing the end of a run while the database is unavailable; after that the reconciler returns the
#: run.
PATIENCE = 600.0
GRACE_SECONDS = 2.0  # pipelines that check often stop by themselves; others are interrupted after this time


class RunCancelled(BaseException):
    """Raised in a pipeline when its run is cancelled. A BaseException, so that no handler catches it."""


class RunLost(BaseException):
    """Raised in a pipeline whose run was given to another worker because this one seemed dead. Shared files must not be
    removed, the other worker uses them."""


class RunReturned(BaseException):
    """Raised in a pipeline when its worker shuts down: the run goes back to the queue."""


class RunContext:
    """The run as a pipeline sees it: `progress`, `log`, `check`, and the user who requested it."""

    def __init__(self, run: Run, echo: Callable[[str], None] | None = None) -> None:
        self.run = run
        self.project = run.project
        self.user = run.created_by
        self.cancelled = threading.Event()
        self.lost = threading.Event()
        #: The database was unavailable: the pipeline must open a new connection.
        self.cut = threading.Event()
        self._echo = echo
        self._lines: queue.SimpleQueue[RunLog] = queue.SimpleQueue()
        self._phase_began = time.monotonic()
        self._phase_first: int | None = None
        self._state: dict[str, Any] = {"done": 0, "total": None, "unit": "", "phase": "", "rate": None}

    def check(self) -> None:
        """Raise if the run was cancelled or given to another worker. Call it at least once a second."""
        self.stop_if_asked()
        if self.cut.is_set():
            self.cut.clear()
            outages.drop_connection()

    def stop_if_asked(self) -> None:
        if self.lost.is_set():
            raise RunLost
        if self.cancelled.is_set():
            raise RunCancelled

    def make_sure(self) -> None:
        """Check that the run still belongs to this worker. Call it before changes that a second worker must not
        find."""
        if self.look() == "lost":
            raise RunLost

    def progress(
        self, done: int, total: int | None = None, unit: str = "rows", phase: str = "", *, left: float | None = None
    ) -> None:
        """Note the progress; the heartbeat writes it, so calls are cheap. Work of earlier attempts does not count for
        the rate. `left`: remaining seconds, if the pipeline has a better estimate."""
        if self._phase_first is None or phase != self._state["phase"] or done < self._phase_first:
            self._phase_began, self._phase_first = time.monotonic(), done
        elapsed = time.monotonic() - self._phase_began
        gained = done - self._phase_first
        rate = gained / elapsed if elapsed > 0.2 and gained else None
        if left is not None:
            rate = (total - done) / left if total and left > 0 else None
        self._state = {"done": done, "total": total, "unit": unit, "phase": phase[:100], "rate": rate}
        self.check()

    def log(self, text: str) -> None:
        """Add a line to the log of the run. The heartbeat writes it, so it is visible while the pipeline is in a
        transaction and stays when that is rolled back."""
        self._lines.put(RunLog(run=self.run, text=_storable(text)))
        if self._echo:
            self._echo(text)

    @property
    def figures(self) -> dict[str, Any]:
        return dict(self._state)

    def look(self) -> str:
        """Return `cancelled`, `lost` (given to another worker), or an empty text."""
        asked = held(self.run).values_list("cancel_requested", flat=True).first()
        return {True: "cancelled", None: "lost", False: ""}[asked]

    def save(self) -> None:
        """Write heartbeat, progress and pending log lines."""
        ours = held(self.run).update(heartbeat=timezone.now(), **self._state)
        lines = []
        while not self._lines.empty():
            lines.append(self._lines.get())
        if not ours:
            return
        try:
            RunLog.objects.bulk_create(lines)
        except DatabaseTrouble:
            for line in lines:
                self._lines.put(line)
            raise


class _Heart(threading.Thread):
    """Writes the heartbeat over its own connection, so that it is visible while the pipeline is in a transaction, and
    interrupts a pipeline that does not stop by itself."""

    def __init__(self, context: RunContext, main: bool) -> None:
        super().__init__(daemon=True, name="run-heartbeat")
        self.context = context
        self.main = main
        self.working = False  # the pipeline is running and may be interrupted
        self.stopped = threading.Event()
        self.asked_at: float | None = None

    def run(self) -> None:
        while not self.stopped.wait(BEAT_SECONDS):
            try:
                self.beat()
            except DatabaseTrouble as error:
                log.debug("heartbeat of run %s was not written: %s", self.context.run.pk, error)
                self.renew(error)
            overdue = self.asked_at is not None and time.monotonic() - self.asked_at > GRACE_SECONDS
            if overdue and self.main and self.working:
                os.kill(os.getpid(), signal.SIGUSR1)
        connection.close()

    def beat(self) -> None:
        """Read first: on SQLite, reading works while the pipeline holds the write lock."""
        if connection.connection is None and connection.vendor == "sqlite":
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA busy_timeout = 500")
        if result := self.context.look():
            (self.context.lost if result == "lost" else self.context.cancelled).set()
            self.asked_at = self.asked_at or time.monotonic()
        self.context.save()

    def renew(self, error: Exception) -> None:
        """Drop a broken connection. The pipeline's connection is most likely broken as well."""
        if isinstance(outages.explain(error), outages.DatabaseGone):
            outages.drop_connection()
            self.context.cut.set()

    def interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        """Raise in the main thread, between two bytecodes, while the pipeline runs there."""
        if self.working:
            self.context.stop_if_asked()

    def end(self, _signal: int, _frame: FrameType | None) -> None:
        """Interrupt the pipeline because this process shuts down. A run that is about to end is finished."""
        if self.working:
            self.working = False
            raise RunReturned


@contextlib.contextmanager
def _heartbeat(context: RunContext, by_worker: bool) -> Iterator[None]:
    if connection.in_atomic_block or (connection.vendor == "sqlite" and connection.is_in_memory_db()):
        # In tests: no other connection sees the row inside a caller's transaction, and those to a database in memory
        # fail ("table is locked") where others wait.
        yield
        return
    in_main_thread = threading.current_thread() is threading.main_thread()
    heart = _Heart(context, in_main_thread)
    handlers = {signal.SIGUSR1: heart.interrupt, **({signal.SIGTERM: heart.end} if by_worker else {})}
    previous: dict[int, Any] = {}
    if in_main_thread:
        previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    heart.start()
    try:
        try:
            heart.working = True
            yield
        finally:
            heart.working = False
    finally:
        # Two blocks, because the signal may arrive while the first is entered; the next comes a second later.
        heart.working = False
        heart.stopped.set()
        heart.join(timeout=40)
        for number, handler in previous.items():
            signal.signal(number, handler)


def execute_run(run_id: int, *, echo: Callable[[str], None] | None = None, by_worker: bool = False) -> Run | None:
    """Claim and execute a run. Returns it in its final state, or None if there was nothing to claim. `by_worker`: this
    process works for the queue, so the run goes back to it on TERM."""
    try:
        run = claim_run(run_id, in_turn=by_worker)
    except DatabaseTrouble as error:
        if (outage := outages.explain(error)) is None or connection.in_atomic_block:
            raise
        # It may have been claimed and only the response was lost.
        outages.persist(lambda: give_back_run(run_id, str(outage.title)), PATIENCE)
        return None
    if run is None:
        return None
    context = RunContext(run, echo)
    number = run_id_of_log.set(str(run.pk))
    try:
        state, fields = _work(run, context, by_worker)
        outages.persist(lambda: _end(run, context, state, fields), PATIENCE)
    except KeyboardInterrupt:
        if not by_worker:
            _stop(run)
        raise
    finally:
        run_id_of_log.reset(number)
    try:
        outages.persist(run.refresh_from_db, PATIENCE)
    except Run.DoesNotExist:  # the deletion of a project removes its own row
        run.state = state
    return run


def _stop(run: Run) -> None:
    """Cancel the run after Ctrl-C. Otherwise a worker would find it abandoned and continue it."""
    with contextlib.suppress(DatabaseTrouble):
        finish_run(run, Run.State.CANCELLED.value)


def _end(run: Run, context: RunContext, state: str, fields: dict[str, Any]) -> None:
    """Idempotent: a worker that lost its claim changes nothing."""
    context.save()
    if state == Run.State.QUEUED:
        give_back_run(run.pk, **fields)
    else:
        finish_run(run, state, **fields, **context.figures)


def _work(run: Run, context: RunContext, by_worker: bool) -> tuple[str, dict[str, Any]]:
    """Run the pipeline; turn its outcome into a state and a message for users."""
    try:
        pipeline = get_job(run.kind).load()
        with _heartbeat(context, by_worker), _skip_loaded_objects():
            result = pipeline(context, **run.params)
    except RunCancelled:
        return Run.State.CANCELLED.value, {}
    except RunLost:
        if not _is_gone(run):
            log.warning("run %s was given to another worker; this one stops", run.pk)
        return Run.State.CANCELLED.value, {}  # it changes nothing
    except RunReturned:
        return Run.State.QUEUED.value, {"why": "The worker was shut down", "free": True}
    except EvalappError as error:
        context.log(error.detail)
        faults = [fault.as_dict() for fault in error.faults[:1000]]
        return _fail(Run.Cause.INPUT.value, error.detail, faults=_storable(faults))
    except MemoryError:
        text = "The worker ran out of memory. Use smaller batches or a larger machine, then retry."
        return _fail(Run.Cause.MACHINE.value, text)
    except Exception as error:
        if (outage := outages.explain(error)) is not None:
            return _after_outage(run, context, outage, error)
        if _is_gone(run):
            log.info("run %s ends: its project was deleted", run.pk)
            return Run.State.CANCELLED.value, {}
        log.exception("run %s failed", run.pk)
        context.log(traceback.format_exc())
        text = f"Unexpected error ({type(error).__name__}: {error}). The log has the details; retry, and report it."
        return _fail(Run.Cause.UNEXPECTED.value, text)
    return Run.State.SUCCEEDED.value, {"result": _storable(result)}


@contextlib.contextmanager
def _skip_loaded_objects() -> Iterator[None]:
    """Keep full collections of garbage from visiting what exists before a run, mainly loaded modules: with Django and
    torch each takes a tenth of a second, and reading stored rows causes dozens."""
    was_frozen = _is_frozen()
    gc.freeze()
    try:
        yield
    finally:
        if not was_frozen:
            gc.unfreeze()


@functools.cache
def _is_frozen() -> bool:
    """Whether this process had excluded objects from collection before its first run: counting them takes up to half a
    second."""
    return gc.get_freeze_count() > 0


def _fail(cause: str, error: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return Run.State.FAILED.value, {"error": _storable(error), "cause": cause, **fields}


def _is_gone(run: Run) -> bool:
    """Return whether the project was deleted during the run, so that its rows have no project."""
    if run.kind == "delete" or (connection.in_atomic_block and connection.needs_rollback):
        return False
    with contextlib.suppress(DatabaseTrouble):
        return not Project.objects.filter(pk=run.project_id, deleting_at=None).exists()
    return False


def _storable(value: Any) -> Any:
    """Make a result storable in every database. NaN becomes null; NUL and half surrogate pairs become their code
    points. A run whose end cannot be written would stay in state running."""
    if isinstance(value, dict):
        return {_storable(key): _storable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(part) for part in value]
    if isinstance(value, str):
        return value.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _after_outage(run: Run, context: RunContext, outage: Unavailable, error: Exception) -> tuple[str, dict[str, Any]]:
    """After a database outage the run is repeated. After a full disk it fails, because nobody knows when there will be
    space."""
    outages.drop_connection()
    log.error("run %s: %s (%s)", run.pk, outage.title, " ".join(str(error).split()))
    if isinstance(outage, outages.DiskFull):
        context.log(f"{outage.title}: {error}")
        return _fail(Run.Cause.MACHINE.value, outage.detail)
    return Run.State.QUEUED.value, {"why": str(outage.title)}
