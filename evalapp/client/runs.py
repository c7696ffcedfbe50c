"""Background runs: wait, cancel, retry, read the log."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from evalapp.client.errors import ConnectionFailed, Fault, NotFinished, RunCancelled, RunFailed, Unavailable, expecting
from evalapp.client.progress import OnProgress, Progress, make_callback
from evalapp.client.resources import Resource

ENDED = frozenset({"succeeded", "failed", "cancelled"})
#: Seconds between two polls, at first and at most.
FIRST_POLL, LONGEST_POLL = 0.25, 5.0
#: Seconds to wait for a server that has responded before, so that a restart does not end an overnight wait.
LONGEST_OUTAGE = 300.0


class Poll:
    """Polls with growing pauses up to a deadline of `timeout` seconds (None: no limit) and tolerates outages of the
    server. `what` is the subject of error messages."""

    def __init__(self, what: str, timeout: float | None) -> None:
        self._what, self._timeout = what, timeout
        self._until = None if timeout is None else time.monotonic() + timeout
        self._pause = FIRST_POLL
        self._last_response: float | None = None

    def look(self, ask: Callable[[float | None], object]) -> bool:
        """Call `ask` with the deadline. Returns False without a response by then, or while a server that has responded
        before cannot be reached; raises its error if that lasts longer than `LONGEST_OUTAGE`."""
        try:
            ask(self._until)
        except (ConnectionFailed, Unavailable):
            is_over = self._until is not None and time.monotonic() >= self._until
            last = self._last_response
            if not is_over and (last is None or time.monotonic() - last > LONGEST_OUTAGE):
                raise
            return False
        self._last_response = time.monotonic()
        return True

    def rest(self, state: str) -> None:
        """Sleep until the next poll. Raises `NotFinished`, with the last `state`, after the deadline."""
        pause = self._pause
        self._pause = min(LONGEST_POLL, self._pause * 1.5)
        if self._timeout is not None and self._until is not None:
            left = self._until - time.monotonic()
            if left <= 0:
                raise NotFinished(self._what, self._timeout, state)
            pause = min(pause, left)
        time.sleep(pause)


@dataclass(repr=False)
class Run(Resource):
    """A background run, as it was when last requested."""

    _noun, _folder = "a run", "runs"

    project: str = ""
    kind: str = ""
    title: str = ""
    state: str = ""
    attempt: int = 0
    progress: Progress = field(default_factory=lambda: Progress("", 0, None))
    result: Any = None
    error: str = ""
    #: Why it failed: `input` (the request or the data), `machine` (memory, disk, lost workers) or `unexpected`.
    cause: str = ""
    errors: tuple[Fault, ...] = ()
    queue_place: int | None = None

    def _read(self, row: Mapping[str, Any]) -> None:
        self.project, self.kind, self.title = str(row["project"]), str(row["kind"]), str(row["title"])
        self.state, self.attempt = str(row["state"]), int(row["attempt"])
        self.progress = Progress.from_wire(row.get("progress"), str(row.get("phase") or ""))
        self.result, self.error = row.get("result"), str(row.get("error") or "")
        self.cause = str(row.get("cause") or "")
        self.errors = tuple(Fault.from_wire(fault) for fault in row.get("errors") or ())
        self.queue_place = row.get("queue_place")

    def _describe(self) -> dict[str, Any]:
        share = self.progress.share
        return {
            "title": self.title, "project": self.project, "kind": self.kind, "state": self.state,
            "progress": "" if share is None or self.has_ended else f"{share:.0%}", "error": self.error,
        }  # fmt: skip

    @property
    def has_ended(self) -> bool:
        """Whether the run has succeeded, failed or been cancelled."""
        return self.state in ENDED

    def wait(self, *, progress: OnProgress | None = None, timeout: float | None = None) -> Self:
        """Wait until the run has succeeded; return it. `progress` is called with a `Progress` after each poll; True
        shows a bar.

        Raises `RunFailed`, `RunCancelled`, and `NotFinished` after `timeout` seconds (None: no limit); the run
        continues then.

            run = project.score("bleu-4").wait(progress=print, timeout=600)
        """
        report, poll = make_callback(progress), Poll(f"run {self.id} ({self.title})", timeout)
        while not ((has_response := poll.look(self._fetch)) and self.has_ended):
            if report is not None and has_response:
                report(self.progress)
            poll.rest(self.state)
        if self.state == "failed":
            raise RunFailed(self)
        if self.state == "cancelled":
            raise RunCancelled(self)
        if report is not None:
            report(self.progress)
        return self

    def cancel(self) -> Self:
        """Cancel the run: a waiting one ends at once, a running one within seconds. Raises `Conflict` after its end."""
        return self._post("cancel")

    def retry(self) -> Self:
        """Return a failed or cancelled run to the queue. Raises `Conflict` for other states."""
        return self._post("retry")

    def _post(self, action: str) -> Self:
        self._update(self._session.post(f"{self._path}{action}/"))
        return self

    def log(self) -> list[str]:
        """Return the last lines of the log, oldest first."""
        self.refresh()
        with expecting("the log of a run"):
            return [str(line["text"]) for line in self.raw.get("log") or ()]
