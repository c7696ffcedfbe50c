"""Training an evaluator on a project: read the data, dry check, train with checkpoints, publish. The same run executed
again goes on from its last checkpoint, or finds what it published."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils import timezone

from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, EvalappError, Fault
from evalapp.common.models import Run
from evalapp.common.runner import RunContext

from ..models import CurvePoint, Evaluator
from ..selectors.catalogue import get_entry, make_refusal
from ..selectors.datasets import DataChoice, build_dataset
from ..services.artefacts import sweep_incoming
from ..services.leaderboards import renew_leaderboards
from ..services.scores import apply_evaluator
from ..services.training import OWN_FIELDS, require_free_name
from .outlook import Outlook, of_model, sum_ranges
from .publishing import plain, publish
from .resuming import words_of_earlier

if TYPE_CHECKING:
    from scoring.ml import Dataset, Plan, TrainingProgress
    from scoring.ml import Evaluator as Scorer
    from scoring.ml.training.job import Report

#: Checkpoints of trainings that were given up are kept so long.
KEEP_WORK = timedelta(days=14)
#: About so many points of a curve are stored for every phase.
CURVE_POINTS = 200
FLUSH_SECONDS = 1.0
#: So many figures of an evaluation are told in the log.
MOST_FIGURES = 6
DATA_HASH = "data"
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def run(
    context: RunContext,
    *,
    evaluator: str,
    profile: str,
    options: dict[str, Any],
    seed: int,
    aspect: str,
    folds: int,
    data: dict[str, Any],
    slug: str,
    apply: bool = False,
) -> dict[str, Any]:
    """The job `train`. With `apply` a run that scores every output with what was trained is queued behind it."""
    from scoring.ml import ScoringError

    done = Evaluator.objects.filter(run=context.run, kind=Evaluator.Kind.TRAINED).first()
    folder = work_folder(context.run)
    if done is None:
        require_free_name(context.run, slug)
        _sweep(context.run)
        sweep_incoming()
        job = Training(evaluator, profile, options, seed, aspect or None, folds)
        try:
            found = _train(context, job, data, folder)
        except ScoringError as error:
            raise BadInput(str(error)) from error
        context.progress(0, None, "files", "storing")
        context.make_sure()
        done = publish(context.run, slug, found, data)
    # Also where an earlier attempt was lost between its row and this line.
    shutil.rmtree(folder, ignore_errors=True)
    context.log(f"Signature: {done.signature}")
    applied: dict[str, Any] = {}
    if apply:
        references = DataChoice.from_dict(data).references
        try:
            scoring = apply_evaluator(
                project=context.project, user=context.user, evaluator=done.slug, references=references
            )
        except EvalappError as error:
            # It is trained all the same; what learns from dialogues alone has no outputs to be applied to.
            context.log(f"It is trained, but could not be applied. {error.detail}")
        else:
            context.log(f"Run {scoring.pk} applies it to every output.")
            applied = {"score_run": scoring.pk}
    if not applied:
        renew_leaderboards(project=context.project, run=context.run)  # scoring that ended meanwhile left it to this run
    return {
        **applied,
        "evaluator": done.slug,
        "signature": done.signature,
        "models": len(done.record["models"]),
        "steps": sum(model["steps"] for model in done.record["models"]),
        "url": f"/projects/{context.project.slug}/evaluators/{done.slug}/",
    }


def check(
    context: RunContext,
    *,
    evaluator: str,
    profile: str,
    options: dict[str, Any],
    seed: int,
    aspect: str,
    folds: int,
    data: dict[str, Any],
    name: str = "",
    apply: bool = False,
) -> dict[str, Any]:
    """The job `plan`: the dry check alone. `name` and `apply` are kept for the training; nothing here needs them."""
    context.progress(0, None, "rows", "reading")
    plan = check_training(
        context.project, _checking(context), evaluator=evaluator, profile=profile, options=options, seed=seed,
        aspect=aspect, folds=folds, data=data,
    )  # fmt: skip
    form = f"/projects/{context.project.slug}/evaluators/train/{evaluator}/"
    return {**plan, "url": f"{form}?check={context.run.pk}#check"}


def _checking(context: RunContext) -> Report:
    """The report of a dry check: that it goes on, and where it may be cancelled."""
    return lambda progress: context.progress(progress.done, progress.total, "rows", "checking")


def check_training(project: Project, report: Report | None = None, **params: Any) -> dict[str, Any]:
    """Counts, steps, seconds and warnings of a training. Raises BadInput with what is missing and what to do."""
    from scoring.ml import EncoderError, InvalidOption, ScoringError

    data = params.pop("data")
    job = Training(
        params["evaluator"], params["profile"], params["options"], params["seed"], params["aspect"] or None,
        params["folds"],
    )  # fmt: skip
    try:
        return job.plan(read_data(project, job.evaluator, data), report)
    except InvalidOption as error:
        raise make_refusal(error, OWN_FIELDS) from error
    except EncoderError as error:
        faults = [Fault(str(error), field="encoder")] if params["options"].get("encoder") else []
        raise BadInput(str(error), faults=faults) from error
    except ScoringError as error:
        raise BadInput(str(error)) from error


def read_data(project: Project, evaluator: str, data: Mapping[str, Any]) -> Dataset:
    """The part of the project that was chosen; dialogues only for what may learn from them, since each is a group of
    its own in every split."""
    needs = get_entry(evaluator).train_needs
    return build_dataset(project, DataChoice.from_dict(data), dialogues=not needs or "dialogues" in needs)


@dataclass(frozen=True)
class Training:
    """What is trained on whatever data: one model, or one for each fold."""

    evaluator: str
    profile: str
    options: Mapping[str, Any]
    seed: int
    aspect: str | None
    folds: int

    @property
    def arguments(self) -> dict[str, Any]:
        """The keywords that `plan`, `fit` and `cross_fit` share."""
        return {"profile": self.profile, "seed": self.seed, "aspect": self.aspect, **self.options}

    def plan(self, dataset: Dataset, report: Report | None = None) -> dict[str, Any]:
        """The plan of all models together. An exception that `report` raises ends it."""
        plans = [self._plan_of(dataset, train, dev, report) for train, dev in self._parts(dataset)]
        seconds = [found.seconds for found in plans]
        return {
            "evaluator": self.evaluator,
            "models": len(plans),
            "examples": dict(plans[0].examples),
            "steps": sum(found.steps for found in plans),
            "seconds": None if None in seconds else sum(value or 0.0 for value in seconds),
            "afterwards": sum(found.afterwards for found in plans),
            **sum_ranges([found.seconds_range for found in plans]),
            "notes": _together([note for found in plans for note in found.notes]),
            "items": len(dataset.items),
            "outputs": len(dataset.outputs),
            "ratings": len(dataset.ratings),
            "comparisons": len(dataset.comparisons),
            "dialogues": len(dataset.dialogues),
            "simulated": sum(row.simulated for row in (*dataset.ratings, *dataset.comparisons)),
        }

    def _plan_of(self, dataset: Dataset, train: Dataset, dev: Dataset, report: Report | None) -> Plan:
        """The plan of one model. What is too little to learn from is told beside what there is and who holds it."""
        from scoring.ml import plan
        from scoring.ml.errors import TooFewData

        try:
            return plan(self.evaluator, train, dev=dev, progress=report, **self.arguments)
        except TooFewData as error:
            raise BadInput(f"{error}. {self._held_out(dataset, train, dev)}") from error

    def _held_out(self, dataset: Dataset, train: Dataset, dev: Dataset) -> str:
        whole, learned, choosing = len(dataset.items), len(train.items), len(dev.items)
        purpose = "to score with it" if self.folds > 1 else "held out for tests"
        return (
            f"Items in all: {whole:,}, of which {learned:,} to learn from, {choosing:,} to choose its weights by, "
            f"{whole - learned - choosing:,} {purpose}."
        )

    def _parts(self, dataset: Dataset) -> list[tuple[Dataset, Dataset]]:
        from scoring.ml.training.cross_fit import fold_parts

        if self.folds > 1:
            return list(fold_parts(self.evaluator, dataset, self.folds, self.seed))
        train, dev, _ = self._split(dataset)
        return [(train, dev)]

    def _split(self, dataset: Dataset) -> tuple[Dataset, ...]:
        from scoring.ml import TrainingDataError

        try:
            return dataset.split(seed=self.seed, by="group")
        except ValueError as error:
            raise TrainingDataError(self.evaluator, f"{error}") from error

    def train(self, dataset: Dataset, folder: Path, report: Any) -> Scorer:
        """Train in `folder`. One model learns from 80 % of the groups, chooses by 10 % and never sees the rest."""
        from scoring.ml import cross_fit, fit

        if self.folds > 1:
            return cross_fit(
                self.evaluator, dataset, folds=self.folds, folder=folder, progress=report, **self.arguments
            )
        train, dev, _ = self._split(dataset)
        return fit(self.evaluator, train, dev=dev, folder=folder, progress=report, **self.arguments)


def _together(notes: Sequence[str]) -> list[str]:
    """Each note once. Where those of several models differ in their numbers alone, from the least to the greatest."""
    alike: dict[str, list[list[str]]] = {}
    for note in notes:
        numbers = alike.setdefault(_NUMBER.sub("\0", note), [])
        numbers.append(_NUMBER.findall(note))
    told = []
    for sentence, found in alike.items():
        ranges = []
        for place in zip(*found, strict=True):
            low, *_, high = sorted([*place, place[0]], key=lambda text: float(text.replace(",", "")))
            ranges.append(low if low == high else f"{low} to {high}")
        parts = sentence.split("\0")
        told.append("".join(f"{part}{number}" for part, number in zip(parts, [*ranges, ""], strict=True)))
    return told


def work_folder(run: Run) -> Path:
    """Checkpoints of a run stand here until it has published."""
    return Path(settings.ARTEFACTS_DIR) / "work" / str(run.pk)


def _train(context: RunContext, job: Training, data: Mapping[str, Any], folder: Path) -> Any:
    from scoring.ml.training.record import data_hash

    context.progress(0, None, "rows", "reading")
    dataset = read_data(context.project, job.evaluator, data)
    is_new = not folder.exists()
    if _same_data(context, folder, data_hash(dataset)):
        for line in words_of_earlier(folder, job.folds):
            context.log(line)
    context.progress(0, None, "steps", "checking")
    plan = job.plan(dataset, _checking(context))
    counted = ", ".join(f"{n:,} {noun}" for noun, n in plan["examples"].items())
    models = "1 model" if plan["models"] == 1 else f"{plan['models']} models, each"
    context.log(f"{models} of {counted}; {plan['steps']:,} steps; time: {plan['time']}.")
    for note in plan["notes"]:
        context.log(note)
    report = Reporter(context, Outlook.of(plan, is_new=is_new))
    try:
        return job.train(dataset, folder, report)
    finally:
        report.flush()


def _same_data(context: RunContext, folder: Path, digest: str) -> bool:
    """Whether an earlier attempt left what this one goes on from. Checkpoints of other data are of no use: what they
    were made from must be what is there now."""
    mark = folder / DATA_HASH
    is_there = folder.exists()
    if is_there and (not mark.is_file() or mark.read_text(encoding="utf-8") != digest):
        context.log("The data have changed since the last attempt: the training begins anew.")
        shutil.rmtree(folder)
        is_there = False
        CurvePoint.objects.filter(run=context.run).delete()
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(digest, encoding="utf-8")
    return is_there


def _sweep(mine: Run) -> None:
    """Remove the checkpoints of runs that are gone or ended long ago."""
    root = work_folder(mine).parent
    if not root.is_dir():
        return
    numbers = {int(path.name): path for path in root.iterdir() if path.name.isdigit()}
    numbers.pop(mine.pk, None)
    since = timezone.now() - KEEP_WORK
    kept = Run.objects.filter(pk__in=numbers).exclude(finished_at__lt=since).values_list("pk", flat=True)
    for number in set(numbers) - set(kept):
        shutil.rmtree(numbers[number], ignore_errors=True)


@dataclass
class Reporter:
    """Turns what a training says of itself into the run's progress, log and curve. Called after every step, so it
    only notes; points are written once a second, and before a checkpoint that would not tell them again."""

    context: RunContext
    outlook: Outlook | None = None
    phase: str = ""
    epoch: int = -1
    losses: list[float] = field(default_factory=list)
    points: list[CurvePoint] = field(default_factory=list)
    written: float = 0.0
    last_step: int = 0

    def __call__(self, progress: TrainingProgress) -> None:
        if progress.phase != self.phase:
            self._flush_losses()
            self.phase, self.epoch = progress.phase, -1
            self.context.log(f"{progress.phase} …")
        self._note(progress)
        self._say(progress)
        if progress.saving or time.monotonic() - self.written > FLUSH_SECONDS:
            self.flush()
        self._show(progress)

    def _show(self, progress: TrainingProgress) -> None:
        """The bar is of the whole run, and the phase says how far it is itself; where nobody knows how long the whole
        will take, the bar is of the phase and says so."""
        _, _, done, total = of_model(progress)
        unit = "steps" if progress.loss is not None else "texts"
        found = self.outlook.tell(progress) if self.outlook is not None else None
        if found is None:
            self.context.progress(done, total, f"{unit} of this phase", progress.phase)
            return
        share, left = found
        counted = f"{done:,} of {total:,}" if total is not None else f"{done:,}"
        self.context.progress(int(100 * share), 100, "%", f"{progress.phase}: {counted} {unit}", left=left)

    def _note(self, progress: TrainingProgress) -> None:
        if progress.loss is None:
            return
        self.losses.append(progress.loss)
        self.last_step = progress.done
        stride = max(1, (progress.total or progress.done) // CURVE_POINTS)
        if progress.done % stride == 0 or progress.done == progress.total:
            self._flush_losses()

    def _flush_losses(self) -> None:
        losses = [loss for loss in self.losses if plain(loss) is not None]
        if losses:
            mean = sum(losses) / len(losses)
            self.points.append(
                CurvePoint(run=self.context.run, series=self.phase[:100], step=self.last_step, loss=mean)
            )
        self.losses.clear()

    def _say(self, progress: TrainingProgress) -> None:
        """One line for every epoch, with what its evaluation found; what an earlier attempt told is not told again."""
        epoch = int(progress.evaluated or 0)
        if epoch == self.epoch:
            return
        if self.epoch >= 0 and epoch and progress.metrics:
            self.context.log(f"{progress.phase}, after epoch {progress.evaluated:g}: {_figures(progress)}")
        self.epoch = epoch

    def flush(self) -> None:
        """Write the points; one that an earlier attempt wrote stands as it is."""
        CurvePoint.objects.bulk_create(self.points, ignore_conflicts=True)
        self.points.clear()
        self.written = time.monotonic()


def _figures(progress: TrainingProgress) -> str:
    """Of the figures of an evaluation the few to be told; a training of many aspects has some for each of them."""
    found = progress.metrics
    told = [name for name in progress.foremost if name in found][:MOST_FIGURES]
    figures = ", ".join(f"{name} {found[name]:.4g}" for name in told)
    more = len(found) - len(told)
    return f"{figures}, and {more:,} more: see the card" if more else figures
