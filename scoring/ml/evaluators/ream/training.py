"""Training of REAM#: gold reliabilities, cached vectors, sets and negatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch

from evalapp.stats.agreement.normalise import RatingMethod
from evalapp.translation import gettext as _
from scoring.ml.base import PairEvaluator, Query, get_references
from scoring.ml.errors import TooFewData, TrainingDataError
from scoring.ml.evaluators.ream.gold import (
    Floats,
    ItemGold,
    Nodes,
    Sample,
    draw_foreign,
    draw_sets,
    worse_by_removal,
)
from scoring.ml.evaluators.ream.network import ReamNetwork, ream_loss
from scoring.ml.evaluators.ream.vectors import PairEncoder, Vectors
from scoring.ml.signature import text_hash
from scoring.ml.training.checks import refuse_nan
from scoring.ml.training.gold import choose_aspect, collect_rated_outputs
from scoring.ml.training.job import FitJob, RowTracker, without_progress
from scoring.ml.training.store import read_tensors, write_tensors
from scoring.ml.types import Dataset, Record

LEAST_OUTPUTS = 3
Ints: TypeAlias = npt.NDArray[np.int64]
Tick: TypeAlias = Callable[[int, int], object]


@dataclass(frozen=True)
class QueryItem:
    """An item to learn from: its query (a record without text), references, rated outputs with human means."""

    query: Record
    references: tuple[str, ...]
    outputs: tuple[str, ...]
    human: Floats


@dataclass(frozen=True)
class PreparedItems:
    """Items with gold and vectors; node k of item i is row `start[i] + k` of `vectors`."""

    gold: list[ItemGold]
    start: list[int]
    vectors: Vectors

    def make_reader(self, device: str) -> Callable[[Ints], torch.Tensor]:
        """What reads the vectors of rows on a `device`."""
        return lambda rows: torch.from_numpy(self.vectors[rows]).to(device)


def query_items(
    dataset: Dataset, aspect: str, method: RatingMethod, track: RowTracker = without_progress
) -> list[QueryItem]:
    """Return the items of a `dataset` with references and at least three outputs with different mean ratings of an
    `aspect`.

    `method` makes ratings comparable; `track` reports progress.
    """
    rated = collect_rated_outputs(dataset, aspect, method, track)
    by_item: dict[str, list[int]] = {}
    for row, record in enumerate(rated.records):
        by_item.setdefault(record.item, []).append(row)
    means = rated.means()
    result = []
    for rows in track(list(by_item.values())):
        first = rated.records[rows[0]]
        references = tuple(dict.fromkeys(get_references(first)))
        human = means[rows]
        if not references or len(rows) < LEAST_OUTPUTS or np.ptp(human) == 0:
            continue
        query = replace(first, text="", references=(), system="")
        result.append(QueryItem(query, references, tuple(rated.records[row].text for row in rows), human))
    return result


def parse_sizes(job: FitJob) -> tuple[int, ...]:
    """Return the option `sizes` of a `job` as numbers."""
    return tuple(int(part) for part in job.text("sizes").split(","))


def parse_kinds(job: FitJob) -> tuple[str, ...]:
    """Return the option `negatives` of a `job` as names."""
    return tuple(part.strip() for part in job.text("negatives").split(",") if part.strip())


def foreign_answers(
    items: Sequence[QueryItem], n: int, rng: np.random.Generator, track: RowTracker = without_progress
) -> list[tuple[str, ...]]:
    """Return up to `n` references of other items for each of the `items`, none equal to its own, drawn by `rng`;
    `track` reports progress."""
    pool = [(place, text) for place, item in enumerate(items) for text in item.references]
    result = []
    for place, item in enumerate(track(items)):
        own = set(item.references)
        chosen: dict[str, None] = {}
        for at in rng.permutation(len(pool)):
            other, text = pool[int(at)]
            if other != place and text not in own:
                chosen[text] = None
            if len(chosen) == n:
                break
        result.append(tuple(chosen))
    return result


class Preparer:
    """Gold reliabilities and vectors of a dataset's items; stored in the job's folder when complete."""

    def __init__(self, job: FitJob, metric: PairEvaluator, encoder: PairEncoder) -> None:
        self.job, self.metric, self.encoder = job, metric, encoder

    def prepare(self, items: Sequence[QueryItem], part: str) -> PreparedItems:
        """`part` names the file: train or dev."""
        foreign = foreign_answers(items, self.job.integer("foreign"), self.job.rng(f"foreign:{part}"), self.job.track)
        columns = [(*item.references, *more) for item, more in zip(items, foreign, strict=True)]
        start = np.cumsum([0, *(len(texts) for texts in columns)])
        path = self.job.folder / f"prepared-{part}.safetensors"
        if path.is_file():
            kept = read_tensors(path)
            metrics = [kept[f"metric.{place}"].numpy() for place in range(len(items))]
            vectors = kept["vectors"].numpy()
        else:
            metrics = self._metrics(items, columns, part)
            records = [
                replace(item.query, text=text) for item, texts in zip(items, columns, strict=True) for text in texts
            ]
            vectors = self._vectors(records, part)
            tensors = {f"metric.{place}": torch.from_numpy(matrix) for place, matrix in enumerate(metrics)}
            write_tensors(path, {**tensors, "vectors": torch.from_numpy(vectors)})
        gold = [ItemGold(matrix, item.human, len(item.references)) for matrix, item in zip(metrics, items, strict=True)]
        return PreparedItems(gold, [int(at) for at in start[:-1]], vectors)

    def _metrics(self, items: Sequence[QueryItem], columns: Sequence[tuple[str, ...]], part: str) -> list[Floats]:
        """(outputs, references and foreign answers) of each item, whose texts are `columns`. Values of foreign answers
        are nan where no reliability is computed from them."""
        tick = self.job.report_phase(f"{self.metric.name} of {part}")
        if self.metric.depends_on_batch:
            whole = [Query(item.outputs, texts) for item, texts in zip(items, columns, strict=True)]
            return measure_pairs(self.metric, whole, tick)
        own = stored_pairs(self.metric, [Query(item.outputs, item.references) for item in items], self.job.texts, tick)
        foreign = [
            Query(item.outputs, texts[len(item.references) :]) for item, texts in zip(items, columns, strict=True)
        ]
        if part == "train" and not self.job.flag("gold_margin"):
            others = [np.full((len(query.hypotheses), len(query.references)), np.nan) for query in foreign]
        else:
            others = measure_pairs(self.metric, foreign, tick)
        return [np.hstack(both) for both in zip(own, others, strict=True)]

    def _vectors(self, records: Sequence[Record], part: str) -> Vectors:
        """Of a frozen encoder they are kept in files that the folds of a cross-fitting share."""
        return self.encoder.stored_vectors(records, self.job.texts, self.job.report_phase(f"vectors of {part}"))


def measure_pairs(metric: PairEvaluator, queries: Sequence[Query], tick: Tick) -> list[Floats]:
    """Return the (hypotheses, references) matrix of a `metric` for each of the `queries`. Queries without hypotheses or
    references are not read. `tick` counts queries."""
    asked = [query for query in queries if query.hypotheses and query.references]
    found = iter(metric.all_pairs(asked, progress=tick) if asked else ())
    return [
        next(found)
        if query.hypotheses and query.references
        else np.zeros((len(query.hypotheses), len(query.references)))
        for query in queries
    ]


def stored_pairs(metric: PairEvaluator, queries: Sequence[Query], folder: Path, tick: Tick) -> list[Floats]:
    """Return what `measure_pairs` gives, from a file in `folder` for the queries that are there, for example by another
    fold of a cross-fitting; the others are added to it. Not for a metric that depends on the other queries."""
    path = folder / f"pairs-{text_hash([metric.signature], 16)}.safetensors"
    stored = read_tensors(path) if path.is_file() else {}
    names = [text_hash([str(len(query.hypotheses)), *query.hypotheses, *query.references], 32) for query in queries]
    new = {name: query for name, query in zip(names, queries, strict=True) if name not in stored}
    if new:
        matrices = measure_pairs(metric, list(new.values()), tick)
        stored |= {name: torch.from_numpy(matrix) for name, matrix in zip(new, matrices, strict=True)}
        folder.mkdir(parents=True, exist_ok=True)
        write_tensors(path, stored)
    return [stored[name].numpy() for name in names]


def draw_samples(
    gold: Sequence[ItemGold],
    sizes: Sequence[int],
    per_size: int,
    rng: np.random.Generator,
    track: RowTracker = without_progress,
) -> tuple[list[Sample], list[tuple[int, Nodes]]]:
    """Return all training sets with a defined gold reliability; and the sets without, with the number of their item.

    `gold` has the items; `per_size` sets of each of the `sizes` are drawn by `rng`; `track` reports progress.
    """
    samples: list[Sample] = []
    undefined: list[tuple[int, Nodes]] = []
    for number, item in enumerate(track(gold)):
        sets = draw_sets(item.n_references, sizes, per_size, rng)
        for nodes, value in zip(sets, item.reliabilities(sets), strict=True):
            if np.isnan(value):
                undefined.append((number, nodes))
            else:
                samples.append(Sample(number, nodes, float(value)))
    return samples, undefined


def group_by_size(sets: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the numbers of the `sets` of each size."""
    found: dict[int, list[int]] = {}
    for number, nodes in enumerate(sets):
        found.setdefault(len(nodes), []).append(number)
    return list(found.values())


