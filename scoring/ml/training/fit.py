"""`fit`: train an evaluator by its name; `plan`: the dry check of the same."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalapp.translation import gettext as _
from evalapp.versions import read_settings
from scoring.ml.catalogue import RECOMMENDED
from scoring.ml.errors import InvalidCall, InvalidOption, TrainingDiverged
from scoring.ml.registry import get_entry, load
from scoring.ml.signature import VERSION
from scoring.ml.training.job import FitJob, Plan, Report, ignore_progress
from scoring.ml.types import Dataset, check_dataset

if TYPE_CHECKING:
    from scoring.ml.artefact import Artefact
    from scoring.ml.trained import TrainedEvaluator
    from scoring.ml.training.record import TrainingRecord

SENTINELS = ("length", "overlap", "random")
GREATEST_SEED = 2**31 - 1
#: The file that says which training the checkpoints of a folder belong to; no other may continue from them.
MARK = "job.json"
# The device may change, and so may the location of the encoder, which is identified by its weights.
_FREE = ("train_device", "encoder")


def plan(
    name: str,
    train: Dataset,
    *,
    dev: Dataset | None = None,
    profile: str = RECOMMENDED,
    seed: int = 13,
    progress: Report | None = None,
    **options: Any,
) -> Plan:
    """Return the dry check of `fit` with the same arguments: examples, steps and estimated time.

    `name`, `train`, `dev`, `profile`, `seed` and `options` are those of `fit`. `progress(TrainingProgress)` is
    called during the check; an exception it raises ends the check. Raises the errors that `fit` raises before it
    trains.
    """
    job = make_job(name, train, options, dev=dev, profile=profile, seed=seed)
    return dry_check(replace(job, report=progress or ignore_progress))


def dry_check(job: FitJob) -> Plan:
    """Return the plan of a `job`, with time estimate and notes. Raises the errors of invalid data and options."""
    return add_estimate(job, _check(job))


def _check(job: FitJob) -> Plan:
    """The plan of a job without time estimate."""
    from scoring.ml.encoders.loading import check_encoder
    from scoring.ml.training.checks import check_processes, check_train_device, describe_unknown_words

    check_train_device(job)
    check_processes(job)
    if "encoder" in job.entry.needs:
        check_encoder(job.encoder)
    result: Plan = job.entry.load_implementation().plan(job)
    return replace(result, notes=(*result.notes, *describe_unknown_words(job)))


def add_estimate(job: FitJob, result: Plan) -> Plan:
    """Return the plan of a `job`, `result`, with time estimate."""
    from scoring.ml.training.checks import check_processes
    from scoring.ml.training.estimate import estimate_range
    from scoring.ml.training.trial import time_trials

    devices = check_processes(job)
    if devices < job.processes:
        note = _("%(processes)s processes that share a processor take no less time than one") % {
            "processes": job.processes
        }
        result = replace(result, notes=(*result.notes, note))
    if result.measure is not None:
        seconds, after = result.measure()
    elif result.by_trials:
        seconds, after = time_trials(job, run_job)
    elif result.seconds is not None:
        seconds, after = result.seconds, result.afterwards
    else:
        return result
    seconds /= 1 if devices < job.processes else devices
    return replace(result, seconds=seconds, afterwards=after, measure=None, seconds_range=estimate_range(seconds))


def fit(
    name: str,
    train: Dataset,
    *,
    dev: Dataset | None = None,
    profile: str = RECOMMENDED,
    seed: int = 13,
    folder: str | Path | None = None,
    progress: Report | None = None,
    **options: Any,
) -> TrainedEvaluator:
    """Train the evaluator `name` on the dataset `train` and return it, ready to score and to be saved.

    `dev` chooses the epoch (without it the last epoch is used), and the card reports agreement with people on it.
    `profile` is "recommended" or "paper"; `seed` draws everything random. `folder` stores checkpoints: an interrupted
    training continues from them; a folder of another training is refused. `progress(TrainingProgress)` is called after
    every step and during preparation; an exception it raises ends the training.

    Further keywords are `encoder` (name or folder), `aspect` (the aspect to learn), `init`, and the evaluator's own
    options, which `catalogue()` lists. The same arguments give the same weights on the same kind of machine. With
    `processes` above 1, that many processes of this machine share the training; they end with this one.

    `init` is a trained evaluator of the same name, or its folder: training begins with its encoder, and with its head
    if that has the same aspects. What it has seen counts as seen, and card and signature name it.

    Raises `UnknownEvaluator`, `InvalidOption`, `EncoderError`, and `TrainingDataError` before any training if the data
    lack something; `TrainingDiverged` if there are no usable weights; `ProcessDied` if a process of a shared training
    failed.

        evaluator = fit("shared-bert", read_dataset("folder"), aspect="quality")
        evaluator.save_pretrained("my-evaluator")
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="evalapp-fit-") as temporary:
            return fit(name, train, dev=dev, profile=profile, seed=seed, folder=temporary, progress=progress, **options)
    job = make_job(name, train, options, dev=dev, profile=profile, seed=seed, folder=Path(folder))
    return run_job(replace(job, report=progress or ignore_progress))


