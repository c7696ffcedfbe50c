"""Pearson, Spearman, Kendall tau-b and tau-c of vectors whose rows have multiplicities, for many sets of multiplicities
at once.

A bootstrap resample is such a set: the number of times each row was drawn.

Notation: n rows, b resamples, W (n, b) the multiplicities, N = sum of a column of W. A row drawn twice counts as two
tied rows. All counts are integers held in float64 and therefore exact below 2**53."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray

_KENDALLS = {"kendall", "kendall-c"}

# Variance below this share of the second moment is rounding error.
_VARIANCE_FLOOR = 1e-12
# Cells of comparison masks built at once, and cached if they cover all rows (float64: 16 MB).
_MASK_CELLS = 1 << 21


def dense_ranks(values: FloatArray) -> tuple[IntArray, int]:
    """Return ranks 0..k-1 of the k distinct values, and k."""
    levels, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.int64, copy=False).reshape(-1), len(levels)


def kendall_inversions(permutation: IntArray) -> int:
    """Return the number of pairs i < j with permutation[i] > permutation[j], in O(n log n).

    Bits are processed from the highest down. Values that agree in all higher bits form a run in their original
    order; within a run every (one before zero) is an inversion that no other bit counts."""
    n = len(permutation)
    values = permutation.astype(np.int64, copy=True)
    total = 0
    for bit in range(max(n - 1, 0).bit_length() - 1, -1, -1):
        ones = (values >> bit) & 1
        before = np.cumsum(ones) - ones
        run_start = (values >> (bit + 1)) << (bit + 1)
        ones_in_run = before - before[run_start]
        total += int(ones_in_run[ones == 0].sum())
        place = np.where(ones == 1, run_start + (1 << bit) + ones_in_run, np.arange(n) - ones_in_run)
        moved = np.empty_like(values)
        moved[place] = values
        values = moved
    return total


@dataclass(frozen=True, slots=True)
class _Side:
    """One vector as ranks, with the matrix that sums rows into its levels."""

    ranks: IntArray
    n_levels: int
    sum_levels: csr_array

    @classmethod
    def of(cls, values: FloatArray) -> _Side:
        ranks, n_levels = dense_ranks(values)
        return cls(ranks, n_levels, summing_matrix(ranks, n_levels))


def summing_matrix(codes: IntArray, n_codes: int) -> csr_array:
    """Return the sparse (n_codes, n) matrix of ones: `matrix @ W` sums the rows of W that share a code."""
    n = len(codes)
    order = np.argsort(codes, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=n_codes))])
    return csr_array((np.ones(n), order, ends), shape=(n_codes, n))


class WeightedCoefficients:
    """The four coefficients of a pair of vectors under any multiplicities.

    Preparing costs O(n log n); each resample then costs O(n) for Pearson and Spearman and O(n sqrt(n)) multiply-adds in
    dense matrix products for Kendall (O(levels^2) where both vectors have few distinct values).

    - Pearson: from the weighted moments of the standardised vectors.
    - Spearman: with A_i = sum_j w_j sign(m_i - m_j) = 2 midrank_i - N - 1 and B_i likewise for the other vector,
      rho = sum w A B / sqrt(sum w A^2 sum w B^2).
    - Kendall: tau_b = 2 (C - D) / sqrt((N^2 - sum t_m^2)(N^2 - sum t_h^2)), t = sizes of the groups of ties;
      D = weighted inversions (`_Inversions`), C + D = (N^2 - sum t_m^2 - sum t_h^2 + sum t_mh^2) / 2;
      tau_c = 2 (C - D) m / (N^2 (m - 1)), m = the smaller number of distinct values drawn.
    """

    def __init__(self, metric: FloatArray, human: FloatArray, coefficients: Sequence[str]) -> None:
        self._wanted = tuple(coefficients)
        if "pearson" in self._wanted:
            first, second = standardise(metric), standardise(human)
            moments = [np.ones_like(first), first, second, first * first, second * second, first * second]
            # Stored sparse although full: its product stays in this thread, while a dense one would wake all BLAS
            # threads.
            self._moments = csr_array(np.stack(moments))
        if set(self._wanted) & {"spearman", *_KENDALLS}:
            self._metric, self._human = _Side.of(metric), _Side.of(human)
        if set(self._wanted) & _KENDALLS:
            self._inversions = _Inversions(self._metric, self._human)

    def __call__(self, weights: FloatArray) -> dict[str, FloatArray]:
        """Return coefficients (b,) for multiplicities (n, b); nan where a vector is constant in the resample."""
        result: dict[str, FloatArray] = {}
        if "pearson" in self._wanted:
            result["pearson"] = pearson_from_moments(np.asarray(self._moments @ weights))
        if set(self._wanted) & {"spearman", *_KENDALLS}:
            total = weights.sum(axis=0)
            ties_m = np.asarray(self._metric.sum_levels @ weights)
            ties_h = np.asarray(self._human.sum_levels @ weights)
            if "spearman" in self._wanted:
                result["spearman"] = self._spearman(weights, total, ties_m, ties_h)
            if set(self._wanted) & _KENDALLS:
                result |= self._kendall(weights, total, ties_m, ties_h)
        return {name: result[name] for name in self._wanted}

    def _spearman(self, weights: FloatArray, total: FloatArray, ties_m: FloatArray, ties_h: FloatArray) -> FloatArray:
        balance_m = 2.0 * np.cumsum(ties_m, axis=0) - ties_m - total
        balance_h = 2.0 * np.cumsum(ties_h, axis=0) - ties_h - total
        product = np.take(balance_m, self._metric.ranks, axis=0)
        product *= weights
        joint = np.einsum("ij,ij->j", product, np.take(balance_h, self._human.ranks, axis=0))
        spread_m = np.einsum("ij,ij,ij->j", ties_m, balance_m, balance_m)
        spread_h = np.einsum("ij,ij,ij->j", ties_h, balance_h, balance_h)
        return ratio(joint, np.sqrt(spread_m) * np.sqrt(spread_h))

    def _kendall(
        self, weights: FloatArray, total: FloatArray, ties_m: FloatArray, ties_h: FloatArray
    ) -> dict[str, FloatArray]:
        square_m = np.einsum("ij,ij->j", ties_m, ties_m)
        square_h = np.einsum("ij,ij->j", ties_h, ties_h)
        square_mh = self._inversions.joint_ties(weights)
        everything = total * total
        concordant_and_discordant = (everything - square_m - square_h + square_mh) / 2.0
        surplus = concordant_and_discordant - 2.0 * self._inversions(weights)
        levels = np.minimum(np.count_nonzero(ties_m, axis=0), np.count_nonzero(ties_h, axis=0))
        return {
            "kendall": ratio(2.0 * surplus, np.sqrt(everything - square_m) * np.sqrt(everything - square_h)),
            "kendall-c": ratio(2.0 * surplus * levels, everything * (levels - 1)),
        }


class _Inversions:
    """Weighted discordant pairs D = sum w_i w_j over m_i < m_j, h_i > h_j.

    Rows are divided into about sqrt(n) blocks along the metric and sqrt(n) bins along the human order. A discordant
    pair lies either in one block, or in one bin but two blocks (both by dense comparison masks), or in two blocks
    and two bins (by cumulative sums over the table blocks x bins). A vector of few distinct values is divided at its
    values, and then needs no mask."""

    def __init__(self, metric: _Side, human: _Side) -> None:
        n = len(metric.ranks)
        self._width = max(math.isqrt(n), 1)
        by_metric = np.lexsort((human.ranks, metric.ranks))
        position = np.empty(n, dtype=np.int64)
        position[by_metric] = np.arange(n)
        by_human = np.lexsort((position, human.ranks))
        human_place = np.empty(n, dtype=np.int64)
        human_place[by_human] = np.arange(n)
        few = 2 * self._width
        self._block = metric.ranks if metric.n_levels <= few else position // self._width
        self._bin = human.ranks if human.n_levels <= few else human_place // self._width
        self._n_blocks = int(self._block.max()) + 1
        self._n_bins = int(self._bin.max()) + 1
        cells = self._n_blocks * self._n_bins
        self._sum_cells = summing_matrix(self._block * self._n_bins + self._bin, cells)
        inside: list[_Stretches] = []
        if metric.n_levels > few:
            inside.append(_Stretches(by_metric, human_place[by_metric], self._width))
        if human.n_levels > few:
            inside.append(_Stretches(by_human, self._block[by_human], self._width))
        self._inside = inside
        joint, _ = dense_ranks((metric.ranks * human.n_levels + human.ranks).astype(np.float64))
        n_joint = int(joint.max()) + 1
        self._sum_joint = None if n_joint == n else summing_matrix(joint, n_joint)

    def joint_ties(self, weights: FloatArray) -> FloatArray:
        """Return the sum of squared sizes of the groups tied in both vectors, (b,)."""
        ties = weights if self._sum_joint is None else np.asarray(self._sum_joint @ weights)
        return np.asarray(np.einsum("ij,ij->j", ties, ties))

    def __call__(self, weights: FloatArray) -> FloatArray:
        result = self._across(weights)
        for stretches in self._inside:
            result += stretches(weights)
        return result

    def _across(self, weights: FloatArray) -> FloatArray:
        table = np.asarray(self._sum_cells @ weights).reshape(self._n_blocks, self._n_bins, -1)
        result = np.zeros(weights.shape[1])
        higher_before = np.zeros(table.shape[1:])
        for block in table:
            result += np.einsum("rb,rb->b", block, higher_before)
            higher_before[:-1] += np.cumsum(block[:0:-1], axis=0)[::-1]
        return result


class _Stretches:
    """Weighted inversions within consecutive stretches of `width` rows: i before j in `order`, key[i] > key[j]."""

    def __init__(self, order: IntArray, key: IntArray, width: int) -> None:
        n = len(order)
        self._n_stretches = -(-n // width)
        self._order = order
        self._key = np.zeros((self._n_stretches, width), dtype=np.int64)
        self._key.reshape(-1)[:n] = key
        self._earlier = np.tri(width, k=-1, dtype=bool)
        self._step = max(_MASK_CELLS // (width * width), 1)
        self._kept = self._mask(0) if self._step >= self._n_stretches else None

    def __call__(self, weights: FloatArray) -> FloatArray:
        n, b = weights.shape
        padded = np.zeros((*self._key.shape, b))
        np.take(weights, self._order, axis=0, out=padded.reshape(-1, b)[:n], mode="clip")
        result = np.zeros(b)
        for start in range(0, self._n_stretches, self._step):
            mask = self._mask(start) if self._kept is None else self._kept
            chosen = padded[start : start + self._step]
            result += np.einsum("gib,gib->b", chosen, np.matmul(mask, chosen))
        return result

    def _mask(self, start: int) -> FloatArray:
        part = self._key[start : start + self._step]
        return ((part[:, None, :] > part[:, :, None]) & self._earlier).astype(np.float64)


def pearson_from_moments(moments: FloatArray) -> FloatArray:
    """Return Pearson's r from the rows (N, sum x, sum y, sum x^2, sum y^2, sum xy) of `moments` (6, ...)."""
    total, x, y, xx, yy, xy = moments
    with np.errstate(divide="ignore", invalid="ignore"):
        spread_x = xx - x * x / total
        spread_y = yy - y * y / total
        flat = (spread_x <= _VARIANCE_FLOOR * xx) | (spread_y <= _VARIANCE_FLOOR * yy)
        spread = np.sqrt(np.where(flat, np.nan, spread_x)) * np.sqrt(np.where(flat, np.nan, spread_y))
        return np.asarray(np.clip((xy - x * y / total) / spread, -1.0, 1.0))


