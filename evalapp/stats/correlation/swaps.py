"""Coefficients of two metrics whose scores are exchanged at random: many exchanges and all pairs of metrics at once.

The computational core of the permutation tests in `significance`, with the kernels of `swap_kernels`.

Notation: n rows, M metrics, b exchanges, s (n, b) marks exchanged rows. A* has B's score in exchanged rows and A's
in the others, B* the reverse; with e = 1 - 2 s, A* = (A + B) / 2 + e (A - B) / 2. An engine called with s and pairs
of metrics returns coefficient(A*) - coefficient(B*), (pairs, b), nan where one is undefined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from evalapp.stats.core.coding import ROUNDING, BoolArray, FloatArray, IntArray, is_constant, snap
from evalapp.stats.correlation.coefficients import MIN_PAIRS, Coefficient
from evalapp.stats.correlation.meta_evaluation import NanRule
from evalapp.stats.correlation.swap_kernels import GroupRanks, Pair, large_kernel
from evalapp.stats.correlation.weighted import group_coefficients

#: Cells of the arrays of a chunk of exchanges.
_CELLS = 1 << 22
# Up to the first size, groups use all pairwise comparisons; up to the second, every pattern of exchanges is computed
# once.
_SMALL, _PATTERNED = 64, 8
# Variance below this share of the second moment is rounding error.
_FLOOR = 1e-12


class Swaps(Protocol):
    """Protocol of an engine; `chunk` is its preferred number of exchanges per call. `by_unit`: exchanges are given
    by unit, (units, b), not by row."""

    @property
    def chunk(self) -> int: ...

    @property
    def by_unit(self) -> bool: ...

    def __call__(self, swapped: BoolArray, pairs: Sequence[Pair]) -> FloatArray: ...


@dataclass(frozen=True, slots=True)
class _Groups:
    """Rows of groups of equal size: `rows` (g, w). `n_eligible` counts all groups of at least 3 rows."""

    batches: tuple[IntArray, ...]
    n_eligible: int

    @classmethod
    def of(cls, human: FloatArray, group: IntArray | None) -> _Groups:
        """Return the groups with a defined coefficient: at least 3 rows and human scores that vary. None = one group
        of all rows."""
        if group is None:
            rows = np.arange(len(human))[None, :]
            usable = len(human) >= MIN_PAIRS and not is_constant(human)
            return cls((rows,) if usable else (), int(len(human) >= MIN_PAIRS))
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group)
        starts = np.cumsum(sizes) - sizes
        batches = []
        for size in np.unique(sizes[sizes >= MIN_PAIRS]):
            rows = order[starts[np.flatnonzero(sizes == size), None] + np.arange(size)]
            values = human[rows]
            varied = np.ptp(values, axis=1) > ROUNDING * np.abs(values).max(axis=1)
            if varied.any():
                batches.append(rows[varied])
        return cls(tuple(batches), int((sizes >= MIN_PAIRS).sum()))


class _Averages:
    """Averages over groups of both sides' coefficients; an undefined one is left out or counted as 0."""

    def __init__(self, b: int, n_eligible: int, nan_rule: NanRule) -> None:
        self._sums = np.zeros((2, b))
        self._counts = np.full((2, b), float(n_eligible) if nan_rule == "zero" else 0.0)
        self._drop = nan_rule == "drop"

    def add(self, side: int, values: FloatArray) -> None:
        """Add coefficients (g, b) for a side, nan where undefined."""
        defined = ~np.isnan(values)
        self._sums[side] += np.where(defined, values, 0.0).sum(axis=0)
        if self._drop:
            self._counts[side] += defined.sum(axis=0)

    def means(self) -> FloatArray:
        """Return the averages of both sides, (2, b)."""
        counted = self._counts > 0
        return np.divide(self._sums, self._counts, out=np.full(self._sums.shape, np.nan), where=counted)


class _BySides:
    """Base of engines that compute the coefficients of both sides."""

    def sides(self, swapped: BoolArray, pairs: Sequence[Pair]) -> FloatArray:
        """Return coefficients of A* and B*, (pairs, 2, b)."""
        raise NotImplementedError

    def __call__(self, swapped: BoolArray, pairs: Sequence[Pair]) -> FloatArray:
        both = self.sides(swapped, pairs)
        return np.asarray(both[:, 0] - both[:, 1])


