"""Health and workload for load balancers, Prometheus and `evalapp doctor`. Responses take bounded time and do not
reveal hosts or errors."""

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseTrouble
from django.db import connection
from django.db.models import Count, Min
from django.utils import timezone

from .audit_chain import waiting
from .jobs import QUEUES
from .models import Run
from .queue import list_served_queues

SECONDS = 1.0
#: The database is asked over a new connection.
DATABASE_SECONDS = 1.5


def parts() -> dict[str, bool]:
    """Return part -> whether it works. Without database and disk, no page works."""
    has_room = free_bytes() > settings.MIN_FREE_BYTES
    state = {"database": _database(), "queue": _queue(), "index": _index(), "disk": has_room}
    state["workers"] = state["database"] and list_served_queues() >= set(QUEUES)
    return state


def is_ready(state: dict[str, bool]) -> bool:
    """Return whether pages work; they report other missing parts where they need them."""
    return state["database"] and state["disk"]


def free_bytes() -> int:
    return shutil.disk_usage(settings.DATA_DIR).free


def _database() -> bool:
    """Ask the database in a thread, because a server that hangs does not respond and callers must not wait as long as a
    page. Concurrent callers share the response."""
    if connection.vendor == "sqlite":
        return _answers()
    global _asked
    with _asking:
        if _asked is None or _asked.done():
            _asked = Future()
            threading.Thread(target=_ask, args=(_asked,), daemon=True, name="health").start()
        asked = _asked
    try:
        return asked.result(DATABASE_SECONDS)
    except TimeoutError:
        return False


_asking = threading.Lock()
_asked: Future[bool] | None = None


def _ask(asked: Future[bool]) -> None:
    result = False
    try:
        result = _answers()
        connection.close()
    finally:
        asked.set_result(result)


def _answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseTrouble:
        return False
    return True


def _queue() -> bool:
    import redis

    try:
        redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=SECONDS, socket_timeout=SECONDS).ping()
    except redis.RedisError:
        return False
    return True


def _index() -> bool:
    """Return whether the search server works; indexes in files need none."""
    if not settings.ELASTICSEARCH_URL:
        return True
    import socket
    from urllib.parse import urlsplit

    place = urlsplit(settings.ELASTICSEARCH_URL)
    try:
        with socket.create_connection((place.hostname or "", place.port or 9200), timeout=SECONDS):
            return True
    except OSError:
        return False


# ---- Prometheus -------------------------------------------------------------------------------------------

Sample = tuple[dict[str, str], float]


def metrics() -> Iterator[tuple[str, str, list[Sample]]]:
    """Return (name, help, samples). All are gauges, because they are read from the database."""
    result = parts()
    yield "evalapp_info", "The version that runs.", [({"version": settings.VERSION}, 1)]
    yield "evalapp_up", "Whether a part works.", [({"part": name}, float(works)) for name, works in result.items()]
    yield "evalapp_disk_free_bytes", "Room in the data folder.", [({}, free_bytes())]
    if not result["database"]:
        return
    served = list_served_queues()
    yield (
        "evalapp_queue_served",
        "Whether a worker serves a queue.",
        [({"queue": queue}, float(queue in served)) for queue in QUEUES],
    )
    states = Run.objects.order_by().values("kind", "state").annotate(n=Count("pk"))
    yield (
        "evalapp_runs",
        "Background runs.",
        [({"kind": row["kind"], "state": row["state"]}, row["n"]) for row in states.order_by("kind", "state")],
    )
    now = timezone.now()
    oldest = Run.objects.filter(state=Run.State.QUEUED).order_by("queue").values("queue").annotate(at=Min("created_at"))
    yield (
        "evalapp_run_waiting_seconds",
        "Waiting time of the oldest run of a queue.",
        [({"queue": row["queue"]}, round((now - row["at"]).total_seconds(), 1)) for row in oldest],
    )
    yield "evalapp_audit_unsealed", "Unsealed entries of the audit log.", [({}, waiting())]


def exposition() -> str:
    """Return Prometheus' text format."""
    lines = []
    for name, words, samples in metrics():
        lines += [f"# HELP {name} {words}", f"# TYPE {name} gauge"]
        for labels, value in samples:
            named = ",".join(f'{key}="{_quoted(text)}"' for key, text in labels.items())
            lines.append(f"{name}{{{named}}} {value:.12g}" if named else f"{name} {value:.0f}")
    return "\n".join([*lines, ""])


def _quoted(text: Any) -> str:
    return str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
