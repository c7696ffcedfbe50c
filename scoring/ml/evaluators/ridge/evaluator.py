"""`ridge`: training on ratings or comparisons, and scoring.

Explained in docs/explanation/evaluators/ridge.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import torch

from evalapp.stats.agreement.normalise import RatingMethod
from evalapp.translation import gettext as _
from scoring.ml.artefact import Artefact
from scoring.ml.base import Floats, Partial, Progress, get_references
from scoring.ml.encoders.kept import cached_vectors
from scoring.ml.errors import TrainingDataError
from scoring.ml.evaluators.ridge.features import Rows, build_features, count_features, measure_columns
from scoring.ml.evaluators.ridge.network import RidgeNetwork
from scoring.ml.evaluators.ridge.solve import GRID, LEAST, Solution, fit_comparisons, fit_ratings
from scoring.ml.evaluators.unreferenced.vectors import UtteranceEncoder
from scoring.ml.network import Network
from scoring.ml.signature import SignatureField
from scoring.ml.trained import SeveralAspects
from scoring.ml.training.curve import FinetuneResult
from scoring.ml.training.frame import TrainingResult, make_artefact
from scoring.ml.training.gold import aspects_with, collect_compared_pairs, collect_rated_outputs
from scoring.ml.training.job import FitJob, Plan, TrainingProgress
from scoring.ml.training.record import list_groups, record_groups
from scoring.ml.types import Record

#: Records scored at a time: bounds the memory of their vectors.
BLOCK = 8192


@dataclass(frozen=True)
class _Judged:
    """The judgements of an aspect: ratings of `first`, or wins of `first` over `second`."""

    aspect: str
    kind: str
    first: tuple[int, ...]
    second: tuple[int, ...]
    labels: Floats
    groups: tuple[str, ...]


@dataclass(frozen=True)
class _Material:
    """The judged outputs of a training, each once, with the judgements of all aspects."""

    records: list[Record]
    judged: list[_Judged]
    simulated: int
    n_empty: int

    def list_notes(self) -> list[str]:
        return [f"{self.n_empty:,} judged outputs are empty: left out."] if self.n_empty else []


class Ridge(SeveralAspects):
    """A linear score of frozen vectors for each aspect."""

    network_class: ClassVar[type[Network]] = RidgeNetwork

    @classmethod
    def chooses_weights(cls, job: FitJob) -> bool:
        """No: groups of the training part that are left out in turn choose the penalty."""
        return False

    @classmethod
    def plan(cls, job: FitJob) -> Plan:
        material = _collect(job)
        grid = len(_grid(job))
        examples = {f"{one.kind} ({one.aspect})": len(one.labels) for one in material.judged}
        return Plan(examples, grid * len(material.judged), notes=tuple(material.list_notes()), by_trials=True)

    @classmethod
    def train(cls, job: FitJob) -> Artefact:
        began = time.monotonic()
        material = _collect(job)
        rows = Rows(material.records)
        sides = rows.list_sides()
        features = build_features(_encode(job, rows), rows, sides)
        mean, spread = measure_columns(features)
        aspects = tuple(one.aspect for one in material.judged)
        network = RidgeNetwork.from_source(None, {
            "features": count_features(job.encoder.width, sides), "aspects": len(aspects),
        })  # fmt: skip
        network.mean.copy_(torch.from_numpy(mean))
        network.spread.copy_(torch.from_numpy(spread))
        standard = network.standardise(torch.from_numpy(features)).double().numpy()
        log: list[Mapping[str, Any]] = []
        metrics: dict[str, float] = {}
        ends = []
        for place, one in enumerate(material.judged):
            found = _solve(one, standard, _grid(job))
            values = standard @ found.weights
            bias = found.bias if one.kind == "ratings" else -float(values[[*one.first, *one.second]].mean())
            network.weights.data[:, place] = torch.from_numpy(found.weights)
            network.bias.data[place] = bias
            ends.append(_find_ends(job, one, values + bias))
            # Without steps: these are errors of penalties, not the curve of a loss.
            log += [{"aspect": one.aspect, "l2": penalty, "dev_loss": error} for penalty, error in found.errors.items()]
            metrics |= {f"l2_{one.aspect}": found.penalty}
            if found.errors:
                metrics[f"loss_{one.aspect}"] = found.errors[found.penalty]
            job.report(TrainingProgress(place + 1, len(aspects), phase="training"))
        learned = TrainingResult(
            network.eval(),
            FinetuneResult(tuple(log), metrics, len(log) or len(aspects), time.monotonic() - began),
            {f"{one.kind} ({one.aspect})": len(one.labels) for one in material.judged},
            list_groups(job.train),
            list_groups(job.dev),
            aspects=aspects,
            state={"sides": list(sides), "ends": ends},
            notes=tuple(material.list_notes()),
            simulated=material.simulated,
            embedded=False,
        )
        return make_artefact(job, learned)

    @property
    def worst(self) -> float:
        """The low end of its scale."""
        return float(self.combine(np.array([[low for low, _high in self._ends]]))[0])

    def worst_component(self, component: str) -> float:
        return float(self._ends[self.aspects.index(component)][0])

    @cached_property
    def _ends(self) -> list[tuple[float, float]]:
        return [(float(low), float(high)) for low, high in cast(list[Any], self.artefact.state["ends"])]

    @cached_property
    def texts(self) -> UtteranceEncoder:
        """The frozen encoder."""
        return UtteranceEncoder.for_scoring(self)

    @property
    def sides(self) -> tuple[str, ...]:
        """The texts that it compares an output with."""
        return tuple(cast(list[str], self.artefact.state["sides"]))

    def own_fields(self) -> list[SignatureField]:
        return [
            SignatureField("pool", "pool", str(self.settings["pooling"])),
            SignatureField("ml", "ml", str(self.longest)),
            SignatureField("reads", "rd", "+".join(("text", *self.sides))),
            SignatureField("of", "of", str(self.options["aspect"] or "mean")),
        ]

    def identity(self, record: Record) -> Any:
        references = get_references(record) if "references" in self.sides else ()
        return (record.text, record.context, record.source, references)

    def texts_read(self, record: Record) -> tuple[str, ...]:
        references = get_references(record) if "references" in self.sides else ()
        return (*super().texts_read(record), *references)

    def combine(self, values: Floats) -> Floats:
        """(n,) means over aspects of values (n, aspects), which are mapped to 0 to 1 first if their scales differ."""
        ends = np.array(self._ends)
        if len(set(self._ends)) > 1:
            values = (values - ends[:, 0]) / np.where(ends[:, 1] > ends[:, 0], ends[:, 1] - ends[:, 0], 1.0)
        return np.asarray(values.mean(axis=1))

    def measure(self, records: Sequence[Record], progress: Progress) -> Partial:
        values, cut = np.empty((len(records), len(self.aspects))), np.zeros(len(records), dtype=np.bool_)
        network = cast(RidgeNetwork, self.network)
        for start in range(0, len(records), BLOCK):
            block = records[start : start + BLOCK]
            rows = Rows(block)
            tokenized = self.texts.tokenize(rows.table.texts, rows.table.left)

            def tick(done: int, total: int, start: int = start, n: int = len(block)) -> None:
                progress(start + done * n // max(total, 1), len(records))

            vectors = self.texts.vectors(tokenized.encodings, tick).astype(np.float64)
            features = torch.from_numpy(build_features(vectors, rows, self.sides))
            with torch.inference_mode():
                result = network(features.to(network.weights.device, network.weights.dtype))["value"]
            own = slice(start, start + len(block))
            values[own] = result.double().cpu().numpy()
            cut[own] = [bool(tokenized.truncated[rows.list_texts(row, self.sides)].any()) for row in range(len(block))]
        columns = {name: values[:, place] for place, name in enumerate(self.aspects)}
        asked = self.options["aspect"]
        return Partial(self.combine(values) if asked is None else columns[str(asked)], cut, columns)


def _collect(job: FitJob) -> _Material:
    """The judged outputs. Raises `TrainingDataError` if an aspect has too few."""
    return job.once("material", lambda: _collect_all(job))


def _collect_all(job: FitJob) -> _Material:
    records: list[Record] = []
    places: dict[Any, int] = {}
    empty: set[Any] = set()
    judged, simulated = [], 0

    def place(record: Record) -> int | None:
        key = (record.item, record.system, record.step, record.text)
        if not record.text.strip():
            empty.add(key)
            return None
        if key not in places:
            places[key] = len(records)
            records.append(record)
        return places[key]

    for aspect, kind in _choose_aspects(job):
        first: list[int] = []
        second: list[int] = []
        labels: list[float] = []
        if kind == "ratings":
            rated = collect_rated_outputs(job.train, aspect, cast(RatingMethod, job.text("ratings")), job.track)
            simulated += rated.simulated
            for record, value in zip(rated.records, rated.means(), strict=True):
                if (own := place(record)) is not None:
                    first.append(own)
                    labels.append(float(value))
        else:
            for pair in collect_compared_pairs(job.train, aspect, job.track):
                a, b = place(pair.a), place(pair.b)
                simulated += pair.simulated
                if a is not None and b is not None:
                    first.append(a)
                    second.append(b)
                    labels.append((pair.sign + 1) / 2)
        groups = tuple(record_groups(records[number] for number in first))
        one = _Judged(aspect, kind, tuple(first), tuple(second), np.array(labels), groups)
        _check_judged(job, one)
        judged.append(one)
    return _Material(records, judged, simulated, len(empty))


def _choose_aspects(job: FitJob) -> list[tuple[str, str]]:
    """The aspects to learn, each with the kind of judgements. Raises `TrainingDataError` for unknown ones."""
    by_kind = {
        "ratings": aspects_with(job.train, "ratings"),
        "comparisons": aspects_with(job.train, "comparisons"),
    }
    there = sorted({name for names in by_kind.values() for name in names})
    if not there:
        text = _("the data hold no ratings and no comparisons. Collect some in a campaign, or load them.")
        raise TrainingDataError(job.name, text)
    wish = job.options["aspects"] or job.aspect
    asked = there if wish is None else [name.strip() for name in str(wish).split(",") if name.strip()]
    asked = list(dict.fromkeys(asked))
    unknown = [name for name in asked if name not in there]
    if unknown or not asked:
        text = _("there are no judgements of %(unknown)s; there are: %(there)s")
        raise TrainingDataError(job.name, text, unknown=", ".join(unknown) or "that aspect", there=", ".join(there))
    preferred = job.text("judgements")
    other = "comparisons" if preferred == "ratings" else "ratings"
    return [(name, preferred if name in by_kind[preferred] else other) for name in asked]


def _check_judged(job: FitJob, one: _Judged) -> None:
    if len(one.labels) < LEAST:
        text = _("%(n)s %(kind)s of %(aspect)r can be learned from; %(least)s are the least. Collect more.")
        raise TrainingDataError(job.name, text, n=len(one.labels), kind=_(one.kind), aspect=one.aspect, least=LEAST)
    if not np.isfinite(one.labels).all():
        text = _("ratings of %(aspect)r are not all numbers: correct or remove them")
        raise TrainingDataError(job.name, text, aspect=one.aspect)
    if one.labels.min() == one.labels.max():
        text = _("all %(kind)s of %(aspect)r are equal: there is nothing to learn")
        raise TrainingDataError(job.name, text, kind=_(one.kind), aspect=one.aspect)
    if len(set(one.groups)) < 2:
        text = _("all judged outputs belong to the same group: judge outputs of different items")
        raise TrainingDataError(job.name, text)


def _grid(job: FitJob) -> tuple[float, ...]:
    asked = job.options["l2"]
    return GRID if asked is None else (float(cast(float, asked)),)


def _encode(job: FitJob, rows: Rows) -> Floats:
    encoder = UtteranceEncoder.for_training(job)
    encodings = encoder.tokenize(rows.table.texts, rows.table.left).encodings
    vectors = cached_vectors(encoder, encodings, job.texts, "fp32", job.report_phase("encoding"))
    return np.asarray(vectors, dtype=np.float64)


def _solve(one: _Judged, standard: Floats, grid: tuple[float, ...]) -> Solution:
    first = standard[list(one.first)]
    if one.kind == "ratings":
        return fit_ratings(first, one.labels, one.groups, grid)
    return fit_comparisons(first - standard[list(one.second)], one.labels, one.groups, grid)


def _find_ends(job: FitJob, one: _Judged, values: Floats) -> tuple[float, float]:
    """The ends of the scale of ratings, or of the ratings if those exceed it or were made comparable. Comparisons have
    the ends of the scores in the training data."""
    if one.kind == "comparisons":
        return float(values.min()), float(values.max())
    low, high = float(one.labels.min()), float(one.labels.max())
    scale = next((known for known in job.train.aspects if known.name == one.aspect), None)
    if job.text("ratings") != "raw" or scale is None or scale.minimum is None or scale.maximum is None:
        return low, high
    return (scale.minimum, scale.maximum) if scale.minimum <= low and high <= scale.maximum else (low, high)
