"""BLEU from its sufficient statistics, for whole arrays of sentences at once.

Two families of smoothing: sacrebleu's (`exp`, `floor`, `add-k`, `none`) and NLTK's (`method0` ... `method5`,
`method7`; `method6` is left out because it is undefined for most short texts). Results are in 0..100, but methods 5
and 7 may give a precision above 1, as NLTK's do.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from scoring.ml.sums import within

Floats: TypeAlias = npt.NDArray[np.float64]

SACREBLEU_SMOOTHING = ("exp", "floor", "add-k", "none")
NLTK_SMOOTHING = ("method0", "method1", "method2", "method3", "method4", "method5", "method7")
SMOOTHING = SACREBLEU_SMOOTHING + NLTK_SMOOTHING
_SMALLEST = np.finfo(np.float64).tiny


class Smoothing(NamedTuple):
    """A smoothing method and its value: the floor (default .1), the added count (1) or NLTK's epsilon (.1)."""

    method: str = "exp"
    value: float | None = None


EXP = Smoothing()


def orders_needed(order: int, smooth: str) -> int:
    """Return the number of n-gram orders that BLEU up to `order` needs with the smoothing `smooth`: NLTK's methods 5
    and 7 also read 5-grams."""
    return max(order, 5) if smooth in ("method5", "method7") else order


def bleu(
    matches: Floats,
    totals: Floats,
    hyp_len: Floats,
    ref_len: Floats,
    smoothing: Smoothing = EXP,
    *,
    order: int = 4,
    effective_order: bool = True,
) -> Floats:
    """Return BLEU in 0..100: BP * exp(sum over n <= N of log p_n / N), BP = exp(min(0, 1 - r/c)).

    `matches` and `totals` (orders, ...) are clipped matches and n-gram counts, `hyp_len` and `ref_len` (...) the
    lengths c and r; all broadcast. `order` is N. `smoothing` replaces orders without a match; `effective_order` stops
    at the last order that has n-grams (sacrebleu's smoothings only). Sources: Papineni et al. 2002; Chen and Cherry
    2014; sacrebleu 2.6 and NLTK 3.10 agree to 1e-9.
    """
    smooth, smooth_value = smoothing
    matches, totals, hyp_len, ref_len = np.broadcast_arrays(matches, totals, hyp_len, ref_len)
    if smooth in NLTK_SMOOTHING:
        mean_log = _nltk_mean_log(matches, totals, hyp_len[0], order, smooth, smooth_value)
    else:
        mean_log = _mean_log(matches, totals, order, smooth, smooth_value, effective_order)
    matched = matches[0] > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        penalty = np.where(hyp_len[0] > 0, np.minimum(0.0, 1.0 - ref_len[0] / hyp_len[0]), -np.inf)
        # Equal texts would get 100.00000000000004.
        return within(np.where(matched, 100.0 * np.exp(penalty + mean_log), 0.0), (None, 100.0))


def _mean_log(
    matches: Floats, totals: Floats, order: int, smooth: str, value: float | None, effective_order: bool
) -> Floats:
    shape = matches.shape[1:]
    log_sum, used = np.zeros(shape), np.zeros(shape)
    alive = np.ones(shape, dtype=np.bool_)
    halvings = np.ones(shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for n in range(order):
            match, total = matches[n], totals[n]
            if smooth == "add-k" and n > 0:
                k = 1.0 if value is None else value
                match, total = match + k, total + k
            alive = alive & (total > 0)
            missed = alive & (match == 0)
            if smooth == "exp":
                halvings = np.where(missed, 2.0 * halvings, halvings)
                match = np.where(missed, 1.0 / halvings, match)
            elif smooth == "floor":
                match = np.where(missed, 0.1 if value is None else value, match)
            log_sum += np.where(alive, np.log(match / total), 0.0 if effective_order else -np.inf)
            used += alive
        return log_sum / (used if effective_order else float(order))


def _nltk_mean_log(
    matches: Floats, totals: Floats, hyp_len: Floats, order: int, smooth: str, value: float | None
) -> Floats:
    denominators = np.maximum(totals, 1.0)
    p = matches / denominators
    missed = matches == 0
    # Each further order without a match halves again (methods 3 and 4).
    with np.errstate(divide="ignore", invalid="ignore"):
        halved = np.exp2(-np.cumsum(missed, axis=0)) / denominators
        if smooth == "method0":
            p = np.where(missed, _SMALLEST, p)
        elif smooth == "method1":
            p = np.where(missed, (0.1 if value is None else value) / denominators, p)
        elif smooth == "method2":
            p = np.concatenate([p[:1], (matches[1:] + 1) / (denominators[1:] + 1)])
        elif smooth == "method3":
            p = np.where(missed, halved, p)
        if smooth in ("method4", "method7"):
            # The divisor is 5 / ln(length): k = 5 is NLTK's default.
            p = np.concatenate([np.where(missed & (hyp_len > 1), halved * np.log(hyp_len) / 5, p)[:4], p[4:]])
        if smooth in ("method5", "method7"):
            p = _neighbour_mean(p, matches[4] / denominators[4], order)
        p = p[:order]
        return np.where(p > 0, np.log(np.where(p > 0, p, 1.0)), 0.0).sum(axis=0) / order


def _neighbour_mean(p: Floats, five: Floats, order: int) -> Floats:
    """Method 5: p_n becomes the mean of its smoothed predecessor, itself and its successor.

    NLTK takes the precision of 5-grams as the successor of the last order, whatever that order is.
    """
    successors = [*p[1:order], five]
    previous = p[0] + 1.0
    smoothed = []
    for n in range(order):
        previous = (previous + p[n] + successors[n]) / 3.0
        smoothed.append(previous)
    return np.stack(smoothed)
