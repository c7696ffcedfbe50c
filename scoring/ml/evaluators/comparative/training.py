"""Training in the paper's order: strong and weak pairs together, then people's verdicts. Imports torch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from evalapp.translation import gettext as _
from scoring.ml.artefact import Artefact
from scoring.ml.catalogue import PAPER
from scoring.ml.engine import resolve_device
from scoring.ml.evaluators.comparative.batches import HeldOut, PairBatches, encode_pairs
from scoring.ml.evaluators.comparative.calibration import fit_with_figures
from scoring.ml.evaluators.comparative.inputs import PairReader
from scoring.ml.evaluators.comparative.material import HUMAN, Material, Phase, get_material
from scoring.ml.evaluators.comparative.network import ComparativeNetwork
from scoring.ml.evaluators.comparative.pairs import Pair
from scoring.ml.evaluators.comparative.verdicts import Verdicts
from scoring.ml.network import NetworkConfig
from scoring.ml.training.curve import BEST, FinetuneResult
from scoring.ml.training.estimate import count_rated_outputs, find_compared_pairs
from scoring.ml.training.finetune import TOGETHER, finetune
from scoring.ml.training.frame import count_readings
from scoring.ml.training.job import FitJob
from scoring.ml.training.record import record_groups
from scoring.ml.training.store import write_json
from scoring.ml.training.timing import Work, time_work
from scoring.ml.training.warm import begin_network
from scoring.ml.types import Dataset, Record

#: Dev accuracy this near to the most frequent answer after one epoch is a collapse.
COLLAPSE = 0.02
_RESTARTS = "restarts.json"
# Pairs that the dry check reads to time reading, if the encoder reads them together.
_TIMED_PAIRS = 256


def network_sizes(job: FitJob, tie: bool) -> dict[str, Any]:
    """Return the switches of the network of a `job`, with or without the class `tie`; and how the encoder's tokenizer
    ends a text, if the network needs it."""
    sizes: dict[str, Any] = {"pooling": job.text("pooling"), "tie": tie, "single": not job.flag("comparison")}
    texts = get_material(job).texts
    if texts:
        sizes["texts"] = texts
    elif sizes["pooling"] == "sides":
        separator, between = PairReader(job.encoder).separator
        sizes |= {"separator": separator, "between": between}
    return sizes


def new_network(job: FitJob, tie: bool, aspect: str | None, attempt: int = 0) -> ComparativeNetwork:
    """Return a network of a `job` with new heads, from the encoder's weights or, without `pretrained`, from random
    ones.

    `tie` says whether texts may be tied, `aspect` what people judged; `attempt` changes the random numbers.
    """
    torch.manual_seed(job.torch_seed(f"network:{attempt}"))
    sizes = network_sizes(job, tie)
    if job.flag("pretrained"):
        network = ComparativeNetwork.from_source(job.encoder, sizes)
        begin_network(job, network, () if aspect is None else (aspect,))
        return network
    source = job.encoder
    config = NetworkConfig(encoder=dict(source.config), network=sizes, attention=source.attention)
    return ComparativeNetwork(config)


class _Collapsed(Exception):
    """After one epoch the network gives almost every pair the same verdict."""


def train_network(job: FitJob, material: Material) -> tuple[ComparativeNetwork, FinetuneResult, tuple[str, ...]]:
    """Return the network of a `job`, its training curve and notes, after all phases of the `material`.

    A first phase that collapses restarts with other random numbers, up to `restarts` times.
    """
    path = job.folder / _RESTARTS
    attempt = int(json.loads(path.read_text(encoding="utf-8"))["attempt"]) if path.is_file() else 0
    while True:
        try:
            return _run(job, material, attempt)
        except _Collapsed:
            shutil.rmtree(job.folder / _phase_name(material.phases()[0].name, attempt), ignore_errors=True)
            attempt += 1
            write_json(path, {"attempt": attempt})


def _phase_name(name: str, attempt: int) -> str:
    return name if attempt == 0 else f"{name}-{attempt + 1}"


def _run(job: FitJob, material: Material, attempt: int) -> tuple[ComparativeNetwork, FinetuneResult, tuple[str, ...]]:
    for phase in material.phases():
        # Draw all held-out pairs before the first step; afterwards progress counts steps.
        material.held_out(phase.name)
    network = new_network(job, material.tie, material.aspect, attempt)
    results: list[FinetuneResult] = []
    log: list[Mapping[str, Any]] = []
    notes = list(material.notes)
    if attempt:
        text = _("the first epoch learned nothing %(attempt)s times; restarted with other random numbers")
        notes.append(text % {"attempt": attempt})
    for number, phase in enumerate(material.phases()):
        # A fitted head is the same after a restart.
        check = number == 0 and attempt < job.integer("restarts") and job.text("stages") == TOGETHER
        result = _train_phase(job, material, network, phase, attempt, check)
        results.append(result)
        log += [{"phase": phase.name, **row} for row in result.log]
    steps, seconds = sum(result.steps for result in results), sum(result.seconds for result in results)
    return network, FinetuneResult(tuple(log), results[-1].metrics, steps, seconds), tuple(notes)


def _train_phase(
    job: FitJob, material: Material, network: ComparativeNetwork, phase: Phase, attempt: int, check: bool
) -> FinetuneResult:
    """One fine-tuning. Raises `_Collapsed` if `check` is set and its first epoch learned nothing."""
    single = not job.flag("comparison")
    pairs: Sequence[Pair] = material.held_out(phase.name)
    held_out = HeldOut(pairs, material.reader, resolve_device(phase.settings.device), single=single) if pairs else None
    batches = _make_batches(job, material, phase)
    seen = 0

    def evaluate(net: Any) -> dict[str, float]:
        nonlocal seen
        assert held_out is not None
        result = held_out(net)
        seen += 1
        # Unless an earlier start of this phase already completed its first evaluation.
        fresh = check and seen == 1 and not (job.folder / _phase_name(phase.name, attempt) / BEST).is_file()
        if fresh and result["accuracy"] <= held_out.majority + COLLAPSE:
            raise _Collapsed
        return result

    return finetune(
        network,
        batches,
        phase.settings,
        job,
        phase=_phase_name(phase.name, attempt),
        evaluate=evaluate if held_out is not None else None,
    )


def _make_batches(job: FitJob, material: Material, phase: Phase) -> PairBatches:
    return PairBatches(
        phase.draw,
        phase.n_pairs,
        phase.batch_size,
        material.reader,
        job,
        epochs=phase.steps / -(-phase.n_pairs // phase.batch_size),
        single=not job.flag("comparison"),
    )


def time_training(job: FitJob, material: Material) -> tuple[float, float]:
    """Return the seconds of a training of a `job`, and those after its last step: each held-out text is then compared
    with each reference, and each compared pair is read."""
    works = []
    for phase in material.phases():
        sample = _make_batches(job, material, phase)
        pairs = sample.list_head_pairs()
        counts = count_readings(job, phase.steps, phase.n_pairs, len(material.held_out(phase.name)))
        counts = counts._replace(head_rows=len(pairs) if counts.head_rows else 0)
        some = pairs if material.texts else pairs[:_TIMED_PAIRS]
        inputs = encode_pairs(material.reader, some, single=not job.flag("comparison"))[0]
        works.append(Work(partial(new_network, job, material.tie, material.aspect), sample, inputs, counts))
    length = float(max(work.inputs.lengths.mean() for work in works))
    return time_work(
        job, [*works[:-1], replace(works[-1], read=length * count_readings_after(job, material), scored=True)]
    )


def count_readings_after(job: FitJob, material: Material) -> float:
    """Return how many inputs of the length of a pair are read after the training of a `job` on `material`."""
    texts, references = count_rated_outputs(job.dev, material.aspect), job.integer("references")
    compared = judged = 0
    if job.flag("comparison"):
        compared = len(find_compared_pairs(job.dev, material.aspect))
        judged = len(material.held_out(HUMAN)) if material.calibrated and material.human is not None else 0
    if material.texts:
        # Each text and each reference is read once for the scores, each text again for either kind of pairs; a text is
        # half of a pair.
        outputs = 0 if material.dev is None else len(material.dev.outputs)
        return (texts + references + sum(min(outputs, 2 * n) for n in (compared, judged))) / 2
    return (texts * references + compared + judged) * (1 if job.profile == PAPER else 2)


def calibrate(job: FitJob, material: Material, artefact: Artefact, judge: Callable[..., Verdicts]) -> Artefact:
    """Return the `artefact` of a `job` with verdicts calibrated on the held-out human pairs of the `material`, if there
    are enough; `judge` compares two lists of records."""
    pairs = material.held_out(HUMAN) if material.calibrated and material.human is not None else []
    if not pairs:
        return artefact
    tick = job.report_phase("calibration")
    judged = judge([pair.a for pair in pairs], [pair.b for pair in pairs], progress=tick)
    targets = np.array([pair.target for pair in pairs])
    found = fit_with_figures(judged.probabilities, targets, record_groups(pair.a for pair in pairs))
    record = artefact.record
    if found is None:
        text = _("Verdicts are not calibrated: %(n)s held-out pairs are too few, or they are of too few groups.")
        record = replace(record, notes=(*record.notes, text % {"n": len(pairs)}))
        return replace(artefact, record=record)
    calibration, figures = found
    record = replace(record, metrics={**record.metrics, **figures})
    return replace(artefact, state={**artefact.state, "calibration": calibration.as_dict()}, record=record)


def choose_references(train: Dataset, material: Material, n: int, rng: np.random.Generator) -> list[Record]:
    """Return up to `n` distinct machine-written texts of the `train` data in `material`, drawn by `rng`; without any,
    texts of any system."""
    pool = material.samples.generated or tuple(r for r in train.outputs_with_context() if r.text.strip())
    distinct = {(record.item, record.text): record for record in pool}
    result = list(distinct.values())
    chosen = np.sort(rng.choice(len(result), min(n, len(result)), replace=False)).tolist()
    return [replace(result[place], references=()) for place in chosen]
