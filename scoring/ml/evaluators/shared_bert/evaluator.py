"""Training of `shared-bert` on ratings, and scoring with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import torch

from evalapp.stats.correlation.coefficients import spearman
from evalapp.translation import gettext as _
from evalapp.translation import ngettext
from scoring.ml.artefact import Artefact
from scoring.ml.base import Floats, Partial, Progress, get_references
from scoring.ml.encoders.kept import cached_vectors
from scoring.ml.encoders.separate import (
    SEPARATE,
    Inputs,
    ReadTexts,
    TextRows,
    find_nearest,
    map_inputs,
    map_rows,
    read_columns,
    read_last_turns,
)
from scoring.ml.encoders.tokenizing import Cut, PairTokenizer
from scoring.ml.encodings import Encodings, Ints, TokenizedTexts
from scoring.ml.engine import Batch, Engine, resolve_device
from scoring.ml.errors import InvalidOption, TooFewData
from scoring.ml.evaluators.shared_bert.checks import beta_numbers, check_beta, check_pooler
from scoring.ml.evaluators.shared_bert.instances import Instances, get_instances, learns_grades
from scoring.ml.evaluators.shared_bert.labels import BETA_GRID, LabelledOutputs, share_of_negatives
from scoring.ml.evaluators.shared_bert.network import SharedBertNetwork
from scoring.ml.evaluators.shared_bert.report import classify
from scoring.ml.evaluators.unreferenced.vectors import UtteranceEncoder
from scoring.ml.network import Network, check_architecture
from scoring.ml.signature import SignatureField
from scoring.ml.trained import SeveralAspects
from scoring.ml.training import frame
from scoring.ml.training.batches import RowBatches
from scoring.ml.training.checks import describe_truncation
from scoring.ml.training.curve import FinetuneResult
from scoring.ml.training.estimate import Counts
from scoring.ml.training.finetune import TOGETHER, finetune
from scoring.ml.training.head import HEAD
from scoring.ml.training.job import FitJob, Plan
from scoring.ml.training.record import list_groups, record_groups
from scoring.ml.training.timing import Work, time_work
from scoring.ml.training.warm import begin_network
from scoring.ml.types import Record

LEAST_OF_A_CLASS = 2
#: Values of the option `references`.
AUTO, NEAREST, MEAN = "auto", "nearest", "mean"


class SharedBert(SeveralAspects):
    """How good an output is, per aspect = sigmoid of a head on the encoding of output and reference.

    `score(records)` gives (n, aspects), with `aspect=` (n,); the option `references` combines several references. Reddy
    2022; docs/explanation/evaluators/shared-bert.md.
    """

    network_class = SharedBertNetwork

    @classmethod
    def chooses_weights(cls, job: FitJob) -> bool:
        """No if the head alone is fitted and the weight of good outputs is not searched for."""
        return job.text("stages") != HEAD or job.text("beta") == "grid"

    @classmethod
    def plan(cls, job: FitJob) -> Plan:
        train, dev = get_instances(job)[:2]
        check_architecture(job.encoder)
        check_pooler(job)
        labelled = train.labelled
        check_beta(job, len(labelled.aspects), held_out=len(dev.outputs) > 0)
        _check_targets(job, train)
        pairs = _pairs_of_epoch(job, train, 0)
        n_pairs = len(pairs)
        runs = 1 if job.flag("shared") else len(labelled.aspects)
        if job.text("beta") == "grid":
            runs += len(BETA_GRID) * len(labelled.aspects)
        steps = frame.count_steps(job, n_pairs)
        notes = labelled.omissions
        if labelled.n_merged:
            text = ngettext(
                "%(n_merged)s output repeats another system's text and was pooled with it",
                "%(n_merged)s outputs repeat another system's text and were pooled with it",
                labelled.n_merged,
            )
            notes.append(text % {"n_merged": labelled.n_merged})
        if job.text("pooling") == "pooler" and job.options["encoder"] is None:
            notes.append(_("the default encoder's pooler was never trained: pooling=mean suits it better"))
        if not len(dev.outputs) and job.chooses_weights:
            notes.append(_("nothing is held out, so the last epoch is kept"))
        if job.dev is not None and job.text("split") == "row":
            notes.append(_("split=row: the dev part consists of whole groups, so only its metrics are over rows"))
        examples = {
            "rated outputs": len(np.unique(train.outputs)),
            "pairs with a reference": n_pairs,
            "held-out outputs": len(np.unique(dev.outputs)),
        }
        probe = train.take(pairs[frame.probe_rows(n_pairs)])
        reader = job.tokenizer()
        looked_at = _read(job, probe, reader)
        notes += describe_truncation(
            looked_at.truncated, "pairs of output and reference", f"{reader.max_length} tokens"
        )
        counts = frame.count_readings(job, steps, n_pairs, len(dev.outputs)).repeat(runs)
        counts = counts._replace(evaluated=counts.evaluated + _count_other_references(job, train, pairs))
        return Plan(
            examples, counts.steps, None, tuple(notes), measure=lambda: _time_training(job, train, pairs, counts)
        )

    @classmethod
    def train(cls, job: FitJob) -> Artefact:
        train, dev, test = get_instances(job)
        trainer = _Trainer(job, train, dev)
        if _takes_nearest(job):
            trainer.keep_nearest()
        betas = trainer.choose_betas()
        network, result = trainer.train(betas)
        metrics = dict(result.metrics)
        if len(test.outputs):
            metrics |= {f"test_{k}": v for k, v in trainer.evaluate(network, test).items() if np.isfinite(v)}
        labelled = train.labelled
        groups, dev_groups = _groups(job, dev)
        metrics = {key: value for key, value in metrics.items() if np.isfinite(value)}
        examples = {
            "rated outputs": len(np.unique(train.outputs)),
            "pairs of output and reference": len(trainer.train_part.outputs),
        }
        learned = frame.TrainingResult(
            network,
            FinetuneResult(result.log, metrics, trainer.steps, trainer.seconds),
            examples,
            groups,
            dev_groups,
            aspects=labelled.aspects,
            state={"betas": list(betas), "thresholds": list(labelled.thresholds)},
            notes=(*labelled.omissions, *_leak(train, dev, test), *_notes(labelled, metrics)),
            simulated=labelled.simulated,
        )
        return frame.make_artefact(job, learned)

    def own_fields(self) -> list[SignatureField]:
        return [
            SignatureField("pool", "pl", str(self.settings["pooling"])),
            SignatureField("shared", "sh", "yes" if self.settings["shared"] else "no"),
            SignatureField("ml", "ml", str(self.longest)),
            SignatureField("trunc", "tc", "right"),
            SignatureField("refs", "rf", self._rule),
            SignatureField("of", "of", str(self.options["aspect"] or "mean")),
            *([SignatureField("labels", "lb", "graded")] if self.settings.get("labels") == "graded" else []),
            *self.feature_fields,
        ]

    @property
    def _rule(self) -> str:
        """What several references of an output count: `nearest`, `mean` or `max`."""
        rule = str(self.options["references"])
        if rule == AUTO:
            return NEAREST if self.settings.get("nearest") and self._network.texts > 1 else MEAN
        if rule == NEAREST and self._network.texts < 2:
            raise InvalidOption(
                self.name, "references", _("nearest needs texts that are read alone: train with features=separate")
            )
        return rule

    @property
    def _network(self) -> SharedBertNetwork:
        return cast(SharedBertNetwork, self.network)

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        aspect = self.options["aspect"]
        self.check_aspect(aspect)
        pairs = [(row, reference) for row, record in enumerate(records) for reference in get_references(record)]
        judged = [records[row] for row, _ in pairs]
        owners = np.array([row for row, _ in pairs], dtype=np.int64)
        tokenizer = PairTokenizer(self.source, max_length=self.max_length)
        network = self._network
        inputs = network.texts or str(self.settings["inputs"])
        tokenized = _tokenize(tokenizer, inputs, judged, [reference for _, reference in pairs])
        engine = self.make_engine(tokenizer.pad_id)
        combined = _judge_outputs(network, engine, tokenized.encodings, owners, self._rule)
        progress(len(records), len(records))
        truncated = np.zeros(len(records), dtype=np.bool_)
        np.logical_or.at(truncated, owners, tokenized.truncated)
        columns = {aspect: combined[:, place] for place, aspect in enumerate(self.aspects)}
        return Partial(combined.mean(axis=1) if aspect is None else columns[str(aspect)], truncated, columns)


class _Trainer:
    """The trainings of a job: those of the grid, then the final one."""

    def __init__(self, job: FitJob, train: Instances, dev: Instances) -> None:
        self.job, self.train_part, self.dev = job, train, dev
        self.tokenizer = job.tokenizer()
        self.tokenizer.tick = job.report_rows
        self.encodings = _read(job, train, self.tokenizer).encodings
        self.dev_encodings = _read(job, dev, self.tokenizer).encodings
        # From here on progress counts steps.
        self.tokenizer.tick = None
        self.vectors: torch.Tensor | None = None
        self.seconds, self.steps = 0.0, 0

    @property
    def better(self) -> str:
        """The figure on the held-out part that chooses the weights."""
        return "spearman" if learns_grades(self.job) else "macro_f1"

    @property
    def aspects(self) -> tuple[str, ...]:
        return self.train_part.labelled.aspects

    def keep_nearest(self) -> None:
        """Keep each output's pair with its nearest reference by the encoder as it is, and the vectors read for that."""
        inputs = self.encodings
        assert isinstance(inputs, TextRows)
        self.vectors = self._read_vectors(inputs.encodings)
        rows = find_nearest(self.vectors, inputs.places, self.train_part.outputs)
        self.train_part, self.encodings = self.train_part.take(rows), TextRows(inputs.encodings, inputs.places[rows])

    def _read_vectors(self, texts: Encodings) -> torch.Tensor:
        """(texts, width) vectors by the encoder as it is. The folds of a cross-fitting share those of a source."""
        job, tick = self.job, self.job.report_phase("encoding")
        # Processes that share a training would write the same file.
        if job.init is None and job.processes == 1 and job.text("pooling") != "pooler":
            kept = cached_vectors(UtteranceEncoder.for_training(job), texts, job.texts, "fp32", tick)
            return torch.from_numpy(np.array(kept))
        network = self.new_network(len(self.aspects))
        network.to(torch.device(resolve_device(job.text("train_device"))))  # type: ignore[arg-type]
        network.eval()
        engine = Engine(device=str(next(network.parameters()).device), pad_id=self.tokenizer.pad_id)
        n = len(texts)
        return engine.map(texts, network.read_texts, report=lambda share: tick(round(share * n), n))

    def choose_betas(self) -> tuple[float, ...]:
        """The weight of good outputs per aspect. `share`: the share of bad ones among the pairs of an epoch, which the
        loss is a mean of. `grid`: the multiple of that share whose one-aspect model has the best macro-F1 on the
        held-out part, or for grades the best Spearman (Reddy 2022); ties go to the multiple nearest to 1."""
        pairs = _pairs_of_epoch(self.job, self.train_part, 0)
        shares = share_of_negatives(self.train_part.targets(self.job)[self.train_part.outputs[pairs]])
        wish = self.job.text("beta")
        if wish == "share":
            return tuple(float(share) for share in shares)
        if wish != "grid":
            return beta_numbers(self.job.name, wish, len(shares))
        chosen = []
        for place, share in enumerate(shares):
            scores = []
            for factor in BETA_GRID:
                beta = min(max(float(share) * factor, 0.01), 0.99)
                phase = f"beta {self.aspects[place]} {factor:.2f}"
                _, result = self._finetune((place,), (beta,), phase)
                scores.append(result.metrics.get(self.better, -1.0))
            chosen.append(min(max(float(share) * best_factor(scores), 0.01), 0.99))
        return tuple(chosen)

    def train(self, betas: tuple[float, ...]) -> tuple[SharedBertNetwork, FinetuneResult]:
        """The final network with its training curve."""
        everything = tuple(range(len(betas)))
        if self.job.flag("shared"):
            return self._finetune(everything, betas, "training")
        towers = [self._finetune((place,), (betas[place],), f"training {self.aspects[place]}") for place in everything]
        whole = self.new_network(len(betas), shared=False)
        for place in everything:
            whole.copy_tower(towers[place][0], place)
        whole.eval()
        log = [{**row, "aspect": self.aspects[place]} for place in everything for row in towers[place][1].log]
        metrics = self.evaluate(whole, self.dev) if len(self.dev.outputs) else {}
        finetune_result = FinetuneResult(tuple(log), metrics, self.steps, self.seconds)
        return whole, finetune_result

    def evaluate(self, network: Network, part: Instances, places: Sequence[int] | None = None) -> dict[str, float]:
        """Means over aspects of macro-F1, MCC, AUROC and related metrics, of Spearman with the grades (0 if it is
        undefined), and each aspect's own.

        Over outputs, each by the mean over its references; over rows if the split is by rows, as in the paper.
        """
        places = range(len(self.aspects)) if places is None else places
        device = next(network.parameters()).device
        engine = Engine(device=str(device), pad_id=self.tokenizer.pad_id)
        encodings = self.dev_encodings if part is self.dev else _read(self.job, part, self.tokenizer).encodings
        if self.job.text("split") == "row":
            rows, owners = part.outputs, np.arange(len(part.outputs))
        else:
            rows, owners = np.unique(part.outputs, return_inverse=True)
        rule = NEAREST if _takes_nearest(self.job) else MEAN
        p_good = _judge_outputs(cast(SharedBertNetwork, network), engine, encodings, owners, rule)
        means = ("macro_f1", "mcc", "auroc", "balanced_accuracy", "accuracy", "f1")
        figures: dict[str, list[float]] = {name: [] for name in (*means, "spearman")}
        result: dict[str, float] = {}
        for column, place in enumerate(places):
            labels = part.labelled.labels[rows, place]
            report = classify(labels, p_good[:, column])
            known = np.isfinite(labels)
            p = np.clip(np.where(labels > 0.5, p_good[:, column], 1 - p_good[:, column])[known], 1e-6, 1.0)
            result[f"loss_{self.aspects[place]}"] = float(-np.log(p).mean()) if known.any() else float("nan")
            for name in ("collapsed", "n", "positives", "majority", "majority_f1"):
                result[f"{name}_{self.aspects[place]}"] = float(getattr(report, name))
            ranks = spearman(part.labelled.grades[rows, place][known], p_good[known, column]).value
            found = {name: getattr(report, name) for name in means} | {"spearman": float(np.nan_to_num(ranks))}
            for name, values in figures.items():
                values.append(found[name])
                result[f"{name}_{self.aspects[place]}"] = values[-1]
        for name, values in figures.items():
            finite = [value for value in values if np.isfinite(value)]
            result[name] = float(np.mean(finite)) if finite else float("nan")
        return result

    def new_network(self, aspects: int, *, shared: bool = True) -> SharedBertNetwork:
        """A network for some aspects, with one encoder for all if `shared`."""
        torch.manual_seed(self.job.torch_seed("network"))
        settings = {"aspects": aspects, "pooling": self.job.text("pooling"), "shared": shared}
        settings["dense"] = self._dense
        if _reads_apart(self.job):
            settings["texts"] = _count_texts(self.job)
        network = SharedBertNetwork.from_source(self.job.encoder, settings)
        begin_network(self.job, network, self.aspects if aspects == len(self.aspects) else ())
        return network

    @property
    def _dense(self) -> bool:
        """Whether there is a layer before the heads: as in the network it begins with, else only if both are trained
        together."""
        if self.job.init is not None:
            return bool((self.job.init.network.config.network or {}).get("dense", True))
        return self.job.text("stages") == TOGETHER

    def _finetune(
        self, places: tuple[int, ...], betas: tuple[float, ...], phase: str
    ) -> tuple[SharedBertNetwork, FinetuneResult]:
        job, part = self.job, self.train_part
        network = self.new_network(len(places))
        labels = torch.tensor(part.targets(job)[part.outputs][:, list(places)], dtype=torch.float32)
        weights = torch.tensor(betas, dtype=torch.float32).expand(len(labels), len(places))
        groups = record_groups(part.labelled.records)
        batches = RowBatches(
            self.encodings,
            {"labels": labels, "beta": weights},
            [groups[int(row)] for row in part.outputs],
            job,
            pad_id=self.tokenizer.pad_id,
            phase=phase,
            choose=lambda epoch: _pairs_of_epoch(job, part, epoch),
        )
        batches.vectors = self.vectors
        adam = job.text("optimizer") == "adam"
        settings = frame.make_finetune_settings(
            job,
            better=self.better,
            curve=tuple(dict.fromkeys((self.better, "macro_f1", "mcc", "auroc", "accuracy"))),
            lower_is_better=False,
            weight_decay=0.0 if adam else 0.01,
            warmup=0.0 if adam else 0.1,
            schedule="constant" if adam else "linear",
        )
        judge = (
            (lambda net: self.evaluate(cast(SharedBertNetwork, net), self.dev, places))
            if len(self.dev.outputs)
            else None
        )
        result = finetune(network, batches, settings, job, phase=phase, evaluate=judge)
        self.seconds += result.seconds
        self.steps += result.steps
        return network, result


