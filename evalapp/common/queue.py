"""Background runs: enqueue, claim, finish, cancel, retry, reconcile. `runner` executes them; the work itself is in the
pipelines of the apps."""

import hashlib
import json
import logging
import os
import secrets
import socket
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from evalapp.common.naming import in_sentence

from . import audit
from .errors import Conflict
from .hooks import RUN_ENDED
from .jobs import FALLBACK, find_job, get_job, tidy_up
from .models import Run, RunLog, WorkerBeat
from .outages import DiskFull, explain
from .outbox import send_message

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
STALE = timedelta(seconds=30)
#: A run of a dead process on this machine is taken back after GONE. A process that exists but writes no heartbeat
#: (SQLite is busy) is trusted for SILENT; after that its id may belong to another process.
GONE = timedelta(seconds=5)
SILENT = timedelta(minutes=10)
WORKER_STALE = timedelta(seconds=20)
RESEND = timedelta(seconds=30)
#: While a run is being cancelled, this many characters of its hash are followed by its id, so that the same input can
#: be requested again and the new run waits for the end of the old one.
KEPT = 40


def input_hash(kind: str, project_id: int, params: dict[str, Any]) -> str:
    canonical = json.dumps([kind, project_id, params], sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


def enqueue_run(
    *, kind: str, project: Any, user: Any = None, params: dict[str, Any], title: str, send: bool = True, queue: str = ""
) -> Run:
    """Return a new run, or the one that is already waiting or running for the same input. A run that is being cancelled
    does not count; the new one waits for its end. It is sent after commit; with `send=False` the caller executes it
    (`--here`). `queue` overrides the queue of the kind."""
    job = get_job(kind)
    digest = input_hash(kind, project.pk, params)
    while True:
        if (active := Run.objects.filter(input_hash=digest, state__in=Run.ACTIVE).first()) is not None:
            return active
        try:
            with transaction.atomic():
                run = Run.objects.create(
                    project=project,
                    kind=kind,
                    title=title[:200],
                    queue=queue or job.queue,
                    params=params,
                    input_hash=digest,
                    created_by=user if getattr(user, "pk", None) else None,
                )
                audit.record(verb="run.queued", project=project, actor=user, object=run)
        except IntegrityError:
            continue  # another request was faster; use its run, unless it has ended
        break
    if send:
        transaction.on_commit(lambda: send_run(run))
    return run


def send_run(run: Run) -> bool:
    """Send a waiting run to its queue, or to the one that stands in for it. Returns False if Redis cannot be reached;
    the run is sent later."""
    if run.queue in FALLBACK and run.queue != (queue := _find_served(run.queue)):
        run.queue = queue
        Run.objects.filter(pk=run.pk, state=Run.State.QUEUED).update(queue=queue)
    if not send_message(run, "evalapp.run", run.queue):
        return False
    Run.objects.filter(pk=run.pk).update(sent_at=timezone.now())
    return True


def worker_name() -> str:
    """Return machine, process id, and start time of the process: restarted containers reuse process ids."""
    pid = os.getpid()
    return ":".join([socket.gethostname(), str(pid), *_stat(pid)[_BEGAN : _BEGAN + 1]])


#: Fields of /proc/PID/stat after the name in parentheses: the state, and the clock tick at which the process started.
_STATE, _BEGAN = 0, 19


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat; an empty list on systems without /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def claim_run(run_id: int, *, in_turn: bool = False) -> Run | None:
    """Claim a waiting run for this process. Returns None if another process has it or it has ended. With `in_turn` also
    if a run with the same input is still being cancelled; its end sends this one again."""
    if in_turn and _is_early(run_id):
        return None
    now = timezone.now()
    changed = Run.objects.filter(pk=run_id, state=Run.State.QUEUED).update(
        state=Run.State.RUNNING,
        attempt=F("attempt") + 1,
        claim=secrets.randbits(63),
        worker=worker_name(),
        heartbeat=now,
        started_at=now,
        done=0,
        total=None,
        rate=None,
        phase="",
        error="",
        cause="",
        faults=[],
    )
    return Run.objects.select_related("project", "created_by").get(pk=run_id) if changed else None


def _is_early(run_id: int) -> bool:
    digest = Run.objects.filter(pk=run_id, state=Run.State.QUEUED).values_list("input_hash", flat=True).first()
    if digest is None:
        return False
    return Run.objects.filter(state=Run.State.RUNNING, input_hash__startswith=f"{digest[:KEPT]}:").exists()


def _send_next(run: Run) -> None:
    """Send the runs with the same input that were requested while this one was being cancelled."""
    digest = input_hash(run.kind, run.project_id, run.params)
    for waiting in Run.objects.filter(state=Run.State.QUEUED, input_hash=digest).exclude(pk=run.pk):
        send_run(waiting)


def held(run: Run) -> QuerySet[Run]:
    """Return the row while it is running under the claim with which `run` was read; empty if another worker has it."""
    return Run.objects.filter(pk=run.pk, state=Run.State.RUNNING, claim=run.claim)


def finish_run(run: Run, state: str, **fields: Any) -> bool:
    """End a run if this claim still owns it; a worker that was given up as lost must not. Without success, its
    leftovers are removed in the same transaction: otherwise a crash in between would leave an upload in state checking,
    or a late cleanup would remove files of the retried run. Waiting runs are always sent: this may be a second attempt
    after the database failed in between."""
    try:
        changed = _write_end(run, state, fields, is_reported=True)
    except Exception as error:
        outage = explain(error)
        if outage is not None and not isinstance(outage, DiskFull):
            raise  # callers try again
        # The result is worth more than its event: without space for both, or if the event cannot be recorded, the run
        # ends without it.
        changed = _write_end(run, state, fields, is_reported=False)
        log.error("the end of run %s is not reported: %s", run.pk, error, exc_info=outage is None)
    _send_next(run)
    return changed


def _write_end(run: Run, state: str, fields: dict[str, Any], *, is_reported: bool) -> bool:
    with transaction.atomic():
        changed = held(run).update(state=state, finished_at=timezone.now(), **fields)
        if changed and state != Run.State.SUCCEEDED:
            run.refresh_from_db()
            tidy_up(run)
        if changed and is_reported:
            RUN_ENDED.call(run=run, state=state)
    return changed == 1


def cancel_run(*, run: Run, user: Any = None) -> Run:
    """Cancel a run: a waiting one ends at once, a running one within seconds."""
    now = timezone.now()
    with transaction.atomic():
        waiting = Run.objects.filter(pk=run.pk, state=Run.State.QUEUED).update(
            state=Run.State.CANCELLED, cancel_requested=True, finished_at=now
        )
        running = not waiting and Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).update(
            cancel_requested=True, input_hash=f"{run.input_hash[:KEPT]}:{run.pk}"
        )
        if not waiting and not running:
            run.refresh_from_db()
            raise Conflict(_("The run has already ended: %(state)s.") % {"state": in_sentence(run.get_state_display())})
        audit.record(verb="run.cancelled", project=run.project, actor=user, object=run)
        # The user's name is in the audit, where it can be erased; the log keeps its text.
        RunLog.objects.create(run=run, text="Cancelled before it began." if waiting else "Cancelled; it stops soon.")
        run.refresh_from_db()
        if waiting:
            tidy_up(run)
    return run