def run_job(job: FitJob) -> TrainedEvaluator:
    """Return the trained evaluator of a `job`, after dry check, training, agreement with people on the held-out part,
    and fixtures."""
    from scoring.ml.training.checks import describe_unknown_words
    from scoring.ml.training.record import hash_contents, list_grouped_items
    from scoring.ml.training.sets import add_originals
    from scoring.ml.training.warm import add_earlier

    implementation: type[TrainedEvaluator] = job.entry.load_implementation()
    _check(job)
    claim_folder(job)
    if job.processes > 1:
        from scoring.ml.training.several import train_together

        train_together(job)
    artefact = implementation.train(job)
    notes = [*_check_numbers(job, artefact), *describe_unknown_words(job)]
    seen = list_grouped_items(artefact.record, job.train, job.dev)
    contents = hash_contents(artefact.record, job.train, job.dev)
    record = replace(artefact.record, items=seen, contents=contents, notes=(*artefact.record.notes, *notes))
    record = add_earlier(job, add_originals(record, job.train, job.dev))
    artefact = replace(artefact, record=record)
    evaluator = implementation(job.entry, artefact)
    if job.dev is not None and job.entry.level == "segment":
        record = _agreement(job, evaluator, job.dev)
        evaluator = implementation(job.entry, replace(artefact, record=record))
    return evaluator.with_fixtures(implementation.fixture_records(job))


def _agreement(job: FitJob, evaluator: TrainedEvaluator, held_out: Dataset) -> TrainingRecord:
    """The record with agreement with people on the held-out part, if it has ratings or comparisons."""
    from scoring.ml.training.record import correlate_with_people
    from scoring.ml.training.verdicts import compare_with_people

    figures: dict[str, Any] = {}
    for rows, name, phase, compare in (
        (held_out.ratings, "correlations", "held-out scores", correlate_with_people),
        (held_out.comparisons, "verdicts", "held-out comparisons", compare_with_people),
    ):
        if rows:
            listed = [evaluator, *map(load, SENTINELS)]
            aspects = evaluator.aspects or tuple(dict.fromkeys(row.aspect for row in rows))
            figures[name] = compare(listed, held_out, aspects, progress=job.report_phase(phase))
    return replace(evaluator.record, **figures)


def _check_numbers(job: FitJob, artefact: Artefact) -> list[str]:
    """Notes about a training that diverged after its best evaluation. Raises `TrainingDiverged` if no usable weights
    are left."""
    from scoring.ml.training.curve import all_finite

    ends = [row for row in artefact.record.log if row.get("diverged")]
    if any(row["kept"] is None for row in ends) or not all_finite(artefact.network):
        raise TrainingDiverged(job.name)
    return [
        f"The training diverged at step {row['step']:,}; the weights are those of step {row['kept']:,}, the best "
        "before that. A smaller learning_rate avoids this."
        for row in ends
    ]


