"""Cross-fitting: one model per fold; every group is scored by the model that did not see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from evalapp.translation import gettext as _
from scoring.ml.base import ARTIFACT
from scoring.ml.catalogue import RECOMMENDED
from scoring.ml.cross_fitted import CrossFitted, join_folds
from scoring.ml.errors import TrainingDataError
from scoring.ml.registry import get_entry
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training.fit import claim_folder, make_job, run_job
from scoring.ml.training.job import Report, TrainingProgress, ignore_progress
from scoring.ml.types import Dataset, check_dataset

DEV_SHARE = 0.125
#: Adds other sets to the train and dev part, given the held-out part, too (`sets.add_sets`).
AddSets: TypeAlias = Callable[[Dataset, Dataset, Dataset], tuple[Dataset, Dataset]]


def cross_fit(
    name: str,
    data: Dataset,
    *,
    folder: str | Path,
    folds: int | Sequence[tuple[Dataset, Dataset]] = 5,
    profile: str = RECOMMENDED,
    seed: int = 13,
    progress: Report | None = None,
    **options: Any,
) -> CrossFitted:
    """Train `folds` models of the evaluator `name` on `data`, each on the groups outside its fold; an eighth of that
    part chooses its weights if anything does. `folds` may also be the train and dev part of each model (`fold_parts`).

    `folder` stores checkpoints, the models of finished folds, so that an interrupted training continues, and what the
    folds share: vectors of texts by a frozen encoder, values of a metric. `profile`, `seed`, `progress` and `options`
    are as in `fit`. Raises `TrainingDataError` if there are fewer than two groups per fold.
    """
    entry = get_entry(name)
    check_dataset(data, "cross_fit()")
    members: list[TrainedEvaluator] = []
    count = folds if isinstance(folds, int) else len(folds)
    parts = plan_folds(name, data, folds, profile=profile, seed=seed, **options) if isinstance(folds, int) else folds
    for number, (train, dev) in enumerate(parts):
        place = Path(folder) / f"fold-{number}"
        report = ignore_progress if progress is None else _report_fold(progress, number, count)
        job = make_job(name, train, options, dev=dev, profile=profile, seed=seed, folder=place / "work")
        job = replace(job, report=report, shared=Path(folder) / "shared")
        if (place / "model" / ARTIFACT).is_file():
            claim_folder(job)
            member: TrainedEvaluator = entry.load_implementation().from_folder(entry, place / "model")
        else:
            member = run_job(job)
            member.save_pretrained(place / "model")
        members.append(member)
    return join_folds(members)


def plan_folds(
    name: str,
    data: Dataset,
    folds: int,
    add: AddSets | None = None,
    *,
    profile: str = RECOMMENDED,
    seed: int = 13,
    **options: Any,
) -> Iterator[tuple[Dataset, Dataset]]:
    """Return `fold_parts` of `name`, `data`, `folds`, `seed` and `add`, with a dev part if it decides anything in a
    training with this `profile` and these `options`."""
    hold_out = make_job(name, data, options, profile=profile, seed=seed).chooses_weights
    return fold_parts(name, data, folds, seed, add, hold_out=hold_out)


def fold_parts(
    name: str, data: Dataset, folds: int, seed: int, add: AddSets | None = None, *, hold_out: bool = True
) -> Iterator[tuple[Dataset, Dataset]]:
    """Yield the train and dev part of each fold's model: the groups of `data` outside the fold; with `hold_out` an
    eighth of them is the dev part, otherwise that is empty.

    `folds` is their number, `seed` draws them, `name` is the evaluator in messages; `add(train, dev, fold)` may add
    data of other sets to both. Raises `TrainingDataError` if there are fewer than two groups per fold.
    """
    if folds < 2:
        raise TrainingDataError(name, _("cross-fitting needs at least 2 folds"))
    try:
        parts = data.split(seed=seed, shares=(1.0,) * folds)
    except ValueError as error:
        text = _("%(folds)s folds need as many groups: %(error)s")
        raise TrainingDataError(name, text, folds=folds, error=error) from error
    for number in range(folds):
        first, *others = (part for n, part in enumerate(parts) if n != number)
        rest = first.merge(others)
        shares = (1 - DEV_SHARE, DEV_SHARE)
        try:
            train, dev = rest.split(seed=seed + 1, shares=shares) if hold_out else (rest, rest.without_rows())
        except ValueError as error:
            text = _("%(folds)s folds need more groups: %(error)s")
            raise TrainingDataError(name, text, folds=folds, error=error) from error
        yield add(train, dev, parts[number]) if add else (train, dev)


def _report_fold(report: Report, number: int, folds: int) -> Report:
    """Progress over all folds, assuming that each takes as long as this one."""

    def say(progress: TrainingProgress) -> None:
        phase = f"fold {number + 1} of {folds}, {progress.phase}"
        total, left = progress.total, progress.seconds_left
        if total is None:
            report(replace(progress, phase=phase))
            return
        if left is not None and progress.rate:
            left += (folds - number - 1) * total / progress.rate
        report(
            replace(progress, phase=phase, done=number * total + progress.done, total=folds * total, seconds_left=left)
        )

    return say