def retry_run(*, run: Run, user: Any = None) -> Run:
    """Put a failed or cancelled run back into the queue with new attempts, unless its input has been removed."""
    job = find_job(run.kind)
    if run.state in (Run.State.FAILED, Run.State.CANCELLED) and job is not None and job.is_spent(run):
        raise Conflict(_("The input of this run has been removed. Send it again."))
    try:
        with transaction.atomic():
            changed = Run.objects.filter(pk=run.pk, state__in=[Run.State.FAILED, Run.State.CANCELLED]).update(
                state=Run.State.QUEUED, attempt=0, cancel_requested=False, error="", cause="", faults=[], result=None,
                finished_at=None, started_at=None, worker="", heartbeat=None, sent_at=None, done=0, total=None,
                rate=None, phase="", created_at=timezone.now(),
                input_hash=input_hash(run.kind, run.project_id, run.params),
            )  # fmt: skip
            if not changed:
                raise Conflict(_("Only a failed or cancelled run can be retried."))
            audit.record(verb="run.retried", project=run.project, actor=user, object=run)
    except IntegrityError as error:
        raise Conflict(_("An identical run is already waiting or running.")) from error
    run.refresh_from_db()
    transaction.on_commit(lambda: send_run(run))
    return run


def live_workers() -> list[WorkerBeat]:
    return list(WorkerBeat.objects.filter(at__gt=timezone.now() - WORKER_STALE).order_by("name"))


