"""Uploads: send files of the interchange format or rows, follow the check, read the faults, take it back."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from evalapp.client.errors import (
    Conflict,
    Fault,
    InvalidArgument,
    MissingFile,
    UploadCancelled,
    UploadFaulty,
    expecting,
)
from evalapp.client.runs import OnProgress, Poll, Progress, Run
from evalapp.client.session import Session, line_of, new_key, segment

if TYPE_CHECKING:
    import pandas

#: The files of an interchange folder, by the beginning of their names.
TABLES = (
    "dataset", "systems", "items", "dialogues", "outputs", "ratings", "comparisons", "corpus", "references", "attempts",
    "filters", "campaigns", "score_sets", "scores", "leaderboard",
)  # fmt: skip
ENDINGS = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
STORED = frozenset({"checked", "done"})
ENDED = frozenset({"checked", "done", "faulty", "undone", "cancelled", "failed"})
#: Rows are kept in memory up to this size, then on disk, until they are sent.
IN_MEMORY = 8 << 20
#: Rows of a DataFrame that are turned into dicts at once.
_FRAME_ROWS = 10_000


@dataclass
class Upload:
    """An upload as it was when last asked for. `counts` has for each table rows, added, same, replaced, faulty."""

    _session: Session = field(repr=False, compare=False)
    id: int
    project: str = ""
    title: str = ""
    state: str = ""
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    fault_count: int = 0
    faults: tuple[Fault, ...] = ()
    error: str = ""
    progress: Progress | None = None
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    @expecting("an upload")
    def from_wire(cls, session: Session, row: Mapping[str, Any]) -> Upload:
        upload = cls(session, int(row["id"]))
        upload._take(row)
        return upload

    @expecting("an upload")
    def _take(self, row: Mapping[str, Any]) -> None:
        self.raw = dict(row)
        self.project, self.title, self.state = str(row["project"]), str(row["title"]), str(row["state"])
        self.counts = dict(row.get("counts") or {})
        self.ignored, self.hints = tuple(row.get("ignored") or ()), tuple(row.get("hints") or ())
        self.fault_count, self.error = int(row.get("fault_count") or 0), str(row.get("error") or "")
        self.faults = tuple(Fault.from_wire(fault) for fault in row.get("faults") or ())
        self.progress = Progress.from_wire(row["progress"]) if row.get("progress") else None

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    def refresh(self) -> Upload:
        return self._look(None)

    def _look(self, until: float | None) -> Upload:
        self._take(self._session.get(f"uploads/{self.id}/", until=until))
        return self

    @property
    def run(self) -> Run | None:
        """The run that checks and stores it, asked for anew."""
        return self._ask_run(None)

    def _ask_run(self, until: float | None) -> Run | None:
        address = self.raw.get("run")
        if not address:
            return None
        number = str(address).rstrip("/").rsplit("/", 1)[-1]
        return Run.from_wire(self._session, self._session.get(f"runs/{segment(number)}/", until=until))

    def wait(self, *, progress: OnProgress | None = None, timeout: float | None = None) -> Upload:
        """Wait until it is stored, or checked after a dry run.

        Raises UploadFaulty with the faulty rows, UploadCancelled, RunFailed when the check itself broke, and
        NotFinished when `timeout` seconds have passed; the check goes on then.
        """
        poll, broke = Poll(f"upload {self.id} ({self.title})", timeout), False

        def look(until: float | None) -> None:
            nonlocal broke
            self._look(until)
            broke = self.progress is None and not self.has_ended and self._check_broke(until)

        while not ((here := poll.look(look)) and (self.has_ended or broke)):
            if progress is not None and self.progress is not None and here:
                progress(self.progress)
            poll.rest(self.state)
        if self.state == "faulty":
            raise UploadFaulty(self)
        if self.state == "failed" and (run := self.run) is not None:
            run.wait()
        if self.state not in STORED:
            raise UploadCancelled(self)
        return self

    def _check_broke(self, until: float | None) -> bool:
        """Whether the run has ended without a word to the upload; raises what it ended with."""
        run = self._ask_run(until)
        if run is None or not run.has_ended or self._look(until).has_ended:
            return False
        run.wait()
        return True

    def undo(self) -> Upload:
        """Stop it, drop it after a dry run, or take its rows out again. Undoing twice is no error.

        Raises Conflict, with the list in `errors`, once other things rest on its rows, and UploadFaulty when nothing
        had been stored.
        """
        try:
            self._session.call("DELETE", f"uploads/{self.id}/")
        except Conflict:
            if self.refresh().state == "faulty":
                raise UploadFaulty(self) from None
            if self.state not in ("undone", "cancelled"):
                raise
        return self.refresh()


def files_of(paths: Sequence[str | Path]) -> list[Path]:
    """The files to send: each file given, and of a folder those with names of the interchange format.

    Raises MissingFile, naming what is missing or which folder has none.
    """
    found: list[Path] = []
    for given in map(Path, paths):
        if given.is_dir():
            inside = [path for path in sorted(given.iterdir()) if path.is_file() and is_table(path.name)]
            if not inside:
                raise MissingFile(f"{given} has no file of the interchange format, such as outputs.jsonl")
            found += inside
        elif given.is_file():
            found.append(given)
        else:
            raise MissingFile(f"{given} is not there")
    if not found:
        raise MissingFile("no file was given")
    return found


def is_table(name: str) -> bool:
    """Whether a file has a name of the interchange format."""
    name = name.lower().removesuffix(".gz")
    return name.startswith(TABLES) and name.endswith(ENDINGS)


def _meter(progress: OnProgress | None) -> Any:
    if progress is None:
        return None
    return lambda done, total: progress(Progress("sending", done, total, "bytes"))


def _flags(dry_run: bool, replace: bool) -> dict[str, int | None]:
    return {"dry_run": 1 if dry_run else None, "replace": 1 if replace else None}


def send_files(
    session: Session,
    slug: str,
    paths: Sequence[str | Path],
    *,
    dry_run: bool,
    replace: bool,
    progress: OnProgress | None,
    key: str | None = None,
) -> Upload:
    """One upload of these files. It is sent again when an answer is lost, under the same key: the server then gives the
    upload that it has, else the caller would hold a second one that changed nothing."""
    files = files_of(paths)

    def body(stack: ExitStack) -> dict[str, Any]:
        try:
            opened = [stack.enter_context(path.open("rb")) for path in files]
        except FileNotFoundError as error:
            raise MissingFile(f"{error.filename} is not there any more") from error
        except OSError as error:
            raise InvalidArgument(f"{error.filename} cannot be read: {error.strerror}") from error
        parts = [("file", (path.name, file)) for path, file in zip(files, opened, strict=True)]
        return {"files": parts}

    row = session.call(
        "POST",
        f"projects/{segment(slug)}/uploads/",
        params=_flags(dry_run, replace),
        body=body,
        meter=_meter(progress),
        key=new_key() if key is None else key,
    )
    return Upload.from_wire(session, row)


def send_rows(
    session: Session,
    slug: str,
    kind: str,
    rows: Iterable[Mapping[str, Any]] | pandas.DataFrame,
    *,
    dry_run: bool,
    replace: bool,
    progress: OnProgress | None,
    key: str | None = None,
) -> Upload:
    """One upload of rows of one table. They are written to a temporary file first, in constant memory: the server
    wants to know the length, and a repeated request needs them again."""
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as spool:
        for number, row in enumerate(_records(rows), 1):
            spool.write(line_of(row, number))
        length = spool.tell()

        def body(stack: ExitStack) -> dict[str, Any]:
            spool.seek(0)
            headers = {"Content-Type": "application/x-ndjson", "Content-Length": str(length)}
            return {"content": _chunks(spool), "headers": headers}

        row = session.call(
            "POST",
            f"projects/{segment(slug)}/uploads/",
            params={"kind": kind, **_flags(dry_run, replace)},
            body=body,
            meter=_meter(progress),
            key=new_key() if key is None else key,
        )
    return Upload.from_wire(session, row)


def _records(rows: Any) -> Iterable[Mapping[str, Any]]:
    """Rows one by one; of a DataFrame in parts, and without its index."""
    if not hasattr(rows, "iloc"):
        yield from rows
        return
    for first in range(0, len(rows), _FRAME_ROWS):
        yield from rows.iloc[first : first + _FRAME_ROWS].to_dict("records")


def _chunks(file: IO[bytes]) -> Iterable[bytes]:
    while chunk := file.read(1 << 16):
        yield chunk
