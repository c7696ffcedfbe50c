"""Summary statistics of a score set, computed by the worker when scoring ends and stored with the set."""

from array import array
from collections import Counter
from typing import Any

import numpy as np

from annotation.models import System

from ..models import UNKNOWN, Score, ScoreSet


def summarise_scores(score_set: ScoreSet) -> list[dict[str, Any]]:
    """Return count, mean and percentiles of the scores of every system and step."""
    values: dict[tuple[int, int | None], array[float]] = {}
    undefined: dict[tuple[int, int | None], int] = {}
    unknown: Counter[tuple[int, int | None]] = Counter()
    rows = Score.objects.filter(score_set=score_set).order_by()
    columns = ("output__system", "output__step", "value", "note")
    for system, step, value, note in rows.values_list(*columns).iterator(chunk_size=20_000):
        key = (system, step)
        if key not in values:
            values[key], undefined[key] = array("d"), 0
        if value is None:
            undefined[key] += 1
        else:
            values[key].append(value)
            unknown[key] += note == UNKNOWN
    names = System.objects.in_bulk({system for system, _ in values})
    named = sorted((names[key[0]].name, key[1] or 0, key) for key in values)
    # Sorted, because the last digit of a mean depends on the order of the sum.
    return [
        _summary(name, key[1], np.sort(np.array(values[key])), undefined[key], unknown[key]) for name, _, key in named
    ]


def _summary(system: str, step: int | None, values: np.ndarray, n_undefined: int, n_unknown: int) -> dict[str, Any]:
    percents = (5, 25, 50, 75, 95)
    places = np.percentile(values, percents) if len(values) else [None] * len(percents)
    return {
        "label": system if step is None else f"{system} @ {step}",
        "system": system,
        "step": step,
        "n": len(values),
        "n_undefined": n_undefined,
        "n_unknown": n_unknown,
        "mean": float(values.mean()) if len(values) else None,
        **{f"p{percent}": None if at is None else float(at) for percent, at in zip(percents, places, strict=True)},
    }