def list_served_queues() -> set[str]:
    """Return the queues whose runs a running worker takes."""
    own = _list_own_queues()
    return own | {queue for queue, other in FALLBACK.items() if other in own}


def _list_own_queues() -> set[str]:
    return {queue for beat in live_workers() for queue in beat.queues}


def _find_served(queue: str) -> str:
    """Return the queue that takes the runs of `queue` now: itself if a worker serves it, or if none serves either."""
    own, other = _list_own_queues(), FALLBACK.get(queue, queue)
    return other if queue not in own and other in own else queue


def queue_has_worker(queue: str) -> bool:
    return queue in list_served_queues()


def queue_place(run: Run) -> int | None:
    """Return the position of a waiting run in its queue, from 1."""
    if run.state != Run.State.QUEUED:
        return None
    ahead = Run.objects.filter(state=Run.State.QUEUED, queue=run.queue, created_at__lt=run.created_at).count()
    return ahead + 1


def explain_waiting(run: Run) -> str:
    """Return a text on why a run waits: `place 3 in its queue; before it: Training (running), Export (2)`."""
    place = queue_place(run)
    if place is None:
        return ""
    # A worker of several queues is also busy with runs of the others.
    shared = {queue for beat in live_workers() if run.queue in beat.queues for queue in beat.queues} | {run.queue}
    ahead = Q(state=Run.State.QUEUED, queue=run.queue, created_at__lt=run.created_at)
    running = Q(state=Run.State.RUNNING, queue__in=shared)
    rows = Run.objects.filter(ahead | running).order_by().values("state", "kind").annotate(n=Count("pk"))
    before = ", ".join(
        _describe_ahead(row["kind"], row["n"], row["state"] == Run.State.RUNNING)
        for row in sorted(rows, key=lambda row: (row["state"] != Run.State.RUNNING, row["kind"]))
    )
    if place == 1:
        return _("next in its queue, after: %(runs)s") % {"runs": before} if before else _("next in its queue")
    return _("place %(place)d in its queue; before it: %(runs)s") % {"place": place, "runs": before}


def _describe_ahead(kind: str, n: int, is_running: bool) -> str:
    job = find_job(kind)
    text = _("%(kind)s (running)") if is_running else "%(kind)s"
    if n > 1:
        text = _("%(kind)s (%(n)d running)") if is_running else _("%(kind)s (%(n)d)")
    return text % {"kind": job.name if job else kind, "n": n}


def _owner(run: Run) -> str:
    return state_of_process(run.worker)


def state_of_process(name: str) -> str:
    """Return the state of the process in a `worker_name`: `gone`, `silent` (it exists, but may be busy) or `elsewhere`
    (on another machine)."""
    host, _, process = name.partition(":")
    pid, _, began = process.partition(":")
    if host != socket.gethostname() or not pid.isdigit():
        return "elsewhere"
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return "gone"
    except PermissionError:
        pass
    stat = _stat(int(pid))
    # A zombie has ended; a process with another start time only reuses the id.
    is_gone = stat and (stat[_STATE] == "Z" or (began and stat[_BEGAN] != began))
    return "gone" if is_gone else "silent"


def _is_lost(run: Run, now: datetime) -> bool:
    age = now - (run.heartbeat or run.started_at or run.created_at)
    if age < GONE:
        return False
    return age > {"gone": GONE, "elsewhere": STALE, "silent": SILENT}[_owner(run)]


