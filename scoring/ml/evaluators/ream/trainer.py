"""One training of `ream`: its data, the network, its evaluations, and the notes on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

from evalapp.stats.agreement.normalise import RatingMethod
from evalapp.translation import gettext as _
from scoring.ml.artefact import Artefact
from scoring.ml.base import PairEvaluator
from scoring.ml.engine import resolve_device
from scoring.ml.errors import InvalidOption, TrainingDataError
from scoring.ml.evaluators.ream import contrast, training
from scoring.ml.evaluators.ream.gold import Nodes, Sample, measure_noise, shrink_gold
from scoring.ml.evaluators.ream.network import ReamNetwork
from scoring.ml.evaluators.ream.report import ReliabilityReport, measure_preference, report
from scoring.ml.evaluators.ream.vectors import PairEncoder, Reading, make_encoder
from scoring.ml.layers.pooling import pool
from scoring.ml.metrics import build_pairwise, list_metrics
from scoring.ml.network import Network
from scoring.ml.training.curve import FinetuneResult
from scoring.ml.training.frame import TrainingResult, make_artefact, make_loop_settings
from scoring.ml.training.job import FitJob, without_progress
from scoring.ml.training.loop import train_loop
from scoring.ml.training.record import list_groups, record_groups
from scoring.ml.training.split import LEAST_GROUPS, hold_out_groups

#: Options that are passed to the metric, with their defaults.
METRIC_OPTIONS: Mapping[str, Any] = {"lowercase": False, "tokenize": "auto"}


class ReamTraining:
    """One training of `ream`."""

    def __init__(self, job: FitJob, aspect: str | None) -> None:
        self.job, self.aspect = job, aspect
        self.method = cast(RatingMethod, job.text("ratings"))
        self.device = resolve_device(job.text("train_device"))
        self.tuned = job.flag("tune_encoder")
        items = training.find_items(job, aspect)
        queries = contrast.find_queries(job)
        dev = [] if job.dev is None or aspect is None else training.query_items(job.dev, aspect, self.method, job.track)
        self.groups, self.dev_groups = list_groups(job.train), list_groups(job.dev)
        groups = record_groups(item.query for item in items or queries)
        if job.dev is None and len(set(groups)) >= LEAST_GROUPS:
            held_out = hold_out_groups(groups, job.seed)
            rated = list(zip(items, record_groups(item.query for item in items), strict=True))
            dev = [item for item, group in rated if group in held_out]
            items = [item for item, group in rated if group not in held_out]
            self.dev_groups = tuple(sorted(held_out))
            self.groups = tuple(group for group in self.groups if group not in held_out)
        self.items, self.dev = items, dev
        # By contrast it learns from the groups of the training part, rated or not.
        own = record_groups(item.query for item in queries)
        held = [job.dev is None and group in self.dev_groups for group in own]
        self.queries = [item for item, out in zip(queries, held, strict=True) if not out]
        self.dev_queries = [item for item, out in zip(queries, held, strict=True) if out]
        if job.dev is not None and queries:
            self.dev_queries = contrast.list_queries(job.dev, job.rng("dev queries"))
        self.metric = build_metric(job.options, job.text("train_device"), job.train.lang)

    def run(self) -> Artefact:
        job = self.job
        torch.manual_seed(job.torch_seed("network"))
        names = {"attention_kind": job.text("attention_kind"), "heads": job.integer("heads")}
        network = ReamNetwork.from_source(job.encoder if self.tuned else None, {"width": job.encoder.width, **names})
        torch.nn.Module.to(network, self.device)
        encoder = make_encoder(
            job.encoder,
            Reading.from_options(job.encoder, job.options),
            device=self.device,
            encoder=network.encoder if self.tuned else None,
        )
        encoder.tokenizing.tick = job.report_rows
        queries = self._prepare_queries(encoder) if self.queries else None
        if self.aspect is None:
            assert queries is not None
            encoder.tokenizing.tick = None
            first = self._contrast(network, *queries)
            return self._finish(network, first, {"queries for contrast": len(self.queries)}, ())
        prepared, samples, undefined = self._prepare(self.items, "train", encoder, job.integer("combinations"))
        if not samples:
            text = _(
                "none of %(n_undefined)s reference sets has a reliability: %(metric)s gives all answers to a "
                "query the same score, whatever the references. Take another metric."
            )
            raise TrainingDataError(job.name, text, n_undefined=len(undefined), metric=self.metric.name)
        dev, dev_samples, without = None, list[Sample](), list[tuple[int, Nodes]]()
        if self.dev:
            dev, dev_samples, without = self._prepare(self.dev, "dev", encoder, 2)
        if job.flag("shrink"):
            samples = shrink_gold(samples, prepared.gold)
        epochs = self._epochs(network, prepared, samples, encoder)
        # From here on progress counts steps.
        encoder.tokenizing.tick = None
        contrasted = None if queries is None else self._contrast(network, *queries)

        def judge(net: Network) -> dict[str, float]:
            assert dev is not None
            rng = job.rng("perturbations")
            return _figures(report(net, self._fresh(dev, encoder), dev_samples, rng, without))

        settings = make_loop_settings(
            job,
            weight_decay=job.number("weight_decay"),
            better="mse",
            encoder_learning_rate=job.number("encoder_learning_rate") if self.tuned else None,
        )
        loop = train_loop(
            network, epochs, settings, job, steps_per_epoch=epochs.steps, evaluate=judge if dev_samples else None
        )
        examples = {"items": len(self.items), "reference sets": len(samples), "held-out sets": len(dev_samples)}
        if contrasted is not None:
            examples["queries for contrast"] = len(self.queries)
            loop = join_results(contrasted, loop)
        noise = measure_noise(samples, prepared.gold)
        notes = _notes(loop.metrics, len(undefined), len(without), self.items, noise.ceiling)
        return self._finish(network, loop, examples, notes)

    def _finish(
        self, network: ReamNetwork, loop: FinetuneResult, examples: Mapping[str, int], notes: tuple[str, ...]
    ) -> Artefact:
        job = self.job
        learned = TrainingResult(
            _on_cpu(network),
            loop,
            examples,
            self.groups,
            self.dev_groups,
            aspects=() if self.aspect is None else (self.aspect,),
            state={"lang": job.train.lang},
            notes=notes,
            simulated=0 if self.aspect is None else _simulated(job, self.aspect),
            embedded=self.tuned,
        )
        return make_artefact(job, learned)

    def _prepare_queries(self, encoder: PairEncoder) -> tuple[training.PreparedItems, training.PreparedItems | None]:
        """The queries to learn from by contrast, and those held out."""
        preparer = training.Preparer(self.job, self.metric, encoder)
        prepared = preparer.prepare(self.queries, "contrast")
        return prepared, preparer.prepare(self.dev_queries, "dev contrast") if len(self.dev_queries) > 1 else None

    def _contrast(
        self, network: ReamNetwork, prepared: training.PreparedItems, dev: training.PreparedItems | None
    ) -> FinetuneResult:
        """Train by the contrastive loss alone on queries, rated or not, with the encoder as it is."""
        job = self.job

        def judge(net: Network) -> dict[str, float]:
            assert dev is not None
            found = measure_preference(net, dev, job.rng("preference"))
            return {"preference": (found["add"] + found["replace"]) / 2, **_named(found)}

        settings = make_loop_settings(
            job, max_epochs=job.integer("pretrain"), weight_decay=job.number("weight_decay"), better="preference",
            lower_is_better=False,
        )  # fmt: skip
        epochs = contrast.ContrastEpochs(network, prepared, [], job, prepared.make_reader(self.device))
        return train_loop(
            network, epochs, settings, job, steps_per_epoch=epochs.steps, phase="contrast",
            evaluate=judge if dev is not None else None,
        )  # fmt: skip

    def _prepare(
        self, items: Sequence[training.QueryItem], part: str, encoder: PairEncoder, per_size: int
    ) -> tuple[training.PreparedItems, list[Sample], list[tuple[int, Nodes]]]:
        """A part's items with gold and vectors, the sets drawn from them, and those without gold."""
        job = self.job
        prepared = training.Preparer(job, self.metric, encoder).prepare(items, part)
        purpose, track = ("sets", job.track) if part == "train" else (f"{part} sets", without_progress)
        samples, undefined = training.draw_samples(
            prepared.gold, training.parse_sizes(job), per_size, job.rng(purpose), track
        )
        return prepared, samples, undefined

    def _epochs(
        self, network: ReamNetwork, prepared: training.PreparedItems, samples: Sequence[Sample], encoder: PairEncoder
    ) -> training.Epochs:
        if not self.tuned:
            return training.Epochs(network, prepared, samples, self.job, prepared.make_reader(self.device))
        self.train_encodings = self._encodings(self.items, "train", encoder)

        def read_vectors(rows: training.Ints) -> torch.Tensor:
            from scoring.ml.engine import collate

            batch = collate(self.train_encodings.take(rows), encoder.tokenizing.pad_id, self.device)
            return pool(network.hidden(**batch.inputs), batch.attention_mask, encoder.pooling)

        return training.Epochs(network, prepared, samples, self.job, read_vectors)

    def _encodings(self, items: Sequence[training.QueryItem], part: str, encoder: PairEncoder) -> Any:
        job = self.job
        foreign = training.foreign_answers(items, job.integer("foreign"), job.rng(f"foreign:{part}"))
        records = [
            replace(item.query, text=text)
            for item, more in zip(items, foreign, strict=True)
            for text in (*item.references, *more)
        ]
        return encoder.tokenize(records).encodings

    def _fresh(self, dev: training.PreparedItems, encoder: PairEncoder) -> training.PreparedItems:
        """The held-out pairs with vectors of the current encoder, if it learns."""
        if not self.tuned:
            return dev
        encodings = self._encodings(self.dev, "dev", encoder)
        result = encoder.engine.map(encodings, encoder.pool).numpy()
        return replace(dev, vectors=result)


