"""Values within their scale, and the sums of texts that give the score of a system."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]


_ROUNDING = 1e-6


def within(values: Floats, scale: tuple[float | None, float | None]) -> Floats:
    """The values, set to the end of the scale where rounding exceeds it by at most 1e-6 (relative or absolute)."""
    for end, beyond in zip(scale, (np.less, np.greater), strict=True):
        if end is not None:
            slip = beyond(values, end) & np.isclose(values, end, rtol=_ROUNDING, atol=_ROUNDING)
            values = np.where(slip, end, values)
    return values


def weighted_statistics(values: Floats, weights: Floats) -> Floats:
    """Return (n, 4): w v, w, v and 1 of each text, whose sums give a weighted mean (`weighted_mean`).

    `values` v and `weights` w are (n,); a row is zero where v is nan.
    """
    defined = ~np.isnan(values)
    values, weights = np.where(defined, values, 0.0), np.where(defined, weights, 0.0)
    return np.column_stack([weights * values, weights, values, defined])


def weighted_mean(sums: Floats) -> Floats:
    """sum w v / sum w from sums (..., 4) of `weighted_statistics`; the plain mean if all weights are zero, nan without
    values."""
    weighted = sums[..., 1] > 0
    above, below = np.where(weighted, sums[..., 0], sums[..., 2]), np.where(weighted, sums[..., 1], sums[..., 3])
    return np.divide(above, below, out=np.full(below.shape, np.nan), where=below > 0)
