"""Refusals that several evaluators share, before any training. What each needs beyond them stands with it."""

from __future__ import annotations

import math
from collections.abc import Collection

from scoring.ml.errors import TrainingDataError
from scoring.ml.types import Dataset


def refuse_nan(name: str, dataset: Dataset, aspects: Collection[str]) -> None:
    """Raises `TrainingDataError` where ratings of these aspects are no numbers: files hold none, but a dataset that was
    made in memory may."""
    for aspect in aspects:
        absent = sum(row.aspect == aspect and math.isnan(row.value) for row in dataset.ratings)
        if absent:
            raise TrainingDataError(name, f"{absent} ratings of {aspect} are not numbers (nan): leave them out")
