"""Matrix of correlations between evaluators over outputs, with cluster bootstrap intervals from sums per cluster, so
that the cost of a resample does not grow with the outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray, encode, is_constant
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.correlation.coefficients import MIN_PAIRS, midranks
from evalapp.stats.resampling.bootstrap import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    resampled_sums,
    with_interval,
)

MatrixCoefficient: TypeAlias = Literal["pearson", "spearman"]
# Cells of the sums by cluster that are resampled together: 32 MB.
_CELLS = 1 << 22


@dataclass(frozen=True, slots=True)
class CorrelationMatrix:
    """`estimates[i, j]` for i < j: coefficient of columns i and j over the rows that have both."""

    n_columns: int
    estimates: dict[tuple[int, int], Estimate]

    def __getitem__(self, pair: tuple[int, int]) -> Estimate:
        """Return the estimate of two different columns, in either order."""
        return self.estimates[min(pair), max(pair)]

    @property
    def values(self) -> FloatArray:
        """Matrix (k, k), 1 on the diagonal, nan where undefined."""
        result = np.eye(self.n_columns)
        for (i, j), estimate in self.estimates.items():
            result[i, j] = result[j, i] = estimate.value
        return result


def correlation_matrix(
    columns: ArrayLike,
    *,
    coefficient: MatrixCoefficient = "pearson",
    what: str = "items",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> CorrelationMatrix:
    """Return the correlations of all pairs of (n, k) columns, nan = missing, each over the rows where both are defined;
    n = those rows.

    `coefficient`: `pearson` or `spearman`; `bootstrap`: its `cluster` has the groups of rows.

    Intervals are percentiles over resamples of the clusters, the same for every pair. Spearman is Pearson over the
    midranks within these rows; resamples keep the original ranks. Undefined, with the reason, for constant
    columns or fewer than 3 rows; notes call the clusters `what`. Columns with the same missing rows are
    standardised, or ranked, once for all their pairs."""
    if coefficient not in ("pearson", "spearman"):
        raise ValueError(f"coefficient is pearson or spearman, not '{coefficient}'")
    scores = np.asarray(columns, dtype=np.float64)
    if scores.ndim != 2:
        raise ValueError("two dimensions are needed, (outputs, evaluators)")
    groups = np.arange(len(scores)) if bootstrap.cluster is None else np.asarray(bootstrap.cluster)
    codes, labels = encode(groups, "cluster", len(scores))
    by_column = np.ascontiguousarray(scores.T)
    estimates: dict[tuple[int, int], Estimate] = {}
    for rows, pairs in _pairs_by_rows(np.isfinite(by_column)):
        part = _Part.of(by_column, rows, pairs, codes, len(labels), coefficient)
        estimates |= part.undefined
        step = max(_CELLS // len(labels), 1) if len(labels) else 1
        for start in range(0, len(part.pairs), step):
            estimates |= part.estimates(part.pairs[start : start + step], what, bootstrap)
    return CorrelationMatrix(scores.shape[1], estimates)


def _pairs_by_rows(defined: BoolArray) -> Iterator[tuple[BoolArray, list[tuple[int, int]]]]:
    """Yield the rows that both columns of a pair have, and all pairs over these rows; `defined` (k, n)."""
    patterns: dict[bytes, int] = {}
    pattern = [patterns.setdefault(np.packbits(column).tobytes(), len(patterns)) for column in defined]
    result: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for one, two in combinations(range(len(defined)), 2):
        low, high = sorted((pattern[one], pattern[two]))
        result.setdefault((low, high), []).append((one, two))
    for pairs in result.values():
        yield defined[pairs[0][0]] & defined[pairs[0][1]], pairs


@dataclass(frozen=True, slots=True)
class _Part:
    """Pairs over the same rows: their standardised columns (n,), their clusters, and sums by cluster of
    1 and of each column and its square, (clusters, 1 + 2 m) for the m columns in the order of `places`."""

    pairs: list[tuple[int, int]]
    undefined: dict[tuple[int, int], Estimate]
    columns: dict[int, FloatArray]
    places: dict[int, int]
    cluster: IntArray
    sums: FloatArray

    @classmethod
    def of(
        cls,
        scores: FloatArray,
        rows: BoolArray,
        pairs: list[tuple[int, int]],
        codes: IntArray,
        n_clusters: int,
        coefficient: MatrixCoefficient,
    ) -> _Part:
        whole = bool(rows.all())
        taken = {k: scores[k] if whole else scores[k][rows] for k in sorted({k for pair in pairs for k in pair})}
        n = int(rows.sum())
        constant = {k: n >= MIN_PAIRS and is_constant(x) for k, x in taken.items()}
        undefined = {}
        for one, two in pairs:
            if n < MIN_PAIRS:
                undefined[one, two] = Estimate.undefined(f"only {n} outputs have both scores", n)
            elif constant[one] or constant[two]:
                undefined[one, two] = Estimate.undefined("one of the two gives the same score to all", n)
        left = [pair for pair in pairs if pair not in undefined]
        used = sorted({k for pair in left for k in pair})
        columns = {k: _standardised(taken[k], coefficient) for k in used}
        cluster = codes if whole else codes[rows]
        sums = np.empty((n_clusters, 1 + 2 * len(used)))
        sums[:, 0] = np.bincount(cluster, minlength=n_clusters)
        for place, k in enumerate(used):
            sums[:, 1 + place] = np.bincount(cluster, weights=columns[k], minlength=n_clusters)
            squares = columns[k] * columns[k]
            sums[:, 1 + len(used) + place] = np.bincount(cluster, weights=squares, minlength=n_clusters)
        return cls(left, undefined, columns, {k: place for place, k in enumerate(used)}, cluster, sums)

    def estimates(
        self, pairs: Sequence[tuple[int, int]], what: str, bootstrap: Bootstrap
    ) -> dict[tuple[int, int], Estimate]:
        n_clusters, m = len(self.sums), len(self.places)
        table = np.empty((n_clusters, 1 + 2 * m + len(pairs)))
        table[:, : 1 + 2 * m] = self.sums
        for number, (one, two) in enumerate(pairs):
            product = self.columns[one] * self.columns[two]
            table[:, 1 + 2 * m + number] = np.bincount(self.cluster, weights=product, minlength=n_clusters)
        each = np.arange(n_clusters)
        drawn = (
            resampled_sums(table, each, n_clusters, resamples=bootstrap.resamples, seed=bootstrap.seed)
            if bootstrap.resamples
            else None
        )
        whole = table.sum(axis=0)[None, :]
        result = {}
        for number, (one, two) in enumerate(pairs):
            x, y = 1 + self.places[one], 1 + self.places[two]
            six = [0, x, y, x + m, y + m, 1 + 2 * m + number]
            point = Estimate.point(float(_pearson(whole[:, six])[0]), int(whole[0, 0]))
            replicates = np.empty(0) if drawn is None else _pearson(drawn[:, six])
            result[one, two] = with_interval(
                point, replicates, clusters={what: n_clusters}, confidence=bootstrap.confidence
            )
        return result


def _standardised(x: FloatArray, coefficient: MatrixCoefficient) -> FloatArray:
    if coefficient == "spearman":
        x = midranks(x)
    return np.asarray((x - x.mean()) / x.std())


def _pearson(sums: FloatArray) -> FloatArray:
    """Return Pearson's r from rows of sums n, x, y, xx, yy, xy; nan without spread."""
    n, x, y, xx, yy, xy = sums.T
    n = np.where(n > 0, n, np.nan)
    spread = (xx / n - (x / n) ** 2) * (yy / n - (y / n) ** 2)
    r = (xy / n - x * y / n**2) / np.sqrt(np.where(spread > 1e-20, spread, np.nan))
    return np.asarray(np.clip(r, -1.0, 1.0))
