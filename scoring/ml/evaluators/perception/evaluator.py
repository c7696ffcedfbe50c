"""Training of `perception` on texts against references, scoring with it, and a system's score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch

from evalapp.translation import gettext as _
from scoring.ml.artefact import Artefact
from scoring.ml.base import Floats, Partial, Progress
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.encodings import Ints
from scoring.ml.engine import Engine
from scoring.ml.errors import TrainingDataError
from scoring.ml.evaluators.perception import training
from scoring.ml.evaluators.perception.arithmetic import model_certainty
from scoring.ml.evaluators.perception.network import PerceptionNetwork
from scoring.ml.evaluators.perception.pairs import Sides, count_meetings, encode_pool, encode_sides, find_form
from scoring.ml.evaluators.perception.reading import Reading, grade_sides
from scoring.ml.evaluators.perception.texts import (
    Texts,
    check_systems,
    count_different,
    encode_texts,
    find_texts,
    label_system,
    set_references_apart,
)
from scoring.ml.layers.counter_dropout import has_dropout, monte_carlo
from scoring.ml.network import NetworkConfig, check_architecture
from scoring.ml.signature import SignatureField
from scoring.ml.sums import weighted_mean, weighted_statistics
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training import frame
from scoring.ml.training.checks import describe_truncation
from scoring.ml.training.job import FitJob, Plan
from scoring.ml.training.record import list_groups
from scoring.ml.training.split import split_dataset
from scoring.ml.types import Record

NO_DROPOUT = (
    "the encoder has no dropout, so the certainty of the model is 1 everywhere and passes with dropout are useless: "
    "uncertainty=data avoids them"
)


class Perception(TrainedEvaluator):
    """P_gen = sigmoid(l1(T(x^)) - l1(T(x))): how often the trained discriminator prefers a text to a reference; with
    several references, their mean. `system_score` weights the texts by certainty (equation 15).

    Gu, Wu & Yu 2021; docs/explanation/evaluators/perception.md. Scores of systems are comparable only at equal n,
    encoder, budget and seed.
    """

    network_class = PerceptionNetwork
    component_names = ("confidence",)

    @classmethod
    def plan(cls, job: FitJob) -> Plan:
        whole = find_texts(job, job.train)
        check_systems(job, whole)
        training.parse_learning_rates(job)
        check_architecture(job.encoder)
        learned, held_out = split_dataset(job)
        training.check_learning_rates(job, learned, held_out)
        texts = set_references_apart(job, whole)[1]
        if count_different(texts) == 1:
            text = _("all %(n_records)s texts are the same: it would only memorise that text. Upload others")
            raise TrainingDataError(job.name, text, n_records=f"{len(texts.records):,}")
        systems = texts.systems
        counts = {name: len(texts.select_system(name).records) for name in systems}
        shared = job.text("models") == "shared"
        times = count_meetings(job)
        pairs = times * max(counts.values()) * len(systems)
        rates = len(training.parse_learning_rates(job))
        towers = [pairs] if shared else [times * n for n in counts.values()]
        steps = sum(frame.count_steps(job, n) for n in towers) * rates
        penalties = training.choose_penalties(job, learned, held_out)
        notes = whole.omissions
        if penalties == training.UNCHOSEN and job.text("penalty") == "auto":
            notes.append(_("no held-out texts to choose by: it learns with the gradient penalty (penalty=pair)"))
        if texts.n_same:
            notes.append(_("%(n_same)s texts that equal their only reference are left out") % {"n_same": texts.n_same})
        few = [name for name, n in counts.items() if n < 100]
        if few and not shared:
            text = _("fewer than 100 texts of %(few)s: its discriminator will learn little")
            notes.append(text % {"few": ", ".join(few)})
        if shared and len(systems) == 1:
            text = _("all texts are of %(systems)s: the discriminator knows no other system, compare none by it")
            notes.append(text % {"systems": systems[0]})
        constant = [name for name in systems if count_different(texts.select_system(name)) == 1]
        if constant and not shared:
            text = _("all texts of %(constant)s are the same: its discriminator memorises them")
            notes.append(text % {"constant": ", ".join(constant)})
        if not _drops(job.encoder):
            notes.append(NO_DROPOUT)
        examples = {"texts": len(texts.records), "systems": len(systems)}
        looked_at, longest_read = _looked_at(job, texts)
        cut = np.concatenate([looked_at.truncated, looked_at.reference_truncated])
        notes += describe_truncation(cut, "texts and references", f"{longest_read} tokens")
        n_dev = 0 if held_out is None else len(find_texts(job, held_out).records)
        reads = frame.count_readings(job, steps // rates, sum(towers), n_dev).repeat(rates)
        return Plan(
            examples,
            reads.steps * len(penalties),
            None,
            tuple(notes),
            measure=lambda: training.time_training(job, texts, penalties, reads),
        )

    @classmethod
    def train(cls, job: FitJob) -> Artefact:
        whole = find_texts(job, job.train)
        check_systems(job, whole)
        training.parse_learning_rates(job)
        learned, held_out = split_dataset(job)
        kept, texts = set_references_apart(job, find_texts(job, learned))
        dev = None if held_out is None else find_texts(job, held_out)
        # Without those all of whose texts are held out.
        systems = texts.systems
        trainer = training.Trainer(job, texts, dev, kept)
        network, result = trainer.train_best(training.choose_penalties(job, learned, held_out), systems)
        per_system = job.text("models") == "per_system"
        state: dict[str, Any] = {"systems": systems if per_system else [], "learning_rates": trainer.chosen}
        if len(trainer.accuracies) > 1:
            state["penalties"] = trainer.accuracies
        if not job.flag("conditional"):
            state["references"] = kept
        collapsed = result.metrics.get("confidence", 0.0) > 0.999
        notes = (
            "A system's score falls as the discriminator improves: compare systems only under the same signature.",
            *whole.omissions,
            *training.describe_penalty(trainer.accuracies, network),
            *(["The confidence branch collapsed: c is nearly 1 everywhere."] if collapsed else []),
        )
        examples = {"texts": len(texts.records), "systems": len(systems)}
        groups, dev_groups = list_groups(learned), list_groups(held_out)
        return frame.make_artefact(
            job, frame.TrainingResult(network, result, examples, groups, dev_groups, state=state, notes=notes)
        )

    @property
    def net(self) -> PerceptionNetwork:
        """The network, typed."""
        return cast(PerceptionNetwork, self.network)

    def own_fields(self) -> list[SignatureField]:
        passes = self.options["mc_passes"] if self._needs_passes else 0
        return [
            SignatureField("models", "mo", str(self.settings["models"])),
            SignatureField("pool", "pl", str(self.settings["pooling"])),
            # The penalty that was selected.
            SignatureField("gp", "gp", f"{self.net.settings['penalty']}/{self.settings['penalty_every']}"),
            SignatureField("cond", "cd", "yes" if self.settings["conditional"] else "no"),
            SignatureField("ml", "ml", str(self.longest)),
            *self.feature_fields,
            SignatureField("unc", "un", f"{self.options['uncertainty']}/{passes}/{self.options['p_gen']}"),
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        encoder = cast(PerceptionNetwork, self.artefact.network).tower(0)
        return (NO_DROPOUT,) if self._needs_passes and not has_dropout(encoder) else ()

    def undefined(self, record: Record) -> str:
        # Without condition a text is compared with the fixed references, not with its item's.
        reason = super().undefined(record) if self.settings["conditional"] else ""
        systems = self.artefact.state["systems"]
        if not reason and systems and label_system(record) not in systems:
            return f"no model was trained for {label_system(record)}"
        return reason

    def identity(self, record: Record) -> Any:
        system = label_system(record) if self.artefact.state["systems"] else ""
        if not self.settings["conditional"]:
            return (record.text, system)
        return (super().identity(record), system)

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        values, confidence = np.empty(len(records)), np.empty(len(records))
        truncated = np.zeros(len(records), dtype=np.bool_)
        done = 0
        for tower, rows in self._towers(records):
            reading = self._read([records[row] for row in rows])
            grades, vectors = grade_sides(self.net, reading.sides, self._engine, tower)
            p, c = reading.combine(grades, vectors, self.net, tower)
            values[rows], confidence[rows] = p, c
            truncated[rows] = reading.truncated
            done += len(rows)
            progress(done, len(records))
        return Partial(values, truncated, {"confidence": confidence})

    def certainty(self, records: Sequence[Record]) -> tuple[Floats, Floats]:
        """m = 1 - Var over the passes with dropout (eq 8), and the mean of P_gen over them; (n,) each.

        Both are computed per pair of text and reference, then averaged over a text's references. The dropout of a text
        depends only on the text, the seed and the pass.
        """
        m, mean = np.empty(len(records)), np.empty(len(records))
        n_passes = self.option_int("mc_passes")
        for tower, rows in self._towers(records):
            reading = self._read([records[row] for row in rows])
            passes = np.empty((len(reading.owner), n_passes))
            with monte_carlo(self.net.tower(tower)) as state:
                for number in range(n_passes):
                    state.number = number
                    grades, _ = grade_sides(self.net, reading.sides, self._engine, tower, state, self.artefact.seed)
                    passes[:, number] = reading.grade_pairs(grades)
            m[rows] = reading.over_references(model_certainty(passes))
            mean[rows] = reading.over_references(passes.mean(axis=1))
        return m, mean

    def system_weights(self, records: Sequence[Record]) -> tuple[Floats, Floats]:
        """(n,) P_gen of each text and its unnormalised weight: c + m, or the part that the options select.

        Trained without confidence, "both" is m alone. An empty text's 0 is certain: its c and m are 1.
        """
        result = self.evaluate(records)
        values, weights = result.values.copy(), np.zeros(len(records))
        which = self.option_text("uncertainty")
        empty = np.array([not record.text.strip() for record in records], dtype=np.bool_)
        read = np.flatnonzero(~empty & np.array([not reason for reason in result.reasons], dtype=np.bool_))
        if which == "data" or (which == "both" and self.settings["confidence"]):
            weights += np.where(empty, 1.0, np.nan_to_num(result.components["confidence"]))
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

    def system_statistics(self, records: Sequence[Record]) -> Floats:
        """(n, 4) sums of P_sys = sum_i w_i P_gen,i (eq 14)."""
        return weighted_statistics(*self.system_weights(records))

    def from_sums(self, sums: Floats) -> Floats:
        return weighted_mean(sums)

    def worst_component(self, component: str) -> float:
        return 0.0

    @property
    def _needs_passes(self) -> bool:
        return self.options["uncertainty"] in ("both", "model") or self.options["p_gen"] == "mc_mean"

    @property
    def _engine(self) -> Engine:
        return self.make_engine(self._tokenizer.pad_id)

    @property
    def _tokenizer(self) -> PairTokenizer:
        return PairTokenizer(self.source, max_length=self.max_length)

    def _towers(self, records: Sequence[Record]) -> list[tuple[int, Ints]]:
        systems: list[str] = self.artefact.state["systems"]
        if not systems:
            return [(0, np.arange(len(records)))]
        of_record = np.array([systems.index(label_system(record)) for record in records])
        return [(tower, np.flatnonzero(of_record == tower)) for tower in np.unique(of_record)]

    def _read(self, records: Sequence[Record]) -> Reading:
        if not self.settings["conditional"]:
            return Reading(encode_pool(self._tokenizer, records, self.artefact.state["references"]))
        form = find_form(str(self.settings["inputs"]), int(self.net.settings.get("texts", 0)))
        return Reading(encode_sides(self._tokenizer, records, form=form))


def _looked_at(job: FitJob, texts: Texts) -> tuple[Sides, int]:
    """The probe as the network reads it, and the maximum number of tokens."""
    tokenizer = job.tokenizer()
    some = Texts(
        [texts.records[place] for place in frame.probe_rows(len(texts.records))], 0, texts.pool[: frame.PROBE_ROWS]
    )
    return encode_texts(job, tokenizer, some), tokenizer.max_length


def _drops(source: EncoderSource) -> bool:
    """Whether an encoder has dropout, according to its configuration; weights are not read."""
    config = NetworkConfig(encoder=dict(source.config), network={}, attention="eager")
    with torch.device("meta"):
        return has_dropout(PerceptionNetwork(config).tower(0))
