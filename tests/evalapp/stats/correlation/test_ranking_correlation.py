"""Correlation of system scores with a human ranking."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evalapp.stats.correlation.ranking_correlation import correlate_with_ranking
from evalapp.stats.ranking.systems import rank_by_m1
from evalapp.stats.resampling.bootstrap import Bootstrap


def turing(shares, n=20):
    rows = [(k, i, "a" if i < share * n else "b") for k, share in enumerate(shares) for i in range(n)]
    system, item, verdict = zip(*rows, strict=True)
    return rank_by_m1(item, system, verdict, bootstrap=Bootstrap(resamples=0))


def test_evaluator_with_m1_across_systems():
    m1 = [0.1, 0.3, 0.35, 0.6, 0.9, 0.5]
    scores = dict(enumerate([1.0, 2.5, 2.0, 3.0, 3.5, 4.0]))
    ranking = turing(m1)
    x = list(scores.values())
    theirs = {
        "pearson": stats.pearsonr(x, m1),
        "spearman": stats.spearmanr(x, m1),
        "kendall": stats.kendalltau(x, m1),
    }
    for name, value in theirs.items():
        found = correlate_with_ranking(scores, ranking, coefficient=name)
        assert found.value == pytest.approx(value.statistic)
        assert found.n == 6
        assert found.low < found.value < found.high
    low, high = theirs["pearson"].confidence_interval()
    found = correlate_with_ranking(scores, ranking)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_undefined_with_a_reason():
    few = correlate_with_ranking({0: 1.0, 1: 2.0, 2: 3.0, 9: 4.0, 3: math.nan}, turing([0.1, 0.2, 0.3, 0.4]))
    assert not few.is_defined
    assert (few.note, few.n) == ("fewer than 4 systems have both values", 3)
    same = correlate_with_ranking(dict.fromkeys(range(5), 1.0), turing([0.1, 0.2, 0.3, 0.4, 0.5]))
    assert same.note == "the metric is constant"


def test_perfect_line_has_no_interval():
    found = correlate_with_ranking(dict(enumerate(np.arange(4.0))), turing([0.1, 0.2, 0.3, 0.4]), coefficient="kendall")
    assert found.value == 1
    assert not found.has_interval
