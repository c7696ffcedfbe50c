"""Judgements for the tests of rankings from comparisons."""

from __future__ import annotations

import numpy as np

#: Counts (win of the first, tie, loss) of the pairs 0-1, 0-2, 1-2:
#: docs/explanation/statistics/comparisons.md#worked-numbers.
GOLDEN = {(0, 1): (12, 5, 3), (0, 2): (9, 4, 7), (1, 2): (6, 6, 8)}


def make_columns(counts):
    """Expands counts per pair to the columns system_a, system_b, verdict."""
    rows = [
        (*pair, verdict)
        for pair, numbers in counts.items()
        for verdict, n in zip(("a", "tie", "b"), numbers, strict=True)
        for _ in range(n)
    ]
    a, b, verdict = zip(*rows, strict=True)
    return np.array(a), np.array(b), np.array(verdict)


def draw(theta, n, *, seed=1, log_nu=-0.5, side=0.0, slope=0.0):
    """Draws n judgements of random pairs from Davidson's model: columns a, b, verdict, item, length difference."""
    rng = np.random.default_rng(seed)
    theta = np.asarray(theta, dtype=float)
    a = rng.integers(len(theta), size=n)
    b = (a + rng.integers(1, len(theta), size=n)) % len(theta)
    length = rng.normal(size=n)
    eta = theta[a] - theta[b] + side + slope * length
    parts = np.exp(np.stack([eta / 2, np.full(n, log_nu), -eta / 2], axis=1))
    ends = (parts / parts.sum(axis=1, keepdims=True)).cumsum(axis=1)
    drawn = (rng.random(n)[:, None] > ends).sum(axis=1)
    return a, b, np.array(["a", "tie", "b"])[drawn], rng.integers(n // 5 + 1, size=n), length
