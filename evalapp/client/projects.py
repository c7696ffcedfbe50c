"""A project as a program sees it: its rows, uploads, runs, scores, tables, exports and campaigns."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from evalapp.client.campaigns import Campaign
from evalapp.client.errors import InvalidArgument, UnexpectedAnswer, expecting
from evalapp.client.exports import Export
from evalapp.client.rows import (
    Comparison,
    Dialogue,
    Item,
    Output,
    Rating,
    Reference,
    Rows,
    Score,
    ScoreSet,
    System,
    need_pandas,
    to_frame,
)
from evalapp.client.runs import OnProgress, Progress, Run
from evalapp.client.session import Session, new_key, plain_name, segment
from evalapp.client.uploads import Upload, send_files, send_rows

if TYPE_CHECKING:
    import pandas

#: A table may be asked for anew where data change while it is computed, but not for ever.
MOST_RUNS = 5


@dataclass(frozen=True)
class Leaderboard:
    """A leaderboard: `rows` best first, each with its estimate and interval (of agreement one for every aspect or
    coefficient); `table` is the whole answer, with the signature, how many items and raters it stands on, and whether
    the data have changed since."""

    table: dict[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        return f"<Leaderboard: {len(self.table.get('rows') or ()):,} rows, {self.table.get('signature', '')}>"

    @property
    @expecting("a leaderboard")
    def rows(self) -> list[dict[str, Any]]:
        return list(self.table["rows"])

    @property
    @expecting("a leaderboard")
    def signature(self) -> str:
        return str(self.table["signature"])

    @property
    @expecting("a leaderboard")
    def is_current(self) -> bool:
        return bool(self.table["is_current"])

    def to_pandas(self) -> pandas.DataFrame:
        """One row each; nested estimates become columns such as `pearson.value`, `alpha.low`, and cells those of the
        part, aspect, evaluator or figure they are of: `news.value`."""
        need_pandas("to_pandas()")
        names = self._cells()
        return to_frame([_flat(row) | _flat_cells(row, names) for row in self.rows])

    @expecting("a leaderboard")
    def _cells(self) -> list[str]:
        """What the cells of its rows are of, in their order; nothing where rows have none."""
        if self.table.get("kind") == "matrix":
            return [str(row["evaluator"]) for row in self.rows]
        heads = self.table.get("parts") or self.table.get("aspects") or self.table.get("columns") or []
        return [str(head["name"] if "name" in head else head["aspect"]) for head in heads]


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": one for inner, one in value.items()}
        elif name == "coefficients":  # of agreement, a list of them in each row
            flat |= {f"{one['name']}.{inner}": part for one in value for inner, part in one.items() if inner != "name"}
        elif name != "cells":
            flat[name] = value
    return flat


def _flat_cells(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    # A cell that does not exist, such as that of an evaluator against itself, is missing in its columns.
    cells = zip(names, row.get("cells") or (), strict=False)
    return {f"{name}.{inner}": one for name, cell in cells if cell for inner, one in cell.items()}


def _refuse_another(target: Path, files: Sequence[str], slug: str) -> None:
    """Raises InvalidArgument where `target` has files like these, or models of folds, that these do not replace."""
    wanted, names = {target / name for name in files}, {name.rpartition("/")[2] for name in files}
    for path in sorted({*target.glob("fold-*/*"), *(target / name for name in names)}):
        if path.is_file() and path not in wanted:
            raise InvalidArgument(
                f"{target} holds {path.relative_to(target)} of another evaluator than {slug}: name a folder of its own"
            )


@dataclass
class Project:
    """A project as it was when last asked for."""

    _session: Session = field(repr=False, compare=False)
    slug: str
    name: str = ""
    task: str = ""
    lang: str = ""
    role: str | None = None
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    @expecting("a project")
    def from_wire(cls, session: Session, row: Mapping[str, Any]) -> Project:
        return cls(
            session,
            str(row["slug"]),
            name=str(row.get("name") or ""),
            task=str(row.get("task") or ""),
            lang=str(row.get("lang") or ""),
            role=row.get("role"),
            raw=dict(row),
        )

    @property
    def _path(self) -> str:
        return f"projects/{segment(self.slug)}/"

    # ---- what stands in it --------------------------------------------------------------------------------------

    def items(self, *, key: str | None = None, group: str | None = None) -> Rows[Item]:
        return Rows(self._session, f"{self._path}items/", {"key": key, "group": group})

    def systems(self, *, kind: str | None = None) -> Rows[System]:
        return Rows(self._session, f"{self._path}systems/", {"kind": kind})

    def outputs(self, *, item: str | None = None, system: str | None = None) -> Rows[Output]:
        return Rows(self._session, f"{self._path}outputs/", {"item": item, "system": system})

    def references(self, *, item: str | None = None, set: str | None = None) -> Rows[Reference]:
        return Rows(self._session, f"{self._path}references/", {"item": item, "set": set})

    def ratings(
        self,
        *,
        item: str | None = None,
        system: str | None = None,
        aspect: str | None = None,
        rater: str | None = None,
    ) -> Rows[Rating]:
        query = {"item": item, "system": system, "aspect": aspect, "rater": rater}
        return Rows(self._session, f"{self._path}ratings/", query)

    def comparisons(
        self, *, item: str | None = None, aspect: str | None = None, rater: str | None = None
    ) -> Rows[Comparison]:
        return Rows(self._session, f"{self._path}comparisons/", {"item": item, "aspect": aspect, "rater": rater})

    def dialogues(self, *, system: str | None = None) -> Rows[Dialogue]:
        return Rows(self._session, f"{self._path}dialogues/", {"system": system})

    def scores(
        self,
        *,
        evaluator: str | None = None,
        references: str | None = None,
        system: str | None = None,
        item: str | None = None,
    ) -> Rows[Score]:
        """The current scores of every output; `references` names the reference set (default: original)."""
        query = {"evaluator": evaluator, "references": references, "system": system, "item": item}
        return Rows(self._session, f"{self._path}scores/", query)

    def score_sets(self) -> list[ScoreSet]:
        """What has been applied here: one row per evaluator, signature and reference set, newest first."""
        return cast(list[ScoreSet], self._session.results(f"{self._path}evaluators/"))

    # ---- uploads ------------------------------------------------------------------------------------------------

    def upload(
        self,
        *paths: str | Path,
        dry_run: bool = False,
        replace: bool = False,
        wait: bool = True,
        progress: OnProgress | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Upload:
        """Send files of the interchange format, or folders of them, as one upload: all of it is stored or nothing.

        With `dry_run` it is only checked; `replace` overwrites rows stored with other content. `progress` sees first
        the bytes sent, then the check. `wait=False` returns as soon as the server has the files; else it raises as
        `Upload.wait` does, UploadFaulty with the faulty rows among it. `idempotency_key`: as in `start`.
        """
        upload = send_files(
            self._session, self.slug, paths, dry_run=dry_run, replace=replace, progress=progress, key=idempotency_key
        )
        return upload.wait(progress=progress, timeout=timeout) if wait else upload

    def upload_rows(
        self,
        kind: str,
        rows: Iterable[Mapping[str, Any]] | pandas.DataFrame,
        *,
        dry_run: bool = False,
        replace: bool = False,
        wait: bool = True,
        progress: OnProgress | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Upload:
        """The same for rows of one table (`items`, `outputs`, `ratings`, ...), from any iterable, in constant memory,
        or a DataFrame. Numbers of numpy are taken as such, nan and NA as null.

        Raises InvalidArgument, before anything is sent, for a row that JSON cannot hold."""
        how = {"dry_run": dry_run, "replace": replace}
        upload = send_rows(self._session, self.slug, kind, rows, **how, progress=progress, key=idempotency_key)
        return upload.wait(progress=progress, timeout=timeout) if wait else upload

    def uploads(self) -> Rows[Upload]:
        """Newest first."""
        return Rows(self._session, f"{self._path}uploads/", make=lambda row: Upload.from_wire(self._session, row))

    # ---- runs ---------------------------------------------------------------------------------------------------

    def start(self, kind: str, *, idempotency_key: str | None = None, **wishes: Any) -> Run:
        """Queue a run; what else it takes depends on its kind. The same request joins the run already under way.

        Each call has a key, so that nothing is done twice when an answer is lost and the request sent again. Give an
        `idempotency_key` of your own where the call itself may be repeated, by a program that is started anew: within
        24 hours the same wishes under it give the same run, also when it has ended.

        Raises BadRequest, naming what is missing, before anything is computed, and Conflict for a key of your own that
        was used for other wishes.
        """
        body = {"kind": kind, **wishes}
        row = self._session.post(
            f"{self._path}runs/", body, key=new_key() if idempotency_key is None else idempotency_key
        )
        return Run.from_wire(self._session, row)

    def score(
        self,
        evaluator: str,
        *,
        options: Mapping[str, Any] | None = None,
        references: str | None = None,
        idempotency_key: str | None = None,
    ) -> Run:
        """Apply an evaluator to every output that has no score of it yet. `idempotency_key`: as in `start`."""
        wishes: dict[str, Any] = {
            "options": dict(options) if options else None, "references": references, "idempotency_key": idempotency_key,
        }  # fmt: skip
        return self.start("score", evaluator=evaluator, **{k: v for k, v in wishes.items() if v is not None})

    def train(self, evaluator: str, **wishes: Any) -> Run:
        """Train an evaluator on this project; the wishes are those of the run: aspect, profile, seed, ... and, as in
        `start`, an `idempotency_key`."""
        return self.start("train", evaluator=evaluator, **wishes)

    def runs(self) -> Rows[Run]:
        """Newest first."""
        return Rows(self._session, f"{self._path}runs/", make=lambda row: Run.from_wire(self._session, row))

    def trained(self) -> Rows[dict[str, Any]]:
        """What was trained or taken in here, newest first."""
        return Rows(self._session, f"{self._path}evaluators/trained/")

    def download_evaluator(self, slug: str, folder: str | Path, *, progress: OnProgress | None = None) -> Path:
        """Write a trained evaluator into `folder`, for `scoring.ml.load(folder)`; each file is checked by length and
        SHA-256. Returns the folder. Raises InvalidArgument for a folder that holds files of another evaluator."""
        path = f"{self._path}evaluators/trained/{segment(slug)}/"
        target = Path(folder)
        answer = self._session.get(path)
        with expecting("the files of a trained evaluator"):
            files = [
                (plain_name(str(entry["name"]), deepest=2), int(entry["bytes"]), str(entry["sha256"]))
                for entry in answer["files"]
            ]
        _refuse_another(target, [name for name, _, _ in files], slug)
        for name, size, digest in files:
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)

            def meter(done: int, total: int | None, name: str = name) -> None:
                if progress is not None:
                    progress(Progress(f"downloading {name}", done, total, "bytes"))

            address = f"{path}files/{'/'.join(map(segment, name.split('/')))}"
            self._session.download(address, place, size=size, meter=meter)
            with place.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                    place.unlink()
                    raise UnexpectedAnswer(f"{name} arrived with another content than the server has; try again")
        return target

    # ---- leaderboards, exports, campaigns -----------------------------------------------------------------------

    def leaderboard(
        self, of: str = "systems", *, progress: OnProgress | None = None, timeout: float | None = None, **query: Any
    ) -> Leaderboard:
        """The leaderboard of `systems` (aspect, method, ratings, systems, by, references) or of `evaluators` (aspect,
        level, grouping, systems, references, ratings), or of evaluators by part of the items (`slices`), by aspect
        (`aspects`), against each other (`matrix`) or on compared pairs (`pairs`). One that is large is computed by a
        run, which is waited for. Raises BadRequest, which lists them, for a choice that the table does not have, and
        UnexpectedAnswer where there is neither a table of rows nor such a run.
        """
        return Leaderboard(self._computed(f"leaderboards/{segment(of)}/", query, "rows", progress, timeout))

    def agreement(
        self, *, progress: OnProgress | None = None, timeout: float | None = None, **query: Any
    ) -> Leaderboard:
        """How far people agree: a row for every aspect with its coefficients, or, with `aspect`, one for each
        coefficient; what stands beside them (prevalence, pairs of raters, calibration) is in `table`. Waits and raises
        as `leaderboard` does."""
        return Leaderboard(self._computed("agreement/", query, "rows", progress, timeout))

    def power(
        self, *, progress: OnProgress | None = None, timeout: float | None = None, **question: Any
    ) -> dict[str, Any]:
        """How many judgements find an effect (test, effect, power, alpha, sides, ties, aspect), with the project's own
        as the pilot: `needed`, the `curve`, for ratings the `designs`. Waits and raises as `leaderboard` does."""
        return self._computed("power/", question, "curve", progress, timeout)

    def _computed(
        self, of: str, query: Mapping[str, Any], member: str, progress: OnProgress | None, timeout: float | None
    ) -> dict[str, Any]:
        """An answer that has this member, waiting for the run that computes it where there is one."""
        path = f"{self._path}{of}"
        began = time.monotonic()
        for _ in range(MOST_RUNS):
            answer = self._session.get(path, query)
            if isinstance(answer, Mapping) and member in answer:
                return dict(answer)
            if not isinstance(answer, Mapping) or answer.get("run") is None:
                break
            run = Run.from_wire(self._session, self._session.get(f"runs/{segment(answer['run'])}/"))
            left = None if timeout is None else max(0.0, timeout - (time.monotonic() - began))
            run.wait(progress=progress, timeout=left)
        raise UnexpectedAnswer(f"{path} answers with neither {member} nor a run that leads to them")

    def export(
        self,
        format: str = "jsonl",
        *,
        wait: bool = True,
        progress: OnProgress | None = None,
        timeout: float | None = None,
    ) -> Export:
        """Write the project as interchange files: jsonl, csv or parquet."""
        row = self._session.post(f"{self._path}exports/", {"format": format}, key=new_key())
        export = Export.from_wire(self._session, row)
        return export.wait(progress=progress, timeout=timeout) if wait else export

    def exports(self) -> Rows[Export]:
        """Newest first."""
        return Rows(self._session, f"{self._path}exports/", make=lambda row: Export.from_wire(self._session, row))

    def download(self, folder: str | Path, *, format: str = "jsonl", progress: OnProgress | None = None) -> list[Path]:
        """Export, wait, and write the files into `folder`; returns their paths."""
        return self.export(format, progress=progress).download(folder, progress=progress)

    def to_pandas(self, *, progress: OnProgress | None = None) -> dict[str, pandas.DataFrame]:
        """The whole project as DataFrames by table. Raises MissingPackage without pandas."""
        need_pandas("to_pandas()")
        return self.export(progress=progress).to_pandas(progress=progress)

    def campaigns(self) -> Rows[Campaign]:
        """Newest first."""
        return Rows(self._session, f"{self._path}campaigns/", make=lambda row: Campaign.from_wire(self._session, row))

    def create_campaign(
        self, *, name: str, kind: str, aspects: Iterable[str | Mapping[str, Any]], **plan: Any
    ) -> Campaign:
        """Plan a campaign, as a draft; `open()` it then. An aspect is a name or an object with question and scale."""
        asked = [{"name": aspect} if isinstance(aspect, str) else dict(aspect) for aspect in aspects]
        body = {"name": name, "kind": kind, "aspects": asked, **plan}
        row = self._session.post(f"{self._path}campaigns/", body, key=new_key())
        return Campaign.from_wire(self._session, row)
