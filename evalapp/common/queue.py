"""Services of background runs: enqueue, claim, finish, cancel, retry, reconcile. The work itself is in the
rooms' pipelines; `runner` calls them."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import socket
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from . import audit
from .errors import Conflict
from .jobs import get_job
from .models import Run, RunLog, WorkerBeat

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
STALE = timedelta(seconds=30)
WORKER_STALE = timedelta(seconds=20)
RESEND = timedelta(seconds=30)


def input_hash(kind: str, project_id: int, params: dict[str, Any]) -> str:
    canonical = json.dumps([kind, project_id, params], sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


def enqueue_run(
    *, kind: str, project: Any, user: Any = None, params: dict[str, Any], title: str, send: bool = True
) -> Run:
    """A new run, or the one already waiting or running for the same input. It is sent after commit; with
    `send=False` the caller executes it itself (`--here`)."""
    job = get_job(kind)
    digest = input_hash(kind, project.pk, params)
    active = Run.objects.filter(input_hash=digest, state__in=Run.ACTIVE)
    if (found := active.first()) is not None:
        return found
    try:
        with transaction.atomic():
            run = Run.objects.create(
                project=project,
                kind=kind,
                title=title[:200],
                queue=job.queue,
                params=params,
                input_hash=digest,
                created_by=user if getattr(user, "pk", None) else None,
            )
            audit.record(verb="run.queued", project=project, actor=user, object=run)
    except IntegrityError:
        return active.get()
    if send:
        transaction.on_commit(lambda: send_run(run))
    return run


def send_run(run: Run) -> bool:
    """Tell the queue about a waiting run. A queue that is down is no error: the row waits and is sent later."""
    from evalapp.celery import app

    try:
        app.send_task("evalapp.run", args=[run.pk], queue=run.queue, retry=False)
    except Exception as error:  # noqa: BLE001 - kombu raises what its transport raises; all mean "queue is down"
        log.warning("run %s stays in the database: the queue cannot be reached (%s)", run.pk, error)
        return False
    Run.objects.filter(pk=run.pk).update(sent_at=timezone.now())
    return True


def worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def claim_run(run_id: int) -> Run | None:
    """Take a waiting run for this process; None when somebody else has it or it ended."""
    now = timezone.now()
    changed = Run.objects.filter(pk=run_id, state=Run.State.QUEUED).update(
        state=Run.State.RUNNING,
        attempt=F("attempt") + 1,
        worker=worker_name(),
        heartbeat=now,
        started_at=now,
        done=0,
        total=None,
        rate=None,
        phase="",
        error="",
        faults=[],
    )
    return Run.objects.select_related("project", "created_by").get(pk=run_id) if changed else None


def finish_run(run: Run, state: str, **fields: Any) -> bool:
    """End a run if this attempt still owns it (a lost worker that wakes up again must not)."""
    changed = Run.objects.filter(pk=run.pk, state=Run.State.RUNNING, attempt=run.attempt).update(
        state=state, finished_at=timezone.now(), **fields
    )
    return changed == 1


def cancel_run(*, run: Run, user: Any = None) -> Run:
    """A waiting run ends at once; a running one is asked to stop and does so within seconds."""
    now = timezone.now()
    with transaction.atomic():
        waiting = Run.objects.filter(pk=run.pk, state=Run.State.QUEUED).update(
            state=Run.State.CANCELLED, cancel_requested=True, finished_at=now
        )
        running = not waiting and Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).update(cancel_requested=True)
        if not waiting and not running:
            run.refresh_from_db()
            raise Conflict(f"The run has already ended: {run.get_state_display().lower()}.")
        audit.record(verb="run.cancelled", project=run.project, actor=user, object=run)
    run.refresh_from_db()
    return run


def retry_run(*, run: Run, user: Any = None) -> Run:
    """Put a failed or cancelled run back into the queue with fresh attempts."""
    try:
        with transaction.atomic():
            changed = Run.objects.filter(pk=run.pk, state__in=[Run.State.FAILED, Run.State.CANCELLED]).update(
                state=Run.State.QUEUED, attempt=0, cancel_requested=False, error="", faults=[], result=None,
                finished_at=None, started_at=None, worker="", done=0, total=None, rate=None, phase="",
                created_at=timezone.now(),
            )  # fmt: skip
            if not changed:
                raise Conflict("Only a failed or cancelled run can be tried again.")
            audit.record(verb="run.retried", project=run.project, actor=user, object=run)
    except IntegrityError as error:
        raise Conflict("The same work is already waiting or running.") from error
    run.refresh_from_db()
    transaction.on_commit(lambda: send_run(run))
    return run


def live_workers() -> list[WorkerBeat]:
    return list(WorkerBeat.objects.filter(at__gt=timezone.now() - WORKER_STALE).order_by("name"))


def queue_has_worker(queue: str) -> bool:
    return any(queue in beat.queues for beat in live_workers())


def queue_place(run: Run) -> int | None:
    """1 for the next run of its queue."""
    if run.state != Run.State.QUEUED:
        return None
    ahead = Run.objects.filter(state=Run.State.QUEUED, queue=run.queue, created_at__lt=run.created_at).count()
    return ahead + 1


def _owner_is_alive(run: Run) -> bool:
    """A worker on this machine that cannot write its heartbeat (SQLite is busy) is seen by its process."""
    host, _, pid = run.worker.rpartition(":")
    if host != socket.gethostname() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def reconcile_runs() -> dict[str, int]:
    """Return the runs of dead workers to the queue, and tell the queue again about runs it has forgotten."""
    now = timezone.now()
    counts = {"returned": 0, "failed": 0, "cancelled": 0, "resent": 0}
    for run in Run.objects.filter(state=Run.State.RUNNING, heartbeat__lt=now - STALE).select_related("project"):
        if _owner_is_alive(run):
            continue
        mine = Run.objects.filter(pk=run.pk, state=Run.State.RUNNING, attempt=run.attempt)
        if run.cancel_requested:
            counts["cancelled"] += mine.update(state=Run.State.CANCELLED, finished_at=now)
        elif run.attempt >= MAX_ATTEMPTS:
            lost = f"The worker was lost {run.attempt} times. See the log, then retry."
            counts["failed"] += mine.update(state=Run.State.FAILED, finished_at=now, error=lost)
        elif mine.update(state=Run.State.QUEUED, worker="", heartbeat=None):
            RunLog.objects.create(run=run, text=f"The worker {run.worker} was lost; the run goes back to the queue.")
            counts["returned"] += 1
            send_run(run)
    for run in Run.objects.filter(state=Run.State.QUEUED):
        if (run.sent_at is None or run.sent_at < now - RESEND) and queue_has_worker(run.queue):
            # A second message does no harm: the run is claimed by one conditional update.
            counts["resent"] += send_run(run)
    WorkerBeat.objects.filter(at__lt=now - timedelta(days=1)).delete()
    return counts
