"""PERM-SYSTEMS (Deutsch, Dror and Roth 2021): permutation test of system-level correlations by exchanging the scores of
whole systems, exhaustively for few systems. Exchanges of items and outputs are in `swaps`.

Explained in docs/explanation/statistics/significance.md#perm-systems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from evalapp.stats.core.coding import BoolArray, FloatArray, IntArray
from evalapp.stats.correlation.coefficients import Coefficient
from evalapp.stats.correlation.swaps import PearsonSwaps, RankSwaps
from evalapp.stats.correlation.weighted import standardise
from evalapp.stats.resampling.exchanges import SwapDraws

#: With fewer systems there is no test at the system level.
MIN_SYSTEMS = 6
#: Up to this number of systems all 2^14 exchanges are made; with more systems at least that many are drawn.
MOST_EXACT = 14
EXACT = 1 << MOST_EXACT

# Correlations are truncated here, because Fisher's z of 1 is infinite.
_HIGHEST = 1 - 1e-9
# Differences below this are rounding.
_ROUNDING = 1e-9
# One-sided p above which more draws cannot change the result.
_OPEN = 0.2


def few_systems(n: int) -> str:
    """Return why there are no letters.

    `n`: number of systems."""
    return f"{n} systems rank nothing, at least {MIN_SYSTEMS} are needed"


def is_exact(n_systems: int) -> bool:
    """Return whether all exchanges are made."""
    return n_systems <= MOST_EXACT


def exchange_systems(
    scores: FloatArray, human: FloatArray, coefficient: Coefficient, *, k: int, seed: int, block: int = 0
) -> tuple[FloatArray, IntArray]:
    """Return the one-sided p (m, m) that the row's metric correlates better than the column's, from scores (n, m) and
    human values (n,) of n systems; and the number of exchanges (m, m).

    Every metric is standardised over the systems; then the two scores of each system are exchanged or not. The
    statistic is the difference of Fisher's z of both correlations: with plain differences the test is slightly
    liberal (.08 instead of .05 with 8 systems; docs/results/intervals.md). p is the share of all 2^n exchanges,
    including the observed one, whose difference is at least the observed one; with more than `MOST_EXACT` systems
    `k` exchanges are drawn and p = (x + 1) / (k + 1); with `block` a pair stops after a multiple of that many draws
    once its p is above .2."""
    n, m = scores.shape
    pairs = list(combinations(range(m), 2))
    p, made, exact = np.full((m, m), np.nan), np.zeros((m, m), dtype=np.int64), is_exact(n)
    if not pairs:
        return p, made
    z = np.stack([standardise(column) for column in scores.T], axis=1)
    people = np.asarray(human, dtype=np.float64)
    if coefficient == "pearson":
        engine: PearsonSwaps | RankSwaps = PearsonSwaps(z, people, None, "drop")
    else:
        engine = RankSwaps(z, people, None, "drop", coefficient)
    target = _differences(engine, np.zeros((n, 1), dtype=np.bool_), pairs)
    above, below, defined = (np.zeros(len(pairs), dtype=np.int64) for _ in range(3))
    more = 0 if exact else 1
    open_ = np.arange(len(pairs))
    step = min(engine.chunk, block) if block else engine.chunk
    for swapped in _patterns(n, engine.chunk) if exact else _drawn(n, k, seed, step):
        delta = _differences(engine, swapped, [pairs[place] for place in open_])
        # The complement of an exchange gives the opposite difference, so half of all exchanges suffice.
        for values in (delta, -delta) if exact else (delta,):
            above[open_] += (values >= target[open_] - _ROUNDING).sum(axis=1)
            below[open_] += (values <= target[open_] + _ROUNDING).sum(axis=1)
            defined[open_] += (~np.isnan(values)).sum(axis=1)
        if block and not exact and int(defined.max(initial=0)) >= block:
            nearer = np.minimum(above, below)[open_] + more
            open_ = open_[nearer <= _OPEN * (defined[open_] + more)]
        if len(open_) == 0:
            break
    for place, (one, two) in enumerate(pairs):
        made[one, two] = made[two, one] = defined[place]
        if defined[place] and not np.isnan(target[place, 0]):
            p[one, two], p[two, one] = (np.array([above[place], below[place]]) + more) / (defined[place] + more)
    return p, made


def smallest_p(n_systems: int, k: int) -> float:
    """Return the smallest two-sided p that exchanges of this number of systems can give."""
    return 2.0 / (1 << n_systems) if is_exact(n_systems) else 2.0 / (k + 1)


def _differences(engine: PearsonSwaps | RankSwaps, swapped: BoolArray, pairs: Sequence[tuple[int, int]]) -> FloatArray:
    """Return differences of Fisher's z of both sides, (pairs, b)."""
    z = np.arctanh(np.clip(engine.sides(swapped, pairs), -_HIGHEST, _HIGHEST))
    return np.asarray(z[:, 0] - z[:, 1])


def _patterns(n: int, chunk: int) -> Iterator[BoolArray]:
    """Yield the exchanges of n systems that leave the last one unchanged, (n, b); the others are their complements."""
    for start in range(0, 1 << (n - 1), chunk):
        numbers = np.arange(start, min(start + chunk, 1 << (n - 1)))
        yield ((numbers >> np.arange(n)[:, None]) & 1).astype(np.bool_)


def _drawn(n: int, k: int, seed: int, chunk: int) -> Iterator[BoolArray]:
    draws = SwapDraws(n, seed)
    for start in range(0, k, chunk):
        yield draws.take(min(chunk, k - start))