class PearsonSwaps(_BySides):
    """Pearson in any grouping. Sums over rows of A*, A*^2 and A* h are linear in e: three matrix products serve all
    pairs of metrics. Rows of the same `unit` are exchanged together, so without groups the products use sums per
    unit."""

    def __init__(
        self,
        scores: FloatArray,
        human: FloatArray,
        group: IntArray | None,
        nan_rule: NanRule,
        unit: IntArray | None = None,
    ) -> None:
        self._groups = _Groups.of(human, group)
        self._rule: NanRule = nan_rule
        self._scores, self._m = scores, scores.shape[1]
        self._human = []
        for rows in self._groups.batches:
            h = human[rows] - human[rows].mean(axis=1, keepdims=True)
            self._human.append(h / np.sqrt((h * h).sum(axis=1, keepdims=True)))
        few = group is None and unit is not None and 2 * (int(unit.max(initial=0)) + 1) <= len(unit)
        self._by_unit = self._summed(unit) if few and unit is not None and self._groups.batches else None
        self.by_unit = self._by_unit is not None
        largest = max((len(rows) * 3 * self._m for rows in self._groups.batches), default=1)
        n = len(scores) if self._by_unit is None else self._by_unit.shape[1]
        self.chunk = max(min(_CELLS // largest, 4 * _CELLS // max(n, 1)), 8)

    def sides(self, swapped: BoolArray, pairs: Sequence[Pair]) -> FloatArray:
        b = swapped.shape[1]
        averages = [_Averages(b, self._groups.n_eligible, self._rule) for _ in pairs]
        for rows, human in zip(self._groups.batches, self._human, strict=True):
            whole, signed = self._sums(rows, human, swapped)
            n, m = rows.shape[1], self._m
            for average, (one, two) in zip(averages, pairs, strict=True):
                moved = [signed[:, k * m + one] - signed[:, k * m + two] for k in range(3)]
                fixed = [whole[:, k * m + one] + whole[:, k * m + two] for k in range(3)]
                for side, sign in enumerate((1.0, -1.0)):
                    x, xx, xh = (base + sign * change for base, change in zip(fixed, moved, strict=True))
                    spread = xx - x * x / n
                    flat = spread <= _FLOOR * xx
                    r = xh / np.sqrt(np.where(flat, np.nan, spread))
                    average.add(side, np.clip(r, -1.0, 1.0))
        return np.stack([average.means() for average in averages])

    def _summed(self, unit: IntArray) -> FloatArray:
        """Return sums of x, x^2 and x h over the rows of each unit, (3 m, units)."""
        human, n = self._human[0][0], int(unit.max()) + 1
        columns = [weights for x in self._scores.T for weights in (x, x * x, x * human)]
        sums = np.stack([np.bincount(unit, weights=weights, minlength=n) for weights in columns])
        return np.concatenate([sums[k::3] for k in range(3)])

    def _sums(self, rows: IntArray, human: FloatArray, swapped: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return half sums over the rows of each group of x, x^2 and x h of all metrics: plain (g, 3 m, 1), and with
        the signs e (g, 3 m, b). Long groups are processed in chunks of rows to limit memory."""
        if self._by_unit is not None:
            return self._by_unit.sum(axis=1)[None, :, None] / 2.0, (self._by_unit @ (0.5 - swapped))[None]
        g, w = rows.shape
        whole = np.zeros((g, 3 * self._m, 1))
        signed = np.zeros((g, 3 * self._m, swapped.shape[1]))
        step = max(_CELLS // (g * max(3 * self._m, swapped.shape[1])), 1)
        for start in range(0, w, step):
            part = rows[:, start : start + step]
            x = self._scores[part]
            h = human[:, start : start + step, None]
            features = np.concatenate([x, x * x, x * h], axis=2).transpose(0, 2, 1)
            whole += features.sum(axis=2)[:, :, None] / 2.0
            signed += np.matmul(features, 0.5 - swapped[part])
        return whole, signed


class RankSwaps(_BySides):
    """Spearman and Kendall in any grouping. In groups of few rows all patterns of exchanges are computed once, then
    looked up; small groups run in parallel, large ones one by one, with the kernels."""

    by_unit = False

    def __init__(
        self, scores: FloatArray, human: FloatArray, group: IntArray | None, nan_rule: NanRule, name: Coefficient
    ) -> None:
        self._scores, self._human, self._name = scores, human, name
        self._groups = _Groups.of(human, group)
        self._rule: NanRule = nan_rule
        small = [rows for rows in self._groups.batches if rows.shape[1] <= _SMALL]
        self._small = [(rows, GroupRanks(name, scores[rows], human[rows])) for rows in small]
        large = [row for rows in self._groups.batches if rows.shape[1] > _SMALL for row in rows]
        self._large = [(row, large_kernel(name, scores[row], human[row])) for row in large]
        self.chunk = max(_CELLS // max(len(scores), 1), 8)

    def sides(self, swapped: BoolArray, pairs: Sequence[Pair]) -> FloatArray:
        b = swapped.shape[1]
        result = np.empty((len(pairs), 2, b))
        parts = [swapped[row] for row, _ in self._large]
        for (_, large), part in zip(self._large, parts, strict=True):
            large.prepare(part)
        for place, pair in enumerate(pairs):
            average = _Averages(b, self._groups.n_eligible, self._rule)
            for rows, kernel in self._small:
                for side, values in enumerate(self._small_groups(rows, kernel, swapped, pair)):
                    average.add(side, values)
            for (_, large), part in zip(self._large, parts, strict=True):
                for side, row in enumerate(large(part, pair)):
                    average.add(side, row[None, :])
            result[place] = average.means()
        return result

    def _small_groups(
        self, rows: IntArray, kernel: GroupRanks, swapped: BoolArray, pair: Pair
    ) -> tuple[FloatArray, FloatArray]:
        g, w = rows.shape
        if w > _PATTERNED:
            return kernel(swapped[rows], pair)
        patterns = ((np.arange(2**w) >> np.arange(w)[:, None]) & 1).astype(np.bool_)
        table, _ = kernel(np.broadcast_to(patterns, (g, w, 2**w)), pair)
        codes = np.zeros((g, swapped.shape[1]), dtype=np.int64)
        for place in range(w):
            codes += swapped[rows[:, place]].astype(np.int64) << place
        return np.take_along_axis(table, codes, axis=1), np.take_along_axis(table, 2**w - 1 - codes, axis=1)


class SystemSwaps:
    """Any coefficient over the systems' means, with outputs exchanged individually before averaging."""

    by_unit = False

    def __init__(self, scores: FloatArray, human: FloatArray, system: IntArray, name: Coefficient) -> None:
        n, m = scores.shape
        sizes = np.bincount(system).astype(np.float64)
        self._n, self._m, self._name = len(sizes), m, name
        self._human = snap(np.bincount(system, weights=human) / sizes)
        weights = scores / sizes[system][:, None] / 2.0
        rows = (system[:, None] * m + np.arange(m)).ravel()
        places = np.repeat(np.arange(n), m)
        self._sums = csr_array((weights.ravel(), (rows, places)), shape=(self._n * m, n))
        self._halves = np.asarray(self._sums.sum(axis=1)).reshape(self._n, m)
        self.chunk = max(_CELLS // max(n, self._n * m, self._n**2), 8)

    def __call__(self, swapped: BoolArray, pairs: Sequence[Pair]) -> FloatArray:
        b = swapped.shape[1]
        signed = np.asarray(self._sums @ (1.0 - 2.0 * swapped)).reshape(self._n, self._m, b)
        people = np.broadcast_to(self._human, (b, self._n))
        ones = np.ones((b, self._n, 1))
        result = np.empty((len(pairs), b))
        for place, (one, two) in enumerate(pairs):
            fixed = (self._halves[:, one] + self._halves[:, two])[:, None]
            moved = signed[:, one] - signed[:, two]
            sides = [
                group_coefficients(snap((fixed + sign * moved).T), people, ones, (self._name,))[self._name][:, 0]
                for sign in (1.0, -1.0)
            ]
            result[place] = sides[0] - sides[1]
        return result


class OutcomeSwaps:
    """Accuracy on pairs: exchanges the correctness of the two metrics on a pair of outputs (1/2 for equal scores).
    `right` (p, m), `weight` (p,)."""

    by_unit = False

    def __init__(self, right: BoolArray | FloatArray, weight: FloatArray) -> None:
        self._right, self._weight = right, weight
        self.chunk = max(4 * _CELLS // max(len(weight), 1), 8)

    def __call__(self, swapped: BoolArray, pairs: Sequence[Pair]) -> FloatArray:
        n, m = self._right.shape
        signed = np.zeros((m, swapped.shape[1]))
        step = max(_CELLS // max(m, swapped.shape[1]), 1)
        for start in range(0, n, step):
            part = slice(start, start + step)
            signed += (self._right[part] * self._weight[part, None]).T @ (1.0 - 2.0 * swapped[part])
        return np.stack([signed[one] - signed[two] for one, two in pairs])