def _figures(result: ReliabilityReport) -> dict[str, float]:
    """The metrics of an evaluation during training."""
    figures = {"mse": result.mse, "constant": result.constant, "r2": result.r2, "spearman": result.spearman}
    figures |= {"r2_ceiling": result.ceiling, **_named(result.preference)}
    if result.n_undefined:
        figures |= {f"{name}_zero": value for name, value in result.zero.items()}
    return figures | {f"accuracy_{kind}": value for kind, value in result.accuracy.items()}


def _named(preference: Mapping[str, float]) -> dict[str, float]:
    return {f"preference_{kind}": value for kind, value in preference.items()}


def join_results(first: FinetuneResult, second: FinetuneResult) -> FinetuneResult:
    """Return the `second` of two phases with the log, steps and seconds of both."""
    log = (*({"phase": "contrast", **row} for row in first.log), *second.log)
    return FinetuneResult(log, second.metrics, first.steps + second.steps, first.seconds + second.seconds)


def _on_cpu(network: ReamNetwork) -> ReamNetwork:
    torch.nn.Module.to(network, "cpu")
    return network


def build_metric(settings: Mapping[str, Any], device: str, lang: str) -> PairEvaluator:
    """Return the metric that the `settings` of a training name, for texts of the language `lang`."""
    # BLEU splits Chinese into characters; otherwise whole sentences would be single tokens.
    given = {"device": device, **({"lang": lang} if lang else {})}
    own = {name: settings[name] for name in METRIC_OPTIONS if name in settings}
    return build_pairwise(str(settings["metric"]), given | own)


