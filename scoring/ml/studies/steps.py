"""The steps of a study: a training with a seed, or an evaluator that needs none, and what is measured with it.

The split of the data is the same for all steps, so that rows differ only in training and seed."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from evalapp.translation import gettext as _
from scoring.ml.base import Evaluator
from scoring.ml.errors import TrainingDataError
from scoring.ml.registry import get_entry, load
from scoring.ml.signature import VERSION
from scoring.ml.studies import measures
from scoring.ml.studies.kinds import Kind, Variant
from scoring.ml.studies.measures import Measured, StudyData
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training.cross_fit import DEV_SHARE
from scoring.ml.training.fit import fit, plan
from scoring.ml.training.job import Plan, Report, TrainingProgress
from scoring.ml.types import Dataset

#: The form of the results of steps; others are computed again.
FORM = 3


@dataclass(frozen=True)
class Design:
    """What all steps share: `seed` draws the split and is the first seed of trainings; `options` override the
    profile's of every evaluator that has them."""

    kind: Kind
    seed: int = 13
    seeds: int = 1
    profile: str = ""
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Step:
    """Variants with the same training, which differ in scoring only. `seed` is None if nothing is trained."""

    variants: tuple[Variant, ...]
    seed: int | None

    @property
    def evaluator(self) -> str:
        return self.variants[0].evaluator

    @property
    def label(self) -> str:
        """The name of the step in messages."""
        return self.variants[0].label if self.seed is None else f"{self.variants[0].label}, seed {self.seed}"


def split_data(data: Dataset, seed: int, held_out: float) -> tuple[Dataset, Dataset, Dataset]:
    """Return train, dev and test part of `data` by whole groups, drawn by `seed`: a share of `held_out` to test, an
    eighth of the rest as dev part. Dialogues that no item belongs to are split by themselves, so that they do not
    change the parts of the items. Raises `TrainingDataError` if there are too few groups."""
    rest = 1 - held_out
    shares = (rest * (1 - DEV_SHARE), rest * DEV_SHARE, held_out)
    named = {item.group for item in data.items}
    alone = tuple(dialogue for dialogue in data.dialogues if dialogue.id not in named)
    ids = {dialogue.id for dialogue in alone}
    of_items = replace(
        data,
        dialogues=tuple(dialogue for dialogue in data.dialogues if dialogue.id not in ids),
        ratings=tuple(rating for rating in data.ratings if rating.dialogue not in ids),
    )
    of_alone = replace(
        data.without_rows(), dialogues=alone, ratings=tuple(rating for rating in data.ratings if rating.dialogue in ids)
    )
    try:
        parts = of_items.split(seed=seed, shares=shares) if data.items else ()
        more = of_alone.split(seed=seed, shares=shares) if alone else ()
    except ValueError as error:
        raise TrainingDataError("study", f"{error}") from error
    if parts and more:
        parts = tuple(part.merge([other]) for part, other in zip(parts, more, strict=True))
    train, dev, test = parts or more or (data, data, data)
    return train, dev, test


def list_steps(variants: Sequence[Variant], design: Design) -> list[Step]:
    """Return the steps, first the untrained ones, then seed by seed, so that a study that is stopped has every row with
    the first seeds."""
    by_training: dict[str, list[Variant]] = {}
    for variant in variants:
        key = json.dumps([variant.evaluator, dict(variant.options)], sort_keys=True)
        by_training.setdefault(key, []).append(variant)
    groups = [tuple(group) for group in by_training.values()]
    free = [Step(group, None) for group in groups if not get_entry(group[0].evaluator).learns]
    seeds = range(design.seed, design.seed + design.seeds)
    trained = [group for group in groups if get_entry(group[0].evaluator).learns]
    return free + [
        Step(group, seed) for seed in seeds for group in trained if seed == design.seed or not group[0].is_rival
    ]


def plan_step(step: Step, data: StudyData, design: Design, report: Report | None = None) -> Plan | None:
    """Return the dry check of a step's training, with the time to score the test part; None if nothing is trained.

    Raises `TrainingDataError` if the data lack something, also what only the whole model learns from (`needs`)."""
    if step.seed is None:
        return None
    variant = step.variants[0]
    given = _arguments(variant, design, data)
    train, dev = _parts(variant.evaluator, data)
    if variant.needs:
        whole = {**given, **variant.needs}
        plan(variant.evaluator, train, dev=dev, seed=step.seed, progress=report, **whole)
    result = plan(variant.evaluator, train, dev=dev, seed=step.seed, progress=report, **given)
    if not result.seconds:
        return result
    share = len(data.test.outputs) / max(1, len(data.dev.outputs))
    seconds = result.seconds + result.afterwards * share
    low, high = (bound / result.seconds for bound in result.seconds_range or (0.0, 0.0))
    return replace(result, seconds=seconds, seconds_range=(low * seconds, high * seconds))