def _check_targets(job: FitJob, train: Instances) -> None:
    """Raise `TooFewData` unless every aspect has different grades, or enough outputs of both classes."""
    labelled = train.labelled
    for place, aspect in enumerate(labelled.aspects):
        seen = train.targets(job)[np.unique(train.outputs), place]
        if learns_grades(job):
            if len(np.unique(seen[np.isfinite(seen)])) < 2:
                text = _("of %(aspect)s, all outputs are rated alike, so there is nothing to learn: rate more outputs.")
                raise TooFewData(job.name, text, aspect=aspect)
            continue
        good, bad = int((seen == 1).sum()), int((seen == 0).sum())
        if min(good, bad) < LEAST_OF_A_CLASS:
            raise TooFewData(
                job.name,
                _(
                    "of %(aspect)s, %(good)s outputs are good (median %(threshold)s or more) and %(bad)s are "
                    "not; it needs %(least)s of each. Rate more outputs, or set the option threshold."
                ),
                aspect=aspect,
                good=good,
                threshold=f"{labelled.thresholds[place]:g}",
                bad=bad,
                least=LEAST_OF_A_CLASS,
            )


def best_factor(scores: Sequence[float]) -> float:
    """Return the factor of `BETA_GRID` with the best of the `scores`; ties go to the factor nearest to 1.

    On a small dev part several factors often tie, and taking the first would always reduce the weight of good outputs.
    """
    return max(zip(BETA_GRID, scores, strict=True), key=lambda one: (one[1], -abs(one[0] - 1)))[0]


