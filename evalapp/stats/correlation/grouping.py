"""Coefficients within many groups of rows at once (over systems within an item, over items within a system).

Averaging over groups and resampling are in `meta_evaluation`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalapp.stats.core.coding import ROUNDING, BoolArray, FloatArray, IntArray
from evalapp.stats.correlation.coefficients import CONSTANT_HUMAN, CONSTANT_METRIC, MIN_PAIRS, TOO_FEW
from evalapp.stats.correlation.weighted import WeightedCoefficients, group_coefficients

# Groups up to this size are batched with all pairwise comparisons; larger ones are processed one by one.
_SMALL = 64
# Cells of the sign matrices per batch of small groups (float64: 16 MB).
_BATCH_CELLS = 1 << 21


@dataclass(frozen=True, slots=True)
class _Batch:
    """Small groups of similar size, padded: `rows` (g, k) row numbers, `present` (g, k) marks real rows."""

    groups: IntArray
    rows: IntArray
    present: BoolArray


class GroupedCoefficients:
    """Coefficients of every group under any multiplicities of the rows.

    `reasons` (n_groups,) holds 0 for a group with defined coefficients, else 1 + the index into `REASONS`."""

    REASONS = (TOO_FEW, CONSTANT_METRIC, CONSTANT_HUMAN)

    def __init__(
        self,
        metric: FloatArray,
        human: FloatArray,
        group: IntArray,
        n_groups: int,
        coefficients: Sequence[str],
    ) -> None:
        self._metric, self._human = metric, human
        self._wanted = tuple(coefficients)
        self.n_groups = n_groups
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group, minlength=n_groups)
        starts = np.cumsum(sizes) - sizes
        self.reasons = self._find_reasons(order, starts, sizes)
        usable = self.reasons == 0
        self._batches = list(_batches(order, starts, sizes, usable))
        self._large = [
            (int(g), order[starts[g] : starts[g] + sizes[g]]) for g in np.flatnonzero(usable & (sizes > _SMALL))
        ]
        self._kernels = [WeightedCoefficients(metric[rows], human[rows], self._wanted) for _, rows in self._large]

    @property
    def eligible(self) -> BoolArray:
        """Number of groups with at least 3 pairs."""
        return np.asarray(self.reasons != 1)

    def undefined_counts(self) -> dict[str, int]:
        """Number of groups without coefficients, by reason; reasons that do not occur are absent."""
        counts = np.bincount(self.reasons, minlength=len(self.REASONS) + 1)[1:]
        return {reason: int(count) for reason, count in zip(self.REASONS, counts, strict=True) if count}

    def __call__(self, weights: FloatArray) -> dict[str, FloatArray]:
        """Return coefficients (n_groups, b) for multiplicities (n, b), nan where undefined."""
        result = {name: np.full((self.n_groups, weights.shape[1]), np.nan) for name in self._wanted}
        for batch in self._batches:
            padded = weights[batch.rows] * batch.present[:, :, None]
            part = group_coefficients(self._metric[batch.rows], self._human[batch.rows], padded, self._wanted)
            for name, values in part.items():
                result[name][batch.groups] = values
        for (group, rows), kernel in zip(self._large, self._kernels, strict=True):
            for name, row in kernel(weights[rows]).items():
                result[name][group] = row
        return result

    def _find_reasons(self, order: IntArray, starts: IntArray, sizes: IntArray) -> IntArray:
        reasons = np.zeros(self.n_groups, dtype=np.int64)
        filled = np.flatnonzero(sizes)
        for code, values in ((3, self._human), (2, self._metric)):
            flat = _constant_groups(values[order], starts[filled])
            reasons[filled[flat]] = code
        reasons[sizes < MIN_PAIRS] = 1
        return reasons


def _constant_groups(values: FloatArray, starts: IntArray) -> BoolArray:
    if len(starts) == 0:
        return np.zeros(0, dtype=np.bool_)
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    return np.asarray(high - low <= ROUNDING * np.maximum(np.abs(low), np.abs(high)))


def _batches(order: IntArray, starts: IntArray, sizes: IntArray, usable: BoolArray) -> list[_Batch]:
    batches: list[_Batch] = []
    width = 4
    lowest = MIN_PAIRS
    while lowest <= _SMALL:
        chosen = np.flatnonzero(usable & (sizes >= lowest) & (sizes <= width))
        step = max(_BATCH_CELLS // (width * width), 1)
        for begin in range(0, len(chosen), step):
            groups = chosen[begin : begin + step]
            places = np.arange(width)
            present = places < sizes[groups, None]
            # Padding repeats the first row of the group, with weight 0.
            rows = order[starts[groups, None] + np.where(present, places, 0)]
            batches.append(_Batch(groups, rows, present))
        lowest, width = width + 1, width * 2
    return batches