def group_coefficients(
    metric: FloatArray, human: FloatArray, weights: FloatArray, coefficients: Sequence[str]
) -> dict[str, FloatArray]:
    """Return coefficients (g, b) of g small groups in parallel: metric, human (g, k), multiplicities (g, k, b).

    Padding rows carry weight 0 and any finite value. Spearman and Kendall come from the k x k sign matrices of each
    group (formulas as in `WeightedCoefficients`), so k should stay small."""
    result: dict[str, FloatArray] = {}
    if "pearson" in coefficients:
        first, second = _standardise_rows(metric), _standardise_rows(human)
        stack = [np.ones_like(first), first, second, first * first, second * second, first * second]
        moments = np.stack([np.einsum("gk,gkb->gb", part, weights) for part in stack])
        result["pearson"] = pearson_from_moments(moments)
    if set(coefficients) & {"spearman", *_KENDALLS}:
        sign_m = np.sign(metric[:, :, None] - metric[:, None, :])
        sign_h = np.sign(human[:, :, None] - human[:, None, :])
        if "spearman" in coefficients:
            balance_m, balance_h = np.matmul(sign_m, weights), np.matmul(sign_h, weights)
            joint = np.einsum("gkb,gkb,gkb->gb", weights, balance_m, balance_h)
            spread_m = np.einsum("gkb,gkb,gkb->gb", weights, balance_m, balance_m)
            spread_h = np.einsum("gkb,gkb,gkb->gb", weights, balance_h, balance_h)
            result["spearman"] = ratio(joint, np.sqrt(spread_m) * np.sqrt(spread_h))
        if set(coefficients) & _KENDALLS:
            joint = _quadratic(sign_m * sign_h, weights)
        if "kendall" in coefficients:
            untied_m = _quadratic(np.abs(sign_m), weights)
            untied_h = _quadratic(np.abs(sign_h), weights)
            result["kendall"] = ratio(joint, np.sqrt(untied_m) * np.sqrt(untied_h))
        if "kendall-c" in coefficients:
            total = weights.sum(axis=1)
            levels = np.minimum(_levels(sign_m, weights), _levels(sign_h, weights))
            result["kendall-c"] = ratio(joint * levels, total * total * (levels - 1))
    return {name: result[name] for name in coefficients}


