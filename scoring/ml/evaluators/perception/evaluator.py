"""Training of `perception` on texts against references, scoring with it, and a system's score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch

from scoring.ml.artefact import Artefact
from scoring.ml.base import Floats, Partial, Progress, references_of, weighted_mean, weighted_statistics
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.encodings import Ints
from scoring.ml.engine import Batch, Engine
from scoring.ml.errors import InvalidOption, TooFewData, TrainingDataError
from scoring.ml.evaluators.perception.arithmetic import (
    expected_calibration_error,
    hinted,
    mean_negative_log,
    model_certainty,
    probability_of_generation,
)
from scoring.ml.evaluators.perception.network import PerceptionNetwork
from scoring.ml.evaluators.perception.pairs import PairBatches, Sides, encode_pool, encode_sides, meetings_of
from scoring.ml.layers.counter_dropout import has_dropout, monte_carlo, row_seeds
from scoring.ml.network import Network, NetworkConfig, check_architecture
from scoring.ml.signature import SignatureField
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training.batches import as_inputs
from scoring.ml.training.checks import cut_note
from scoring.ml.training.estimate import training_seconds
from scoring.ml.training.finetune import FinetuneResult, FinetuneSettings, finetune
from scoring.ml.training.job import FitJob, Plan, Told, untold
from scoring.ml.training.record import TrainingRecord, data_hash, groups_of, library_versions
from scoring.ml.types import Dataset, Record

LEAST_PAIRS = 8
DEV_SHARE = 0.1
# A penalised step takes 1.4 times as long as one without (benchmarks/perception_step.py).
PENALISED = 1.4
# Whose kernels cannot be the fused ones, which cannot be differentiated twice.
TWICE = ("pair", "interpolate")
# What `auto` is where there is nothing to choose by.
UNCHOSEN = ("pair",)
# So many texts tell how long a text is, in the dry check.
PROBED = 64
# So many references each held-out text of an unconditional model meets.
DEV_REFERENCES = 32
NO_DROPOUT = (
    "the encoder has no dropout, so the certainty of the model is 1 everywhere and passes with dropout say nothing: "
    "uncertainty=data does without them"
)


@dataclass(frozen=True)
class Texts:
    """Records that can be learned from: a text, and references that are not the same text. Of an unconditional model
    a text alone, and the `pool` of references any of them may meet. Left out are `n_same` outputs that are the same as
    all their references, `n_empty` without a text and `n_alone` without a reference."""

    records: list[Record]
    n_same: int
    pool: tuple[str, ...] = ()
    n_empty: int = 0
    n_alone: int = 0

    def of_system(self, name: str) -> Texts:
        """Those of one system."""
        return Texts([record for record in self.records if label_of(record) == name], 0, self.pool)

    @property
    def systems(self) -> list[str]:
        """The systems with texts, in order."""
        return sorted({label_of(record) for record in self.records})


class Perception(TrainedEvaluator):
    """P_gen = sigmoid(l1(T(x^)) - l1(T(x))): how often the trained reader takes a text for the better one of text and
    reference; several references: their mean. `system_score` weighs the texts by certainty (equation 15).

    Gu, Wu & Yu 2021; docs/explanation/evaluators/perception.md. Scores of systems are comparable only at equal n,
    encoder, budget and seed.
    """

    network_class = PerceptionNetwork
    component_names = ("confidence",)

    @classmethod
    def plan(cls, job: FitJob) -> Plan:
        whole = learnable_of(job, job.train)
        _checked_systems(job, whole)
        check_architecture(job.encoder)
        learned, held_out = _parts(job)
        _check_rates(job, learned, held_out)
        _, texts = kept_apart(job, whole)
        if _n_different(texts) == 1:
            raise TrainingDataError(
                job.name,
                f"all {len(texts.records):,} texts are the same: it would learn that one by heart. Upload others",
            )
        systems = texts.systems
        counts = {name: len(texts.of_system(name).records) for name in systems}
        shared = job.text("models") == "shared"
        times = meetings_of(job)
        pairs = times * max(counts.values()) * len(systems)
        rates = len(_learning_rates(job))
        batch = job.integer("batch_size")
        towers = [pairs] if shared else [times * n for n in counts.values()]
        longest = job.optional_integer("max_steps")
        each = [-(-n // batch) * job.integer("epochs") for n in towers]
        steps = sum(n if longest is None else min(n, longest) for n in each) * rates
        penalties = _penalties(job, learned, held_out)
        more = (PENALISED - 1) / job.integer("penalty_every")
        cost = sum(1 + more if penalty in TWICE else 1 for penalty in penalties)
        notes = _left_out(whole)
        if penalties == UNCHOSEN and job.text("penalty") == "auto":
            notes.append("no held-out texts to choose by: it learns with the gradient penalty (penalty=pair)")
        if texts.n_same:
            notes.append(f"{texts.n_same} texts that equal their only reference are left out: nothing tells them apart")
        few = [name for name, n in counts.items() if n < 100]
        if few and not shared:
            notes.append(f"fewer than 100 texts of {', '.join(few)}: its reader will know little")
        if shared and len(systems) == 1:
            notes.append(f"all texts are of {systems[0]}: the reader knows no other system's, compare none by it")
        constant = [name for name in systems if _n_different(texts.of_system(name)) == 1]
        if constant and not shared:
            notes.append(f"all texts of {', '.join(constant)} are the same: its reader learns them by heart")
        if not _drops(job.encoder):
            notes.append(NO_DROPOUT)
        examples = {"texts": len(texts.records), "systems": len(systems)}
        looked_at, longest_read = _looked_at(job, texts)
        cut = np.concatenate([looked_at.truncated, looked_at.reference_truncated])
        notes += cut_note(cut, "texts and references", f"{longest_read} tokens")
        tokens = float(looked_at.generated.lengths.mean() + looked_at.references.lengths.mean()) * steps * batch
        seconds = cost * training_seconds(job.encoder, tokens, job.text("train_device"))
        return Plan(examples, steps * len(penalties), seconds, tuple(notes))

    @classmethod
    def train(cls, job: FitJob) -> Artefact:
        whole = learnable_of(job, job.train)
        _checked_systems(job, whole)
        learned, held_out = _parts(job)
        kept, texts = kept_apart(job, learnable_of(job, learned))
        dev = None if held_out is None else learnable_of(job, held_out)
        # Without those all of whose texts are held out.
        systems = texts.systems
        trainer = _Trainer(job, texts, dev, kept)
        network, found = trainer.best_of(_penalties(job, learned, held_out), systems)
        record = TrainingRecord(
            dataset=job.train.name,
            data_hash=data_hash(job.train),
            examples={"texts": len(texts.records), "systems": len(systems)},
            groups=groups_of(learned),
            dev_groups=groups_of(held_out),
            simulated_judgements=0,
            seconds=trainer.seconds,
            steps=trainer.steps,
            metrics=found.metrics,
            notes=(
                "A system's score falls as the reader gets stronger: compare systems only under one signature.",
                *_left_out(whole),
                *_penalty_kept(trainer.accuracies, network),
                *(["The confidence branch collapsed: c is nearly 1 everywhere."] if _collapsed(found) else []),
            ),
            versions=library_versions(),
            log=found.log,
        )
        per_system = job.text("models") == "per_system"
        state: dict[str, Any] = {"systems": systems if per_system else [], "learning_rates": trainer.chosen}
        if len(trainer.accuracies) > 1:
            state["penalties"] = trainer.accuracies
        if not job.flag("conditional"):
            state["references"] = kept
        return Artefact(job.name, job.profile, job.seed, (), job.options, state, record, network, job.encoder)

    @property
    def net(self) -> PerceptionNetwork:
        """The network, typed."""
        return cast(PerceptionNetwork, self.network)

    def own_fields(self) -> list[SignatureField]:
        source = cast(EncoderSource, self.artefact.encoder)
        passes = self.options["mc_passes"] if self._needs_passes else 0
        return [
            SignatureField("models", "mo", str(self.settings["models"])),
            SignatureField("pool", "pl", str(self.settings["pooling"])),
            # What was kept where it was chosen.
            SignatureField("gp", "gp", f"{self.net.settings['penalty']}/{self.settings['penalty_every']}"),
            SignatureField("cond", "cd", "yes" if self.settings["conditional"] else "no"),
            SignatureField("ml", "ml", str(source.max_length(cast("int | None", self.settings["max_length"])))),
            SignatureField("unc", "un", f"{self.options['uncertainty']}/{passes}/{self.options['p_gen']}"),
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        encoder = self.artefact.network.encoder
        assert encoder is not None
        return (NO_DROPOUT,) if self._needs_passes and not has_dropout(encoder) else ()

    def undefined(self, record: Record) -> str:
        # Without condition a text meets the references that were kept, not its item's.
        reason = super().undefined(record) if self.settings["conditional"] else ""
        systems = self.artefact.state["systems"]
        if not reason and systems and label_of(record) not in systems:
            return f"no model was trained for {label_of(record)}"
        return reason

    def identity(self, record: Record) -> Any:
        system = label_of(record) if self.artefact.state["systems"] else ""
        if not self.settings["conditional"]:
            return (record.text, system)
        return (super().identity(record), system)

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        values, confidence = np.empty(len(records)), np.empty(len(records))
        truncated = np.zeros(len(records), dtype=np.bool_)
        done = 0
        for tower, rows in self._towers(records):
            reading = self._read([records[row] for row in rows])
            grades, vectors = _graded(self.net, reading.sides, self._engine, tower)
            p, c = reading.combine(grades, vectors, self.net, tower)
            values[rows], confidence[rows] = p, c
            truncated[rows] = reading.truncated
            done += len(rows)
            progress(done, len(records))
        return Partial(values, truncated, {"confidence": confidence})

    def certainty(self, records: Sequence[Record]) -> tuple[Floats, Floats]:
        """m = 1 - Var over the passes with dropout (eq 8), and the mean of P_gen over them; (n,) each.

        Both of each pair of text and reference, then the mean over a text's references. The dropout of a text depends
        on the text, the seed and the pass alone.
        """
        m, mean = np.empty(len(records)), np.empty(len(records))
        n_passes = self.option_int("mc_passes")
        for tower, rows in self._towers(records):
            reading = self._read([records[row] for row in rows])
            passes = np.empty((len(reading.owner), n_passes))
            encoder = self.net.encoder if tower == 0 else self.net.others[tower - 1]
            assert encoder is not None
            with monte_carlo(encoder) as state:
                for number in range(n_passes):
                    state.number = number
                    grades, _ = _graded(self.net, reading.sides, self._engine, tower, state, self.artefact.seed)
                    passes[:, number] = reading.of_pairs(grades)
            m[rows] = reading.over_references(model_certainty(passes))
            mean[rows] = reading.over_references(passes.mean(axis=1))
        return m, mean

    def system_weights(self, records: Sequence[Record]) -> tuple[Floats, Floats]:
        """(n,) P_gen of each text and its weight before normalising: c + m, or the part the options keep.

        Trained without confidence, "both" is m alone. An empty text's 0 is certain: its c and m are 1.
        """
        found = self.evaluate(records)
        values, weights = found.values.copy(), np.zeros(len(records))
        which = self.option_text("uncertainty")
        empty = np.array([not record.text.strip() for record in records], dtype=np.bool_)
        read = np.flatnonzero(~empty & np.array([not reason for reason in found.reasons], dtype=np.bool_))
        if which == "data" or (which == "both" and self.settings["confidence"]):
            weights += np.where(empty, 1.0, np.nan_to_num(found.components["confidence"]))
        if which in ("both", "model"):
            weights[empty] += 1.0
        if self._needs_passes and len(read):
            m, mean = self.certainty([records[int(row)] for row in read])
            if which in ("both", "model"):
                weights[read] += m
            if self.options["p_gen"] == "mc_mean":
                values[read] = mean
        if which == "none":
            weights[:] = 1.0
        return values, np.where(np.isnan(values), 0.0, weights)

    def system_score(self, records: Sequence[Record]) -> float:
        """P_sys = sum_i w_i P_gen,i (eq 14); nan without any defined text."""
        return float(self.from_sums(self.system_statistics(records).sum(axis=0)))

    def system_statistics(self, records: Sequence[Record]) -> Floats:
        return weighted_statistics(*self.system_weights(records))

    def from_sums(self, sums: Floats) -> Floats:
        return weighted_mean(sums)

    def worst_of(self, component: str) -> float:
        return 0.0

    @property
    def _needs_passes(self) -> bool:
        return self.options["uncertainty"] in ("both", "model") or self.options["p_gen"] == "mc_mean"

    @property
    def _engine(self) -> Engine:
        budget = self.options["batch_tokens"]
        pad = self._tokenizer.pad_id
        return Engine(device=self.device, batch_tokens=None if budget is None else int(budget), pad_id=pad)

    @property
    def _tokenizer(self) -> PairTokenizer:
        source = cast(EncoderSource, self.artefact.encoder)
        return PairTokenizer(source, max_length=cast("int | None", self.settings["max_length"]))

    def _towers(self, records: Sequence[Record]) -> list[tuple[int, Ints]]:
        systems: list[str] = self.artefact.state["systems"]
        if not systems:
            return [(0, np.arange(len(records)))]
        of_record = np.array([systems.index(label_of(record)) for record in records])
        return [(tower, np.flatnonzero(of_record == tower)) for tower in np.unique(of_record)]

    def _read(self, records: Sequence[Record]) -> Reading:
        if not self.settings["conditional"]:
            return Reading(encode_pool(self._tokenizer, records, self.artefact.state["references"]))
        return Reading(encode_sides(self._tokenizer, records, with_context=self.settings["inputs"] == "both"))


class Reading:
    """Some records and their references as the network reads them."""

    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        self.owner = np.repeat(np.arange(len(sides.n)), sides.n)
        starts = np.cumsum(sides.n) - sides.n
        self.reference = np.arange(int(sides.n.sum())) + np.repeat(sides.first - starts, sides.n)
        cut = np.zeros(len(sides.n), dtype=np.bool_)
        np.logical_or.at(cut, self.owner, sides.reference_truncated[self.reference])
        self.truncated = cut | sides.truncated

    def probabilities(self, grades: tuple[Floats, Floats]) -> Floats:
        """(n,) P_gen, the mean over the references of each."""
        return self.over_references(self.of_pairs(grades))

    def of_pairs(self, grades: tuple[Floats, Floats]) -> Floats:
        """(pairs,) P_gen of every text with each of its references."""
        return probability_of_generation(grades[0][self.owner], grades[1][self.reference])

    def combine(
        self,
        grades: tuple[Floats, Floats],
        vectors: tuple[torch.Tensor, torch.Tensor],
        net: PerceptionNetwork,
        tower: int,
    ) -> tuple[Floats, Floats]:
        """P_gen and confidence, (n,) each."""
        if not net.settings["confidence"]:
            return self.probabilities(grades), np.ones(len(self.sides.n))
        confidences = np.empty(len(self.owner))
        for start in range(0, len(self.owner), 4096):
            part = slice(start, start + 4096)
            both = vectors[0][self.owner[part]] + vectors[1][self.reference[part]]
            with torch.inference_mode():
                weight = net.l2[tower][0].weight  # type: ignore[index]
                found = net.confide(both.to(weight.device, weight.dtype), tower)
            confidences[part] = found.float().cpu().double().numpy()
        return self.probabilities(grades), self.over_references(confidences)

    def over_references(self, values: Floats) -> Floats:
        """(n,) the mean of (pairs,) values over the references of each text."""
        n = self.sides.n
        return np.asarray(np.bincount(self.owner, values, len(n)) / n)


@dataclass(frozen=True)
class Encoded:
    """What one network learns from, of which system each text is, and what its weights are chosen by."""

    sides: Sides
    systems: list[str]
    held_out: Reading | None


class _Trainer:
    """The trainings of one job: a tower, or one per system, with each penalty and at each learning rate asked for."""

    def __init__(self, job: FitJob, texts: Texts, dev: Texts | None, kept: list[str]) -> None:
        self.job, self.texts, self.dev, self.kept = job, texts, dev, kept
        self.tokenizer = PairTokenizer(job.encoder, max_length=job.optional_integer("max_length"))
        self.tokenizer.tick = job.tell
        self.seconds, self.steps = 0.0, 0
        self.chosen: dict[str, float] = {}
        self.accuracies: dict[str, float | None] = {}

    def best_of(self, penalties: Sequence[str], systems: list[str]) -> tuple[PerceptionNetwork, FinetuneResult]:
        """The network that is kept, with the curve of its training: of several penalties, which come least first, the
        one by which most held-out pairs are right; of equals the least. One for all systems: theirs are compared."""
        # All before the first step: from then on the steps are told.
        parts = [(self.texts, self.dev)]
        if self.job.text("models") == "per_system":
            parts = [(self.texts.of_system(name), self.dev and self.dev.of_system(name)) for name in systems]
        encoded = [self._encoded(*part) for part in parts]
        tried = []
        for penalty in penalties:
            self.chosen = {}
            network, found = self._train(
                systems, encoded, penalty, " without penalty" if penalty != penalties[-1] else ""
            )
            self.accuracies[penalty] = _accuracy(found)
            tried.append((penalty, network, found, self.chosen))
        _, network, found, self.chosen = max(tried, key=lambda one: _or_least(self.accuracies[one[0]]))
        return _for_scoring(network, self.job.encoder), replace(found, steps=self.steps, seconds=self.seconds)

    def _train(
        self, systems: Sequence[str], encoded: Sequence[Encoded], penalty: str, how: str
    ) -> tuple[PerceptionNetwork, FinetuneResult]:
        if self.job.text("models") == "shared":
            return self._best(f"training{how}", encoded[0], penalty)
        whole = self._network(len(systems), penalty)
        log: list[dict[str, Any]] = []
        metrics: dict[str, list[float]] = {}
        for tower, system in enumerate(systems):
            network, found = self._best(f"training {system}{how}", encoded[tower], penalty)
            _move(network, whole, tower)
            log += [{**row, "system": system} for row in found.log]
            for name, value in found.metrics.items():
                metrics.setdefault(name, []).append(value)
        means = {name: float(np.mean(values)) for name, values in metrics.items()}
        return whole.eval(), FinetuneResult(tuple(log), means, self.steps, self.seconds)

    def _encoded(self, texts: Texts, dev: Texts | None) -> Encoded:
        """Texts to learn from, and those to choose by where there are any, as the network reads them."""
        sides = _sides(self.job, self.tokenizer, texts)
        reading = None
        if dev is not None and dev.records:
            reading = Reading(_sides(self.job, self.tokenizer, self._met(dev)))
        return Encoded(sides, [label_of(record) for record in texts.records], reading)

    def _best(self, phase: str, encoded: Encoded, penalty: str) -> tuple[PerceptionNetwork, FinetuneResult]:
        rates = _learning_rates(self.job)
        tried = []
        for rate in rates:
            name = phase if len(rates) == 1 else f"{phase} at {rate:g}"
            tried.append((rate, *self._finetune(name, encoded, rate, penalty)))
        # A rate at which the training diverged has no loss.
        rate, network, found = min(tried, key=lambda one: one[2].metrics.get("loss", math.inf))
        self.chosen[phase] = rate
        return network, found

    def _finetune(
        self, phase: str, encoded: Encoded, rate: float, penalty: str
    ) -> tuple[PerceptionNetwork, FinetuneResult]:
        job, reading = self.job, encoded.held_out
        batches = PairBatches(encoded.sides, encoded.systems, job, pad_id=self.tokenizer.pad_id, phase=phase)
        network = self._network(1, penalty)
        judge = None
        if reading is not None:

            def judge(net: Network) -> dict[str, float]:
                return _judge(cast(PerceptionNetwork, net), reading, self.tokenizer.pad_id)

        settings = FinetuneSettings(
            learning_rate=rate,
            epochs=job.integer("epochs"),
            patience=job.optional_integer("patience"),
            max_steps=job.optional_integer("max_steps"),
            bf16=job.text("train_dtype") == "bf16",
            device=job.text("train_device"),
        )
        budget = job.number("budget")
        found = finetune(
            network, batches, settings, job, phase=phase, evaluate=judge,
            after_step=lambda net, step: cast(PerceptionNetwork, net).adapt(budget),
        )  # fmt: skip
        self.seconds += found.seconds
        self.steps += found.steps
        return network, found

    def _met(self, dev: Texts) -> Texts:
        """Without condition, some references the reader does not learn from, the same at every evaluation: those of the
        dev part, else those kept for scoring."""
        if self.job.flag("conditional"):
            return dev
        learned = {text.strip() for text in self.texts.pool}
        others = [text for text in dev.pool if text.strip() not in learned]
        chosen = self.job.rng("dev references").permutation(len(others))[:DEV_REFERENCES]
        return replace(dev, pool=tuple(others[int(place)] for place in chosen) or tuple(self.kept))

    def _network(self, towers: int, penalty: str) -> PerceptionNetwork:
        job = self.job
        torch.manual_seed(job.torch_seed("network"))
        names = ("pooling", "confidence", "penalty_weight", "penalty_every")
        settings = {**{name: job.options[name] for name in names}, "penalty": penalty, "towers": towers}
        return PerceptionNetwork.from_source(
            job.encoder, settings, attention="eager" if penalty in TWICE else None
        )  # fmt: skip


def learnable_of(job: FitJob, dataset: Dataset) -> Texts:
    """What a job can learn from a dataset that it keeps, found once."""
    find = learnable if job.flag("conditional") else unconditional
    return job.once(f"texts of {id(dataset)}", lambda: find(dataset, job.told))


def learnable(dataset: Dataset, told: Told = untold) -> Texts:
    """Non-empty outputs with references; references that equal the text are taken out, and so is a text that has no
    other."""
    found, same, empty, alone = [], 0, 0, 0
    for record in told(dataset.outputs_with_context()):
        references = tuple(text for text in references_of(record) if text.strip() != record.text.strip())
        if not record.text.strip():
            empty += 1
            continue
        if not references_of(record):
            alone += 1
            continue
        if not references:
            same += 1
            continue
        found.append(replace(record, references=references))
    return Texts(found, same, n_empty=empty, n_alone=alone)


def unconditional(dataset: Dataset, told: Told = untold) -> Texts:
    """All non-empty outputs, whether their items have references or not, and the different references of all items."""
    pool = {text.strip(): text for item in dataset.items for text in item.references if text.strip()}
    found = [record for record in told(dataset.outputs_with_context()) if record.text.strip()]
    return Texts(found, 0, tuple(pool.values()), n_empty=len(dataset.outputs) - len(found))


def _left_out(texts: Texts) -> list[str]:
    """What it does not learn from, by cause."""
    found = []
    if texts.n_empty:
        found.append(f"{texts.n_empty:,} outputs are empty: left out")
    if texts.n_alone:
        found.append(f"{texts.n_alone:,} outputs have no reference: left out")
    return found


def _n_different(texts: Texts) -> int:
    return len({record.text.strip() for record in texts.records})


def kept_apart(job: FitJob, texts: Texts) -> tuple[list[str], Texts]:
    """The references every text meets when an unconditional model scores, drawn once by the seed, and the texts with
    the other references to learn from: one that was learned as a reference would be known for one again, and any text
    beside it look worse than it is. ([], texts) of a conditional model.

    Raises `TrainingDataError` where there are not enough."""
    if job.flag("conditional"):
        return [], texts
    n = job.integer("n_references")
    if len(texts.pool) <= n:
        raise TrainingDataError(
            job.name,
            f"without condition it keeps {n} references to score with and learns from others; there are "
            f"{len(texts.pool)} different ones: add references to the items, or take a smaller n_references",
        )
    order = job.rng("fixed references").permutation(len(texts.pool)).tolist()
    rest = tuple(texts.pool[place] for place in sorted(order[n:]))
    records = texts.records
    if len(rest) == 1:
        records = [record for record in records if record.text.strip() != rest[0].strip()]
    n_same = len(texts.records) - len(records)
    if not records:
        raise TrainingDataError(job.name, "no output differs from the reference it could be told from: add references")
    return [texts.pool[place] for place in order[:n]], Texts(records, n_same, rest)


def _sides(job: FitJob, tokenizer: PairTokenizer, texts: Texts) -> Sides:
    if job.flag("conditional"):
        return encode_sides(tokenizer, texts.records, with_context=job.text("inputs") == "both")
    return encode_pool(tokenizer, texts.records, texts.pool)


def _parts(job: FitJob) -> tuple[Dataset, Dataset | None]:
    """What is learned from and what is held out; without a dev part a tenth of the groups, if there are ten."""
    return job.once("parts", lambda: _split(job))


def _split(job: FitJob) -> tuple[Dataset, Dataset | None]:
    if job.dev is None and len(groups_of(job.train)) >= 10:
        learned, held_out = job.train.split(seed=job.seed, shares=(1 - DEV_SHARE, DEV_SHARE))
        return learned, held_out
    return job.train, job.dev


def _check_rates(job: FitJob, learned: Dataset, held_out: Dataset | None) -> None:
    """Raises `TrainingDataError` where a model has several learning rates and no held-out texts to choose by."""
    lacking = _lacking(job, learned, held_out)
    if lacking is not None and len(_learning_rates(job)) > 1:
        of = f" with texts of {', '.join(lacking)}" if lacking else ""
        raise TrainingDataError(job.name, f"learning_rates are chosen on held-out data: give a dev part{of}")


def _lacking(job: FitJob, learned: Dataset, held_out: Dataset | None) -> list[str] | None:
    """The systems whose model has no held-out texts to choose by, none of them named where nothing is held out; None
    where there are texts for every model."""
    dev = Texts([], 0) if held_out is None else learnable_of(job, held_out)
    if not dev.records:
        return []
    if job.text("models") != "per_system":
        return None
    return [name for name in learnable_of(job, learned).systems if name not in dev.systems] or None


def _penalties(job: FitJob, learned: Dataset, held_out: Dataset | None) -> tuple[str, ...]:
    """The penalties to train with, of which one is kept; the last is what `auto` begins from."""
    asked = job.text("penalty")
    if asked != "auto":
        return (asked,)
    return UNCHOSEN if _lacking(job, learned, held_out) is not None else ("none", *UNCHOSEN)


def _accuracy(found: FinetuneResult) -> float | None:
    """The share of held-out pairs that are right; None where a training diverged and left no weights."""
    lost = any(row.get("diverged") and row["kept"] is None for row in found.log)
    return None if lost else found.metrics.get("accuracy")


def _or_least(value: float | None) -> float:
    return -math.inf if value is None else value


def _penalty_kept(accuracies: Mapping[str, float | None], network: PerceptionNetwork) -> list[str]:
    """Of a penalty that was chosen, which it is, and by what."""
    if len(accuracies) < 2:
        return []
    said = ", ".join(
        f"{'diverged' if value is None else f'{value:.3f}'} {'without it' if name == 'none' else 'with it'}"
        for name, value in accuracies.items()
    )
    kept = "left out" if network.settings["penalty"] == "none" else "kept"
    return [f"The gradient penalty was {kept}: share of held-out pairs that are right {said}."]


def _drops(source: EncoderSource) -> bool:
    """Whether an encoder has dropout, by its configuration: its weights are not read."""
    config = NetworkConfig(encoder=dict(source.config), network={}, attention="eager")
    with torch.device("meta"):
        encoder = PerceptionNetwork(config).encoder
    assert encoder is not None
    return has_dropout(encoder)


def _looked_at(job: FitJob, texts: Texts) -> tuple[Sides, int]:
    """Some texts and references as the network reads them, and the most tokens it reads."""
    places = np.linspace(0, len(texts.records) - 1, min(PROBED, len(texts.records))).astype(int)
    tokenizer = PairTokenizer(job.encoder, max_length=job.optional_integer("max_length"))
    some = Texts([texts.records[place] for place in places.tolist()], 0, texts.pool[:PROBED])
    return _sides(job, tokenizer, some), tokenizer.max_length


def label_of(record: Record) -> str:
    """A system at a step is a system of its own."""
    return record.system if record.step is None else f"{record.system} @ {record.step}"


def _checked_systems(job: FitJob, texts: Texts) -> list[str]:
    if not job.train.outputs:
        raise TrainingDataError(job.name, "the data hold no outputs. Upload the texts of a system first.")
    if texts.n_empty == len(job.train.outputs):
        raise TrainingDataError(job.name, f"all {texts.n_empty:,} outputs are empty: upload outputs with a text")
    if not texts.records:
        raise TrainingDataError(
            job.name, "no output has a reference it could be told from: add references to the items"
        )
    _learning_rates(job)
    systems = texts.systems
    if job.text("models") == "per_system":
        few = [name for name in systems if len(texts.of_system(name).records) < LEAST_PAIRS]
        if few:
            raise TooFewData(
                job.name, f"{', '.join(few)}: fewer than {LEAST_PAIRS} texts with references; take models=shared"
            )
    elif len(texts.records) < LEAST_PAIRS:
        raise TooFewData(
            job.name, f"{len(texts.records)} texts with references are too few, it needs {LEAST_PAIRS}: upload more"
        )
    return systems


def _learning_rates(job: FitJob) -> list[float]:
    wish = job.options["learning_rates"]
    if wish is None:
        return [job.number("learning_rate")]
    try:
        rates = [float(part) for part in str(wish).split(",")]
    except ValueError:
        rates = []
    if not rates or not all(0 < rate <= 1 for rate in rates):
        raise InvalidOption(
            job.name, "learning_rates", f"must be numbers above 0, up to 1, with commas between, not {wish!r}"
        )
    return rates


def _graded(
    network: PerceptionNetwork, sides: Sides, engine: Engine, tower: int, state: Any = None, seed: int = 0
) -> tuple[Any, Any]:
    """l1 of generations and references, and their vectors: ((n,), (r,)), ((n, width), (r, width))."""

    def forward(batch: Batch) -> torch.Tensor:
        inputs = as_inputs(batch)
        if state is not None:
            state.seeds = row_seeds(inputs["input_ids"], inputs["attention_mask"], seed)
            vectors = network.vectors(inputs, tower)
        else:
            vectors = network.read(batch, tower)
        return torch.cat([network.grade(vectors, tower).unsqueeze(-1), vectors], dim=-1)

    found = [engine.map(encodings, forward) for encodings in (sides.generated, sides.references)]
    grades = tuple(part[:, 0].double().numpy() for part in found)
    return grades, tuple(part[:, 1:] for part in found)


def _judge(network: PerceptionNetwork, reading: Reading, pad_id: int) -> dict[str, float]:
    """Log-loss, accuracy and calibration of the pairs of the dev part, mean confidence, the confidence's weight."""
    engine = Engine(device=str(next(network.parameters()).device), pad_id=pad_id)
    grades, vectors = _graded(network, reading.sides, engine, 0)
    p_ref = 1.0 - probability_of_generation(grades[0][reading.owner], grades[1][reading.reference])
    if not np.isfinite(p_ref).all():
        # Weights may be numbers and what they give none: such a rate is not the best one.
        return {"loss": math.nan}
    _, confidence = reading.combine(grades, vectors, network, 0)
    return {
        "loss": mean_negative_log(p_ref),
        "accuracy": float((p_ref > 0.5).mean()),
        "calibration_error": expected_calibration_error(p_ref),
        "confidence": float(confidence.mean()),
        "hinted_loss": mean_negative_log(hinted(p_ref, confidence[reading.owner])),
        "confidence_weight": float(network.confidence_weight),
    }


def _for_scoring(network: PerceptionNetwork, source: EncoderSource) -> PerceptionNetwork:
    """With the attention that suits the architecture; the eager one was for the penalty."""
    network.config.attention = source.attention
    for module in (network.encoder, *network.others):
        assert module is not None
        module.set_attn_implementation(source.attention)
    return network.eval()


def _move(network: PerceptionNetwork, whole: PerceptionNetwork, tower: int) -> None:
    target = whole.encoder if tower == 0 else whole.others[tower - 1]
    assert target is not None
    assert network.encoder is not None
    target.load_state_dict(network.encoder.state_dict())
    whole.l1[tower].load_state_dict(network.l1[0].state_dict())
    whole.l2[tower].load_state_dict(network.l2[0].state_dict())


def _collapsed(found: FinetuneResult) -> bool:
    return found.metrics.get("confidence", 0.0) > 0.999
