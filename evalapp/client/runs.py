"""Background runs: follow, cancel, try again, read the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalapp.client.errors import ConnectionFailed, Fault, NotFinished, RunCancelled, RunFailed, Unavailable, expecting
from evalapp.client.session import Session

ENDED = frozenset({"succeeded", "failed", "cancelled"})
#: A poll asks again after this many seconds at first, then ever less often.
FIRST_POLL, LONGEST_POLL = 0.25, 5.0
#: A server that was there is waited for as long as this, so that its restart does not end an overnight wait.
LONGEST_OUTAGE = 300.0


@dataclass(frozen=True)
class Progress:
    """How far something is: `done` of `total` (None: unknown) in `unit`, at `rate` units per second."""

    phase: str
    done: int
    total: int | None
    unit: str = ""
    rate: float | None = None
    seconds_left: float | None = None

    @property
    def share(self) -> float | None:
        """From 0 to 1; None while the total is unknown."""
        return min(1.0, self.done / self.total) if self.total else None

    @classmethod
    def from_wire(cls, row: Mapping[str, Any] | None, phase: str = "") -> Progress:
        row = row or {}
        return cls(
            phase=str(row.get("phase") or phase),
            done=int(row.get("done") or 0),
            total=row.get("total"),
            unit=str(row.get("unit") or ""),
            rate=row.get("rate"),
            seconds_left=row.get("seconds_left"),
        )


OnProgress = Callable[[Progress], None]


class Poll:
    """Somebody who waits: looks again after growing pauses, never beyond the deadline, and sits out an outage."""

    def __init__(self, what: str, timeout: float | None) -> None:
        self._what, self._timeout = what, timeout
        self._until = None if timeout is None else time.monotonic() + timeout
        self._pause = FIRST_POLL
        self._seen: float | None = None

    def look(self, ask: Callable[[float | None], object]) -> bool:
        """Ask, with the moment by which that must end; False when there was no answer by then, or while a server that
        has answered before cannot be reached. Raises its error when that lasts."""
        try:
            ask(self._until)
        except (ConnectionFailed, Unavailable):
            is_over = self._until is not None and time.monotonic() >= self._until
            if not is_over and (self._seen is None or time.monotonic() - self._seen > LONGEST_OUTAGE):
                raise
            return False
        self._seen = time.monotonic()
        return True

    def rest(self, state: str) -> None:
        """Sleep until it is time to ask again. Raises NotFinished when the time is over."""
        pause = self._pause
        self._pause = min(LONGEST_POLL, self._pause * 1.5)
        if self._timeout is not None and self._until is not None:
            left = self._until - time.monotonic()
            if left <= 0:
                raise NotFinished(self._what, self._timeout, state)
            pause = min(pause, left)
        time.sleep(pause)


@dataclass
class Run:
    """A run as it was when last asked for; `refresh` asks again."""

    _session: Session = field(repr=False, compare=False)
    id: int
    project: str = ""
    kind: str = ""
    title: str = ""
    state: str = ""
    attempt: int = 0
    progress: Progress = field(default_factory=lambda: Progress("", 0, None))
    result: Any = None
    error: str = ""
    errors: tuple[Fault, ...] = ()
    queue_place: int | None = None
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    @expecting("a run")
    def from_wire(cls, session: Session, row: Mapping[str, Any]) -> Run:
        run = cls(session, int(row["id"]))
        run._take(row)
        return run

    @expecting("a run")
    def _take(self, row: Mapping[str, Any]) -> None:
        self.raw = dict(row)
        self.project, self.kind, self.title = str(row["project"]), str(row["kind"]), str(row["title"])
        self.state, self.attempt = str(row["state"]), int(row["attempt"])
        self.progress = Progress.from_wire(row.get("progress"), str(row.get("phase") or ""))
        self.result, self.error = row.get("result"), str(row.get("error") or "")
        self.errors = tuple(Fault.from_wire(fault) for fault in row.get("errors") or ())
        self.queue_place = row.get("queue_place")

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    def refresh(self) -> Run:
        return self._look(None)

    def _look(self, until: float | None) -> Run:
        self._take(self._session.get(f"runs/{self.id}/", until=until))
        return self

    def wait(self, *, progress: OnProgress | None = None, timeout: float | None = None) -> Run:
        """Wait until the run has ended well; `progress` is called after every look.

        Raises RunFailed, RunCancelled, and NotFinished when `timeout` seconds have passed; the run goes on then.
        """
        poll = Poll(f"run {self.id} ({self.title})", timeout)
        while not ((here := poll.look(self._look)) and self.has_ended):
            if progress is not None and here:
                progress(self.progress)
            poll.rest(self.state)
        if self.state == "failed":
            raise RunFailed(self)
        if self.state == "cancelled":
            raise RunCancelled(self)
        if progress is not None:
            progress(self.progress)
        return self

    def cancel(self) -> Run:
        """A waiting run ends at once, a running one within seconds. Conflict when it has ended already."""
        self._take(self._session.post(f"runs/{self.id}/cancel/"))
        return self

    def retry(self) -> Run:
        """Queue a failed or cancelled run again. Conflict when it is neither."""
        self._take(self._session.post(f"runs/{self.id}/retry/"))
        return self

    def log(self) -> list[str]:
        """The end of the run's log, oldest line first."""
        self.refresh()
        with expecting("the log of a run"):
            return [str(line["text"]) for line in self.raw.get("log") or ()]
