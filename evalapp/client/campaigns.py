"""Campaigns: plan, open, monitor, and judge from a program."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from evalapp.client.addresses import parse_id, quote_segment
from evalapp.client.errors import WrongOrder, expecting
from evalapp.client.progress import OnProgress
from evalapp.client.resources import Resource
from evalapp.client.rows import Flag, Judgement, Rows
from evalapp.client.runs import Run
from evalapp.client.session import Session


@dataclass(repr=False)
class Campaign(Resource):
    """A campaign, as it was when last requested."""

    _noun, _folder = "a campaign", "campaigns"

    project: str = ""
    slug: str = ""
    name: str = ""
    kind: str = ""
    state: str = ""
    unit_count: int = 0

    def _read(self, row: Mapping[str, Any]) -> None:
        self.project, self.slug, self.name = str(row["project"]), str(row["slug"]), str(row["name"])
        self.kind, self.state = str(row["kind"]), str(row["state"])
        self.unit_count = int(row.get("unit_count") or 0)

    def _describe(self) -> dict[str, Any]:
        return {"name": self.name, "project": self.project, "kind": self.kind, "state": self.state}

    def update(self, **changes: Any) -> Campaign:
        """Apply `changes`: any part of a draft; later only name, guidelines, limits and options."""
        self._update(self._session.call("PATCH", self._path, json=changes))
        return self

    def delete(self) -> None:
        """Delete the campaign. Raises `Conflict` if it has judgements."""
        self._session.call("DELETE", self._path)

    def open(self, *, progress: OnProgress | None = None, timeout: float | None = None) -> Campaign:
        """Create the units and open the campaign for annotators. A large campaign is opened by a run; `progress`,
        `timeout` and errors: see `Run.wait`."""
        self._post("open")
        number = self.raw.get("opening")
        if self.state == "draft" and number is not None:
            run = Run.from_wire(self._session, self._session.get(f"runs/{quote_segment(number)}/"))
            run.wait(progress=progress, timeout=timeout)
            self.refresh()
        return self

    def pause(self) -> Campaign:
        """Pause the campaign: no more assignments are given out."""
        return self._post("pause")

    def resume(self) -> Campaign:
        """Resume a paused campaign."""
        return self._post("resume")

    def close(self) -> Campaign:
        """Close the campaign."""
        return self._post("close")

    def _post(self, action: str) -> Campaign:
        self._update(self._session.post(f"{self._path}{action}/"))
        return self

    def progress(self) -> dict[str, Any]:
        """Return units, judgements, time, agreement by aspect, and annotators."""
        row = self._session.get(f"{self._path}progress/")
        with expecting("the progress of a campaign"):
            return {**row}

    def judgements(self, *, current: bool = True) -> Rows[Judgement]:
        """Return the judgements, newest first; with `current=False` all versions of each."""
        return Rows(self._session, f"{self._path}judgements/", {"current": "1" if current else None})

    def flags(self) -> Rows[Flag]:
        """Return the flags of annotators, newest first."""
        return Rows(self._session, f"{self._path}flags/")

    def resolve(self, flag: int) -> Flag:
        """Mark the flag with the id `flag` as resolved; return it."""
        row = self._session.post(f"flags/{parse_id(flag)}/resolve/")
        with expecting("a flag"):
            return cast(Flag, {**row})

    # ---- judging ------------------------------------------------------------------------------------------------

    def next(self) -> Assignment | None:
        """Return the next assignment, the same one until it is answered; None if nothing is left. Raises `Conflict` if
        the campaign is not open."""
        row = self._session.post(f"{self._path}next/", idempotent=True)
        return None if row is None else Assignment.from_wire(self._session, row)

    def assignments(self) -> Iterator[Assignment]:
        """Yield assignments until nothing is left. Submit or skip each one before the next.

        for assignment in client.judge(3).assignments():
            assignment.submit({"fluency": 4})
        """
        last = None
        while (assignment := self.next()) is not None:
            if assignment.id == last:
                raise WrongOrder(f"assignment {last} was neither submitted nor skipped")
            last = assignment.id
            yield assignment


@dataclass
class Assignment:
    """A unit to judge: `texts` in the order shown, without their systems, and the `form` of the answer."""

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
        """Return the assignment in a JSON object `row` of the API; `session` is used for further requests."""
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
        return f"assignments/{quote_segment(self.id)}/"

    def submit(
        self,
        answer: Mapping[str, Any],
        *,
        note: str = "",
        seconds: float | None = None,
        replaces: int | None = None,
        submission: uuid.UUID | None = None,
    ) -> dict[str, Any]:
        """Submit `answer`: aspect -> number, or verdict on the sides as shown. Returns the response of the API.

        `note` is a comment, `seconds` the time taken. `submission` identifies the answer, so that a repeated request
        does not count twice (default: a new one). `replaces` is the version that a revision replaces. Raises
        `BadRequest` for an answer that does not match the form, `Conflict` if the assignment was answered elsewhere.
        """
        body: dict[str, Any] = {"submission": str(submission or uuid.uuid4()), "answer": dict(answer), "note": note}
        body |= {name: value for name, value in (("seconds", seconds), ("replaces", replaces)) if value is not None}
        row: dict[str, Any] = self._session.post(f"{self._path}submit/", body, idempotent=True)
        with expecting("the result of an answer"):
            self.state = str(row["state"])
        return row

    def save_draft(self, draft: Mapping[str, Any]) -> int:
        """Save `draft`, which renews the lease; return its version. Raises `Conflict` if a newer draft exists."""
        body = {"version": self.draft_version, "draft": dict(draft)}
        row = self._session.call("PATCH", self._path, json=body)
        with expecting("the version of a draft"):
            self.draft_version = int(row["draft_version"])
        return self.draft_version

    def skip(self, reason: str = "") -> None:
        """Return the assignment without an answer, with a `reason`."""
        self._session.post(f"{self._path}skip/", {"reason": reason})
        self.state = "skipped"

    def flag(self, reason: str, text: str = "") -> None:
        """Flag a problem with the unit: a `reason` from the form, and a `text` about it."""
        self._session.post(f"{self._path}flag/", {"reason": reason, "text": text})