def plan_variants(
    variants: Sequence[Variant], data: StudyData, design: Design, report: Report | None = None
) -> tuple[dict[str, Plan | None], dict[str, str]]:
    """Return the plan of each variant that these data can train, and the reason for each other one, by label."""
    plans: dict[str, Plan | None] = {}
    left_out: dict[str, str] = {}
    for variant in variants:
        step = Step((variant,), design.seed if get_entry(variant.evaluator).learns else None)
        try:
            plans[variant.label] = plan_step(step, data, design, report)
        except TrainingDataError as error:
            left_out[variant.label] = str(error)
    return plans, left_out


def compute_step(
    step: Step, data: StudyData, design: Design, folder: Path, report: Report | None = None
) -> dict[str, Any]:
    """Train a `step` of a `design` on the parts of `data`, measure it on the test part, and return JSON-safe cells,
    scores, signatures and seconds. Checkpoints are in `folder`; `report` receives the progress."""
    began = time.monotonic()
    scorers = {
        variant.label: _apply(scorer, variant) for scorer, variant in _prepare(step, data, design, folder, report)
    }
    measure = getattr(measures, design.kind.measure)

    def tick(done: int, total: int) -> None:
        if report is not None:
            report(TrainingProgress(done, total, phase=_("measuring")))

    measured: Measured = measure(scorers, data, design.seed, tick)
    return {
        **asdict(measured),
        "signatures": {label: scorer.signature for label, scorer in scorers.items()},
        "seconds": round(time.monotonic() - began, 1),
    }


def digest_step(step: Step, data: StudyData, design: Design) -> str:
    """Return the hash of everything that the result of a step depends on: results of an earlier study are used again
    where it is equal."""
    trained = [] if step.seed is None else [_identify(variant, data, design) for variant in step.variants]
    content = {
        "version": VERSION, "form": FORM, "measure": design.kind.measure, "seed": step.seed, "draws": design.seed,
        "variants": [[v.label, v.evaluator, dict(v.scoring)] for v in step.variants], "trained": trained,
        "data": data.digest,
    }  # fmt: skip
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _identify(variant: Variant, data: StudyData, design: Design) -> dict[str, Any]:
    """All training options with their values; the encoder by its weights."""
    from scoring.ml.encoders.source import find_encoder

    entry = get_entry(variant.evaluator)
    profile, given = _training_of(variant, design)
    options = dict(entry.parse_train_options(profile, given))
    if "encoder" in options:
        name = options["encoder"]
        options["encoder"] = find_encoder(None if name is None else str(name)).weights
    options.pop("train_device", None)
    return {"profile": profile, "aspect": _arguments(variant, design, data).get("aspect"), "options": options}


def _training_of(variant: Variant, design: Design) -> tuple[str, dict[str, Any]]:
    """The profile and the options of a variant's training. Options of other evaluators may have other meanings for the
    rival, which shares the encoder alone."""
    entry = get_entry(variant.evaluator)
    names = {option.name for option in entry.train_options}
    if variant.is_rival:
        names &= {"encoder", "train_device"}
    given = {name: value for name, value in (design.options or {}).items() if name in names}
    profile = design.profile if design.profile in entry.profiles else entry.profiles[0]
    return profile, {**given, **variant.options}


def _arguments(variant: Variant, design: Design, data: StudyData) -> dict[str, Any]:
    """Keyword arguments of `plan` and `fit`."""
    profile, options = _training_of(variant, design)
    learns_one = get_entry(variant.evaluator).aspect == "one"
    return {"profile": profile, **({"aspect": data.aspects[0]} if learns_one and data.aspects else {}), **options}


def _parts(evaluator: str, data: StudyData) -> tuple[Dataset, Dataset]:
    """The train and dev part; dialogues only for evaluators that learn from them."""
    if "dialogues" in get_entry(evaluator).train_needs:
        return data.train, data.dev
    return replace(data.train, dialogues=()), replace(data.dev, dialogues=())


def _prepare(
    step: Step, data: StudyData, design: Design, folder: Path, report: Report | None
) -> list[tuple[Evaluator, Variant]]:
    if step.seed is None:
        return [(load(variant.evaluator, **dict[str, Any](variant.scoring)), variant) for variant in step.variants]
    variant = step.variants[0]
    train, dev = _parts(variant.evaluator, data)
    scorer = fit(
        variant.evaluator, train, dev=dev, seed=step.seed, folder=folder, progress=report,
        **_arguments(variant, design, data),
    )  # fmt: skip
    return [(scorer, one) for one in step.variants]


def _apply(scorer: Evaluator, variant: Variant) -> Evaluator:
    """The evaluator with the scoring options of a variant."""
    if not variant.scoring or not isinstance(scorer, TrainedEvaluator):
        return scorer
    return type(scorer)(scorer.entry, scorer.artefact, variant.scoring)