def predict_sets(
    network: ReamNetwork,
    prepared: PreparedItems,
    sets: Sequence[tuple[int, Nodes]],
    read_vectors: Callable[[Ints], torch.Tensor],
) -> torch.Tensor:
    """Return (n,) the reliabilities that a `network` predicts for `sets`, (item, nodes) of `prepared` items.

    `read_vectors` returns the vectors (k, width) of k rows of `prepared.vectors`; it gets every row once. Sets of equal
    size are read together, because attention costs the square of the largest set, and most sets are small.
    """
    by_size = group_by_size([nodes for _, nodes in sets])
    rows = [
        np.array([prepared.start[item] + np.array(nodes) for item, nodes in (sets[place] for place in places)])
        for places in by_size
    ]
    needed, where = np.unique(np.concatenate([part.ravel() for part in rows]), return_inverse=True)
    vectors = read_vectors(needed)
    ends = np.cumsum([part.size for part in rows])[:-1]
    numbers = [part.reshape(whole.shape) for part, whole in zip(np.split(where, ends), rows, strict=True)]
    found = network(vectors, [torch.from_numpy(part).to(vectors.device) for part in numbers])
    back = np.argsort(np.concatenate(by_size))
    return found[torch.from_numpy(back).to(found.device)]


class Epochs:
    """The losses of an epoch: samples in random order, with newly drawn negatives."""

    def __init__(
        self,
        network: ReamNetwork,
        prepared: PreparedItems,
        samples: Sequence[Sample],
        job: FitJob,
        read_vectors: Callable[[Ints], torch.Tensor],
    ) -> None:
        self.network, self.prepared, self.samples, self.job = network, prepared, samples, job
        #: The vectors of rows of `prepared.vectors`; with gradients, if the encoder learns.
        self.read_vectors = read_vectors
        self.kinds = parse_kinds(job)
        #: The references of a sample that may be removed are the same in all epochs.
        self.removals: dict[tuple[int, Nodes], list[tuple[Nodes, float]]] = {}

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        return -(-len(self.samples) // self.job.integer("batch_size"))

    def __call__(self, epoch: int) -> Iterator[torch.Tensor]:
        rng = self.job.rng(f"epoch:{epoch}")
        order = rng.permutation(len(self.samples))
        size = self.job.integer("batch_size")
        for at in range(0, len(order), size):
            chosen = [self.samples[int(row)] for row in order[at : at + size]]
            yield self._loss(chosen, rng)

    def _loss(self, chosen: Sequence[Sample], rng: np.random.Generator) -> torch.Tensor:
        sets = [(sample.item, sample.nodes) for sample in chosen]
        owner: list[int] = []
        margins: list[float] = []
        gold_margin, margin = self.job.flag("gold_margin"), self.job.number("margin")
        if self.job.number("contrast") > 0:
            for place, sample in enumerate(chosen):
                for kind in self.kinds:
                    result = self._negative(kind, sample, rng, gold_margin)
                    if result is None or (gold_margin and np.isnan(result[1])):
                        continue
                    sets.append((sample.item, result[0]))
                    owner.append(place)
                    margins.append(max(0.0, sample.gold - result[1]) if gold_margin else margin)
        scores = self.predict_sets(sets)
        n = len(chosen)
        gold = torch.tensor([sample.target for sample in chosen], dtype=scores.dtype, device=scores.device)
        return ream_loss(
            scores[:n],
            gold,
            scores[n:],
            torch.tensor(owner, dtype=torch.int64, device=scores.device),
            torch.tensor(margins, dtype=scores.dtype, device=scores.device),
            self.job.number("contrast"),
        )

    def _negative(self, kind: str, sample: Sample, rng: np.random.Generator, gold: bool) -> tuple[Nodes, float] | None:
        item = self.prepared.gold[sample.item]
        if kind != "remove":
            return draw_foreign(kind, sample, item, rng, gold=gold)
        key = (sample.item, sample.nodes)
        if key not in self.removals:
            self.removals[key] = worse_by_removal(sample, item)
        worse = self.removals[key]
        return worse[int(rng.integers(len(worse)))] if worse else None

    def predict_sets(self, sets: Sequence[tuple[int, Nodes]]) -> torch.Tensor:
        """(n,) predicted reliabilities, with gradients."""
        return predict_sets(self.network, self.prepared, sets, self.read_vectors)


def find_aspect(job: FitJob) -> str | None:
    """Return the aspect that a `job` learns; None without ratings, where it learns by contrast alone. Raises
    `TrainingDataError`."""
    if not job.train.ratings and job.aspect is None and job.integer("pretrain"):
        return None
    return choose_aspect(job.name, job.train, job.aspect, ("ratings",))


def find_items(job: FitJob, aspect: str | None) -> list[QueryItem]:
    """Return the items of the training part of a `job` for an `aspect`, computed once for check and training; none
    without an aspect. Raises `TrainingDataError` if there are too few, or if ratings are not numbers."""
    return [] if aspect is None else job.once(f"items of {aspect}", lambda: _checked_items(job, aspect))


def _checked_items(job: FitJob, aspect: str) -> list[QueryItem]:
    data = job.train
    refuse_nan(job.name, data, [aspect])
    items = query_items(data, aspect, cast(RatingMethod, job.text("ratings")), job.track)
    if len(items) < 3:
        message = _(
            "%(n_items)s items have references and three or more outputs that people rated differently "
            "for %(aspect)s; it needs 3. Rate more systems per item, or add references."
        )
        raise TooFewData(job.name, message, n_items=len(items), aspect=aspect)
    if not any(len(item.references) > 1 for item in items):
        message = _("every item has only one reference, so there are no sets to compare. Add references.")
        raise TrainingDataError(job.name, message)
    if not any(len({text.strip() for text in item.outputs}) > 1 for item in items):
        message = _("all outputs of an item are the same, item by item: no metric tells them apart. Upload others.")
        raise TrainingDataError(job.name, message)
    return items
