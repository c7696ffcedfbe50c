"""Runs as text for commands: one line each, and following a run until it ends."""

import sys
import time
from collections.abc import Callable

from .models import Run, RunLog
from .queue import explain_waiting, queue_has_worker
from .templatetags.evalapp import per_second, thousands
from .templatetags.evalapp import span as duration

#: Seconds between two looks at a followed run.
INTERVAL = 0.5
#: Seconds between two lines of progress.
QUIET = 10.0


def as_line(run: Run) -> str:
    parts = [f"{run.pk:>5}", f"{run.state_label:<9}", run.title]
    if run.state == Run.State.RUNNING:
        parts.append(format_progress(run))
    elif run.state == Run.State.FAILED:
        parts.append(run.error.splitlines()[0] if run.error else "")
    return "  ".join(part for part in parts if part)


def format_progress(run: Run) -> str:
    """Return the progress as text: `encoding  1,810 of 5,040 pairs  37.2/s  about 2 min left`."""
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
    """Report log lines and progress until the run ends. Ctrl-C ends only the reports; the run continues in its
    worker."""
    try:
        return _follow(run, say)
    except KeyboardInterrupt:
        stop = f"Stop it with: evalapp cancel {run.pk}. Follow it again with: evalapp run {run.pk} --follow"
        say(f"Run {run.pk} continues in its queue. {stop}")
        sys.exit(130)


def _follow(run: Run, say: Callable[[str], None]) -> Run:
    last_line, last_time, last_text = 0, 0.0, ""
    is_warned = False
    while True:
        run.refresh_from_db()
        for line in RunLog.objects.filter(run=run, pk__gt=last_line).order_by("pk"):
            say(line.text)
            last_line = line.pk
        if not run.is_active:
            return run
        if run.state == Run.State.QUEUED and not is_warned and not queue_has_worker(run.queue):
            say(f"No worker is running for the queue {run.queue}: start one with evalapp up. The run waits.")
            is_warned = True
        text = format_progress(run) if run.state == Run.State.RUNNING else f"waiting, {explain_waiting(run)}"
        if text and text != last_text and time.monotonic() - last_time >= (QUIET if last_time else 0):
            say(text)
            last_time, last_text = time.monotonic(), text
        time.sleep(INTERVAL)
