"""From ratings to labels: median, pooled over systems that wrote the same, ceiling, threshold (EVALUATORS 4.2, 4.3)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalapp.stats import RatingMethod
from scoring.ml.base import references_of
from scoring.ml.training.gold import rated_records
from scoring.ml.types import Dataset, Record

Floats = npt.NDArray[np.float64]
#: Of the paper's grid: five to twenty-five per cent less or more than the share of negatives, and the share itself.
BETA_GRID = (0.75, 0.80, 0.85, 0.90, 0.95, 1.0, 1.05, 1.10, 1.15, 1.20, 1.25)
THRESHOLD_SHARE = 0.7


@dataclass(frozen=True)
class Labelled:
    """Distinct rated outputs: `labels` (n, aspects) 1 = good, 0 = not, nan = not rated for that aspect.

    `n_merged` outputs repeat the text of another system for the same item and were pooled with it.
    """

    records: list[Record]
    labels: Floats
    aspects: tuple[str, ...]
    thresholds: tuple[float, ...]
    simulated: int
    n_merged: int

    def share_of_negatives(self) -> Floats:
        """(aspects,) negatives / all, nan without any label."""
        counts = np.isfinite(self.labels).sum(axis=0)
        negatives = (self.labels == 0).sum(axis=0)
        return np.where(counts > 0, negatives / np.maximum(counts, 1), np.nan)


def label_outputs(
    dataset: Dataset, aspects: Sequence[str], *, method: RatingMethod = "raw", threshold: float | None = None
) -> Labelled:
    """Median over judges; the judges of systems that wrote the same text for an item are pooled; raw medians are
    rounded up, so that 4.5 counts as 5; good from the threshold on.

    The threshold, when none is given, is ceil(min + 0.7 (max - min)) of the aspect's scale (5 of 1..6, 4 of 1..5,
    1 of 0..1), 0 for z-scores and 1/2 for ranks. Outputs without references are left out.
    """
    pooled: dict[tuple[str, str], list[list[float]]] = {}
    record_of: dict[tuple[str, str], Record] = {}
    thresholds, simulated, keys = [], 0, set()
    for place, aspect in enumerate(aspects):
        rated = rated_records(dataset, aspect, method)
        simulated += rated.simulated
        thresholds.append(threshold if threshold is not None else default_threshold(dataset, aspect, method))
        for record, values in zip(rated.records, rated.values, strict=True):
            if not references_of(record):
                continue
            key = (record.item, record.text)
            keys.add((record.item, record.system, record.step))
            record_of.setdefault(key, record)
            pooled.setdefault(key, [[] for _ in aspects])[place].extend(values)
    labels = np.full((len(pooled), len(aspects)), np.nan)
    for row, columns in enumerate(pooled.values()):
        for place, ratings in enumerate(columns):
            if ratings:
                labels[row, place] = float(_level(ratings, method) >= thresholds[place])
    return Labelled(
        list(record_of.values()), labels, tuple(aspects), tuple(thresholds), simulated, len(keys) - len(pooled)
    )


def default_threshold(dataset: Dataset, aspect: str, method: RatingMethod) -> float:
    """The least value that counts as good, as `label_outputs` says."""
    if method != "raw":
        return 0.0 if method == "z" else 0.5
    scale = next((known for known in dataset.aspects if known.name == aspect), None)
    low, high = (None, None) if scale is None else (scale.minimum, scale.maximum)
    if low is None or high is None:
        values = [rating.value for rating in dataset.ratings if rating.aspect == aspect]
        low, high = min(values, default=0.0), max(values, default=1.0)
    # Rounded first: 1 + 0.7 * 5 must not become 4.500000001.
    return float(math.ceil(round(low + THRESHOLD_SHARE * (high - low), 9)))


def pairs_with_references(labelled: Labelled) -> tuple[list[tuple[int, str]], list[int]]:
    """Instances as the paper counts them: (row of the output, reference), and how many each output has."""
    pairs = [(row, ref) for row, record in enumerate(labelled.records) for ref in references_of(record)]
    counts: dict[int, int] = defaultdict(int)
    for row, _ in pairs:
        counts[row] += 1
    return pairs, [counts[row] for row in range(len(labelled.records))]


def _level(ratings: Sequence[float], method: RatingMethod) -> float:
    median = float(np.median(ratings))
    return float(math.ceil(round(median, 9))) if method == "raw" else median
