"""`fit`: train an evaluator by its name; `plan`: the dry check of the same."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scoring.ml.base import Evaluator, Progress
from scoring.ml.catalogue import RECOMMENDED
from scoring.ml.errors import InvalidCall, InvalidOption, TrainingDiverged
from scoring.ml.registry import get_entry, load
from scoring.ml.training.job import FitJob, Plan, Report, TrainingProgress, silent
from scoring.ml.types import Comparison, Dataset, Rating, check_dataset

if TYPE_CHECKING:
    from scoring.ml.artefact import Artefact
    from scoring.ml.trained import TrainedEvaluator
    from scoring.ml.training.record import TrainingRecord

SENTINELS = ("length", "overlap", "random")
GREATEST_SEED = 2**31 - 1


def plan(
    name: str,
    train: Dataset,
    *,
    dev: Dataset | None = None,
    profile: str = RECOMMENDED,
    encoder: str | None = None,
    seed: int = 13,
    aspect: str | None = None,
    progress: Report | None = None,
    **options: Any,
) -> Plan:
    """What `fit` with the same arguments would learn from, in how many steps and about what time.

    `progress(TrainingProgress)` is called now and then; an exception it raises ends the check. Raises what `fit` would
    raise before it begins.
    """
    job = make_job(name, train, dev, profile, encoder, seed, aspect, Path(), progress or silent, options)
    return dry_check(job)


def dry_check(job: FitJob) -> Plan:
    """What the evaluator says of the training before it begins. Raises what is refused."""
    from scoring.ml.encoders.loading import check_encoder
    from scoring.ml.training.checks import check_processes, check_train_device, unknown_note
    from scoring.ml.training.estimate import estimate_range, held_out_seconds

    check_train_device(job)
    devices = check_processes(job)
    if "encoder" in job.entry.needs:
        check_encoder(job.encoder)
    found: Plan = job.entry.load_implementation().plan(job)
    found = replace(found, notes=(*found.notes, *unknown_note(job)))
    if found.seconds is not None and not found.afterwards:
        after = held_out_seconds(job)
        found = replace(found, seconds=found.seconds + after, afterwards=after)
    if devices < job.processes:
        note = f"{job.processes} processes that share a processor take no less time than one"
        found = replace(found, notes=(*found.notes, note))
    elif found.seconds is not None:
        found = replace(found, seconds=found.seconds / devices)
    if found.seconds is None:
        return found
    return replace(found, seconds_range=estimate_range(found.seconds, measured=found.measured))


def fit(
    name: str,
    train: Dataset,
    *,
    dev: Dataset | None = None,
    profile: str = RECOMMENDED,
    encoder: str | None = None,
    seed: int = 13,
    aspect: str | None = None,
    folder: str | Path | None = None,
    progress: Report | None = None,
    **options: Any,
) -> TrainedEvaluator:
    """Train the evaluator `name` and return it, ready to score and to be saved.

    `dev` chooses the epoch (without it the last one is kept) and is what the card's agreement with people is measured
    on.
    `encoder`: name or folder. `folder` keeps checkpoints, and a training that was cut off goes on from them; one with
    other arguments or data is refused there.
    `progress(TrainingProgress)` is called after every step, and now and then before the first; an exception it raises
    ends the training. Further keywords are the evaluator's own options (`catalogue()` lists them). The same arguments
    give the same weights on the same kind of machine. With `processes` above 1 as many processes of this machine
    share the training; whatever ends this one ends them. Raises `UnknownEvaluator`, `InvalidOption`, `EncoderError`,
    and `TrainingDataError` before any training when the data lack what is needed; `TrainingDiverged` where it came to
    no weights of use; `ProcessDied` where one of several did not come to its end.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="evalapp-fit-") as temporary:
            job = make_job(
                name, train, dev, profile, encoder, seed, aspect, Path(temporary), progress or silent, options
            )
            return run_job(job)
    return run_job(
        make_job(name, train, dev, profile, encoder, seed, aspect, Path(folder), progress or silent, options)
    )


