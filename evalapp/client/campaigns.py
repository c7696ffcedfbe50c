"""Campaigns: plan, open, watch, and judge by program."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from evalapp.client.errors import WrongOrder, expecting
from evalapp.client.rows import Flag, Judgement, Rows
from evalapp.client.runs import OnProgress, Run
from evalapp.client.session import Session, segment, whole


@dataclass
class Campaign:
    """A campaign as it was when last asked for; `raw` has all that the API says of it."""

    _session: Session = field(repr=False, compare=False)
    id: int
    project: str = ""
    slug: str = ""
    name: str = ""
    kind: str = ""
    state: str = ""
    unit_count: int = 0
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    @expecting("a campaign")
    def from_wire(cls, session: Session, row: Mapping[str, Any]) -> Campaign:
        campaign = cls(session, int(row["id"]))
        campaign._take(row)
        return campaign

    @expecting("a campaign")
    def _take(self, row: Mapping[str, Any]) -> None:
        self.raw.update(row)
        self.project, self.slug, self.name = str(row["project"]), str(row["slug"]), str(row["name"])
        self.kind, self.state = str(row["kind"]), str(row["state"])
        self.unit_count = int(row.get("unit_count") or 0)

    @property
    def _path(self) -> str:
        return f"campaigns/{self.id}/"

    def refresh(self) -> Campaign:
        self._take(self._session.get(self._path))
        return self

    def update(self, **changes: Any) -> Campaign:
        """A draft in any part; later only name, guidelines, limits and options."""
        self._take(self._session.call("PATCH", self._path, json=changes))
        return self

    def delete(self) -> None:
        """Conflict once there are judgements."""
        self._session.call("DELETE", self._path)

    def open(self, *, progress: OnProgress | None = None, timeout: float | None = None) -> Campaign:
        """Make the units and let people in. A large campaign is opened by a worker, which is waited for. Raises as
        `Run.wait` does."""
        self._move("open")
        number = self.raw.get("opening")
        if self.state == "draft" and number is not None:
            run = Run.from_wire(self._session, self._session.get(f"runs/{segment(number)}/"))
            run.wait(progress=progress, timeout=timeout)
            self.refresh()
        return self

    def pause(self) -> Campaign:
        return self._move("pause")

    def resume(self) -> Campaign:
        return self._move("resume")

    def close(self) -> Campaign:
        return self._move("close")

    def _move(self, move: str) -> Campaign:
        self._take(self._session.post(f"{self._path}{move}/"))
        return self

    def progress(self) -> dict[str, Any]:
        """Units, judgements, time, agreement by aspect, annotators."""
        row = self._session.get(f"{self._path}progress/")
        with expecting("the progress of a campaign"):
            return {**row}

    def judgements(self, *, current: bool = True) -> Rows[Judgement]:
        """Newest first; every version of every answer unless `current`."""
        return Rows(self._session, f"{self._path}judgements/", {"current": "1" if current else None})

    def flags(self) -> Rows[Flag]:
        """What annotators flagged, newest first."""
        return Rows(self._session, f"{self._path}flags/")

    def resolve(self, flag: int) -> Flag:
        """A flag has been dealt with."""
        row = self._session.post(f"flags/{whole(flag)}/resolve/")
        with expecting("a flag"):
            return cast(Flag, {**row})

    # ---- judging ------------------------------------------------------------------------------------------------

    def next(self) -> Assignment | None:
        """The assignment to judge now; None when nothing is left. Asking again gives the same one until it is
        answered. Conflict while the campaign is not open."""
        row = self._session.post(f"{self._path}next/", idempotent=True)
        return None if row is None else Assignment.from_wire(self._session, row)

    def assignments(self) -> Iterator[Assignment]:
        """One assignment after the other until nothing is left. Answer or skip each before asking for the next."""
        last = None
        while (found := self.next()) is not None:
            if found.id == last:
                raise WrongOrder(f"assignment {last} was neither submitted nor skipped")
            last = found.id
            yield found


@dataclass
class Assignment:
    """What is to be judged: `texts` in the order shown, without a word about who wrote them, and the `form`."""

    _session: Session = field(repr=False, compare=False)
    id: str
    context: list[str] = field(default_factory=list)
    source: str | None = None
    texts: list[dict[str, str]] = field(default_factory=list)
    form: dict[str, Any] = field(default_factory=dict, repr=False)
    state: str = ""
    practice: bool = False
    draft_version: int = 0
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    @expecting("an assignment")
    def from_wire(cls, session: Session, row: Mapping[str, Any]) -> Assignment:
        return cls(
            session,
            str(row["id"]),
            context=list(row["context"]),
            source=row.get("source"),
            texts=list(row["texts"]),
            form=dict(row.get("form") or {}),
            state=str(row["state"]),
            practice=bool(row.get("practice")),
            draft_version=int(row.get("draft_version") or 0),
            raw=dict(row),
        )

    @property
    def _path(self) -> str:
        return f"assignments/{segment(self.id)}/"

    def submit(
        self,
        answer: Mapping[str, Any],
        *,
        note: str = "",
        seconds: float | None = None,
        replaces: int | None = None,
        submission: uuid.UUID | None = None,
    ) -> dict[str, Any]:
        """Send an answer: for each aspect a number, or a verdict as the sides are shown. `submission` names it, so
        that a repeated request is the same answer; by default a new name is made. `replaces` is the version that a
        revision follows. Raises BadRequest for an answer that does not fit the form, Conflict when it was answered
        elsewhere."""
        body: dict[str, Any] = {"submission": str(submission or uuid.uuid4()), "answer": dict(answer), "note": note}
        if seconds is not None:
            body["seconds"] = seconds
        if replaces is not None:
            body["replaces"] = replaces
        row: dict[str, Any] = self._session.post(f"{self._path}submit/", body, idempotent=True)
        with expecting("what became of an answer"):
            self.state = str(row["state"])
        return row

    def save_draft(self, draft: Mapping[str, Any]) -> int:
        """Keep a draft, which renews the lease; returns its version. Conflict when another one was saved since."""
        body = {"version": self.draft_version, "draft": dict(draft)}
        row = self._session.call("PATCH", self._path, json=body)
        with expecting("the version of a draft"):
            self.draft_version = int(row["draft_version"])
        return self.draft_version

    def skip(self, reason: str = "") -> None:
        """Give it back."""
        self._session.post(f"{self._path}skip/", {"reason": reason})
        self.state = "skipped"

    def flag(self, reason: str, text: str = "") -> None:
        """Say that something is wrong with what is shown."""
        self._session.post(f"{self._path}flag/", {"reason": reason, "text": text})
