"""Texts that `perception` learns from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evalapp.translation import gettext as _
from scoring.ml.base import get_references
from scoring.ml.encoders.tokenizing import PairTokenizer
from scoring.ml.errors import TooFewData, TrainingDataError
from scoring.ml.evaluators.perception.pairs import Sides, encode_pool, encode_sides, find_form
from scoring.ml.training.batches import count_texts
from scoring.ml.training.checks import describe_left_out
from scoring.ml.training.job import FitJob, RowTracker, without_progress
from scoring.ml.types import Dataset, Record

LEAST_PAIRS = 8


@dataclass(frozen=True)
class Texts:
    """Records to learn from: a text, and references that differ from it. For an unconditional model only a text, and
    the `pool` of references for all texts. `n_same` outputs that equal all their references, `n_empty` without a text
    and `n_alone` without a reference are left out."""

    records: list[Record]
    n_same: int
    pool: tuple[str, ...] = ()
    n_empty: int = 0
    n_alone: int = 0

    def select_system(self, name: str) -> Texts:
        """The texts of a system."""
        return Texts([record for record in self.records if label_system(record) == name], 0, self.pool)

    @property
    def omissions(self) -> list[str]:
        """Notes on the outputs that are left out."""
        return describe_left_out("outputs", self.n_empty, self.n_alone)

    @property
    def systems(self) -> list[str]:
        """The systems with texts, in order."""
        return sorted({label_system(record) for record in self.records})


def find_texts(job: FitJob, dataset: Dataset) -> Texts:
    """Return the texts of a `dataset` of the `job`, computed once."""
    find = learnable if job.flag("conditional") else unconditional
    return job.once(f"texts of {id(dataset)}", lambda: find(dataset, job.track))


def learnable(dataset: Dataset, track: RowTracker = without_progress) -> Texts:
    """Return the non-empty outputs of a `dataset` that have references; `track` reports progress.

    References that equal the text are removed, and texts without any other reference are left out.
    """
    records, same, empty, alone = [], 0, 0, 0
    for record in track(dataset.outputs_with_context()):
        references = tuple(text for text in get_references(record) if text.strip() != record.text.strip())
        if not record.text.strip():
            empty += 1
            continue
        if not get_references(record):
            alone += 1
            continue
        if not references:
            same += 1
            continue
        records.append(replace(record, references=references))
    return Texts(records, same, n_empty=empty, n_alone=alone)


def unconditional(dataset: Dataset, track: RowTracker = without_progress) -> Texts:
    """Return all non-empty outputs of a `dataset`, with or without references, and the distinct references of all
    items; `track` reports progress."""
    pool = {text.strip(): text for item in dataset.items for text in item.references if text.strip()}
    result = [record for record in track(dataset.outputs_with_context()) if record.text.strip()]
    return Texts(result, 0, tuple(pool.values()), n_empty=len(dataset.outputs) - len(result))


def count_different(texts: Texts) -> int:
    """Return the number of different texts in `texts`."""
    return len({record.text.strip() for record in texts.records})


def set_references_apart(job: FitJob, texts: Texts) -> tuple[list[str], Texts]:
    """Return the references to score with, drawn once by seed, and the `texts` with the other references to learn from;
    ([], texts) for a conditional model.

    A reference seen in training would be recognised, and any text compared with it would look worse than it is. Raises
    `TrainingDataError` if the `job` does not have enough references.
    """
    if job.flag("conditional"):
        return [], texts
    n = job.integer("n_references")
    if len(texts.pool) <= n:
        text = _(
            "without condition it keeps %(n)s references to score with and learns from others; there are "
            "%(n_pool)s different ones: add references to the items, or take a smaller n_references"
        )
        raise TrainingDataError(job.name, text, n=n, n_pool=len(texts.pool))
    order = job.rng("fixed references").permutation(len(texts.pool)).tolist()
    rest = tuple(texts.pool[place] for place in sorted(order[n:]))
    records = texts.records
    if len(rest) == 1:
        records = [record for record in records if record.text.strip() != rest[0].strip()]
    n_same = len(texts.records) - len(records)
    if not records:
        raise TrainingDataError(job.name, _("no output differs from its reference: add references"))
    return [texts.pool[place] for place in order[:n]], Texts(records, n_same, rest)


def encode_texts(job: FitJob, tokenizer: PairTokenizer, texts: Texts) -> Sides:
    """Return the `texts` as the network of a `job` reads them, tokenised by `tokenizer`."""
    if job.flag("conditional"):
        return encode_sides(tokenizer, texts.records, form=find_form(job.text("inputs"), count_own_texts(job)))
    return encode_pool(tokenizer, texts.records, texts.pool)


def count_own_texts(job: FitJob) -> int:
    """Return how many texts a network of a `job` reads each alone; see `count_texts`."""
    contexts = any(item.context or item.source for item in job.train.items)
    return count_texts(job, contexts=contexts, single=True) if job.flag("conditional") else 0


def label_system(record: Record) -> str:
    """Return the system of a `record`, with its step: every checkpoint counts as a system."""
    return record.system if record.step is None else f"{record.system} @ {record.step}"


def check_systems(job: FitJob, texts: Texts) -> list[str]:
    """Return the systems in `texts`. Raises `TrainingDataError` if the data of the `job` lack outputs or references,
    and `TooFewData` if there are too few."""
    if not job.train.outputs:
        raise TrainingDataError(job.name, _("the data hold no outputs. Upload the texts of a system first."))
    if texts.n_empty == len(job.train.outputs):
        text = _("all %(n_empty)s outputs are empty: upload outputs with a text")
        raise TrainingDataError(job.name, text, n_empty=f"{texts.n_empty:,}")
    if not texts.records:
        text = _("no output has a reference that differs from it: add references to the items")
        raise TrainingDataError(job.name, text)
    systems = texts.systems
    if job.text("models") == "per_system":
        few = [name for name in systems if len(texts.select_system(name).records) < LEAST_PAIRS]
        if few:
            text = _("%(few)s: fewer than %(least_pairs)s texts with references; take models=shared")
            raise TooFewData(job.name, text, few=", ".join(few), least_pairs=LEAST_PAIRS)
    elif len(texts.records) < LEAST_PAIRS:
        text = _("%(n_records)s texts with references are too few, it needs %(least_pairs)s: upload more")
        raise TooFewData(job.name, text, n_records=len(texts.records), least_pairs=LEAST_PAIRS)
    return systems