def _return_run(run: Run, now: datetime, why: str = "", *, free: bool = False) -> str:
    """Take a run from a worker that is dead or could not finish it (`why`). Returns its new state, or an empty text if
    another process was faster. `free`: it does not count as an attempt."""
    if run.cancel_requested:
        return Run.State.CANCELLED.value if finish_run(run, Run.State.CANCELLED.value) else ""
    if run.attempt >= MAX_ATTEMPTS and not free:
        lost = f"{why}, {run.attempt} times" if why else f"The worker was lost {run.attempt} times"
        error = f"{lost}. See the log, then retry."
        ended = finish_run(run, Run.State.FAILED.value, error=error, cause=Run.Cause.MACHINE.value)
        return Run.State.FAILED.value if ended else ""
    with transaction.atomic():
        attempt = run.attempt - free
        if not held(run).update(state=Run.State.QUEUED, worker="", heartbeat=None, attempt=attempt):
            return ""
        happened = why or f"The worker {run.process} was lost"
        RunLog.objects.create(run=run, text=f"{happened}; the run goes back to the queue.")
    return "returned"


def give_back_run(run_id: int, why: str, *, free: bool = False) -> None:
    """Return a run that this process could not finish, or does not know whether it claimed. Idempotent."""
    run = Run.objects.select_related("project").filter(pk=run_id).first()
    if run is not None and run.state == Run.State.RUNNING and run.worker == worker_name():
        _return_run(run, timezone.now(), why, free=free)
        run.refresh_from_db()
    if run is not None and run.state == Run.State.QUEUED:
        send_run(run)


def return_lost_run(run_id: int) -> bool:
    """Return whether a run may be claimed again: the queue delivers it a second time when its worker process has
    died."""
    run = Run.objects.filter(pk=run_id, state=Run.State.RUNNING).first()
    if run is None or _owner(run) != "gone":
        return False
    return _return_run(run, timezone.now()) == "returned"


def return_all_running() -> dict[str, int]:
    """Return all running runs after a restore, because their workers do not exist here. Returns counts by new state."""
    now, counts = timezone.now(), {"returned": 0, "failed": 0, "cancelled": 0}
    for run in Run.objects.filter(state=Run.State.RUNNING):
        if outcome := _return_run(run, now, "The installation was restored from a backup", free=True):
            counts[outcome] += 1
    return counts


def _waiting_messages(queue: str) -> int | None:
    """Return the number of messages in a Redis queue; None if Redis cannot be reached."""
    import redis

    try:
        client = redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=2, socket_timeout=2)
        return int(client.llen(queue))
    except redis.RedisError:
        return None


def reconcile_runs() -> dict[str, int]:
    """Return the runs of dead workers to the queue, and resend runs that the queue has lost."""
    now = timezone.now()
    counts = {"returned": 0, "failed": 0, "cancelled": 0, "resent": 0}
    for run in Run.objects.filter(state=Run.State.RUNNING, heartbeat__lt=now - GONE).select_related("project"):
        try:
            outcome = _return_run(run, now) if _is_lost(run, now) else ""
        except OSError as error:
            # Its files cannot be removed now: try again next time, without delaying other runs.
            log.error("run %s cannot be taken from its lost worker: %s", run.pk, error)
            continue
        if outcome:
            counts[outcome] += 1
            if outcome == "returned":
                send_run(run)
    forgotten = Run.objects.filter(state=Run.State.QUEUED).filter(Q(sent_at=None) | Q(sent_at__lt=now - RESEND))
    for queue in forgotten.order_by().values_list("queue", flat=True).distinct():
        # A queue with messages is only long; an empty queue with waiting runs has lost their messages. Messages in a
        # queue that another stands in for are read by nobody. A duplicate message is harmless, because a run is claimed
        # by a conditional update.
        if queue_has_worker(queue) and (_find_served(queue) != queue or _waiting_messages(queue) == 0):
            for run in forgotten.filter(queue=queue).order_by("created_at"):
                counts["resent"] += send_run(run)
    WorkerBeat.objects.filter(at__lt=now - timedelta(days=1)).delete()
    return counts