def run_job(job: FitJob) -> TrainedEvaluator:
    """Dry check, training, agreement with people on the held-out part, fixtures."""
    from scoring.ml.training.checks import unknown_note
    from scoring.ml.training.claim import claim_folder
    from scoring.ml.training.record import contents_of, grouped_items

    implementation: type[TrainedEvaluator] = job.entry.load_implementation()
    dry_check(job)
    claim_folder(job)
    if job.processes > 1:
        from scoring.ml.training.several import train_together

        train_together(job)
    artefact = implementation.train(job)
    notes = [*_check_numbers(job, artefact), *unknown_note(job)]
    seen = grouped_items(artefact.record, job.train, job.dev)
    contents = contents_of(artefact.record, job.train, job.dev)
    record = replace(artefact.record, items=seen, contents=contents, notes=(*artefact.record.notes, *notes))
    artefact = replace(artefact, record=record)
    evaluator = implementation(job.entry, artefact)
    if job.dev is not None and job.entry.level == "segment":
        record = _agreement(job, evaluator, job.dev)
        evaluator = implementation(job.entry, replace(artefact, record=record))
    return evaluator.with_fixtures(implementation.fixture_records(job))


def _agreement(job: FitJob, evaluator: TrainedEvaluator, held_out: Dataset) -> TrainingRecord:
    """The record with what people and it say of the held-out part, as far as people rated or compared there."""
    from scoring.ml.training.record import correlations_with_people
    from scoring.ml.training.verdicts import verdicts_like_people

    record = evaluator.record
    if held_out.ratings:
        listed, aspects = _listed(evaluator), evaluator.aspects or _aspects(held_out.ratings)
        told = _telling(job, "held-out scores")
        record = replace(record, correlations=correlations_with_people(listed, held_out, aspects, progress=told))
    if held_out.comparisons:
        listed, aspects = _listed(evaluator), evaluator.aspects or _aspects(held_out.comparisons)
        told = _telling(job, "held-out comparisons")
        record = replace(record, verdicts=verdicts_like_people(listed, held_out, aspects, progress=told))
    return record


def _listed(evaluator: TrainedEvaluator) -> list[Evaluator]:
    """Whose agreement the card shows."""
    return [evaluator, *map(load, SENTINELS)]


def _check_numbers(job: FitJob, artefact: Artefact) -> list[str]:
    """What is to be said of a training that diverged after its best evaluation. Raises `TrainingDiverged` where
    nothing of use is left."""
    from scoring.ml.training.finetune import all_finite

    ends = [row for row in artefact.record.log if row.get("diverged")]
    if any(row["kept"] is None for row in ends) or not all_finite(artefact.network):
        raise TrainingDiverged(job.name)
    return [
        f"The training diverged at step {row['step']:,}; the weights are those of step {row['kept']:,}, the best "
        "before. With a smaller learning_rate it would go on."
        for row in ends
    ]


def _telling(job: FitJob, phase: str) -> Progress:
    """Tells the job how far the held-out part is: a comparison with many references takes minutes."""
    return lambda done, total: job.report(TrainingProgress(done, total, phase=phase))


def _aspects(judgements: Sequence[Rating | Comparison]) -> Sequence[str]:
    return tuple(dict.fromkeys(row.aspect for row in judgements))


def checked_seed(name: str, seed: object) -> int:
    """The seed. Raises `InvalidOption` for what not every library draws by."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) <= GREATEST_SEED:
        raise InvalidOption(name, "seed", f"must be a whole number from 0 to {GREATEST_SEED:,}, not {seed!r:.40}")
    return int(seed)


def make_job(
    name: str,
    train: Dataset,
    dev: Dataset | None,
    profile: str,
    encoder: str | None,
    seed: int,
    aspect: str | None,
    folder: Path,
    report: Report,
    options: dict[str, Any],
    shared: Path | None = None,
) -> FitJob:
    """The training that `fit` runs for these arguments; `shared` is where several keep what they have in common.

    Raises `UnknownEvaluator`, `InvalidOption` and `EncoderError`.
    """
    entry = get_entry(name)
    if not entry.learns:
        raise InvalidCall(name, "fit", f"is not for it: it needs no training, load({name!r}) gives it")
    check_dataset(train, "fit()")
    if dev is not None:
        check_dataset(dev, "dev=")
    seed = checked_seed(name, seed)
    if aspect is not None and entry.aspect == "none":
        raise InvalidOption(name, "aspect", "is not for it: it learns no aspect")
    given = dict(options) if encoder is None else {**options, "encoder": encoder}
    parsed = entry.parse_train_options(profile, given)
    return FitJob(entry, train, dev, profile, parsed, seed, folder, aspect, report, shared)
