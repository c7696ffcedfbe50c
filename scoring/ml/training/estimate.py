"""How much a training reads, in tokens and rows, and the range of an estimate of its time."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from evalapp.words import UNSPACED_BLOCKS
from scoring.ml.artefact import N_FIXTURES
from scoring.ml.types import Dataset

if TYPE_CHECKING:
    from scoring.ml.training.job import FitJob

_Key: TypeAlias = tuple[str | None, str | None, int | None]
# Shortest and longest time of a training as multiples of its estimate.
RANGE = (0.6, 1.75)


class Counts(NamedTuple):
    """What a training reads: `steps` that train the encoder, and without gradients `head_rows` to fit the head and
    `evaluated` rows in all evaluations together."""

    steps: int
    head_rows: int
    evaluated: int

    def repeat(self, times: int) -> Counts:
        """The same for several trainings."""
        return Counts(self.steps * times, self.head_rows * times, self.evaluated * times)


def count_rated_outputs(dataset: Dataset | None, aspect: str | None) -> int:
    """Return the number of held-out outputs in a `dataset` with ratings of an `aspect`, or of any: each is scored for
    the card."""
    rows = dataset.ratings if dataset is not None else ()
    return len({(r.item, r.system, r.step) for r in rows if r.item and aspect in (None, r.aspect)})


def find_compared_pairs(dataset: Dataset | None, aspect: str | None) -> set[tuple[_Key, _Key]]:
    """Return the held-out pairs of outputs in a `dataset` with comparisons of an `aspect`, or of any: the card
    evaluates each."""
    rows = dataset.comparisons if dataset is not None else ()
    return {
        ((row.item, row.system_a, row.step_a), (row.item, row.system_b, row.step_b))
        for row in rows
        if row.system_b is not None and aspect in (None, row.aspect)
    }


def count_held_out_tokens(job: FitJob) -> float:
    """Return the tokens of the judged held-out texts and the fixtures that a `job` scores for the card, each with its
    references and context.

    A text that was rated and compared is read for both; evaluators that compare read each pair from both sides.
    """
    dev = job.dev
    if dev is None or job.entry.level != "segment" or "encoder" not in job.entry.needs:
        return 0.0
    readings: Counter[_Key] = Counter(
        {(r.item, r.system, r.step) for r in dev.ratings if r.item and job.aspect in (None, r.aspect)}
    )
    compared = [key for pair in find_compared_pairs(dev, job.aspect) for key in pair]
    readings.update(compared * 2 if job.entry.compares else set(compared))
    tokens_of_item = {item.id: sum(map(estimate_tokens, (*item.references, *item.context))) for item in dev.items}
    tokens = [
        (readings[key], estimate_tokens(row.text) + tokens_of_item.get(row.item, 0.0))
        for row in dev.outputs
        if (key := (row.item, row.system, row.step)) in readings
    ]
    if not tokens:
        return 0.0
    fixtures = N_FIXTURES * sum(length for _, length in tokens) / len(tokens)
    return sum(times * length for times, length in tokens) + fixtures


def estimate_tokens(text: str) -> float:
    """Approximate number of tokens of a text: 1.3 per word and two special ones; a letter counts as a word in scripts
    without spaces."""
    return 2 + 1.3 * (len(text.split()) + (0 if text.isascii() else len(_UNSPACED.findall(text))))


_UNSPACED = re.compile(f"[{UNSPACED_BLOCKS}]")


def estimate_range(seconds: float) -> tuple[float, float]:
    """Return the shortest and longest time of a training that is estimated at `seconds`."""
    return RANGE[0] * seconds, RANGE[1] * seconds
