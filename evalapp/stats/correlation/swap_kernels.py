"""Rank coefficients of two metrics with exchanged scores, within one large group of rows or many small ones in
parallel; exact, with ties.

Notation as in `swaps`, which combines groups."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evalapp.stats.core.coding import BoolArray, FloatArray
from evalapp.stats.correlation.coefficients import Coefficient, midranks
from evalapp.stats.correlation.weighted import WeightedCoefficients

Pair: TypeAlias = tuple[int, int]
_Single: TypeAlias = NDArray[np.float32]
_Tables: TypeAlias = tuple[_Single, _Single, _Single]

#: Cells of arrays that should fit the cache; the second for many small groups.
_CACHED = 1 << 18
_BLOCKS = 1 << 20
# Up to this number of rows sums of signs stay within 2^24 and are exact in single precision.
_DENSE = 4096


class Kernel(Protocol):
    """Coefficients (b,) of A* and of B* for a pair of metrics; call `prepare` with the same exchanges first."""

    def prepare(self, swapped: BoolArray) -> None: ...

    def __call__(self, swapped: BoolArray, pair: Pair) -> tuple[FloatArray, FloatArray]: ...


def large_kernel(name: Coefficient, scores: FloatArray, human: FloatArray) -> Kernel:
    """Return the fastest exact kernel for this number of rows."""
    if name == "spearman":
        return _Spearman(scores, human)
    return _DenseKendall(name, scores, human) if len(human) <= _DENSE else _Doubled(name, scores, human)


class _Union:
    """The 2n scores of two metrics in ascending order, as levels, with the number of A* and B* on each level by
    exchange."""

    def __init__(self, one: FloatArray, two: FloatArray) -> None:
        n = len(one)
        both = np.concatenate([one, two])
        order = np.argsort(both, kind="stable")
        rising = both[order]
        new = np.append(True, rising[1:] != rising[:-1])
        self.n = n
        self.starts = np.flatnonzero(new)
        self.sizes = np.diff(np.append(self.starts, 2 * n)).astype(np.float64)[:, None]
        self.has_ties = len(self.starts) < 2 * n
        self.row = order % n
        self._from_two = (order >= n)[:, None]

    def chosen(self, swapped: BoolArray) -> FloatArray:
        """Return which of the 2n scores, in ascending order, are in A*: (2n, b) of 0 and 1."""
        return (swapped[self.row] == self._from_two).astype(np.float64)

    def on_levels(self, rows: FloatArray) -> FloatArray:
        return np.add.reduceat(rows, self.starts, axis=0) if self.has_ties else rows


class _Spearman:
    """rho = sum of doubled centred midranks 2 r - n - 1 over both sides, from running counts along the union."""

    def __init__(self, scores: FloatArray, human: FloatArray) -> None:
        self._scores = scores
        self._centred = 2.0 * midranks(human) - len(human) - 1.0
        self._spread = float(self._centred @ self._centred)

    def prepare(self, swapped: BoolArray) -> None:
        """Nothing is shared between pairs."""

    def __call__(self, swapped: BoolArray, pair: Pair) -> tuple[FloatArray, FloatArray]:
        union = _Union(self._scores[:, pair[0]], self._scores[:, pair[1]])
        people = self._centred[union.row]
        b = swapped.shape[1]
        values = np.empty((2, b))
        step = max(_CACHED // len(people), 8)
        for start in range(0, b, step):
            part = slice(start, start + step)
            chosen = union.chosen(swapped[:, part])
            values[:, part] = (
                self._tied(union, people, chosen) if union.has_ties else self._untied(union, people, chosen)
            )
        return values[0], values[1]

    def _tied(self, union: _Union, people: FloatArray, chosen: FloatArray) -> FloatArray:
        weighted = people[:, None]
        counts, sums = union.on_levels(chosen), union.on_levels(chosen * weighted)
        totals = union.on_levels(weighted)
        values = np.empty((2, chosen.shape[1]))
        for side in range(2):
            if side == 1:
                counts, sums = union.sizes - counts, totals - sums
            ranks = np.cumsum(counts, axis=0)
            ranks *= 2.0
            ranks -= counts
            ranks -= union.n
            ties = np.einsum("lb,lb,lb->b", counts, counts, counts)
            own = (float(union.n) ** 3 - ties) / 3.0
            values[side] = _quotient(np.einsum("lb,lb->b", sums, ranks), np.sqrt(own * self._spread))
        return values

    def _untied(self, union: _Union, people: FloatArray, chosen: FloatArray) -> FloatArray:
        """With w the 2n choices, c their running count and k = 1 ... 2n, A* has rank c where w is 1 and B* rank k - c
        where it is 0. All sums but that of w h c are linear in w."""
        n = union.n
        places = np.arange(1.0, 2 * n + 1)
        from_here = np.cumsum(people[::-1])[::-1]
        sums, placed, counted = np.stack([people, people * places, from_here]) @ chosen
        running = np.cumsum(chosen, axis=0)
        running *= chosen
        inside = people @ running
        first = 2.0 * inside - (n + 1) * sums
        outside = (people @ places - placed) - (counted - inside)
        second = 2.0 * outside - (n + 1) * (people.sum() - sums)
        return _quotient(np.stack([first, second]), np.sqrt((float(n) ** 3 - n) / 3.0 * self._spread))


class _DenseKendall:
    """tau-b and tau-c from sums of products of signs over all pairs of rows, as matrix products in single precision.

    With Q_xy[i, j] = sign(x_i - y_j) sign(h_i - h_j) and unchanged rows k = 1 - s, C - D of A* is k'Q_aa k / 2 +
    s'Q_bb s / 2 + k'Q_ab s, that of B* exchanges k and s. s'Q_bb s follows from k'Q_bb k and the column sums, and
    s'Q_ab k from k'Q_ab s."""

    def __init__(self, name: Coefficient, scores: FloatArray, human: FloatArray) -> None:
        self._name, self._scores = name, scores
        self._signs = _signs(human, human)
        _, sizes = np.unique(human, return_counts=True)
        n = len(human)
        self._untied = float(n) ** 2 - float((sizes.astype(np.float64) ** 2).sum())
        self._levels = len(sizes)
        self._own: dict[int, tuple[FloatArray, FloatArray]] = {}
        self._kept = np.empty((0, 0), dtype=np.float32)

    def prepare(self, swapped: BoolArray) -> None:
        """Store which rows stay unchanged as numbers; sums of a metric with itself are shared by all its pairs."""
        self._kept = 1 - swapped.astype(np.float32)
        self._own = {}

    def __call__(self, swapped: BoolArray, pair: Pair) -> tuple[FloatArray, FloatArray]:
        one, two = (self._scores[:, metric] for metric in pair)
        cross = _signs(one, two) * self._signs
        product = cross.T @ self._kept
        inner = np.einsum("jb,jb->b", product, self._kept).astype(np.float64)
        across = product.sum(axis=0, dtype=np.float64) - inner
        back = cross.sum(axis=0) @ self._kept - inner
        (kept_one, out_one), (kept_two, out_two) = (self._alone(metric) for metric in pair)
        surplus = ((kept_one + out_two) / 2.0 + across, (out_one + kept_two) / 2.0 + back)
        union = _Union(one, two)
        tied = self._ties(union, swapped)
        first, second = (self._coefficient(s, *t) for s, t in zip(surplus, tied, strict=True))
        return first, second

    def _alone(self, metric: int) -> tuple[FloatArray, FloatArray]:
        """Return k'Q k and s'Q s for a metric."""
        if metric not in self._own:
            own = self._scores[:, metric]
            signs = _signs(own, own) * self._signs
            inside = np.einsum("jb,jb->b", signs @ self._kept, self._kept).astype(np.float64)
            columns = signs.sum(axis=0)
            outside = float(columns.sum(dtype=np.float64)) - 2.0 * (columns @ self._kept).astype(np.float64) + inside
            self._own[metric] = inside, outside
        return self._own[metric]

    def _ties(self, union: _Union, swapped: BoolArray) -> list[tuple[FloatArray, FloatArray]]:
        """Return sums of squared level sizes and numbers of levels of A* and of B*."""
        b = swapped.shape[1]
        if not union.has_ties:
            whole = np.full(b, float(union.n))
            return [(whole, whole), (whole, whole)]
        values = np.empty((4, b))
        step = max(_CACHED // len(union.row), 8)
        for start in range(0, b, step):
            part = slice(start, start + step)
            counts = union.on_levels(union.chosen(swapped[:, part]))
            for side in range(2):
                if side == 1:
                    counts = union.sizes - counts
                values[2 * side, part] = np.einsum("lb,lb->b", counts, counts)
                values[2 * side + 1, part] = np.count_nonzero(counts, axis=0)
        return [(values[0], values[1]), (values[2], values[3])]

    def _coefficient(self, surplus: FloatArray, tied: FloatArray, levels: FloatArray) -> FloatArray:
        n = float(len(self._scores))
        if self._name == "kendall":
            return _quotient(2.0 * surplus, np.sqrt(n * n - tied) * np.sqrt(self._untied))
        least = np.minimum(levels, self._levels)
        return _quotient(2.0 * surplus * least, n * n * (least - 1.0))


class _Doubled:
    """Any coefficient: each row twice, once with either metric's score, and one of the two chosen."""

    def __init__(self, name: Coefficient, scores: FloatArray, human: FloatArray) -> None:
        self._name, self._scores, self._human = name, scores, human

    def prepare(self, swapped: BoolArray) -> None:
        """Nothing is shared between pairs."""

    def __call__(self, swapped: BoolArray, pair: Pair) -> tuple[FloatArray, FloatArray]:
        twice = np.concatenate([self._human, self._human])
        kernel = WeightedCoefficients(self._scores[:, pair].T.ravel(), twice, (self._name,))
        b = swapped.shape[1]
        values = np.empty((2, b))
        step = max(_CACHED // len(twice), 8)
        for start in range(0, b, step):
            part = swapped[:, start : start + step].astype(np.float64)
            for side, (first, second) in enumerate(((1.0 - part, part), (part, 1.0 - part))):
                values[side, start : start + step] = kernel(np.concatenate([first, second]))[self._name]
        return values[0], values[1]


class GroupRanks:
    """Many groups of w <= 64 rows, from tables of signs and ties (g, w, w) times the unchanged and exchanged rows (g,
    w, b). Sums stay far below 2^24, so single precision is exact.

    Spearman: the doubled centred midrank of i is the sum of signs of its differences to all others in A*. Kendall as
    in `_DenseKendall`. Ties: with t_i the number of scores in A* equal to that of i (including i), sum t_i is the
    sum of squared level sizes and sum 1 / t_i the number of levels."""

    def __init__(self, name: Coefficient, scores: FloatArray, human: FloatArray) -> None:
        self._name, self._scores = name, scores
        self._people = _sign_tables(human, human)
        self._ranks = self._people.sum(axis=2)[:, :, None]
        equal = (self._people == 0).sum(axis=2)
        self._w = human.shape[1]
        self._untied = (self._w**2 - equal.sum(axis=1)).astype(np.float64)[:, None]
        self._levels = np.rint((1.0 / equal).sum(axis=1))[:, None]

    def __call__(self, swapped: BoolArray, pair: Pair) -> tuple[FloatArray, FloatArray]:
        """Return coefficients (g, b) of A* and of B* for exchanges (g, w, b)."""
        g, w, b = swapped.shape
        one, two = (self._scores[:, :, metric] for metric in pair)
        tables = _sign_tables(one, one), _sign_tables(one, two), _sign_tables(two, two)
        tied = any((table == 0).sum() > least for table, least in zip(tables, (g * w, 0, g * w), strict=True))
        values = np.empty((2, g, b))
        step = max(_BLOCKS // (g * w), 8)
        for start in range(0, b, step):
            out = swapped[:, :, start : start + step].astype(np.float32)
            kept = 1 - out
            for side, (own, other) in enumerate(((kept, out), (out, kept))):
                values[side, :, start : start + step] = self._coefficients(tables, own, other, tied)
        return values[0], values[1]

    def _coefficients(self, tables: _Tables, kept: _Single, out: _Single, tied: bool) -> FloatArray:
        """Return coefficients of the vector with the first metric's score where `kept` and the second's where `out`."""
        if self._name == "spearman":
            first, cross, second = tables
            ranks = (first @ kept + cross @ out) * kept + (second @ out - cross.transpose(0, 2, 1) @ kept) * out
            own = np.einsum("gwb,gwb->gb", ranks, ranks).astype(np.float64)
            people = np.einsum("gwb,gwb->gb", self._ranks, self._ranks).astype(np.float64)
            return _quotient((ranks * self._ranks).sum(axis=1, dtype=np.float64), np.sqrt(own * people))
        first, cross, second = (table * self._people for table in tables)
        doubled = ((first @ kept + 2 * (cross @ out)) * kept + (second @ out) * out).sum(axis=1, dtype=np.float64)
        squares: FloatArray | float = float(self._w)
        levels: FloatArray | float = float(self._w)
        if tied:
            first, cross, second = ((table == 0).astype(np.float32) for table in tables)
            equal = (first @ kept + cross @ out) * kept + (second @ out + cross.transpose(0, 2, 1) @ kept) * out
            squares = equal.sum(axis=1, dtype=np.float64)
            levels = np.rint((1.0 / equal).sum(axis=1, dtype=np.float64))
        if self._name == "kendall":
            return _quotient(doubled, np.sqrt((self._w**2 - squares) * self._untied))
        least = np.minimum(levels, self._levels)
        return _quotient(doubled * least, self._w**2 * (least - 1.0) + np.zeros_like(doubled))


def _sign_tables(one: FloatArray, two: FloatArray) -> _Single:
    """Return sign(one_i - two_j) of every group, (g, w, w)."""
    return np.sign(one[:, :, None] - two[:, None, :]).astype(np.float32)


def _signs(one: FloatArray, two: FloatArray) -> NDArray[np.float32]:
    """Return sign(one_i - two_j), (n, n)."""
    higher = (one[:, None] > two[None, :]).astype(np.float32)
    higher -= one[:, None] < two[None, :]
    return higher


def _quotient(above: FloatArray, below: FloatArray | float) -> FloatArray:
    under = np.broadcast_to(np.asarray(below, dtype=np.float64), above.shape)
    quotient = np.divide(above, under, out=np.full(above.shape, np.nan), where=under > 0)
    return np.asarray(np.clip(quotient, -1.0, 1.0))