def check_seed(name: str, seed: object) -> int:
    """Return the `seed` of a training of the evaluator `name` as int. Raises `InvalidOption` for values that not every
    library accepts."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) <= GREATEST_SEED:
        text = _("must be a whole number from 0 to %(greatest_seed)s, not %(seed)s")
        raise InvalidOption(name, "seed", text, greatest_seed=f"{GREATEST_SEED:,}", seed=f"{seed!r:.40}")
    return int(seed)


def make_job(
    name: str,
    train: Dataset,
    options: Mapping[str, Any],
    *,
    dev: Dataset | None = None,
    profile: str = RECOMMENDED,
    seed: int = 13,
    folder: Path | None = None,
) -> FitJob:
    """Return the job that `fit` runs for these arguments; `options` may contain `encoder`, `aspect` and `init`.

    `name`, `train`, `dev`, `profile`, `seed` and `folder` are those of `fit`. Raises `UnknownEvaluator`,
    `InvalidOption` and `EncoderError`.
    """
    entry = get_entry(name)
    if not entry.learns:
        raise InvalidCall(name, "fit", f"is not for it: it needs no training, load({name!r}) gives it")
    check_dataset(train, "fit()")
    if dev is not None:
        check_dataset(dev, "dev=")
    given = dict(options)
    aspect, init = given.pop("aspect", None), given.pop("init", None)
    if given.get("encoder") is None:
        given.pop("encoder", None)
    seed = check_seed(name, seed)
    if aspect is not None and entry.aspect == "none":
        raise InvalidOption(name, "aspect", _("is not for it: it learns no aspect"))
    parsed = entry.parse_train_options(profile, given)
    job = FitJob(entry, train, dev, profile, parsed, seed, folder or Path(), aspect)
    if init is None:
        return job
    from scoring.ml.artefact import weights_hash
    from scoring.ml.training.warm import read_start

    start = read_start(entry, init, given)
    return replace(job, init=start, init_weights=weights_hash(start.network))


def claim_folder(job: FitJob) -> None:
    """Write the job's settings to its folder, or compare them with the settings there. Raises `InvalidOption` if they
    differ: weights of another training would otherwise appear under this one's seed, options and data."""
    from scoring.ml.training.record import data_hash
    from scoring.ml.training.store import write_json

    said: dict[str, Any] = {
        "evaluator": job.name,
        # An update may change the shape of the network.
        "revision": job.entry.revision,
        "profile": job.profile,
        "seed": job.seed,
        "aspect": job.aspect,
        "train": data_hash(job.train, job.track),
        "dev": None if job.dev is None else data_hash(job.dev, job.track),
        # The language changes how metrics tokenise, and thereby the training targets.
        "language": job.train.lang,
        "encoder": job.encoder.weights if "encoder" in job.options else None,
        "init": job.init_weights,
        "options": {key: value for key, value in job.options.items() if key not in _FREE},
        "version": VERSION,
    }
    path = job.folder / MARK
    if not path.is_file():
        write_json(path, said)
        return
    earlier = {"language": job.train.lang, "init": None, "revision": job.entry.revision}
    result = {**earlier, **json.loads(path.read_text(encoding="utf-8"))}
    # An option that only one side has was added or removed by a version. Before `processes` existed, one process
    # trained.
    options = {**said["options"], "processes": 1, **read_settings(result["options"], result.get("version"))}
    compared = [key for key in said if key not in ("options", "version")]
    differing = [key for key in compared if result.get(key) != said[key]]
    differing += [key for key, value in said["options"].items() if options[key] != value]
    if differing:
        text = _(
            "holds the checkpoints of a training with other %(differing)s: take another folder, or remove %(folder)s"
        )
        raise InvalidOption(job.name, "folder", text, differing=", ".join(differing), folder=job.folder)
