"""Human judgements as labels: one value per output from ratings, and verdicts on pairs of outputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from evalapp.stats.agreement.judged import resolve_raters
from evalapp.stats.agreement.normalise import Z_METHODS, RatingMethod, normalise_ratings
from evalapp.translation import gettext as _
from scoring.ml.errors import TrainingDataError
from scoring.ml.training.job import RowTracker, without_progress
from scoring.ml.types import Comparison, Dataset, Item, Rating, Record

Floats: TypeAlias = npt.NDArray[np.float64]
Row = TypeVar("Row", Rating, Comparison)
Key: TypeAlias = tuple[str, str, int | None]


@dataclass(frozen=True)
class RatedOutputs:
    """Rated outputs of an aspect: `values[i]` holds the ratings of `records[i]`, made comparable by `method`."""

    records: list[Record]
    values: list[Floats]
    simulated: int

    def means(self) -> Floats:
        """(n,) mean over raters."""
        return np.array([float(values.mean()) for values in self.values])


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """A rater's verdict: `sign` 1 = a is better, 0 = tie, -1 = b is better."""

    a: Record
    b: Record
    sign: int
    rater: str
    simulated: bool


def output_key(record: Record) -> Key:
    """Return the key of the output behind a `record`: item, system, step."""
    return (record.item, record.system, record.step)


def collect_rated_outputs(
    dataset: Dataset, aspect: str, method: RatingMethod = "raw", track: RowTracker = without_progress
) -> RatedOutputs:
    """Return the rated outputs of an `aspect` in the order of `dataset.outputs`. Ratings of dialogues are left out; of
    repeated ratings of an output by the same rater the first counts.

    `method` makes ratings comparable. A rater of multiple campaigns is one person in z-scores; ranks stay within a row.
    Ratings without a z-score (`normalise_ratings`) are left out. `track` reports progress.
    """
    rows = [r for r in dataset.ratings if r.aspect == aspect and r.dialogue is None]
    if not rows:
        return RatedOutputs([], [], 0)
    people, places = resolve_raters({row.rater for row in rows})
    rows = _drop_repeats(rows, lambda row: (row.item, row.system, row.step, people[row.rater]), places)
    person = people if method in Z_METHODS else {}
    values = normalise_ratings(
        np.array([row.value for row in rows]),
        np.array([row.item or "" for row in rows], dtype=object),
        np.array([person.get(row.rater, row.rater) for row in rows], dtype=object),
        method=method,
    )
    of_output: dict[Key, list[float]] = defaultdict(list)
    for row, value in zip(track(rows), values, strict=True):
        if np.isnan(value) and not np.isnan(row.value):
            continue  # A nan rating stays, so that the training refuses it.
        of_output[(row.item or "", row.system or "", row.step)].append(float(value))
    records = [record for record in track(dataset.outputs_with_context()) if output_key(record) in of_output]
    return RatedOutputs(
        records,
        [np.array(of_output[output_key(record)]) for record in track(records)],
        sum(row.simulated for row, value in zip(rows, values, strict=True) if not np.isnan(value)),
    )


def _drop_repeats(rows: list[Row], what: Callable[[Row], Hashable], places: Mapping[str, int]) -> list[Row]:
    """The first judgement where a person judged something more than once (`r7`, then `r7#2` or `r7@12`)."""
    first: dict[Hashable, str] = {}
    for row in rows:
        key = what(row)
        if key not in first or places[row.rater] < places[first[key]]:
            first[key] = row.rater
    return [row for row in rows if row.rater == first[what(row)]]


def collect_compared_pairs(
    dataset: Dataset, aspect: str | None, track: RowTracker = without_progress
) -> list[ComparedPair]:
    """Return the verdicts in a `dataset` on pairs of outputs, and on outputs and references with known text. `both_bad`
    is a tie.

    `aspect` None takes every aspect. A reference is a record of the system "reference". `track` reports progress.
    """
    of_key = {output_key(record): record for record in track(dataset.outputs_with_context())}
    items = {item.id: item for item in dataset.items}
    signs = {"a": 1, "b": -1, "tie": 0, "both_bad": 0}
    result = []
    people, places = resolve_raters({row.rater for row in dataset.comparisons})

    def compared(row: Comparison) -> Hashable:
        sides = frozenset([(row.system_a, row.step_a), (row.system_b or row.reference_b, row.step_b)])
        return (row.item, row.aspect, sides, people[row.rater])

    for row in track(_drop_repeats(list(dataset.comparisons), compared, places)):
        if (aspect is not None and row.aspect != aspect) or row.verdict not in signs:
            continue
        a = of_key[(row.item, row.system_a, row.step_a)]
        if row.system_b is None:
            b = _reference(items[row.item], row.reference_b)
        else:
            b = of_key[(row.item, row.system_b, row.step_b)]
        if b is None:
            continue
        result.append(ComparedPair(a, b, signs[row.verdict], row.rater, row.simulated))
    return result


def _reference(item: Item, number: int | None) -> Record | None:
    """A reference of an item as a record; None if its text is unknown."""
    if number is None or not 0 <= number < len(item.references) or not item.references[number].strip():
        return None
    return item.make_record(item.references[number], "reference")


def aspects_with(dataset: Dataset, judged_by: Literal["ratings", "comparisons"]) -> list[str]:
    """Return the aspects of a `dataset` that have ratings or comparisons (`judged_by`), the most judged first."""
    counts: dict[str, int] = defaultdict(int)
    for row in dataset.ratings if judged_by == "ratings" else dataset.comparisons:
        counts[row.aspect] += 1
    return sorted(counts, key=lambda aspect: (-counts[aspect], aspect))


def choose_aspect(name: str, dataset: Dataset, asked: str | None, judged_by: Sequence[str]) -> str:
    """Return the aspect that was `asked` for, or else the only one with judgements of the kinds `judged_by` in the
    `dataset`.

    Raises `TrainingDataError` for the evaluator `name` if the aspect must be named or is not there.
    """
    there: dict[str, None] = {}
    for way in judged_by:
        there.update(dict.fromkeys(aspects_with(dataset, "ratings" if way == "ratings" else "comparisons")))
    nouns = _(" or ").join(map(_, judged_by))
    if not there:
        text = _("the data hold no %(nouns)s. Collect some in a campaign, or load them.")
        raise TrainingDataError(name, text, nouns=nouns)
    if asked is None:
        if len(there) == 1:
            return next(iter(there))
        raise TrainingDataError(name, _("say which aspect it shall learn: %(there)s"), there=", ".join(there))
    if asked not in there:
        text = _("there are no %(nouns)s of the aspect %(asked)r; there are: %(there)s")
        raise TrainingDataError(name, text, nouns=nouns, asked=asked, there=", ".join(there))
    return asked
