"""A project: its rows, uploads, runs, scores, leaderboards, exports and campaigns."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from evalapp.client.addresses import check_file_name, quote_segment
from evalapp.client.campaigns import Campaign
from evalapp.client.errors import InvalidArgument, NotFound, UnexpectedAnswer, expecting
from evalapp.client.exports import Export
from evalapp.client.leaderboards import Leaderboard
from evalapp.client.progress import OnProgress, Progress, make_callback
from evalapp.client.reports import Report
from evalapp.client.resources import Resource
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
)
from evalapp.client.runs import Run
from evalapp.client.session import Session, new_key
from evalapp.client.uploads import Upload, UploadOptions, iterate_rows, read_mapping, send_files, send_rows, send_tables
from evalapp.markup import write_html_table

if TYPE_CHECKING:
    import pandas

R = TypeVar("R", bound=Resource)

#: Runs to wait for until a table is current, because data may change while it is computed.
MAX_RUNS = 5


def _check_target(target: Path, files: Sequence[str], slug: str) -> None:
    """Raise `InvalidArgument` if `target` has files of another evaluator that `files` would not replace."""
    expected, names = {target / name for name in files}, {name.rpartition("/")[2] for name in files}
    for path in sorted({*target.glob("fold-*/*"), *(target / name for name in names)}):
        if path.is_file() and path not in expected:
            raise InvalidArgument(
                f"{target} holds {path.relative_to(target)} of another evaluator than {slug}: name another folder"
            )


@dataclass(repr=False)
class Project:
    """A project, as it was when last requested."""

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
        """Return the project in a JSON object `row` of the API; `session` is used for further requests."""
        return cls(
            session,
            str(row["slug"]),
            name=str(row.get("name") or ""),
            task=str(row.get("task") or ""),
            lang=str(row.get("lang") or ""),
            role=row.get("role"),
            raw=dict(row),
        )

    def __repr__(self) -> str:
        return f"<Project {self.slug}: {', '.join(filter(None, (self.name, self.task, self.lang, self.role)))}>"

    def _repr_html_(self) -> str:
        rows = [("name", self.name), ("task", self.task), ("language", self.lang), ("your role", self.role or "")]
        return write_html_table(("Project", self.slug), rows)

    @property
    def _path(self) -> str:
        return f"projects/{quote_segment(self.slug)}/"

    def _list(self, folder: str, query: Mapping[str, Any] | None = None) -> Rows[Any]:
        return Rows(self._session, f"{self._path}{folder}/", query)

    def _list_resources(self, kind: type[R]) -> Rows[R]:
        make = partial(kind.from_wire, self._session)
        return Rows(self._session, f"{self._path}{kind._folder}/", make=make)

    # ---- rows ---------------------------------------------------------------------------------------------------

    def items(self, *, key: str | None = None, group: str | None = None) -> Rows[Item]:
        """Return the items, optionally those with `key` or of a `group`.

        contexts = {item["key"]: item["context"] for item in project.items()}
        """
        return self._list("items", {"key": key, "group": group})

    def systems(self, *, kind: str | None = None) -> Rows[System]:
        """Return the systems, optionally those of a `kind`."""
        return self._list("systems", {"kind": kind})

    def outputs(self, *, item: str | None = None, system: str | None = None) -> Rows[Output]:
        """Return the outputs, optionally those for an `item` (key) or of a `system` (name)."""
        return self._list("outputs", {"item": item, "system": system})

    def references(self, *, item: str | None = None, set: str | None = None) -> Rows[Reference]:
        """Return the references, optionally those of an `item` (key) or a reference `set` (name)."""
        return self._list("references", {"item": item, "set": set})

    def ratings(
        self,
        *,
        item: str | None = None,
        system: str | None = None,
        aspect: str | None = None,
        rater: str | None = None,
    ) -> Rows[Rating]:
        """Return the ratings, optionally those of an `item` (key), `system`, `aspect` or `rater`."""
        return self._list("ratings", {"item": item, "system": system, "aspect": aspect, "rater": rater})

    def comparisons(
        self, *, item: str | None = None, aspect: str | None = None, rater: str | None = None
    ) -> Rows[Comparison]:
        """Return the comparisons, optionally those of an `item` (key), `aspect` or `rater`."""
        return self._list("comparisons", {"item": item, "aspect": aspect, "rater": rater})

    def dialogues(self, *, system: str | None = None) -> Rows[Dialogue]:
        """Return the dialogues, optionally those of a `system`."""
        return self._list("dialogues", {"system": system})

    def scores(
        self,
        *,
        evaluator: str | None = None,
        references: str | None = None,
        system: str | None = None,
        item: str | None = None,
    ) -> Rows[Score]:
        """Return the current scores, optionally those by an `evaluator` or of a `system` or `item` (key). `references`
        is the reference set (default: original)."""
        return self._list("scores", {"evaluator": evaluator, "references": references, "system": system, "item": item})

    def score_sets(self) -> list[ScoreSet]:
        """Return the score sets, one per evaluator, signature and reference set, newest first."""
        return cast(list[ScoreSet], self._session.results(f"{self._path}evaluators/"))

    # ---- uploads ------------------------------------------------------------------------------------------------

    def upload(
        self,
        *paths: str | Path,
        mapping: Mapping[str, Any] | str | Path | None = None,
        dry_run: bool = False,
        replace: bool = False,
        wait: bool = True,
        progress: OnProgress | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Upload:
        """Upload files of the interchange format, or folders with such files (`paths`). All rows are stored or none.

        `dry_run` only checks; `replace` overwrites rows that have other contents. `progress` is called with the bytes
        sent, then with the progress of the check. `wait=False` returns without the check; otherwise `timeout` (seconds)
        and errors are those of `Upload.wait`, among them `UploadFaulty`. `idempotency_key`: see `start`.

        Files with other columns need a `mapping`: a dictionary, a JSON file, the name of a preset such as
        "alpaca-eval-outputs", or "auto", which takes the proposal if it leaves no question open.

            project.upload("results.csv", mapping={"shape": "wide", "columns": {"item": "id", "context": "prompt"},
                                                   "outputs": [{"pattern": "{system}_output"}]})
        """
        options = UploadOptions(dry_run, replace, progress, idempotency_key, read_mapping(mapping))
        upload = send_files(self._session, self.slug, paths, options)
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
        """Upload `rows` of the table `kind` (`items`, `outputs`, `ratings`, ...): dictionaries or a DataFrame.
        Iterables are read in constant memory; numpy's numbers are converted, nan and NA become null. `dry_run`,
        `replace`, `wait`, `progress`, `timeout` and `idempotency_key`: see `upload`.

            project.upload_rows("outputs", [{"item": "i1", "system": "a", "text": "Hello."}])

        Rows with columns of your own are a file for `upload(file, mapping=...)`. Raises `InvalidArgument`, before
        anything is sent, for an unknown table and for a row that cannot be written as JSON."""
        options = UploadOptions(dry_run, replace, progress, idempotency_key)
        upload = send_rows(self._session, self.slug, kind, rows, options)
        return upload.wait(progress=progress, timeout=timeout) if wait else upload

    def upload_scores(
        self,
        evaluator: str,
        rows: Iterable[Mapping[str, Any]] | pandas.DataFrame,
        *,
        reference_set: str = "",
        signature: str = "",
        higher_is_better: bool = True,
        **options: Any,
    ) -> Upload:
        """Upload scores by another program: `rows` with `item`, `system`, `score`, and optionally `step`, `aspect` and
        `note`. Without `item` it is the score of a whole system; a score of None or nan is undefined.

        `evaluator` names the metric, `signature` its version and settings, `reference_set` the references that it
        compared with. If lower is better (`higher_is_better=False`), they are stored negated. `options`: see
        `upload_rows`; with `replace=True` stored scores are overwritten.

            project.upload_scores("ter", frame, higher_is_better=False, reference_set="original")
        """
        about: dict[str, Any] = {"evaluator": evaluator, "higher_is_better": higher_is_better}
        about |= {name: text for name, text in (("reference_set", reference_set), ("signature", signature)) if text}
        return self.upload_rows("scores", ({**row, **about} for row in iterate_rows(rows)), **options)

    def uploads(self) -> Rows[Upload]:
        """Return the uploads, newest first."""
        return self._list_resources(Upload)

    # ---- runs ---------------------------------------------------------------------------------------------------

    def start(self, kind: str, *, idempotency_key: str | None = None, **params: Any) -> Run:
        """Queue a run of a `kind`, which determines its `params`; return it. An identical request returns the active
        run.

        Each call has a key, so that a request is not processed twice if its response is lost. Pass an
        `idempotency_key` if the call itself may be repeated, by a program that is restarted: for 24 hours the same
        parameters return the same run, even if it has ended.

            run = project.start("score", evaluator="bleu-4")

        Raises `BadRequest` with the faults of the parameters, and `Conflict` if the key was used for other parameters.
        """
        key = new_key() if idempotency_key is None else idempotency_key
        return Run.from_wire(self._session, self._session.post(f"{self._path}runs/", {"kind": kind, **params}, key=key))

    def score(
        self,
        evaluator: str,
        *,
        options: Mapping[str, Any] | None = None,
        references: str | None = None,
        idempotency_key: str | None = None,
    ) -> Run:
        """Apply an evaluator to all outputs that it has not scored yet; return the run. `options` are the evaluator's,
        `references` the reference set. `idempotency_key`: see `start`."""
        params: dict[str, Any] = {"options": dict(options or {}) or None, "references": references}
        params = {name: value for name, value in params.items() if value is not None}
        return self.start("score", idempotency_key=idempotency_key, evaluator=evaluator, **params)

    def score_several(
        self, evaluators: Sequence[str], *, references: str | None = None, idempotency_key: str | None = None
    ) -> list[Run]:
        """Apply several `evaluators` with their default options; return the runs of those with something to score.
        `references` is the reference set. `idempotency_key`: see `start`."""
        body = {"evaluators": list(evaluators), **({} if references is None else {"references": references})}
        key = new_key() if idempotency_key is None else idempotency_key
        answer = self._session.post(f"{self._path}scores/", body, key=key)
        with expecting("the runs of several evaluators"):
            return [Run.from_wire(self._session, row) for row in answer["runs"]]

    def train(self, evaluator: str, **params: Any) -> Run:
        """Train an evaluator on this project; return the run. `params` are those of the run (aspect, profile, seed,
        ...) and an `idempotency_key`, see `start`."""
        return self.start("train", evaluator=evaluator, **params)

    def runs(self) -> Rows[Run]:
        """Return the runs, newest first."""
        return self._list_resources(Run)

    def trained(self) -> Rows[dict[str, Any]]:
        """Return the evaluators that were trained here or uploaded, newest first."""
        return self._list("evaluators/trained")

    def download_evaluator(self, slug: str, folder: str | Path, *, progress: OnProgress | None = None) -> Path:
        """Download the trained evaluator `slug` into `folder`, for `scoring.ml.load(folder)`; return the folder. Length
        and SHA-256 of each file are checked. `progress` is called with the bytes of each file. Raises `InvalidArgument`
        for a folder with files of another evaluator."""
        path = f"{self._path}evaluators/trained/{quote_segment(slug)}/"
        target = Path(folder)
        response = self._session.get(path)
        with expecting("the files of a trained evaluator"):
            files = [
                (check_file_name(str(entry["name"]), depth=2), int(entry["bytes"]), str(entry["sha256"]))
                for entry in response["files"]
            ]
        report = make_callback(progress)
        _check_target(target, [name for name, _, _ in files], slug)
        for name, size, digest in files:
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)

            def meter(done: int, total: int | None, name: str = name) -> None:
                if report is not None:
                    report(Progress(f"downloading {name}", done, total, "bytes"))

            address = f"{path}files/{'/'.join(map(quote_segment, name.split('/')))}"
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
        """Return the leaderboard `of` `systems` (`query`: aspect, method, ratings, systems, by, references), of
        `evaluators` (aspect, level, grouping, systems, references, ratings), or of evaluators by part of the items
        (`slices`), by aspect (`aspects`), with each other (`matrix`) or on compared pairs (`pairs`). A large table is
        computed by a run; `progress`, `timeout` and errors: see `Run.wait`.

            project.leaderboard("systems", aspect="fluency", method="mean").to_pandas()

        Raises `BadRequest`, with the choices, for an unknown value, and `UnexpectedAnswer` for a response without rows
        or run.
        """
        folder = f"leaderboards/{quote_segment(of)}/"
        table = self._fetch_table(folder, query, "rows", progress, timeout)
        return Leaderboard(table, lambda: self._session.get_text(f"{self._path}{folder}table.tex", query))

    def checkpoint_curves(
        self, *evaluators: str, progress: OnProgress | None = None, timeout: float | None = None, **query: Any
    ) -> Leaderboard:
        """Return how people and `evaluators` score the checkpoints of systems: rows with `by` (`people` or the name of
        an evaluator), `system`, `step`, `value`, `low`, `high` and `n`, by training step. `query` as for
        `leaderboard("systems")`: aspect, ratings, references. `progress`, `timeout` and errors: see `Run.wait`.

            curves = project.checkpoint_curves("bleu-4", aspect="quality").to_pandas()
            curves.pivot(index="step", columns="by", values="value").plot()
        """
        rows: list[dict[str, Any]] = []
        for by in ("people", *evaluators):
            asked = {**query, "method": "mean"} if by == "people" else {**query, "by": by}
            board = self.leaderboard("systems", progress=progress, timeout=timeout, **asked)
            points = [row for row in board.rows if row.get("step") is not None]
            points.sort(key=lambda row: (str(row["system"]), row["step"]))
            names = ("system", "step", "value", "low", "high", "n")
            rows += [{"by": by, **{name: row.get(name) for name in names}} for row in points]
        return Leaderboard({"kind": "curves", "rows": rows, "signature": ""})

    @expecting("the curve of a training")
    def training_curve(self, slug: str) -> list[dict[str, Any]]:
        """Return the training curve of the trained evaluator `slug`: rows with `step`, `epoch`, `loss` and metrics; of
        a cross-fitted one with the `model`, such as `fold-0`. `evalapp.client.tracking` logs it elsewhere."""
        models = self._session.get(f"{self._path}evaluators/trained/{quote_segment(slug)}/")["models"]
        return [
            {**({"model": f"fold-{number}"} if len(models) > 1 else {}), **row}
            for number, model in enumerate(models)
            for row in model.get("log") or ()
        ]

    def agreement(
        self, *, progress: OnProgress | None = None, timeout: float | None = None, **query: Any
    ) -> Leaderboard:
        """Return inter-annotator agreement: a row per aspect with its coefficients, or, with `aspect` in `query`, a row
        per coefficient. `table` also has prevalence, pairs of raters and calibration. `progress`, `timeout` and errors:
        see `leaderboard`."""
        return Leaderboard(self._fetch_table("agreement/", query, "rows", progress, timeout))

    def power(
        self, *, progress: OnProgress | None = None, timeout: float | None = None, **question: Any
    ) -> dict[str, Any]:
        """Return the number of judgements that detect an effect, with the project's judgements as the pilot: `needed`,
        the `curve`, and for ratings the `designs`. `question`: test, effect, power, alpha, sides, ties, rho, aspect.
        `progress`, `timeout` and errors: see `leaderboard`."""
        return self._fetch_table("power/", question, "curve", progress, timeout)

    def _fetch_table(
        self, address: str, query: Mapping[str, Any], member: str, progress: OnProgress | None, timeout: float | None
    ) -> dict[str, Any]:
        """Return a response that has `member`; wait for the run that computes it."""
        path = f"{self._path}{address}"
        began = time.monotonic()
        for _ in range(MAX_RUNS):
            response = self._session.get(path, query)
            if not isinstance(response, Mapping):
                break
            if member in response:
                return dict(response)
            if response.get("run") is None:
                break
            run = Run.from_wire(self._session, self._session.get(f"runs/{quote_segment(response['run'])}/"))
            left = None if timeout is None else max(0.0, timeout - (time.monotonic() - began))
            run.wait(progress=progress, timeout=left)
        raise UnexpectedAnswer(f"{path} responded with neither {member} nor a run that computes them")

    def export(
        self,
        format: str = "jsonl",
        *,
        wait: bool = True,
        progress: OnProgress | None = None,
        timeout: float | None = None,
    ) -> Export:
        """Export the project in a `format`: jsonl, csv or parquet, or a layout for another program: xlsx, wide-csv,
        preferences, label-studio, argilla, mt-metrics-eval. `wait=False` returns before the files are written;
        otherwise `progress`, `timeout` and errors are those of `Run.wait`."""
        export = self._request_export({"format": format})
        return export.wait(progress=progress, timeout=timeout) if wait else export

    def _request_export(self, options: Mapping[str, Any]) -> Export:
        row = self._session.post(f"{self._path}exports/", dict(options), key=new_key())
        return Export.from_wire(self._session, row)

    def exports(self) -> Rows[Export]:
        """Return the exports, newest first."""
        return self._list_resources(Export)

    def download(self, folder: str | Path, *, format: str = "jsonl", progress: OnProgress | None = None) -> list[Path]:
        """Export the project in a `format` and write the files into `folder`; return their paths. `progress` is called
        for the export and for each file."""
        return self.export(format, progress=progress).download(folder, progress=progress)

    def to_pandas(self, *, progress: OnProgress | None = None) -> dict[str, pandas.DataFrame]:
        """Return the project as table name -> DataFrame. `progress`: see `download`. The export behind it is deleted.
        Raises `MissingPackage` without pandas."""
        need_pandas("to_pandas()")
        for last in (False, True):
            export = self._request_export({"format": "jsonl", "temporary": True}).wait(progress=progress)
            try:
                frames = export.to_pandas(progress=progress)
            except NotFound:
                # Another program shared the export and has deleted it.
                if last:
                    raise
            else:
                with suppress(NotFound):
                    export.delete()
                return frames
        raise AssertionError("not reached")

    def from_pandas(
        self,
        frames: Mapping[str, pandas.DataFrame],
        *,
        dataset: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        replace: bool = False,
        progress: OnProgress | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Upload:
        """Upload several tables at once, `frames`: table name -> DataFrame, as `to_pandas` returns them. `dataset` is
        the content of `dataset.json` (aspects with scales, licence, source). Missing values (nan, NA) become null. A
        table with columns of your own is a file for `upload(file, mapping=...)`.
        `dry_run`, `replace`, `progress`, `timeout`, `idempotency_key` and errors: see `upload`.

            other.from_pandas(project.to_pandas())
        """
        options = UploadOptions(dry_run, replace, progress, idempotency_key)
        upload = send_tables(self._session, self.slug, frames, dataset, options)
        return upload.wait(progress=progress, timeout=timeout)

    def create_report(
        self, *, aspect: str = "", days: int = 30, raters: bool = False, texts: bool = False, label: str = ""
    ) -> Report:
        """Create a one-page report of the project as of now, with a `link` for people who do not sign in. It compares
        systems and metrics on an `aspect` (default: the first judged one), and the link works for `days`. `raters` adds
        raters under pseudonyms, `texts` some outputs; `label` is a note for owners, who alone may create reports.

            print(project.create_report(days=14, label="reviewers").link)

        Raises `Conflict` while a table is being computed.
        """
        body = {"aspect": aspect, "days": days, "raters": raters, "texts": texts, "label": label}
        return Report.from_wire(self._session, self._session.post(f"{self._path}reports/", body))

    def reports(self) -> Rows[Report]:
        """Return the reports, newest first; their links are not shown again."""
        return self._list_resources(Report)

    def campaigns(self) -> Rows[Campaign]:
        """Return the campaigns, newest first."""
        return self._list_resources(Campaign)

    def create_campaign(
        self, *, name: str, kind: str, aspects: Iterable[str | Mapping[str, Any]], **plan: Any
    ) -> Campaign:
        """Create a draft of a campaign with `name` and `kind` (rating, comparison, ...); `open()` it then. `aspects`
        are names or objects with question and scale, `plan` the other fields of a plan.

            project.create_campaign(name="Fluency", kind="rating", aspects=["fluency"]).open()
        """
        forms = [{"name": aspect} if isinstance(aspect, str) else dict(aspect) for aspect in aspects]
        body = {"name": name, "kind": kind, "aspects": forms, **plan}
        row = self._session.post(f"{self._path}campaigns/", body, key=new_key())
        return Campaign.from_wire(self._session, row)
