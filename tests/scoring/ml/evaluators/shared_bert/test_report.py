"""Figures of a classifier by hand, for the paper's counts, and against SciPy's tests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from scoring.ml.evaluators.shared_bert.report import classify, compare_over_seeds


def test_figures_by_hand() -> None:
    # TP 2, FN 1, FP 1, TN 2.
    found = classify([1, 1, 1, 0, 0, 0, np.nan], [0.9, 0.8, 0.2, 0.6, 0.3, 0.1, 0.5])
    assert (found.n, found.positives) == (6, 3)
    assert found.accuracy == pytest.approx(4 / 6)
    assert found.f1 == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert found.mcc == pytest.approx((2 * 2 - 1 * 1) / 9)
    assert found.balanced_accuracy == pytest.approx(2 / 3)
    # Of the 9 pairs (good, bad): .9 and .8 beat all three, .2 beats one.
    assert found.auroc == pytest.approx(7 / 9)
    assert found.majority == 0.5
    assert found.majority_f1 == pytest.approx(2 / 3)
    assert not found.collapsed


@pytest.mark.parametrize(
    ("positives", "accuracy", "f1"), [(7672, 0.6898, 0.8164), (7218, 0.6490, 0.7871), (9202, 0.8274, 0.9055)]
)
def test_always_good_on_the_counts_of_the_paper(positives: int, accuracy: float, f1: float) -> None:
    # The accuracy of the majority class on the paper's 11,122 instances.
    labels = np.zeros(11122)
    labels[:positives] = 1
    found = classify(labels, np.full(11122, 0.9))
    assert found.majority == found.accuracy == pytest.approx(accuracy, abs=5e-5)
    assert found.majority_f1 == found.f1 == pytest.approx(f1, abs=1e-4)
    assert found.mcc == 0.0
    assert found.auroc == 0.5
    assert found.collapsed


def test_single_class_is_undefined() -> None:
    found = classify([1, 1], [0.2, 0.8])
    assert math.isnan(found.mcc)
    assert math.isnan(found.auroc)
    assert math.isnan(found.balanced_accuracy)
    assert math.isnan(classify([], []).accuracy)


def test_macro_f1_falls_with_every_error_for_labels_of_one_class() -> None:
    """It selects the epoch: once, zero errors were undefined, and so worse than one error."""
    assert classify([1, 1, 1], [0.9, 0.8, 0.7]).macro_f1 == 1.0
    assert classify([1, 1, 1], [0.9, 0.8, 0.2]).macro_f1 == pytest.approx((4 / 5 + 0) / 2)
    assert math.isnan(classify([], []).macro_f1)


def test_ties_count_half_in_auroc() -> None:
    assert classify([1, 0], [0.4, 0.4]).auroc == 0.5


def test_seeds_are_compared_unpaired_and_paired() -> None:
    a, b = [0.76, 0.77, 0.75, 0.78, 0.74], [0.78, 0.80, 0.76, 0.79, 0.77]
    found = compare_over_seeds(a, b)
    one_way, paired = stats.f_oneway(a, b), stats.ttest_rel(b, a)
    assert found.f == pytest.approx(one_way.statistic)
    assert found.f == pytest.approx(stats.ttest_ind(a, b).statistic ** 2)
    assert found.p_one_way == pytest.approx(one_way.pvalue)
    assert found.p_paired == pytest.approx(paired.pvalue)
    interval = paired.confidence_interval()
    assert (found.difference.low, found.difference.high) == pytest.approx((interval.low, interval.high))
    same = compare_over_seeds([0.5, 0.5], [0.5, 0.5])
    assert (same.p_one_way, same.p_paired) == (1.0, 1.0)
    with pytest.raises(ValueError, match="same seeds"):
        compare_over_seeds([0.5], [0.5])


def test_star_of_the_paper_is_not_significant_unpaired() -> None:
    # Reddy 2022: accuracy of naturalness, 76.19 +- 1.00 against 77.98 +- 1.99 over 5 seeds: F = 3.23, p = .110.
    shape = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    shape /= shape.std(ddof=1)
    found = compare_over_seeds(list(76.19 + 1.00 * shape), list(77.98 + 1.99 * shape))
    assert found.f == pytest.approx(3.23, abs=0.005)
    assert found.p_one_way == pytest.approx(0.110, abs=0.001)
