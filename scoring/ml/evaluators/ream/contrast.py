"""Training of REAM# by contrast alone: sets of an item's own references against sets with an answer to another query.

No ratings are needed. Explained in docs/explanation/evaluators/ream.md#contrast-without-ratings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from evalapp.translation import gettext as _
from scoring.ml.errors import InvalidOption, TooFewData
from scoring.ml.evaluators.ream.gold import ItemGold, Nodes, Sample, draw_foreign
from scoring.ml.evaluators.ream.training import Epochs, PreparedItems, QueryItem, parse_kinds
from scoring.ml.evaluators.unreferenced.conversations import collect_conversations, reply_records
from scoring.ml.training.job import FitJob
from scoring.ml.types import Dataset, Record

#: Queries that are drawn at most: more take longer and hardly help. And the fewest without ratings.
MOST_QUERIES, LEAST_QUERIES = 4000, 20
#: The largest set that is drawn.
MOST_DRAWN = 10


def list_queries(dataset: Dataset, rng: np.random.Generator) -> list[QueryItem]:
    """Return queries with references and without outputs, for learning by contrast: the items of a `dataset`, and the
    turns of its dialogues, each as the answer to the turns before it. More than `MOST_QUERIES` are drawn by `rng`."""
    queries: list[tuple[Record, tuple[str, ...]]] = []
    for item in dataset.items:
        record = item.make_record()
        texts = tuple(dict.fromkeys(text for text in item.references if text.strip()))
        if texts and (any(turn.strip() for turn in record.context) or (record.source or "").strip()):
            queries.append((record, texts))
    for record in reply_records(collect_conversations(replace(dataset, items=()), lower_case=False)):
        queries.append((replace(record, text=""), (record.text,)))
    chosen = range(len(queries))
    if len(queries) > MOST_QUERIES:
        chosen = np.sort(rng.choice(len(queries), MOST_QUERIES, replace=False)).tolist()
    return [QueryItem(queries[place][0], queries[place][1], (), np.zeros(0)) for place in chosen]


def find_queries(job: FitJob) -> list[QueryItem]:
    """Return the queries of the training part of a `job` that it learns from by contrast, computed once. Raises
    `TrainingDataError` if there are too few."""

    def list_checked() -> list[QueryItem]:
        contrasts = {"add", "replace"} & set(parse_kinds(job))
        if not contrasts and not job.train.ratings:
            raise InvalidOption(job.name, "negatives", _("must include add or replace where there are no ratings"))
        if not job.integer("pretrain") or not contrasts:
            return []
        queries = list_queries(job.train, job.rng("queries"))
        if len(queries) < LEAST_QUERIES and not job.train.ratings:
            message = _(
                "%(n)s queries with references are too few to learn from without ratings; it needs %(least)s. Add "
                "references, dialogues or ratings."
            )
            raise TooFewData(job.name, message, n=len(queries), least=LEAST_QUERIES)
        return queries

    return job.once("queries", list_checked)


class ContrastEpochs(Epochs):
    """One set of each item per epoch against a set with an answer to another query: no ratings are needed."""

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        return -(-len(self.prepared.gold) // self.job.integer("batch_size"))

    def __call__(self, epoch: int) -> Iterator[torch.Tensor]:
        rng = self.job.rng(f"contrast:{epoch}")
        order = rng.permutation(len(self.prepared.gold)).tolist()
        size = self.job.integer("batch_size")
        for at in range(0, len(order), size):
            yield self._contrast(draw_own(self.prepared.gold, order[at : at + size], rng), rng)

    def _contrast(self, chosen: Sequence[Sample], rng: np.random.Generator) -> torch.Tensor:
        worse = list_worse(chosen, self.kinds, self.prepared, rng)
        scores = self.predict_sets([*((one.item, one.nodes) for one in chosen), *(pair for _, pair in worse)])
        if not worse:  # no item of the batch has an answer to another query
            return scores.sum() * 0.0
        n = len(chosen)
        margin = self.job.number("margin")
        return torch.relu(margin - scores[:n][[owner for owner, _ in worse]] + scores[n:]).mean()


def draw_own(gold: Sequence[ItemGold], items: Sequence[int], rng: np.random.Generator) -> list[Sample]:
    """Return one random set of own references of each of the `items`, without gold reliability."""
    samples = []
    for number in items:
        n = gold[number].n_references
        size = int(rng.integers(1, min(n, MOST_DRAWN) + 1))
        samples.append(Sample(number, tuple(sorted(rng.choice(n, size, replace=False).tolist())), float("nan")))
    return samples


def list_worse(
    samples: Sequence[Sample], kinds: Sequence[str], prepared: PreparedItems, rng: np.random.Generator
) -> list[tuple[int, tuple[int, Nodes]]]:
    """Return for each of the `samples` its place and a set that is worse by one foreign answer, of each of the `kinds`
    add and replace, drawn by `rng`."""
    result = []
    for place, sample in enumerate(samples):
        for kind in kinds:
            worse = (
                None if kind == "remove" else draw_foreign(kind, sample, prepared.gold[sample.item], rng, gold=False)
            )
            if worse is not None:
                result.append((place, (sample.item, worse[0])))
    return result
