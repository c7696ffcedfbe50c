"""Uploads: send files of the interchange format or rows, wait for the check, read the faults, undo."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from evalapp.client.addresses import quote_segment
from evalapp.client.errors import Conflict, Fault, InvalidArgument, MissingFile, UploadCancelled, UploadFaulty
from evalapp.client.json_lines import dump_line
from evalapp.client.progress import OnProgress, Progress, make_callback
from evalapp.client.resources import Resource
from evalapp.client.runs import Poll, Run
from evalapp.client.session import Body, Session, new_key

if TYPE_CHECKING:
    import pandas

#: Beginnings of the names of files in an interchange folder.
TABLES = (
    "dataset", "systems", "items", "dialogues", "outputs", "ratings", "comparisons", "corpus", "references", "attempts",
    "filters", "campaigns", "score_sets", "scores", "judge_answers", "leaderboard",
)  # fmt: skip
ENDINGS = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
STORED = frozenset({"checked", "done"})
ENDED = frozenset({"checked", "done", "faulty", "undone", "cancelled", "failed"})
#: Bytes of rows that are buffered in memory before they are written to disk.
IN_MEMORY = 8 << 20
#: Rows of a DataFrame that are converted to dictionaries at once.
_FRAME_ROWS = 10_000


@dataclass(repr=False)
class Upload(Resource):
    """An upload, as it was when last requested. `counts` has rows, added, same, replaced and faulty of each table."""

    _noun, _folder = "an upload", "uploads"

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

    def _read(self, row: Mapping[str, Any]) -> None:
        self.project, self.title, self.state = str(row["project"]), str(row["title"]), str(row["state"])
        self.counts = dict(row.get("counts") or {})
        self.ignored, self.hints = tuple(row.get("ignored") or ()), tuple(row.get("hints") or ())
        self.fault_count, self.error = int(row.get("fault_count") or 0), str(row.get("error") or "")
        self.faults = tuple(Fault.from_wire(fault) for fault in row.get("faults") or ())
        self.progress = Progress.from_wire(row["progress"]) if row.get("progress") else None

    def _describe(self) -> dict[str, Any]:
        added = {table: counts.get("added", 0) for table, counts in self.counts.items()}
        return {
            "title": self.title, "project": self.project, "state": self.state,
            "added": ", ".join(f"{n:,} {table}" for table, n in added.items()), "faults": self.fault_count or "",
            "error": self.error,
        }  # fmt: skip

    @property
    def has_ended(self) -> bool:
        """Whether the check has ended."""
        return self.state in ENDED

    @property
    def run(self) -> Run | None:
        """The run that checks and stores the upload; each access requests it."""
        return self._fetch_run(None)

    def _fetch_run(self, until: float | None) -> Run | None:
        address = self.raw.get("run")
        if not address:
            return None
        number = str(address).rstrip("/").rsplit("/", 1)[-1]
        return Run.from_wire(self._session, self._session.get(f"runs/{quote_segment(number)}/", until=until))

    def wait(self, *, progress: OnProgress | None = None, timeout: float | None = None) -> Upload:
        """Wait until the upload is stored, or checked after a dry run; return it. `progress` is called with a
        `Progress` after each poll; True shows a bar.

        Raises `UploadFaulty` with the faulty rows, `UploadCancelled`, `RunFailed` if the check itself failed, and
        `NotFinished` after `timeout` seconds (None: no limit); the check continues then.
        """
        report = make_callback(progress)
        poll, has_failed = Poll(f"upload {self.id} ({self.title})", timeout), False

        def look(until: float | None) -> None:
            nonlocal has_failed
            self._fetch(until)
            has_failed = self.progress is None and not self.has_ended and self._has_run_ended(until)

        while not ((has_response := poll.look(look)) and (self.has_ended or has_failed)):
            if report is not None and self.progress is not None and has_response:
                report(self.progress)
            poll.rest(self.state)
        if self.state == "faulty":
            raise UploadFaulty(self)
        if self.state == "failed" and (run := self.run) is not None:
            run.wait()
        if self.state not in STORED:
            raise UploadCancelled(self)
        return self

    def _has_run_ended(self, until: float | None) -> bool:
        """Return whether the run has ended without changing the upload; raise its error."""
        run = self._fetch_run(until)
        if run is None or not run.has_ended or self._fetch(until).has_ended:
            return False
        run.wait()
        return True

    def undo(self) -> Upload:
        """Cancel the upload, discard it after a dry run, or remove its rows; return it. Idempotent.

        Raises `Conflict`, with a list in `errors`, if other data depend on its rows, and `UploadFaulty` if nothing was
        stored.
        """
        try:
            self._session.call("DELETE", self._path)
        except Conflict:
            if self.refresh().state == "faulty":
                raise UploadFaulty(self) from None
            if self.state not in ("undone", "cancelled"):
                raise
        return self.refresh()


def list_files(paths: Sequence[str | Path], is_mapped: bool = False) -> list[Path]:
    """Return the files in `paths`, and of each folder those with names of the interchange format; all if `is_mapped`.

    Raises `MissingFile` for a path that does not exist, a folder without such files, and empty `paths`.
    """
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            children = [child for child in sorted(path.iterdir()) if child.is_file() and child.name[0] != "."]
            tables = [child for child in children if is_mapped or is_table(child.name)]
            if not tables:
                raise MissingFile(f"{path} has no file of the interchange format, such as outputs.jsonl")
            files += tables
        elif path.is_file():
            files.append(path)
        else:
            raise MissingFile(f"{path} does not exist")
    if not files:
        raise MissingFile("no file was given")
    return files


def read_mapping(mapping: Mapping[str, Any] | str | Path | None) -> str | None:
    """Return a mapping as it is sent: a dictionary as JSON, the content of a file that ends in .json, or a name.

    Raises `MissingFile` and `InvalidArgument` for a file or values that cannot be read as JSON.
    """
    if mapping is None or (isinstance(mapping, str) and not mapping.endswith(".json")):
        return mapping
    try:
        if isinstance(mapping, str | Path):
            return json.dumps(json.loads(Path(mapping).read_text("utf-8-sig")))
        return json.dumps(mapping)
    except FileNotFoundError as error:
        raise MissingFile(f"{mapping} does not exist") from error
    except (TypeError, ValueError, OSError) as error:
        raise InvalidArgument(f"the mapping cannot be read as JSON: {error}") from error


def is_table(name: str) -> bool:
    """Return whether the file name `name` belongs to the interchange format."""
    name = name.lower().removesuffix(".gz")
    return name.startswith(TABLES) and name.endswith(ENDINGS)


@dataclass(frozen=True)
class UploadOptions:
    """How to upload: `dry_run` only checks, `replace` overwrites rows with other contents, `key` is the idempotency key
    (default: a new one), `progress` is called with the bytes sent. `mapping`: what the columns are, as JSON, or the
    name of a preset."""

    dry_run: bool = False
    replace: bool = False
    progress: OnProgress | None = None
    key: str | None = None
    mapping: str | None = None

    def send(self, session: Session, slug: str, body: Body, kind: str | None = None) -> Upload:
        """Send `body`, for rows those of the table `kind`, to the project `slug` over `session`; return the upload. If
        the response is lost, the request is repeated with the same key and returns the same upload."""
        report = make_callback(self.progress)
        row = session.call(
            "POST",
            f"projects/{quote_segment(slug)}/uploads/",
            params={"kind": kind, "dry_run": int(self.dry_run) or None, "replace": int(self.replace) or None},
            body=body,
            meter=None if report is None else lambda done, total: report(Progress("sending", done, total, "bytes")),
            key=new_key() if self.key is None else self.key,
        )
        return Upload.from_wire(session, row)


def send_files(session: Session, slug: str, paths: Sequence[str | Path], options: UploadOptions) -> Upload:
    """Upload the files in `paths` (see `list_files`) to the project `slug` over `session`, with `options`."""
    files = list_files(paths, options.mapping is not None)
    data = {} if options.mapping is None else {"data": {"mapping": options.mapping}}

    def body(stack: ExitStack) -> dict[str, Any]:
        try:
            opened = [stack.enter_context(path.open("rb")) for path in files]
        except FileNotFoundError as error:
            raise MissingFile(f"{error.filename} does not exist any more") from error
        except OSError as error:
            raise InvalidArgument(f"{error.filename} cannot be read: {error.strerror}") from error
        return {"files": [("file", (path.name, file)) for path, file in zip(files, opened, strict=True)], **data}

    return options.send(session, slug, body)


def send_rows(
    session: Session,
    slug: str,
    kind: str,
    rows: Iterable[Mapping[str, Any]] | pandas.DataFrame,
    options: UploadOptions,
) -> Upload:
    """Upload `rows` of the table `kind` to the project `slug` over `session`, with `options`. They are written to a
    temporary file first, in constant memory, because the request needs its length and may be repeated."""
    _check_table(kind)
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as spool:
        for number, row in enumerate(iterate_rows(rows), 1):
            spool.write(dump_line(row, number))
        length = spool.tell()

        def body(stack: ExitStack) -> dict[str, Any]:
            spool.seek(0)
            headers = {"Content-Type": "application/x-ndjson", "Content-Length": str(length)}
            return {"content": _read_chunks(spool), "headers": headers}

        return options.send(session, slug, body, kind)


def send_tables(
    session: Session,
    slug: str,
    tables: Mapping[str, Iterable[Mapping[str, Any]] | pandas.DataFrame],
    dataset: Mapping[str, Any] | None,
    options: UploadOptions,
) -> Upload:
    """Upload `tables` by name, and `dataset` as dataset.json, to the project `slug` over `session`, with `options`."""
    if hasattr(tables, "iloc"):
        raise InvalidArgument(
            "several tables are a dictionary, such as {'outputs': frame}; upload_rows('outputs', frame) takes one"
        )
    for name in tables:
        _check_table(name)
    with tempfile.TemporaryDirectory(prefix="evalapp-upload-") as folder:
        paths: list[str | Path] = []
        if dataset is not None:
            paths.append(Path(folder) / "dataset.json")
            Path(folder, "dataset.json").write_bytes(dump_line(dataset, 1))
        for name, rows in tables.items():
            path = Path(folder) / f"{name}.jsonl"
            with path.open("wb") as file:
                for number, row in enumerate(iterate_rows(rows), 1):
                    file.write(dump_line(row, number, of=name))
            paths.append(path)
        return send_files(session, slug, paths, options)


def _check_table(name: str) -> None:
    if name not in TABLES:
        raise InvalidArgument(
            f"there is no table {name!r}; the tables are {', '.join(TABLES)}. Rows with columns of your own are a file "
            "for project.upload(file, mapping=...)"
        )


def iterate_rows(rows: Any) -> Iterable[Mapping[str, Any]]:
    """Yield rows; those of a DataFrame without its index."""
    if not hasattr(rows, "iloc"):
        yield from rows
        return
    for first in range(0, len(rows), _FRAME_ROWS):
        yield from rows.iloc[first : first + _FRAME_ROWS].to_dict("records")


def _read_chunks(file: IO[bytes]) -> Iterable[bytes]:
    while chunk := file.read(1 << 16):
        yield chunk
