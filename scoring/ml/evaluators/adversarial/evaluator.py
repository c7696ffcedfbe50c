"""Training of `adversarial` on human and machine texts, and scoring with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch

from evalapp.translation import gettext as _
from scoring.ml.artefact import Artefact
from scoring.ml.base import Floats, Partial, Progress
from scoring.ml.encoders.separate import Inputs, map_inputs
from scoring.ml.encodings import Ints
from scoring.ml.engine import Engine
from scoring.ml.errors import TrainingDataError
from scoring.ml.evaluators.adversarial.network import AdversarialNetwork
from scoring.ml.evaluators.adversarial.texts import (
    Texts,
    balanced_log_loss,
    collect_texts,
    row_weights,
    rows_of_epoch,
)
from scoring.ml.evaluators.comparative.inputs import PairReader
from scoring.ml.evaluators.shared_bert.report import classify
from scoring.ml.network import Network, check_architecture
from scoring.ml.signature import SignatureField
from scoring.ml.trained import TrainedEvaluator
from scoring.ml.training import frame
from scoring.ml.training.batches import RowBatches, count_texts
from scoring.ml.training.estimate import Counts
from scoring.ml.training.finetune import finetune
from scoring.ml.training.job import FitJob, Plan
from scoring.ml.training.record import list_groups, record_groups
from scoring.ml.training.split import split_dataset
from scoring.ml.training.timing import Work, time_work
from scoring.ml.training.warm import begin_network
from scoring.ml.types import Record

LEAST_ITEMS, LEAST_OF_A_CLASS = 4, 4


@dataclass(frozen=True)
class Material:
    """The texts to learn from, the held-out texts (possibly none), and the groups of both."""

    train: Texts
    dev: Texts
    groups: tuple[str, ...]
    dev_groups: tuple[str, ...]


class Adversarial(TrainedEvaluator):
    """P(human) = sigmoid of a linear head on the encoding of `[CLS] context [SEP] text [SEP]`, trained on references
    against machine outputs.

    Zhou & Xu 2020 (their adversarial baseline, the comparative evaluator without comparison);
    docs/explanation/evaluators/adversarial.md.
    """

    network_class = AdversarialNetwork

    @classmethod
    def plan(cls, job: FitJob) -> Plan:
        check_architecture(job.encoder)
        material = _material(job)
        texts = material.train
        rows = _epoch(job, texts, 0)
        steps = frame.count_steps(job, len(rows))
        notes = []
        if texts.n_same:
            text = _("%(n_same)s outputs that equal what a person wrote in the same context are left out")
            notes.append(text % {"n_same": texts.n_same})
        if texts.n_repeated:
            text = _("%(n_repeated)s texts repeat one of their own kind in the same context and are read once")
            notes.append(text % {"n_repeated": texts.n_repeated})
        if not material.dev_groups:
            notes.append(_("nothing is held out, so the last epoch is kept"))
        if job.text("inputs") == "context":
            notes.append(_("contexts alone do not reveal who wrote a text: expect 0.5 everywhere"))
        examples = {
            "texts of people": texts.n_people,
            "texts of machines": texts.n_machines,
            "systems": len(texts.rows_by_system()),
            "texts in an epoch": len(rows),
            "held-out texts": len(material.dev.records),
        }
        counts = frame.count_readings(job, steps, len(rows), len(material.dev.records))
        return Plan(
            examples, counts.steps, None, tuple(notes), measure=lambda: _time_training(job, texts, rows, counts)
        )

    @classmethod
    def train(cls, job: FitJob) -> Artefact:
        material = _material(job)
        texts, reader = material.train, _reader(job)
        network = _new_network(job, reader)
        weights = row_weights(texts, balance=job.text("balance"), systems_alike=job.flag("systems_alike"))
        batches = RowBatches(
            reader.singles(texts.records).encodings,
            {"labels": torch.from_numpy(texts.labels), "weights": torch.from_numpy(weights)},
            record_groups(texts.records),
            job,
            pad_id=reader.pad_id,
            choose=lambda epoch: _epoch(job, texts, epoch),
        )
        held_out = reader.singles(material.dev.records).encodings if material.dev.records else None

        def judge(net: Network) -> dict[str, float]:
            assert held_out is not None
            return measure_held_out(net, held_out, material.dev, reader.pad_id)

        result = finetune(
            network, batches, frame.make_finetune_settings(job), job, evaluate=None if held_out is None else judge
        )
        examples = {"texts of people": texts.n_people, "texts of machines": texts.n_machines}
        notes = _notes(result.metrics)
        return frame.make_artefact(
            job, frame.TrainingResult(network, result, examples, material.groups, material.dev_groups, notes=notes)
        )

    def own_fields(self) -> list[SignatureField]:
        return [
            SignatureField("pool", "pl", str(self.settings["pooling"])),
            SignatureField("ml", "ml", str(self.longest)),
            *self.feature_fields,
        ]

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        network = cast(AdversarialNetwork, self.network)
        inputs = str(self.settings["inputs"])
        reader = PairReader(self.source, inputs=inputs, max_length=self.max_length, texts=network.texts)
        engine = self.make_engine(reader.pad_id)

        def run(inputs: Inputs, report: Callable[[float], object]) -> torch.Tensor:
            return _judge(network, engine, inputs, report)

        probabilities, truncated = engine.score(records, reader.singles, network.judge, progress=progress, run=run)
        return Partial(probabilities.double().numpy(), truncated)


def _material(job: FitJob) -> Material:
    """The texts of the training part and of the held-out part; without a dev part, a tenth of the groups is held
    out."""
    train, dev = split_dataset(job)
    texts = collect_texts(train)
    _check(job, texts)
    held_out = collect_texts(train.without_rows() if dev is None else dev)
    if not (held_out.n_people and held_out.n_machines):
        held_out = collect_texts(train.without_rows())
        dev = job.dev
    chosen = list_groups(dev) if held_out.records or job.dev is not None else ()
    return Material(texts, held_out, list_groups(train), chosen)


def _check(job: FitJob, texts: Texts) -> None:
    """Raises `TrainingDataError` if there are not enough human or machine texts."""
    name = job.name
    if not texts.n_people:
        text = _(
            "no text is known to be a person's: add references to the items, or say with the systems' kinds which "
            "outputs people wrote"
        )
        raise TrainingDataError(name, text)
    if not texts.n_machines:
        same = f" ({texts.n_same} outputs equal what a person wrote in the same context)" if texts.n_same else ""
        text = _("no text is known to be a machine's%(same)s: upload the outputs of a system")
        raise TrainingDataError(name, text, same=same)
    if min(texts.n_people, texts.n_machines) < LEAST_OF_A_CLASS:
        text = _("%(n_people)s texts of people and %(n_machines)s of machines are too few: it needs %(least)s of each")
        raise TrainingDataError(
            name, text, n_people=texts.n_people, n_machines=texts.n_machines, least=LEAST_OF_A_CLASS
        )
    n_items = len({record.item for record in texts.records})
    if n_items < LEAST_ITEMS:
        text = _("%(n_items)s items with texts are too few: it needs %(least)s")
        raise TrainingDataError(name, text, n_items=n_items, least=LEAST_ITEMS)
    if job.text("inputs") == "context" and not any(record.context or record.source for record in texts.records):
        raise TrainingDataError(name, _("inputs=context, but no item has a context or a source: take inputs=text"))


def _epoch(job: FitJob, texts: Texts, epoch: int) -> Ints:
    rng = job.rng(f"texts:{epoch}")
    return rows_of_epoch(texts, balance=job.text("balance"), systems_alike=job.flag("systems_alike"), rng=rng)


def _new_network(job: FitJob, reader: PairReader) -> AdversarialNetwork:
    torch.manual_seed(job.torch_seed("network"))
    sizes = {"pooling": job.text("pooling"), **({"texts": reader.texts} if reader.texts else {})}
    network = AdversarialNetwork.from_source(job.encoder, sizes)
    begin_network(job, network)
    return network


def _time_training(job: FitJob, texts: Texts, rows: Ints, counts: Counts) -> tuple[float, float]:
    reader, some = _reader(job), np.sort(rows)[:: max(1, len(rows) // frame.TIMED_ROWS)]
    inputs = reader.singles([texts.records[int(row)] for row in some]).encodings
    values = {"labels": torch.zeros(len(some)), "weights": torch.ones(len(some))}
    sample = RowBatches(inputs, values, [""] * len(some), job, pad_id=reader.pad_id)
    return time_work(job, [Work(lambda: _new_network(job, reader), sample, inputs, counts)])


def _reader(job: FitJob) -> PairReader:
    contexts = any(item.context or item.source for item in job.train.items)
    texts = count_texts(job, contexts=contexts, single=True)
    most = job.optional_integer("max_length")
    return PairReader(job.encoder, inputs=job.text("inputs"), max_length=most, texts=texts)


def _judge(
    network: AdversarialNetwork, engine: Engine, inputs: Inputs, report: Callable[[float], object] | None = None
) -> torch.Tensor:
    return map_inputs(engine, inputs, network.judge, network.read_texts, network.judge_features, report=report)


def measure_held_out(network: Network, encodings: Inputs, texts: Texts, pad_id: int) -> dict[str, float]:
    """Return metrics on the held-out `texts`, with their `encodings`: log-loss with equal class weights, balanced
    accuracy, AUROC, accuracy. `network` reads them; `pad_id` is the padding token."""
    engine = Engine(device=str(next(network.parameters()).device), pad_id=pad_id)
    result: Floats = _judge(cast(AdversarialNetwork, network), engine, encodings).double().numpy()
    report = classify(texts.labels, result)
    return {
        "loss": balanced_log_loss(texts.labels.tolist(), result.tolist()),
        "balanced_accuracy": report.balanced_accuracy,
        "auroc": report.auroc,
        "accuracy": report.accuracy,
        "majority": report.majority,
    }


def _notes(metrics: Mapping[str, float]) -> tuple[str, ...]:
    notes = ["It predicts who wrote a text, not its quality: machines of different strength may all score near 0."]
    if metrics.get("balanced_accuracy", 0.0) > 0.99:
        notes.append(_("Held-out texts are classified almost perfectly: scores of machine texts are all close to 0."))
    if np.isfinite(metrics.get("auroc", np.nan)) and metrics["auroc"] < 0.55:
        notes.append(_("Held-out texts are classified close to chance level: the scores say little."))
    return tuple(notes)
