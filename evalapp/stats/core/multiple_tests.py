"""From tests of all pairs to what a table shows: rank clusters, letters, and how many resamples that takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evalapp.stats.core.coding import BoolArray


def needed_draws(n_metrics: int, alpha: float = 0.05) -> int:
    """Twice the least k with which the smallest two-sided p, 2 / (k + 1), survives Holm over all pairs; at least
    1000."""
    pairs = n_metrics * (n_metrics - 1) // 2
    return max(1000, 2 * math.ceil(2 * pairs / alpha))


def rank_clusters(beats: BoolArray) -> tuple[int, ...]:
    """Ranks of metrics given best first: one opens a new rank when a metric of the present rank beats it."""
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
    """A compact letter display of things given best first: two share a letter if and only if they are not told apart.

    `differs` (m, m), read symmetrically. Insert and absorb (Piepho 2004): a set of all, split at every pair that
    differs, sets inside others dropped; named a, b, ... in the order of their best members.
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
    """a ... z, A ... Z, then a', b', ..."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return letters[number % len(letters)] + "'" * (number // len(letters))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p-values in the order given; None or nan is no test, left out of the count, None (Holm 1979)."""
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None and not math.isnan(p))
    found: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for number, (p, place) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - number)))
        found[place] = largest
    return found
