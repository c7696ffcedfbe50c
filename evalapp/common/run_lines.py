"""A run in words, for commands: one line, and following it until it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from .models import Run, RunLog
from .queue import queue_has_worker, words_of_waiting
from .templatetags.evalapp import per_second, thousands
from .templatetags.evalapp import span as duration

#: How often a followed run is looked at, in seconds.
INTERVAL = 0.5
#: Without a terminal there is a line every so many seconds.
QUIET = 10.0


def as_line(run: Run) -> str:
    parts = [f"{run.pk:>5}", f"{run.get_state_display():<9}", run.title]
    if run.state == Run.State.RUNNING:
        parts.append(progress_of(run))
    elif run.state == Run.State.FAILED:
        parts.append(run.error.splitlines()[0] if run.error else "")
    return "  ".join(part for part in parts if part)


def progress_of(run: Run) -> str:
    """`encoding  1 810 of 5 040 pairs  37.2/s  about 2 min left`."""
    words = [run.phase] if run.phase else []
    if run.total:
        words.append(f"{thousands(run.done)} of {thousands(run.total)} {run.unit}")
    elif run.done:
        words.append(f"{thousands(run.done)} {run.unit}")
    if run.rate:
        words.append(f"{per_second(run.rate)}/s")
    if run.seconds_left is not None:
        words.append(f"about {duration(run.seconds_left)} left")
    return "  ".join(words)


def follow_run(run: Run, say: Callable[[str], None]) -> Run:
    """Say what happens until the run ends: log lines at once, progress every few seconds. Ctrl-C ends only the
    following, and says so: the work is a worker's."""
    try:
        return _follow(run, say)
    except KeyboardInterrupt:
        stop = f"Stop it with: manage.py cancel {run.pk}. Follow it again with: manage.py run {run.pk} --follow"
        say(f"No longer followed, but not stopped: run {run.pk} goes on in its queue. {stop}")
        sys.exit(130)


def _follow(run: Run, say: Callable[[str], None]) -> Run:
    seen, spoken, told = 0, 0.0, ""
    warned = False
    while True:
        run.refresh_from_db()
        for line in RunLog.objects.filter(run=run, pk__gt=seen).order_by("pk"):
            say(line.text)
            seen = line.pk
        if not run.is_active:
            return run
        if run.state == Run.State.QUEUED and not warned and not queue_has_worker(run.queue):
            say(f"No worker is running for the queue {run.queue}: start one with manage.py up. The run waits.")
            warned = True
        words = progress_of(run) if run.state == Run.State.RUNNING else f"waiting, {words_of_waiting(run)}"
        if words and words != told and time.monotonic() - spoken >= (QUIET if spoken else 0):
            say(words)
            spoken, told = time.monotonic(), words
        time.sleep(INTERVAL)
