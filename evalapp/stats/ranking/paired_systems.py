"""Systems compared on the same segments: intervals, paired tests of all pairs and letters, for every metric whose
system score is a function of sums over segments, such as a mean, corpus BLEU or chrF.

Explained in docs/explanation/statistics/significance.md#paired-tests-of-systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray, encode
from evalapp.stats.core.estimate import Estimate
from evalapp.stats.core.multiple_tests import compact_letters, holm, needed_draws
from evalapp.stats.resampling.bootstrap import (
    DEFAULT_CONFIDENCE,
    MIN_CLUSTERS,
    ClusterDraws,
    Draws,
    chunk_sizes,
    too_few_note,
    with_interval,
)
from evalapp.stats.resampling.exchanges import SwapDraws

SystemTest: TypeAlias = Literal["bootstrap", "permutation"]
#: Values (...) of systems from their sums (..., k).
FromSums: TypeAlias = Callable[[FloatArray], FloatArray]
# Differences below this are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class SystemTests:
    """How systems are tested on the same segments.

    test: `bootstrap` resamples segments or groups (Koehn 2004), `permutation` exchanges the outputs of two
        systems on a segment or group with probability 1/2 (approximate randomization, Riezler and Maxwell 2005); None
        gives intervals only.
    k: number of resamples or exchanges; 0 takes as many as Holm's adjustment needs, at least 1,000.
    seed: seed of the draws, which all systems share. alpha: level of the tests."""

    test: SystemTest | None = None
    k: int = 0
    seed: int = 13
    alpha: float = 0.05

    def count_draws(self, n_systems: int) -> int:
        """Return the number of draws for tests between `n_systems` systems."""
        return self.k or needed_draws(n_systems, self.alpha)


@dataclass(frozen=True, slots=True)
class SystemComparison:
    """Systems in the order given. `p` (m, m) is two-sided, `p_holm` adjusted by Holm over all pairs, both symmetric;
    nan = not tested, for the reason in `note`. Systems that share a letter are not significantly different."""

    estimates: tuple[Estimate, ...]
    p: FloatArray
    p_holm: FloatArray
    letters: tuple[str, ...]
    k: int
    note: str = ""


def compare_systems(
    statistics: Sequence[FloatArray],
    from_sums: FromSums,
    *,
    groups: ArrayLike | None = None,
    tests: SystemTests = SystemTests(),
) -> SystemComparison:
    """Return the systems' values with bootstrap intervals, and the tests of all pairs.

    `statistics`: of each system (n, k) rows of the same n segments, whose sums give its value by `from_sums`; a higher
    value is better. `groups`: (n,) the document of each segment; documents are resampled and exchanged whole; None
    takes segments as independent. `tests`: test, draws, seed and level.

    Bootstrap: a pair's one-sided p is the share of resamples in which the better system is not better; permutation: the
    share of exchanges with a difference at least as large as the observed one; both (x + 1) / (k + 1), doubled for the
    two-sided p. Below `MIN_CLUSTERS` segments or groups there is no interval and no bootstrap test.

    >>> good, bad = np.ones((8, 1)), np.zeros((8, 1))
    >>> compare_systems([good, bad], lambda sums: sums[..., 0] / 8, tests=SystemTests("permutation", k=99)).letters
    ('a', 'b')
    """
    n_segments, unit = len(statistics[0]), "segments"
    if groups is not None:
        # Sums per group are all that resampling and exchanging groups needs.
        code, labels = encode(groups, "groups", n_segments)
        statistics, unit = [_sum_groups(rows, code, len(labels)) for rows in statistics], "groups"
    m, n = len(statistics), len(statistics[0])
    k = tests.count_draws(m)
    values = np.array([float(from_sums(rows.sum(axis=0))) for rows in statistics])
    drawn = _draw_sums(statistics, ClusterDraws(n, tests.seed), k)
    replicates = np.stack([from_sums(sums) for sums in drawn])
    estimates = tuple(
        with_interval(_make_point(value, n_segments), column, clusters={unit: n}, confidence=DEFAULT_CONFIDENCE)
        for value, column in zip(values, replicates, strict=True)
    )
    p = np.full((m, m), np.nan)
    note = ""
    if tests.test == "bootstrap":
        if n < MIN_CLUSTERS:
            note = too_few_note({unit: n}).replace("no interval", "not tested")
        else:
            p = _test_by_resamples(values, replicates)
    elif tests.test == "permutation":
        p = _test_by_exchanges(statistics, values, from_sums, k=k, seed=tests.seed)
    adjusted = _adjust(p)
    return SystemComparison(estimates, p, adjusted, _assign_letters(values, adjusted, tests.alpha), k, note)


def _make_point(value: float, n: int) -> Estimate:
    return (
        Estimate.undefined("the metric has no value for this system", n)
        if np.isnan(value)
        else Estimate.point(value, n)
    )


def _sum_groups(rows: FloatArray, code: IntArray, n_groups: int) -> FloatArray:
    return np.stack([np.bincount(code, weights=column, minlength=n_groups) for column in rows.T], axis=1)


def _draw_sums(statistics: Sequence[FloatArray], draws: Draws, k: int) -> FloatArray:
    """Return sums (m, k, columns) of the statistics, weighted by `k` draws that all systems share."""
    stacked = np.concatenate(statistics, axis=1)
    sums = np.concatenate([draws.take(size).T @ stacked for size in chunk_sizes(k, len(stacked))])
    return np.asarray(np.moveaxis(sums.reshape(k, len(statistics), -1), 1, 0))


def _test_by_resamples(values: FloatArray, replicates: FloatArray) -> FloatArray:
    p = np.full((len(values), len(values)), np.nan)
    for better, worse in _list_pairs(values):
        difference = replicates[better] - replicates[worse]
        p[better, worse] = p[worse, better] = _two_sided(difference <= _ROUNDING, difference)
    return p


def _test_by_exchanges(
    statistics: Sequence[FloatArray], values: FloatArray, from_sums: FromSums, *, k: int, seed: int
) -> FloatArray:
    n = len(statistics[0])
    moved = _draw_sums(statistics, _Exchanges(n, seed), k)
    whole = [rows.sum(axis=0) for rows in statistics]
    p = np.full((len(values), len(values)), np.nan)
    for better, worse in _list_pairs(values):
        swapped = moved[worse] - moved[better]
        difference = from_sums(whole[better] + swapped) - from_sums(whole[worse] - swapped)
        observed = values[better] - values[worse]
        p[better, worse] = p[worse, better] = _two_sided(difference >= observed - _ROUNDING, difference)
    # Drawn exchanges of few segments or groups may by chance give a smaller p than all 2^n exchanges.
    return np.asarray(np.maximum(p, 2.0 * 2.0**-n))


class _Exchanges:
    """The draws of `SwapDraws` as weights: 1 for an exchanged segment or group."""

    def __init__(self, n: int, seed: int) -> None:
        self._draws = SwapDraws(n, seed)

    def take(self, size: int) -> FloatArray:
        return self._draws.take(size).astype(np.float64)


def _two_sided(extreme: BoolArray, difference: FloatArray) -> float:
    defined = int((~np.isnan(difference)).sum())
    return min(1.0, 2.0 * (int(extreme.sum()) + 1) / (defined + 1)) if defined else float("nan")


def _list_pairs(values: FloatArray) -> list[tuple[int, int]]:
    """Return all pairs of systems with a value, the better one first."""
    order = _order(values)
    return [(one, two) for place, one in enumerate(order) for two in order[place + 1 :]]


def _order(values: FloatArray) -> list[int]:
    defined = [place for place in range(len(values)) if not np.isnan(values[place])]
    return sorted(defined, key=lambda place: (-values[place], place))


def _adjust(p: FloatArray) -> FloatArray:
    one, two = np.triu_indices(len(p), 1)
    adjusted = np.full(p.shape, np.nan)
    adjusted[one, two] = [np.nan if value is None else value for value in holm(p[one, two].tolist())]
    adjusted[two, one] = adjusted[one, two]
    return adjusted


def _assign_letters(values: FloatArray, adjusted: FloatArray, alpha: float) -> tuple[str, ...]:
    """Return the letters of the systems; "" for systems that were not tested."""
    letters = [""] * len(values)
    if np.isnan(adjusted).all():
        return tuple(letters)
    order = _order(values)
    differs = np.nan_to_num(adjusted[np.ix_(order, order)], nan=1.0) <= alpha
    for place, letter in zip(order, compact_letters(differs), strict=True):
        letters[place] = letter
    return tuple(letters)
