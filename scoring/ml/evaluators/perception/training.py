"""Training of `perception`: one network or one per system, with each penalty and learning rate requested."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch

from evalapp.translation import gettext as _
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.engine import Engine
from scoring.ml.errors import InvalidOption, TrainingDataError
from scoring.ml.evaluators.perception import arithmetic
from scoring.ml.evaluators.perception.network import PerceptionNetwork
from scoring.ml.evaluators.perception.pairs import PairBatches, Sides
from scoring.ml.evaluators.perception.reading import Reading, grade_sides
from scoring.ml.evaluators.perception.texts import Texts, count_own_texts, encode_texts, find_texts, label_system
from scoring.ml.network import Network
from scoring.ml.training.curve import FinetuneResult
from scoring.ml.training.estimate import Counts
from scoring.ml.training.finetune import finetune
from scoring.ml.training.frame import TIMED_ROWS, make_finetune_settings
from scoring.ml.training.job import FitJob
from scoring.ml.training.record import record_groups
from scoring.ml.training.timing import Work, time_work
from scoring.ml.training.warm import begin_network
from scoring.ml.types import Dataset

# Penalties whose gradient is differentiated twice, which fused attention kernels cannot do.
TWICE = ("pair", "interpolate")
# The penalty of `auto` without held-out texts to choose by.
UNCHOSEN = ("pair",)
# References that each held-out text meets in an unconditional model.
DEV_REFERENCES = 32


@dataclass(frozen=True)
class EncodedTexts:
    """The training data of a network, the system and the split group of each text, and the held-out texts."""

    sides: Sides
    systems: list[str]
    groups: list[str]
    held_out: Reading | None


class Trainer:
    """The trainings of a job: a network, or one per system, with each penalty and learning rate requested."""

    def __init__(self, job: FitJob, texts: Texts, dev: Texts | None, kept: list[str]) -> None:
        self.job, self.texts, self.dev, self.kept = job, texts, dev, kept
        self.tokenizer = job.tokenizer()
        self.tokenizer.tick = job.report_rows
        self.seconds, self.steps = 0.0, 0
        self.chosen: dict[str, float] = {}
        self.accuracies: dict[str, float | None] = {}

    def train_best(self, penalties: Sequence[str], systems: list[str]) -> tuple[PerceptionNetwork, FinetuneResult]:
        """The selected network and its training curve. Among the penalties, given from least to most, the one with the
        highest accuracy on held-out pairs wins; ties go to the least. All systems share the penalty, because they are
        compared."""
        # Encode everything before the first step; afterwards progress counts steps.
        parts = [(self.texts, self.dev)]
        if self.job.text("models") == "per_system":
            parts = [(self.texts.select_system(name), self.dev and self.dev.select_system(name)) for name in systems]
        encoded = [self._encoded(*part) for part in parts]
        tried = []
        for penalty in penalties:
            self.chosen = {}
            network, result = self._train(
                systems, encoded, penalty, " without penalty" if penalty != penalties[-1] else ""
            )
            self.accuracies[penalty] = _accuracy(result)
            tried.append((penalty, network, result, self.chosen))
        ranks = {name: -math.inf if value is None else value for name, value in self.accuracies.items()}
        _, network, result, self.chosen = max(tried, key=lambda one: ranks[one[0]])
        return _for_scoring(network, self.job.encoder), replace(result, steps=self.steps, seconds=self.seconds)

    def _train(
        self, systems: Sequence[str], encoded: Sequence[EncodedTexts], penalty: str, how: str
    ) -> tuple[PerceptionNetwork, FinetuneResult]:
        if self.job.text("models") == "shared":
            return self._best(f"training{how}", encoded[0], penalty)
        whole = new_network(self.job, len(systems), penalty)
        log: list[dict[str, Any]] = []
        metrics: dict[str, list[float]] = {}
        for tower, system in enumerate(systems):
            network, result = self._best(f"training {system}{how}", encoded[tower], penalty)
            whole.copy_tower(network, tower)
            log += [{**row, "system": system} for row in result.log]
            for name, value in result.metrics.items():
                metrics.setdefault(name, []).append(value)
        means = {name: float(np.mean(values)) for name, values in metrics.items()}
        return whole.eval(), FinetuneResult(tuple(log), means, self.steps, self.seconds)

    def _encoded(self, texts: Texts, dev: Texts | None) -> EncodedTexts:
        """The texts to learn from and the held-out texts, if any, as the network reads them."""
        sides = encode_texts(self.job, self.tokenizer, texts)
        reading = None
        if dev is not None and dev.records:
            reading = Reading(encode_texts(self.job, self.tokenizer, self._with_dev_references(dev)))
        systems = [label_system(record) for record in texts.records]
        return EncodedTexts(sides, systems, record_groups(texts.records), reading)

    def _best(self, phase: str, encoded: EncodedTexts, penalty: str) -> tuple[PerceptionNetwork, FinetuneResult]:
        rates = parse_learning_rates(self.job)
        tried = []
        for rate in rates:
            name = phase if len(rates) == 1 else f"{phase} at {rate:g}"
            tried.append((rate, *self._finetune(name, encoded, rate, penalty)))
        # A diverging training has no loss.
        rate, network, result = min(tried, key=lambda one: one[2].metrics.get("loss", math.inf))
        self.chosen[phase] = rate
        return network, result

    def _finetune(
        self, phase: str, encoded: EncodedTexts, rate: float, penalty: str
    ) -> tuple[PerceptionNetwork, FinetuneResult]:
        job, reading = self.job, encoded.held_out
        batches = PairBatches(
            encoded.sides, encoded.systems, encoded.groups, job, pad_id=self.tokenizer.pad_id, phase=phase
        )
        network = new_network(job, 1, penalty)
        judge = None
        if reading is not None:

            def judge(net: Network) -> dict[str, float]:
                return judge_held_out(cast(PerceptionNetwork, net), reading, self.tokenizer.pad_id)

        settings = make_finetune_settings(job, learning_rate=rate)
        budget = job.number("budget")
        result = finetune(
            network, batches, settings, job, phase=phase, evaluate=judge,
            after_step=lambda net, step: cast(PerceptionNetwork, net).adapt(budget),
        )  # fmt: skip
        self.seconds += result.seconds
        self.steps += result.steps
        return network, result

    def _with_dev_references(self, dev: Texts) -> Texts:
        """Without condition, references that are not learned from, the same at every evaluation: those of the dev part,
        else the fixed ones."""
        if self.job.flag("conditional"):
            return dev
        learned = {text.strip() for text in self.texts.pool}
        others = [text for text in dev.pool if text.strip() not in learned]
        chosen = self.job.rng("dev references").permutation(len(others))[:DEV_REFERENCES]
        return replace(dev, pool=tuple(others[int(place)] for place in chosen) or tuple(self.kept))


def new_network(job: FitJob, towers: int, penalty: str) -> PerceptionNetwork:
    """Return a network of a `job` with new heads, one encoder for each of the `towers`, and the `penalty`."""
    torch.manual_seed(job.torch_seed("network"))
    names = ("pooling", "confidence", "penalty_weight", "penalty_every")
    settings = {**{name: job.options[name] for name in names}, "penalty": penalty, "towers": towers}
    if texts := count_own_texts(job):
        settings["texts"] = texts
    network = PerceptionNetwork.from_source(job.encoder, settings, attention="eager" if penalty in TWICE else None)
    begin_network(job, network)
    return network


def time_training(job: FitJob, texts: Texts, penalties: Sequence[str], counts: Counts) -> tuple[float, float]:
    """Return the seconds of a training of a `job` on `texts` with each of the `penalties`, and those after its last
    step; `counts` are those of a `Work`."""
    tokenizer = job.tokenizer()
    some = replace(texts, records=texts.records[:TIMED_ROWS])
    sides, systems = encode_texts(job, tokenizer, some), [label_system(record) for record in some.records]
    sample = PairBatches(sides, systems, systems, job, pad_id=tokenizer.pad_id, phase="timing")
    every = dict.fromkeys(TWICE, job.integer("penalty_every"))
    works = [
        Work(partial(new_network, job, 1, penalty), sample, sides.inputs, counts, every=every.get(penalty, 0))
        for penalty in penalties
    ]
    return time_work(job, works)


def check_learning_rates(job: FitJob, learned: Dataset, held_out: Dataset | None) -> None:
    """Raise `TrainingDataError` if a model of the `job` has several learning rates and no texts to choose by; `learned`
    and `held_out` are the parts of its data."""
    lacking = _systems_without_held_out(job, learned, held_out)
    if lacking is not None and len(parse_learning_rates(job)) > 1:
        of = f" with texts of {', '.join(lacking)}" if lacking else ""
        raise TrainingDataError(job.name, _("learning_rates are chosen on held-out data: give a dev part%(of)s"), of=of)


def _systems_without_held_out(job: FitJob, learned: Dataset, held_out: Dataset | None) -> list[str] | None:
    """Systems whose model has no held-out texts; an empty list if nothing is held out, None if every model has held-out
    texts."""
    dev = Texts([], 0) if held_out is None else find_texts(job, held_out)
    if not dev.records:
        return []
    if job.text("models") != "per_system":
        return None
    return [name for name in find_texts(job, learned).systems if name not in dev.systems] or None


def choose_penalties(job: FitJob, learned: Dataset, held_out: Dataset | None) -> tuple[str, ...]:
    """Return the penalties to train a `job` with; the last is where `auto` starts. `learned` and `held_out` are the
    parts of its data."""
    asked = job.text("penalty")
    if asked != "auto":
        return (asked,)
    return UNCHOSEN if _systems_without_held_out(job, learned, held_out) is not None else ("none", *UNCHOSEN)


def _accuracy(result: FinetuneResult) -> float | None:
    """The accuracy on held-out pairs; None if the training diverged without usable weights."""
    lost = any(row.get("diverged") and row["kept"] is None for row in result.log)
    return None if lost else result.metrics.get("accuracy")


def describe_penalty(accuracies: Mapping[str, float | None], network: PerceptionNetwork) -> list[str]:
    """Return a note on the penalty of the selected `network` and the accuracy with each (`accuracies`); empty if only
    one was tried."""
    if len(accuracies) < 2:
        return []
    said = ", ".join(
        f"{'diverged' if value is None else f'{value:.3f}'} {'without it' if name == 'none' else 'with it'}"
        for name, value in accuracies.items()
    )
    kept = "left out" if network.settings["penalty"] == "none" else "kept"
    return [f"The gradient penalty was {kept}: accuracy on held-out pairs {said}."]


def parse_learning_rates(job: FitJob) -> list[float]:
    """Return the learning rates of a `job`: those of the option `learning_rates`, else `learning_rate`. Raises
    `InvalidOption`."""
    wish = job.options["learning_rates"]
    if wish is None:
        return [job.number("learning_rate")]
    try:
        rates = [float(part) for part in str(wish).split(",")]
    except ValueError:
        rates = []
    if not rates or not all(0 < rate <= 1 for rate in rates):
        text = _("must be numbers above 0, up to 1, with commas between, not %(wish)r")
        raise InvalidOption(job.name, "learning_rates", text, wish=wish)
    return rates


def judge_held_out(network: PerceptionNetwork, reading: Reading, pad_id: int) -> dict[str, float]:
    """Return log-loss, accuracy and calibration of the held-out pairs in `reading`, mean confidence, and the weight of
    the confidence loss.

    `network` reads them; `pad_id` is the padding token.
    """
    engine = Engine(device=str(next(network.parameters()).device), pad_id=pad_id)
    grades, vectors = grade_sides(network, reading.sides, engine, 0)
    p_ref = 1.0 - arithmetic.probability_of_generation(grades[0][reading.owner], grades[1][reading.reference])
    if not np.isfinite(p_ref).all():
        # Finite weights can give outputs that are not finite; such a rate must not win.
        return {"loss": math.nan}
    _, confidence = reading.combine(grades, vectors, network, 0)
    return {
        "loss": arithmetic.mean_negative_log(p_ref),
        "accuracy": float((p_ref > 0.5).mean()),
        "calibration_error": arithmetic.expected_calibration_error(p_ref),
        "confidence": float(confidence.mean()),
        "hinted_loss": arithmetic.mean_negative_log(arithmetic.hinted(p_ref, confidence[reading.owner])),
        "confidence_weight": float(network.confidence_weight),
    }


def _for_scoring(network: PerceptionNetwork, source: EncoderSource) -> PerceptionNetwork:
    """The network with the architecture's usual attention; the penalty needed eager attention."""
    network.config.attention = source.attention
    for module in (network.encoder, *network.others):
        assert module is not None
        module.set_attn_implementation(source.attention)
    return network.eval()
