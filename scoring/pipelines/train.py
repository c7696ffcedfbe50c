"""Train an evaluator on a project: read the data, dry check, train with checkpoints, publish. A retried run continues
at its last checkpoint, or returns what it has published."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from django.utils.translation import gettext as _

from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput, EvalappError, Fault
from evalapp.common.models import Run
from evalapp.common.runner import RunContext

from ..models import CurvePoint, Evaluator
from ..selectors.catalogue import get_entry, make_refusal
from ..selectors.datasets import DataChoice, build_dataset
from ..selectors.further import add_scales, find_further, read_further
from ..selectors.training import artefact_folder, find_trained
from ..services.artefacts import sweep_incoming
from ..services.leaderboards import renew_leaderboards
from ..services.scores import apply_evaluator
from ..services.training import OWN_FIELDS, require_free_name
from .check_verdict import NOT_ENOUGH, judge_data
from .publishing import publish
from .shared import refuse_scoring_errors, work_folder
from .training_report import Reporter, TimeLeft, describe_checkpoints, sum_ranges

if TYPE_CHECKING:
    from scoring.ml import Dataset, Plan
    from scoring.ml import Evaluator as Scorer
    from scoring.ml.training.job import Report
    from scoring.ml.training.sets import FurtherSets

#: Checkpoints of a run without success are removed after this time.
KEEP_WORK = timedelta(days=14)
DATA_HASH = "data"
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def run(context: RunContext, *, slug: str, data: dict[str, Any], apply: bool = False, **params: Any) -> dict[str, Any]:
    """The job `train`. With `apply`, a run that scores every output is queued afterwards."""
    row = Evaluator.objects.filter(run=context.run, kind=Evaluator.Kind.TRAINED).first()
    folder = work_folder(context.run)
    if row is None:
        require_free_name(context.run, slug)
        _sweep_work(context.run)
        sweep_incoming()
        with refuse_scoring_errors():
            scorer = _train(context, Training.from_params(params, context.project), params, data, folder)
        context.progress(0, None, "files", "storing")
        context.make_sure()
        row = publish(context.run, slug, scorer, data)
    # An earlier attempt may have created the row, but not reached this line.
    shutil.rmtree(folder, ignore_errors=True)
    context.log(f"Signature: {row.signature}")
    applied = _apply(context, row, DataChoice.from_dict(data).references) if apply else {}
    if not applied:
        # Scoring that ended during the training left the leaderboards to this run.
        renew_leaderboards(project=context.project, run=context.run)
    return {
        **applied,
        "evaluator": row.slug,
        "signature": row.signature,
        "models": len(row.record["models"]),
        "steps": sum(model["steps"] for model in row.record["models"]),
        "url": f"/projects/{context.project.slug}/evaluators/{row.slug}/",
    }


def _apply(context: RunContext, row: Evaluator, references: str) -> dict[str, Any]:
    try:
        scoring = apply_evaluator(project=context.project, user=context.user, evaluator=row.slug, references=references)
    except EvalappError as error:
        # The training has succeeded all the same: a project with dialogues alone has no outputs to score.
        context.log(f"It is trained, but could not be applied. {error.detail}")
        return {}
    context.log(f"Run {scoring.pk} applies it to every output.")
    return {"score_run": scoring.pk}


class NotEnough(BadInput):
    """The data of a training are not enough for it."""


def check(context: RunContext, **params: Any) -> dict[str, Any]:
    """The job `plan`: only the dry check. That the data are not enough is a result."""
    context.progress(0, None, "rows", "reading")
    try:
        plan = check_training(context.project, _report_check(context), user=context.user, **params)
    except NotEnough as error:
        plan = {"evaluator": params["evaluator"], "verdict": {"code": NOT_ENOUGH, "text": error.detail}}
    context.log(plan["verdict"]["text"])
    form = f"/projects/{context.project.slug}/evaluators/train/{params['evaluator']}/"
    return {**plan, "url": f"{form}?check={context.run.pk}#check"}


def _report_check(context: RunContext) -> Report:
    """Return a callback that reports the progress of a dry check, which may be cancelled there."""
    return lambda progress: context.progress(progress.done, progress.total, "rows", "checking")


def check_training(
    project: Project, report: Report | None = None, *, data: Mapping[str, Any], user: Any = None, **params: Any
) -> dict[str, Any]:
    """Return counts, steps, seconds, warnings and the verdict on a training. Raises `NotEnough` if data are missing.
    `user` must be allowed to read the further projects; None may read all."""
    from scoring.ml import EncoderError, InvalidOption, TrainingDataError

    training = Training.from_params(params, project)
    try:
        with refuse_scoring_errors(InvalidOption, EncoderError, TrainingDataError):
            dataset = read_data(project, training.evaluator, data)
            training = training.learn_further(project, params.get("projects", ()), user, data)
            plan = training.plan(dataset, report)
    except TrainingDataError as error:
        raise NotEnough(str(error)) from error
    except InvalidOption as error:
        raise make_refusal(error, OWN_FIELDS) from error
    except EncoderError as error:
        faults = [Fault(str(error), field="encoder")] if training.options.get("encoder") else []
        raise BadInput(str(error), faults=faults) from error
    verdict = judge_data(
        get_entry(training.evaluator), dataset, aspect=training.aspect, folds=training.folds,
        options=training.options, examples=max(plan["examples"].values(), default=0),
    )  # fmt: skip
    return {**plan, "verdict": verdict}


def read_data(project: Project, evaluator: str, data: Mapping[str, Any]) -> Dataset:
    """Return the selected data; dialogues only if the evaluator learns from them, as each is a group in every split."""
    needs = get_entry(evaluator).train_needs
    return build_dataset(project, DataChoice.from_dict(data), dialogues=not needs or "dialogues" in needs)


@dataclass(frozen=True)
class Training:
    """A training, independent of the data: one model, or one per fold."""

    evaluator: str
    profile: str
    options: Mapping[str, Any]
    seed: int
    aspect: str | None
    folds: int
    #: Folder of the trained evaluator to begin with.
    init: Path | None = None
    #: Adds the data of further projects to the parts of each model.
    add: FurtherSets | None = None

    @classmethod
    def from_params(cls, params: Mapping[str, Any], project: Project) -> Training:
        """Return the training of a run; parameters about naming and scoring are ignored. Raises `NotThere` if the
        evaluator to begin with was deleted."""
        names = ("evaluator", "profile", "options", "seed", "aspect", "folds")
        init = params.get("init")
        folder = artefact_folder(find_trained(project, init)) if init else None
        return cls(**{**{name: params[name] for name in names}, "aspect": params["aspect"] or None, "init": folder})

    def learn_further(self, project: Project, slugs: Sequence[str], user: Any, data: Mapping[str, Any]) -> Training:
        """Return the training with the data of further projects, which the user must be allowed to read now."""
        further = find_further(project, slugs, user)
        if not further:
            return self
        entry = get_entry(self.evaluator)
        add = read_further(project, entry, further, aspect=self.aspect or "", seed=self.seed, data=data)
        return replace(self, add=add, options=add_scales(self.options, entry, further))

    @property
    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `plan`, `fit` and `cross_fit`."""
        options = dict(self.options)
        if self.init is not None:
            options.pop("encoder", None)
        return {"profile": self.profile, "seed": self.seed, "aspect": self.aspect, "init": self.init, **options}

    def plan(self, dataset: Dataset, report: Report | None = None) -> dict[str, Any]:
        """Return the plan of all models together."""
        from scoring.ml.types import ROWS

        parts = self._parts(dataset)
        plans = [self._plan_model(dataset, train, dev, report) for train, dev in parts]
        seconds = [plan.seconds for plan in plans]
        return {
            "evaluator": self.evaluator,
            "models": len(plans),
            "examples": dict(plans[0].examples),
            "steps": sum(plan.steps for plan in plans),
            "seconds": None if None in seconds else sum(value or 0.0 for value in seconds),
            "afterwards": sum(plan.afterwards for plan in plans),
            **sum_ranges([plan.seconds_range for plan in plans]),
            "notes": merge_notes([note for plan in plans for note in plan.notes]),
            "sets": _describe_sets(parts[0][0]),
            **{name: len(getattr(dataset, name)) for name in ROWS},
            "simulated": sum(row.simulated for row in (*dataset.ratings, *dataset.comparisons)),
        }

    def _plan_model(self, dataset: Dataset, train: Dataset, dev: Dataset, report: Report | None) -> Plan:
        from scoring.ml import plan
        from scoring.ml.errors import TooFewData

        try:
            return plan(self.evaluator, train, dev=dev, progress=report, **self.arguments)
        except TooFewData as error:
            raise NotEnough(f"{error}. {self._describe_split(dataset, train, dev)}") from error

    def _describe_split(self, dataset: Dataset, train: Dataset, dev: Dataset) -> str:
        n_items, n_train, n_dev = len(dataset.items), len(train.items), len(dev.items)
        text = _("Of %(items)s items, %(train)s are for training, %(dev)s for validation and %(rest)s for %(purpose)s.")
        return text % {
            "items": f"{n_items:,}",
            "train": f"{n_train:,}",
            "dev": f"{n_dev:,}",
            "rest": f"{n_items - n_train - n_dev:,}",
            "purpose": _("scoring") if self.folds > 1 else _("tests"),
        }

    def _parts(self, dataset: Dataset) -> list[tuple[Dataset, Dataset]]:
        from scoring.ml.training.cross_fit import plan_folds

        if self.folds > 1:
            return list(plan_folds(self.evaluator, dataset, self.folds, self.add, **self.arguments))
        return [self._split(dataset)]

    def _split(self, dataset: Dataset) -> tuple[Dataset, Dataset]:
        from scoring.ml import TrainingDataError

        try:
            train, dev, test = dataset.split(seed=self.seed, by="group")
            return self.add(train, dev, test) if self.add else (train, dev)
        except ValueError as error:
            raise TrainingDataError(self.evaluator, f"{error}") from error

    def train(self, dataset: Dataset, folder: Path, report: Any) -> Scorer:
        """Train in `folder`. A single model trains on 80 % of the groups, validates on 10 % and never sees the rest."""
        from scoring.ml import cross_fit, fit

        if self.folds > 1:
            parts = self._parts(dataset)
            return cross_fit(self.evaluator, dataset, folds=parts, folder=folder, progress=report, **self.arguments)
        train, dev = self._split(dataset)
        return fit(self.evaluator, train, dev=dev, folder=folder, progress=report, **self.arguments)


