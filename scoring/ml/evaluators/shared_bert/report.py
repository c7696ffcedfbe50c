"""Metrics to report with accuracy: the majority class, MCC, balanced accuracy, AUROC, collapse; and comparisons of
two models over seeds (docs/explanation/evaluators/shared-bert.md#report)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from evalapp.stats.core.estimate import Estimate
from evalapp.stats.core.replicates import estimate_mean, one_way_anova, paired_difference
from evalapp.stats.correlation.coefficients import midranks

Floats: TypeAlias = npt.NDArray[np.float64]
COLLAPSED = 0.99


@dataclass(frozen=True, slots=True)
class ClassReport:
    """One aspect on labelled outputs; nan = undefined (one class only).

    `macro_f1` is the mean over the classes that occur among labels or predictions, so that it is defined, and falls
    with every fault, if all labels are in one class.
    `majority` is the accuracy of always predicting the more frequent class, `majority_f1` the F1 of
    always saying good. `collapsed`: more than 99 % of the predictions are one class.
    """

    n: int
    positives: int
    accuracy: float
    f1: float
    macro_f1: float
    mcc: float
    balanced_accuracy: float
    auroc: float
    majority: float
    majority_f1: float
    collapsed: bool


def classify(labels: ArrayLike, probabilities: ArrayLike, *, cut: float = 0.5) -> ClassReport:
    """Return the figures of predictions p >= `cut` against 0/1 `labels` (n,); rows with a missing label (nan) are left
    out. `probabilities` (n,) are those of label 1.

    MCC = (TP TN - FP FN) / sqrt((TP+FP)(TP+FN)(TN+FP)(TN+FN)), 0 if all predictions are in one class; AUROC = (sum of
    the positives' midranks - n+ (n+ + 1) / 2) / (n+ n-).

    >>> classify([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.2]).auroc
    0.75
    """
    y, p = np.asarray(labels, dtype=float), np.asarray(probabilities, dtype=float)
    known = np.isfinite(y) & np.isfinite(p)
    y, p = y[known] > 0.5, p[known]
    said = p >= cut
    n, n_good, n_bad = len(y), int(y.sum()), int((~y).sum())
    tp, tn = int((said & y).sum()), int((~said & ~y).sum())
    fp, fn = n_bad - tn, n_good - tp
    both = n_good > 0 and n_bad > 0
    spread = float(tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    f1_good, f1_bad = _f1(tp, fp, fn), _f1(tn, fn, fp)
    nan = float("nan")
    auroc = nan
    if both:
        auroc = (float(midranks(p)[y].sum()) - n_good * (n_good + 1) / 2) / (n_good * n_bad)
    return ClassReport(
        n=n,
        positives=n_good,
        accuracy=(tp + tn) / n if n else nan,
        f1=f1_good,
        macro_f1=_mean_of_defined(f1_good, f1_bad),
        mcc=((tp * tn - fp * fn) / spread**0.5 if spread else 0.0) if both else nan,
        balanced_accuracy=(tp / n_good + tn / n_bad) / 2 if both else nan,
        auroc=auroc,
        majority=max(n_good, n_bad) / n if n else nan,
        majority_f1=_f1(n_good, n_bad, 0),
        collapsed=bool(n) and max(float(said.mean()), 1 - float(said.mean())) > COLLAPSED,
    )


def _f1(tp: int, fp: int, fn: int) -> float:
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else float("nan")


def _mean_of_defined(*values: float) -> float:
    result = [value for value in values if np.isfinite(value)]
    return sum(result) / len(result) if result else float("nan")


@dataclass(frozen=True, slots=True)
class SeedComparison:
    """Two models over the same seeds: means, SDs (n - 1), one-way F with its p, and the paired t-test's p.

    With two groups F = t^2 of the unpaired test. The paired test is the right one where seed and split are shared.
    """

    mean_a: float
    sd_a: float
    mean_b: float
    sd_b: float
    f: float
    p_one_way: float
    p_paired: float
    difference: Estimate


def compare_over_seeds(a: Sequence[float], b: Sequence[float]) -> SeedComparison:
    """`a[i]` and `b[i]` are results with the same seed and split. Raises ValueError for unequal lengths or fewer than
    2."""
    if len(a) != len(b) or len(a) < 2:
        raise ValueError(f"two models need the same seeds, at least 2: {len(a)} and {len(b)} given")
    difference, p_paired = paired_difference(a, b)
    (mean_a, sd_a), (mean_b, sd_b) = estimate_mean(a), estimate_mean(b)
    anova = one_way_anova([a, b])
    return SeedComparison(mean_a.value, sd_a, mean_b.value, sd_b, anova.f, anova.p, p_paired, difference)
