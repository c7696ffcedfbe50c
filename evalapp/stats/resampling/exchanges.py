"""Random exchanges of two systems' or metrics' values, unit by unit: the draws of permutation tests."""

from __future__ import annotations

import numpy as np

from evalapp.stats.core.coding import BoolArray

_STREAM = 2


class SwapDraws:
    """Random exchanges of `n_units` units, each with probability 1/2, independent of the chunk size."""

    def __init__(self, n_units: int, seed: int) -> None:
        self._n = n_units
        self._bytes = -(-max(n_units, 1) // 64) * 8
        self._generator = np.random.default_rng([seed, _STREAM])

    def take(self, size: int) -> BoolArray:
        """Return the next `size` draws, (n_units, size)."""
        drawn = np.frombuffer(self._generator.bytes(size * self._bytes), dtype=np.uint8)
        bits = np.unpackbits(drawn.reshape(size, self._bytes), axis=1)[:, : self._n]
        return np.ascontiguousarray(bits.T).view(np.bool_)
