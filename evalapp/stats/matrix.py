"""Evaluators against each other: the matrix of their correlations over outputs, with cluster bootstrap intervals from
sums per cluster, so that the cost of a resample does not grow with the outputs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.coding import BoolArray, FloatArray, IntArray, encode, is_constant
from evalapp.stats.correlation import midranks, undefined_reason
from evalapp.stats.estimate import Estimate
from evalapp.stats.resampling import DEFAULT_CONFIDENCE, DEFAULT_RESAMPLES, resampled_sums, with_interval

MatrixCoefficient: TypeAlias = Literal["pearson", "spearman"]
# Pairs whose sums are resampled together: 40 pairs x 6 sums.
_BLOCK = 40


@dataclass(frozen=True, slots=True)
class CorrelationMatrix:
    """`estimates[i, j]` for i < j: the coefficient of columns i and j over the rows that have both."""

    n_columns: int
    estimates: dict[tuple[int, int], Estimate]

    def __getitem__(self, pair: tuple[int, int]) -> Estimate:
        """Symmetric; there is none of a column with itself."""
        return self.estimates[min(pair), max(pair)]

    @property
    def values(self) -> FloatArray:
        """(k, k), 1 on the diagonal, nan where undefined."""
        found = np.eye(self.n_columns)
        for (i, j), estimate in self.estimates.items():
            found[i, j] = found[j, i] = estimate.value
        return found


def correlation_matrix(
    columns: ArrayLike,
    cluster: ArrayLike,
    *,
    coefficient: MatrixCoefficient = "pearson",
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    confidence: float = DEFAULT_CONFIDENCE,
) -> CorrelationMatrix:
    """All pairs of (n, k) columns, nan = missing, each over the rows where both are defined; n = those rows.

    Intervals are percentiles over resamples of the clusters, the same draws for every pair. Spearman is Pearson over
    the midranks of these rows, which are not ranked anew in a resample. Undefined with the reason for constant columns
    or fewer than 3 rows.
    """
    if coefficient not in ("pearson", "spearman"):
        raise ValueError(f"coefficient is pearson or spearman, not '{coefficient}'")
    scores = np.asarray(columns, dtype=np.float64)
    if scores.ndim != 2:
        raise ValueError("two dimensions are needed, (outputs, evaluators)")
    codes, labels = encode(np.asarray(cluster), "cluster", len(scores))
    defined = np.isfinite(scores)
    estimates: dict[tuple[int, int], Estimate] = {}
    pending: list[tuple[tuple[int, int], FloatArray]] = []
    for pair in combinations(range(scores.shape[1]), 2):
        both = defined[:, pair[0]] & defined[:, pair[1]]
        x, y = scores[both, pair[0]], scores[both, pair[1]]
        reason = undefined_reason(x, y)
        if reason:
            # The pair is told as metric and people there; here both are evaluators.
            estimates[pair] = Estimate.undefined(_reason(x, y), len(x))
            continue
        pending.append((pair, _moments(x, y, both, coefficient)))
        if len(pending) == _BLOCK:
            estimates |= _block(pending, codes, len(labels), resamples, seed, confidence)
            pending = []
    if pending:
        estimates |= _block(pending, codes, len(labels), resamples, seed, confidence)
    return CorrelationMatrix(scores.shape[1], estimates)


def _reason(x: FloatArray, y: FloatArray) -> str:
    if len(x) < 3:
        return f"only {len(x)} outputs have both scores"
    return "one of the two gives the same score to all" if is_constant(x) or is_constant(y) else "undefined"


def _moments(x: FloatArray, y: FloatArray, rows: BoolArray, coefficient: MatrixCoefficient) -> FloatArray:
    """(n, 6): 1, x, y, xx, yy, xy of the standardised pair, 0 in rows without both."""
    if coefficient == "spearman":
        x, y = midranks(x), midranks(y)
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    found = np.zeros((len(rows), 6))
    found[rows] = np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1)
    return found


def _block(
    pending: list[tuple[tuple[int, int], FloatArray]],
    cluster: IntArray,
    n_clusters: int,
    resamples: int,
    seed: int,
    confidence: float,
) -> dict[tuple[int, int], Estimate]:
    columns = np.concatenate([moments for _, moments in pending], axis=1)
    drawn = resampled_sums(columns, cluster, n_clusters, resamples=resamples, seed=seed) if resamples else None
    found = {}
    for place, (pair, moments) in enumerate(pending):
        whole = moments.sum(axis=0)
        point = Estimate.point(float(_pearson(whole[None, :])[0]), int(whole[0]))
        replicates = np.empty(0) if drawn is None else _pearson(drawn[:, 6 * place : 6 * place + 6])
        found[pair] = with_interval(point, replicates, clusters={"items": n_clusters}, confidence=confidence)
    return found


def _pearson(sums: FloatArray) -> FloatArray:
    """Of rows of sums n, x, y, xx, yy, xy; nan without spread."""
    n, x, y, xx, yy, xy = sums.T
    n = np.where(n > 0, n, np.nan)
    spread = (xx / n - (x / n) ** 2) * (yy / n - (y / n) ** 2)
    r = (xy / n - x * y / n**2) / np.sqrt(np.where(spread > 1e-20, spread, np.nan))
    return np.asarray(np.clip(r, -1.0, 1.0))