def _describe_sets(train: Dataset) -> list[str]:
    """Return a sentence on each further project: its groups in the training of the first model."""
    from scoring.ml.training.card import describe_set
    from scoring.ml.training.sets import ADDED

    return [f"{row['name']}: {describe_set(row)}" for row in train.meta.get(ADDED, ())]


def merge_notes(notes: Sequence[str]) -> list[str]:
    """Return each note once. Notes that differ only in their numbers are merged, with ranges of the numbers."""
    alike: dict[str, list[list[str]]] = {}
    for note in notes:
        alike.setdefault(_NUMBER.sub("\0", note), []).append(_NUMBER.findall(note))
    merged = []
    for sentence, numbers in alike.items():
        for place in zip(*numbers, strict=True):
            low, high = (find(place, key=lambda text: float(text.replace(",", ""))) for find in (min, max))
            sentence = sentence.replace("\0", low if low == high else f"{low} to {high}", 1)
        merged.append(sentence)
    return merged


def _train(
    context: RunContext, training: Training, params: Mapping[str, Any], data: Mapping[str, Any], folder: Path
) -> Any:
    from scoring.ml.training.record import data_hash

    context.progress(0, None, "rows", "reading")
    dataset = read_data(context.project, training.evaluator, data)
    training = training.learn_further(context.project, params.get("projects", ()), context.user, data)
    is_new = not folder.exists()
    others = training.add.others if training.add else []
    if _can_resume(context, folder, "+".join(map(data_hash, [dataset, *others]))):
        for line in describe_checkpoints(folder, training.folds):
            context.log(line)
    context.progress(0, None, "steps", "checking")
    plan = training.plan(dataset, _report_check(context))
    counts = ", ".join(f"{n:,} {noun}" for noun, n in plan["examples"].items())
    models = "1 model" if plan["models"] == 1 else f"{plan['models']} models, each"
    context.log(f"{models} of {counts}; {plan['steps']:,} steps; time: {plan['time']}.")
    for note in (*plan["sets"], *plan["notes"]):
        context.log(note)
    report = Reporter(context, TimeLeft.from_plan(plan, is_new=is_new))
    try:
        return training.train(dataset, folder, report)
    finally:
        report.flush()


def _can_resume(context: RunContext, folder: Path, digest: str) -> bool:
    """Whether an earlier attempt on the same data left checkpoints; those of other data are removed."""
    mark = folder / DATA_HASH
    exists = folder.exists()
    if exists and (not mark.is_file() or mark.read_text(encoding="utf-8") != digest):
        context.log("The data have changed since the last attempt: the training starts from the beginning.")
        shutil.rmtree(folder)
        exists = False
        CurvePoint.objects.filter(run=context.run).delete()
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(digest, encoding="utf-8")
    return exists


def _sweep_work(current: Run) -> None:
    """Remove the checkpoints of runs that were deleted or ended long ago."""
    root = work_folder(current).parent
    if not root.is_dir():
        return
    numbers = {int(path.name): path for path in root.iterdir() if path.name.isdigit()}
    numbers.pop(current.pk, None)
    since = timezone.now() - KEEP_WORK
    kept = Run.objects.filter(pk__in=numbers).exclude(finished_at__lt=since).values_list("pk", flat=True)
    for number in set(numbers) - set(kept):
        shutil.rmtree(numbers[number], ignore_errors=True)
