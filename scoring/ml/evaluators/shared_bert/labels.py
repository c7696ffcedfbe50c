"""From ratings to labels: median, pooled over systems with the same text, ceiling, threshold (Reddy 2022), or the mean
as a share of the scale.

Explained in docs/explanation/evaluators/shared-bert.md#labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from evalapp.stats.agreement.normalise import Z_METHODS, RatingMethod
from scoring.ml.base import get_references
from scoring.ml.training.checks import describe_left_out
from scoring.ml.training.gold import Key, collect_rated_outputs, output_key
from scoring.ml.training.job import RowTracker, without_progress
from scoring.ml.types import Dataset, Record

Floats = npt.NDArray[np.float64]
#: The paper's grid of multiples of the share of negatives: up to 25 per cent less or more, and the share itself.
BETA_GRID = (0.75, 0.80, 0.85, 0.90, 0.95, 1.0, 1.05, 1.10, 1.15, 1.20, 1.25)
THRESHOLD_SHARE = 0.7


@dataclass(frozen=True)
class LabelledOutputs:
    """Distinct rated outputs: `labels` (n, aspects) 1 = good, 0 = not, and `grades` (n, aspects) from 0 to 1; nan = not
    rated for that aspect.

    `n_merged` outputs repeat the text of another system for the same item and were pooled with it; `n_empty` outputs
    without text and `n_alone` outputs without a reference are left out.
    """

    records: list[Record]
    labels: Floats
    grades: Floats
    aspects: tuple[str, ...]
    thresholds: tuple[float, ...]
    simulated: int
    n_merged: int
    n_empty: int = 0
    n_alone: int = 0

    @property
    def omissions(self) -> list[str]:
        """Notes on the rated outputs that are left out."""
        return describe_left_out("rated outputs", self.n_empty, self.n_alone)


@dataclass(frozen=True, slots=True)
class Rule:
    """Good from `threshold` on; with `ceiling` the median is rounded up first. Grades are shares of the way from `low`
    to `high`; without them, probabilities of the standard normal distribution."""

    threshold: float
    ceiling: bool
    low: float | None = None
    high: float | None = None

    def grade(self, ratings: Sequence[float]) -> float:
        """The mean of `ratings` from 0 to 1."""
        mean = float(np.mean(ratings))
        if self.low is None or self.high is None:
            return float(ndtr(mean))
        return min(max((mean - self.low) / (self.high - self.low), 0.0), 1.0) if self.high > self.low else 0.5


def make_rule(dataset: Dataset, aspect: str, method: RatingMethod, threshold: float | None = None) -> Rule:
    """Return the rule of an `aspect`, by its scale and all its ratings in the `dataset`; parts of the data must share
    it.

    `method` makes ratings comparable; `threshold` None is `default_threshold`. Only raw ratings in whole or half points
    are rounded up: on a fine scale from 0 to 1, everything but 0 would become good.
    """
    if threshold is None:
        threshold = default_threshold(dataset, aspect, method)
    if method == "raw":
        return Rule(threshold, _in_halves(dataset, aspect), *_read_scale(dataset, aspect))
    return Rule(threshold, False) if method in Z_METHODS else Rule(threshold, False, 0.0, 1.0)


def label_outputs(
    dataset: Dataset,
    aspects: Sequence[str],
    *,
    method: RatingMethod = "raw",
    rules: Sequence[Rule] | None = None,
    track: RowTracker = without_progress,
) -> LabelledOutputs:
    """Return labels of the outputs of a `dataset` for each of the `aspects`, by the median over raters, and grades, by
    the mean.

    Raters of systems with the same text for an item are pooled; raw medians are rounded up, so that 4.5 counts as 5;
    good from the threshold on. `method` makes ratings comparable; `rules` None are those of the dataset (`make_rule`);
    `track` reports progress. Outputs without text or references are left out.
    """
    rules = [make_rule(dataset, aspect, method) for aspect in aspects] if rules is None else rules
    pooled: dict[tuple[str, str], list[list[float]]] = {}
    record_of: dict[tuple[str, str], Record] = {}
    simulated = 0
    keys: set[Key] = set()
    empty: set[Key] = set()
    alone: set[Key] = set()
    for place, aspect in enumerate(aspects):
        rated = collect_rated_outputs(dataset, aspect, method, track)
        simulated += rated.simulated
        for record, values in zip(track(rated.records), rated.values, strict=True):
            if not record.text.strip():
                empty.add(output_key(record))
                continue
            if not get_references(record):
                alone.add(output_key(record))
                continue
            key = (record.item, record.text)
            keys.add(output_key(record))
            record_of.setdefault(key, record)
            pooled.setdefault(key, [[] for _ in aspects])[place].extend(values)
    labels = np.full((len(pooled), len(aspects)), np.nan)
    grades = labels.copy()
    for row, columns in enumerate(track(list(pooled.values()))):
        for place, ratings in enumerate(columns):
            if ratings:
                labels[row, place] = float(_level(ratings, rules[place]) >= rules[place].threshold)
                grades[row, place] = rules[place].grade(ratings)
    thresholds = tuple(rule.threshold for rule in rules)
    merged = len(keys) - len(pooled)
    return LabelledOutputs(
        list(record_of.values()), labels, grades, tuple(aspects), thresholds, simulated, merged, len(empty), len(alone)
    )


def share_of_negatives(targets: Floats) -> Floats:
    """Return 1 - the mean of `targets` (n, aspects), labels or grades, over those that are known; nan without any."""
    known = np.isfinite(targets)
    counts = known.sum(axis=0)
    return np.where(counts > 0, 1 - np.where(known, targets, 0.0).sum(axis=0) / np.maximum(counts, 1), np.nan)


def default_threshold(dataset: Dataset, aspect: str, method: RatingMethod) -> float:
    """Return the lowest value of an `aspect` of a `dataset` that counts as good: min + 0.7 (max - min) of its scale,
    rounded up for ratings in whole or half points (5 of 1..6, 4 of 1..5, 1 of 0..1).

    With another `method` than raw it is 0 for z-scores and 1/2 for ranks.
    """
    if method != "raw":
        return 0.0 if method in Z_METHODS else 0.5
    low, high = _read_scale(dataset, aspect)
    # Rounded first: 1 + 0.7 * 5 must not become 4.500000001.
    level = round(low + THRESHOLD_SHARE * (high - low), 9)
    return float(math.ceil(level)) if _in_halves(dataset, aspect) else level


def _read_scale(dataset: Dataset, aspect: str) -> tuple[float, float]:
    """The ends of the scale of an aspect, or the lowest and the highest rating if it has none."""
    scale = next((known for known in dataset.aspects if known.name == aspect), None)
    if scale is not None and scale.minimum is not None and scale.maximum is not None:
        return scale.minimum, scale.maximum
    values = [rating.value for rating in dataset.ratings if rating.aspect == aspect]
    return min(values, default=0.0), max(values, default=1.0)


def _in_halves(dataset: Dataset, aspect: str) -> bool:
    return all(float(2 * row.value).is_integer() for row in dataset.ratings if row.aspect == aspect)


def pairs_with_references(labelled: LabelledOutputs) -> list[tuple[int, str]]:
    """Return the instances of `labelled` outputs as the paper counts them: (row of the output, reference)."""
    return [(row, ref) for row, record in enumerate(labelled.records) for ref in get_references(record)]


def _level(ratings: Sequence[float], rule: Rule) -> float:
    median = round(float(np.median(ratings)), 9)
    return float(math.ceil(median)) if rule.ceiling else median