def standardise(values: FloatArray) -> FloatArray:
    """Return (x - mean) / sd of the vector; only centred if the sd is 0."""
    centred = values - values.mean()
    spread = float(np.sqrt(np.mean(centred * centred)))
    return centred / spread if spread > 0 else centred


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return the elementwise quotient truncated to [-1, 1], nan where the denominator is not positive."""
    positive: BoolArray = denominator > 0
    quotient = np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=positive)
    return np.asarray(np.clip(quotient, -1.0, 1.0))


def _standardise_rows(values: FloatArray) -> FloatArray:
    centred = values - values.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.mean(centred * centred, axis=1, keepdims=True))
    return np.asarray(centred / np.where(spread > 0, spread, 1.0))


def _quadratic(form: FloatArray, weights: FloatArray) -> FloatArray:
    """Return w' F w of every group and resample, (g, b)."""
    return np.asarray(np.einsum("gkb,gkb->gb", weights, np.matmul(form, weights)))


def _levels(sign: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the number of distinct values among the drawn rows, (g, b): each row counts one over the drawn rows
    equal to it."""
    drawn = (weights > 0).astype(np.float64)
    equal = np.matmul((sign == 0).astype(np.float64), drawn)
    return np.asarray(np.rint((drawn / np.maximum(equal, 1.0)).sum(axis=1)))
