"""Normalised ratings (`raw`, `z`, `z-shrunk`, `rank`), and one human score per output.

Long-form columns, one row per rating; the caller has already left out excluded ratings.

Explained in docs/explanation/statistics/human-scores.md#comparable-ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalapp.stats.core.coding import FloatArray, IntArray, encode, encode_pair, float_column, identifiers, snap
from evalapp.stats.correlation.coefficients import midranks

RatingMethod: TypeAlias = Literal["raw", "z", "z-shrunk", "rank"]
RATING_METHODS: tuple[RatingMethod, ...] = ("raw", "z", "z-shrunk", "rank")
#: Methods that return standard scores: ties between raters are rare, and 0 is a rater's mean.
Z_METHODS: frozenset[str] = frozenset({"z", "z-shrunk"})

# The pooled variance counts as this many ratings when shrinking a rater's own variance.
Z_PRIOR_RATINGS = 10


def normalise_ratings(
    value: ArrayLike,
    item: ArrayLike,
    rater: ArrayLike,
    aspect: ArrayLike | None = None,
    *,
    method: RatingMethod = "raw",
) -> FloatArray:
    """Return the ratings on a common scale, (n,) in the order given; missing (nan) stays missing.

    `value`: ratings; `item`, `rater`, `aspect`: identifiers; `method`: one of the scales below.

    `aspect` None means that all rows belong to a single aspect. Every aspect is treated separately.

    - `raw`: as given.
    - `z`: (x - mean_r) / sd_r with the rater's own mean and sample standard deviation (divisor n_r - 1) over all
      ratings that the rater gave for the aspect, as WMT and WebNLG print it. Undefined (nan) for a rater with one
      rating or with equal ratings only.
    - `z-shrunk`: (x - m_r) / s_r with the rater's mean and spread shrunk towards all raters', which version 0.1.0
      called `z`:
      m_r = m + B_r (mean_r - m), B_r = T / (T + W / n_r), m = mean of all ratings of the aspect;
      s_r^2 = (k W + SS_r) / (k + n_r - 1), SS_r = sum of squares about mean_r, k = 10.
      W = sum SS_r / (N - R) is the variance within raters and T = max(0, (MSB - W) / n_0) the variance between raters'
      means, by the method of moments of a one-way random layout, MSB = sum n_r (mean_r - m)^2 / (R - 1),
      n_0 = (N - sum n_r^2 / N) / (R - 1). With one rater m_r = mean_r. Where s_r is 0 the result is 0.
      T and W are estimated from the data, so a rater with few ratings is moved little.
    - `rank`: (midrank - 1/2) / k among the k ratings that a rater gave to the outputs of an item for an aspect;
      lies in (0, 1), higher = better, alone = 1/2. Only the order within the row counts (magnitude estimation)."""
    values = float_column(value, "value")
    n = len(values)
    aspects, _ = encode(aspect if aspect is not None else np.zeros(n, dtype=np.int64), "aspect", n)
    raters, rater_labels = encode(rater, "rater", n)
    items, _ = encode(item, "item", n)
    present = np.isfinite(values)
    if method == "raw":
        return np.where(present, values, np.nan)
    result = np.full(n, np.nan)
    if method in Z_METHODS:
        standardise = _plain_z if method == "z" else _shrunken_z
        for code in np.unique(aspects[present]):
            rows = np.flatnonzero(present & (aspects == code))
            result[rows] = standardise(values[rows], raters[rows])
        return result
    if method == "rank":
        by_rater, _ = encode_pair(aspects[present], raters[present], len(rater_labels))
        row, _ = encode_pair(items[present], by_rater, int(by_rater.max(initial=0)) + 1)
        result[present] = _rank_in_rows(values[present], row)
        return result
    raise ValueError(f"method is one of {', '.join(RATING_METHODS)}, not '{method}'")


@dataclass(frozen=True, slots=True)
class OutputScores:
    """One human score per output: parallel vectors of item and system (labels as given), mean, number of ratings."""

    item: NDArray[Any]
    system: NDArray[Any]
    mean: FloatArray
    n_ratings: IntArray

    def __len__(self) -> int:
        return len(self.mean)


def aggregate_ratings(value: ArrayLike, item: ArrayLike, system: ArrayLike) -> OutputScores:
    """Return the mean over raters of every output (item, system) for a single aspect, sorted by item and system.

    `value`: (n,) ratings, nan = missing; `item`, `system`: their identifiers.

    Missing ratings (nan) and outputs without ratings are left out. Means that differ only by rounding (1e-12 of the
    largest) are made equal, so that ties between outputs stay ties."""
    values = float_column(value, "value")
    present = np.isfinite(values)
    n = len(values)
    items, item_labels = encode(identifiers(item, "item", n)[present], "item")
    systems, system_labels = encode(identifiers(system, "system", n)[present], "system")
    output, first = encode_pair(items, systems, len(system_labels))
    counts = np.bincount(output, minlength=len(first))
    sums = np.bincount(output, weights=values[present], minlength=len(first))
    return OutputScores(
        item_labels[items[first]], system_labels[systems[first]], snap(sums / np.maximum(counts, 1)), counts
    )


def _plain_z(values: FloatArray, rater: IntArray) -> FloatArray:
    _, rater = np.unique(rater, return_inverse=True)
    sizes = np.bincount(rater)
    means = np.bincount(rater, weights=values) / sizes
    squares = np.bincount(rater, weights=(values - means[rater]) ** 2)
    # Equal ratings are compared directly, because their sum of squares about a rounded mean need not be 0.
    low, high = np.full(len(sizes), np.inf), np.full(len(sizes), -np.inf)
    np.minimum.at(low, rater, values)
    np.maximum.at(high, rater, values)
    spread = np.sqrt(squares / np.maximum(sizes - 1, 1))
    spread[low == high] = np.nan
    return np.asarray((values - means[rater]) / spread[rater])


def _shrunken_z(values: FloatArray, rater: IntArray) -> FloatArray:
    _, rater = np.unique(rater, return_inverse=True)
    sizes = np.bincount(rater).astype(np.float64)
    n, n_raters = len(values), len(sizes)
    centre = float(values.mean())
    means = np.bincount(rater, weights=values) / sizes
    squares = np.bincount(rater, weights=(values - means[rater]) ** 2)
    if n > n_raters:
        within = float(squares.sum()) / (n - n_raters)
    else:
        # With one rating per rater the spread within raters is unknown: all spread counts as within.
        within = float(values.var(ddof=1)) if n > 1 else 0.0
    if n_raters == 1:
        shrunk = means
    else:
        between_mean_square = float(sizes @ (means - centre) ** 2) / (n_raters - 1)
        effective = (n - float(sizes @ sizes) / n) / (n_raters - 1)
        between = max(0.0, (between_mean_square - within) / effective)
        weight = between / (between + within / sizes) if between > 0 else np.zeros(n_raters)
        shrunk = centre + weight * (means - centre)
    spread = np.sqrt((Z_PRIOR_RATINGS * within + squares) / (Z_PRIOR_RATINGS + sizes - 1))[rater]
    return np.divide(values - shrunk[rater], spread, out=np.zeros(n), where=spread > 0)


def _rank_in_rows(values: FloatArray, row: IntArray) -> FloatArray:
    sizes = np.bincount(row)
    starts = np.cumsum(sizes) - sizes
    # Midranks over all rows sorted by (row, value) become midranks within a row by subtracting the row's start.
    order = np.lexsort((values, row))
    rises = np.empty(len(values), dtype=np.float64)
    sorted_row, sorted_value = row[order], values[order]
    if len(values):
        new = np.ones(len(values), dtype=np.bool_)
        new[1:] = (sorted_row[1:] != sorted_row[:-1]) | (sorted_value[1:] != sorted_value[:-1])
        rises[order] = np.cumsum(new)
    return np.asarray((midranks(rises) - starts[row] - 0.5) / sizes[row])
