"""Equations 6 to 15 and the calibration error on plain arrays (Gu, Wu & Yu 2021).

Explained in docs/explanation/evaluators/perception.md#quantities.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
TINY = 1e-6


def probability_of_generation(generated: Floats, reference: Floats) -> Floats:
    """Return P_gen = 1 - P_ref = sigmoid(l1(T(x^)) - l1(T(x))) (eq 6, 7) from the grades of `generated` and `reference`
    texts, of any shape."""
    gap = np.asarray(generated, dtype=np.float64) - np.asarray(reference, dtype=np.float64)
    return np.asarray(np.where(gap >= 0, 1 / (1 + np.exp(-np.abs(gap))), 1 - 1 / (1 + np.exp(-np.abs(gap)))))


def model_certainty(passes: Floats) -> Floats:
    """Return m = 1 - Var_k(P^(k)) (eq 8), in .75..1: the population variance over the last axis of `passes` (...,
    passes)."""
    return np.asarray(1.0 - np.asarray(passes, dtype=np.float64).var(axis=-1))


def system_weights(certainty_of_data: Floats | None, certainty_of_model: Floats | None, n: int) -> Floats:
    """Return (n,) w_i = (c_i + m_i) / sum_k (c_k + m_k) (eq 15).

    `certainty_of_data` is c and `certainty_of_model` m, (n,) each; if one is None the other counts alone, without both
    each weight is 1/n.
    """
    total = np.zeros(n)
    for part in (certainty_of_data, certainty_of_model):
        if part is not None:
            total = total + part
    whole = float(total.sum())
    return total / whole if whole > 0 else np.full(n, 1.0 / max(n, 1))


def hinted(p_ref: Floats, confidence: Floats) -> Floats:
    """Return p' = c P_ref + (1 - c) y with y = 1 (eq 10); c is `confidence`, P_ref is `p_ref`."""
    return confidence * p_ref + (1.0 - confidence)


def mean_negative_log(p: Floats) -> float:
    """-mean log p (eq 11, 12), p clamped to 1e-6 .. 1 - 1e-6."""
    return float(-np.log(np.clip(p, TINY, 1 - TINY)).mean())


def expected_calibration_error(p_ref: Floats, bins: int = 10) -> float:
    """Return the calibration error of the claim "the reference is the reference" with probability `p_ref` (n,), which
    is always true.

    It is the sum over equal `bins` of the confidence max(P, 1 - P) of |accuracy - mean confidence|, weighted by the
    share of pairs in the bin.
    """
    confidence = np.maximum(p_ref, 1 - p_ref)
    right = (p_ref >= 0.5).astype(np.float64)
    place = np.minimum(((confidence - 0.5) * 2 * bins).astype(int), bins - 1)
    sizes = np.bincount(place, minlength=bins)
    gaps = np.abs(np.bincount(place, right, bins) - np.bincount(place, confidence, bins))
    return float(gaps[sizes > 0].sum() / max(len(p_ref), 1))
