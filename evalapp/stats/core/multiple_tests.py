"""Multiple testing of all pairs: Holm's adjustment, rank clusters, letters, and the number of resamples they need."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evalapp.stats.core.coding import BoolArray


def needed_draws(n_metrics: int, alpha: float = 0.05) -> int:
    """Return twice the smallest k for which the smallest two-sided p, 2 / (k + 1), survives Holm over all pairs; at
    least 1000.

    `n_metrics`: number of metrics, all of whose pairs are tested at `alpha`."""
    pairs = n_metrics * (n_metrics - 1) // 2
    return max(1000, 2 * math.ceil(2 * pairs / alpha))


def rank_clusters(beats: BoolArray) -> tuple[int, ...]:
    """Return the ranks of metrics given best first: a metric opens a new rank if a metric of the current rank beats
    it."""
    ranks: list[int] = []
    start = 0
    for place in range(len(beats)):
        if beats[start:place, place].any():
            start = place
            ranks.append(ranks[-1] + 1)
        else:
            ranks.append(ranks[-1] if ranks else 1)
    return tuple(ranks)


def compact_letters(differs: BoolArray) -> tuple[str, ...]:
    """Return a compact letter display of rows given best first: two share a letter if and only if they do not differ
    significantly.

    `differs` (m, m) is read symmetrically. Insert and absorb (Piepho 2004): start with one set of all, split it at
    every differing pair, drop subsets of others; named a, b, ... in the order of their best members.

    >>> import numpy as np
    >>> compact_letters(np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], dtype=bool))
    ('a', 'ab', 'b')
    """
    m = len(differs)
    sets: list[frozenset[int]] = [frozenset(range(m))] if m else []
    for one in range(m):
        for two in range(one + 1, m):
            if not (differs[one, two] or differs[two, one]):
                continue
            split = [s - {out} for s in sets if {one, two} <= s for out in (one, two)]
            sets = [s for s in sets if not {one, two} <= s]
            for part in sorted(set(split), key=lambda s: (-len(s), sorted(s))):
                if not any(part <= other for other in sets):
                    sets.append(part)
    columns = sorted(sets, key=lambda s: sorted(s))
    return tuple("".join(_letter(number) for number, s in enumerate(columns) if place in s) for place in range(m))


def _letter(number: int) -> str:
    """Return a ... z, A ... Z, then a', b', ..."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return letters[number % len(letters)] + "'" * (number // len(letters))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's adjusted p-values in the order given (Holm 1979). None or nan is no test: not counted, returned as
    None.

    `p_values`: of the tests of a family.

    >>> holm([0.01, 0.04, None])
    [0.02, 0.04, None]
    """
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None and not math.isnan(p))
    result: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for number, (p, place) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - number)))
        result[place] = largest
    return result