def _groups(job: FitJob, dev: Instances) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The groups of the training data and of the held-out part; with a split by rows a group may be in both."""
    if job.dev is not None:
        return list_groups(job.train), list_groups(job.dev)
    held = set(record_groups(dev.labelled.records[int(row)] for row in np.unique(dev.outputs)))
    learned = [group for group in list_groups(job.train) if group not in held or job.text("split") == "row"]
    return tuple(learned), tuple(sorted(held))


def _time_training(job: FitJob, train: Instances, pairs: Ints, counts: Counts) -> tuple[float, float]:
    part = train.take(pairs[: frame.TIMED_ROWS])
    trainer = _Trainer(job, part, part.take(np.zeros(0, dtype=np.int64)))
    n = len(trainer.aspects) if job.flag("shared") else 1
    values = {name: torch.full((len(part.outputs), n), 0.5) for name in ("labels", "beta")}
    pad_id, groups = trainer.tokenizer.pad_id, [""] * len(part.outputs)
    sample = RowBatches(trainer.encodings, values, groups, job, pad_id=pad_id)
    return time_work(job, [Work(lambda: trainer.new_network(n), sample, trainer.encodings, counts)])


def _reads_apart(job: FitJob) -> bool:
    """Whether output and reference are each read alone; one without the other has nothing to be read apart from."""
    return job.text("features") == SEPARATE and job.text("inputs") == "both"


def _takes_nearest(job: FitJob) -> bool:
    """Whether each output is compared with its nearest reference only."""
    return job.flag("nearest") and _reads_apart(job)


def _read(job: FitJob, part: Instances, tokenizer: PairTokenizer) -> ReadTexts | TokenizedTexts:
    """The tokenised pairs, and which were truncated."""
    judged = [part.labelled.records[int(row)] for row in part.outputs]
    inputs = _count_texts(job) if _reads_apart(job) else job.text("inputs")
    return _tokenize(tokenizer, inputs, judged, part.references)


def _count_texts(job: FitJob) -> int:
    """The texts of an input that are each read alone: output, reference, and on request what the output answers."""
    return 3 if job.flag("context") else 2


def _pairs_of_epoch(job: FitJob, part: Instances, epoch: int) -> Ints:
    """The pairs of an epoch: all, or up to `max_references` per output, drawn for each epoch. With the nearest
    reference only, one per output: before that is known, any."""
    most = 1 if _takes_nearest(job) else job.optional_integer("max_references")
    if most is None:
        return np.arange(len(part.outputs))
    order = job.rng(f"references:{epoch}").permutation(len(part.outputs))
    order = order[np.argsort(part.outputs[order], kind="stable")]
    sizes = np.bincount(part.outputs[order])
    starts = np.cumsum(sizes) - sizes
    place = np.arange(len(order)) - starts[part.outputs[order]]
    return np.sort(order[place < most])


def _count_other_references(job: FitJob, part: Instances, pairs: Ints) -> int:
    """The references outside the `pairs` of an epoch that are read once to find the nearest, counted in rows."""
    if not _takes_nearest(job):
        return 0
    others = set(part.references) - {part.references[int(row)] for row in pairs}
    return -(-len(others) // _count_texts(job))


def _tokenize(
    tokenizer: PairTokenizer, inputs: str | int, judged: Sequence[Record], references: Sequence[str]
) -> ReadTexts | TokenizedTexts:
    """The inputs of `judged` outputs with one of their `references` each; `inputs` is a number of texts that are each
    read alone, or a value of the option."""
    texts = [record.text for record in judged]
    if isinstance(inputs, int):
        cuts: list[Cut] = ["right"] * len(texts)
        columns: list[tuple[Sequence[str], Sequence[Cut]]] = [(texts, cuts), (references, cuts)]
        if inputs > len(columns):
            contexts = [read_last_turns(record) for record in judged]
            columns.append(([text for text, _ in contexts], [cut for _, cut in contexts]))
        return read_columns(tokenizer, columns)
    if inputs == "text":
        return tokenizer.texts(texts)
    if inputs == "reference":
        return tokenizer.texts(references)
    return tokenizer.pairs(texts, references, cut="right")


def _probabilities(network: SharedBertNetwork, engine: Engine, encodings: Inputs) -> Floats:
    """(inputs, aspects)."""
    if isinstance(encodings, TextRows):
        columns = [
            map_inputs(
                engine,
                encodings,
                network.judge,
                partial(network.read_texts, number=number),
                partial(network.judge_features, number=number),
            )
            for number in range(len(network.heads))
        ]
        return torch.sigmoid(torch.cat(columns, dim=1)).double().numpy()

    def forward(batch: Batch) -> torch.Tensor:
        return torch.sigmoid(network.judge(batch).float())

    return engine.map(encodings, forward).double().numpy()


def _judge_outputs(network: SharedBertNetwork, engine: Engine, encodings: Inputs, owners: Ints, rule: str) -> Floats:
    """(outputs, aspects) from the pairs of each output, whose numbers `owners` ascend from 0, by the `rule` for several
    references."""
    if rule == NEAREST and isinstance(encodings, TextRows):
        return _judge_nearest(network, engine, encodings, owners)
    values, n = _probabilities(network, engine, encodings), int(owners.max(initial=-1)) + 1
    if rule == "max":
        result = np.full((n, values.shape[1]), -np.inf)
        np.maximum.at(result, owners, values)
        return result
    sums = np.zeros((n, values.shape[1]))
    np.add.at(sums, owners, values)
    return sums / np.bincount(owners, minlength=n)[:, None]


def _judge_nearest(network: SharedBertNetwork, engine: Engine, inputs: TextRows, owners: Ints) -> Floats:
    """(outputs, aspects) from the pair of each output with its nearest reference, by the vectors of each tower."""
    columns = []
    for number in range(len(network.heads)):
        vectors = engine.map(inputs.encodings, partial(network.read_texts, number=number))
        places = inputs.places[find_nearest(vectors, inputs.places, owners)]
        columns.append(map_rows(engine, vectors, places, partial(network.judge_features, number=number)))
    return torch.sigmoid(torch.cat(columns, dim=1)).double().numpy()


def _leak(train: Instances, *held_out: Instances) -> tuple[str, ...]:
    """A note on splits by rows, in which the label of a held-out output is known from its other references."""
    if train.labelled is not held_out[0].labelled:
        return ()
    held = np.unique(np.concatenate([part.outputs for part in held_out]))
    seen = int(np.isin(held, train.outputs).sum())
    if not seen:
        return ()
    return (
        f"The split is by rows: {seen} of {len(held)} held-out outputs are also in the training part with another "
        "reference, so the metrics are too optimistic.",
    )


def _notes(labelled: LabelledOutputs, metrics: Mapping[str, Any]) -> tuple[str, ...]:
    notes = []
    for aspect in labelled.aspects:
        if metrics.get(f"collapsed_{aspect}"):
            text = _("%(aspect)s: more than 99 %% of the held-out predictions are one class; the head collapsed.")
            notes.append(text % {"aspect": aspect})
    return tuple(notes)