def check_metric_options(job: FitJob) -> None:
    """Raise `InvalidOption` for an option of the metric that is set, but that the metric of a `job` does not have."""
    entry = next(entry for entry in list_metrics() if entry.name == job.text("metric"))
    known = {option.name for option in entry.options}
    for name, default in METRIC_OPTIONS.items():
        if job.options[name] != default and name not in known:
            text = _("has no effect, because %(metric)s has no such option: leave it out, or take another metric")
            raise InvalidOption(job.name, name, text, metric=entry.name)


def _simulated(job: FitJob, aspect: str) -> int:
    return sum(rating.simulated for rating in job.train.ratings if rating.aspect == aspect)


def _notes(
    metrics: Mapping[str, float], undefined: int, without: int, items: Sequence[training.QueryItem], ceiling: float
) -> tuple[str, ...]:
    notes = []
    n = float(np.mean([len(item.outputs) for item in items]))
    text = _(
        "A gold reliability is a correlation over %(n)s answers on average and therefore noisy: its "
        "standard error is about %(error)s."
    )
    notes.append(text % {"n": f"{n:.1f}", "error": f"{1 / max(n - 1, 1) ** 0.5:.2f}"})
    text = _("Of the variance of gold reliabilities, %(share)s is not chance: R2 cannot be expected to be higher.")
    notes.append(text % {"share": f"{ceiling:.0%}"})
    if undefined:
        text = _("%(undefined)s reference sets had no gold reliability (constant scores) and were left out.")
        notes.append(text % {"undefined": undefined})
    if without:
        text = _(
            "%(without)s held-out sets had none either: the metrics leave them out; _zero metrics use 0 as their gold."
        )
        notes.append(text % {"without": without})
    if metrics.get("r2", 1.0) <= 0:
        notes.append(_("On held-out items it predicts no better than the mean reliability of the set's size."))
    return tuple(notes)
