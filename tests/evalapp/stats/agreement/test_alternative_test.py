"""The alternative annotator test (Calderon et al. 2025) with values computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evalapp.stats.agreement.alternative_test import alternative_annotator_test, reject_dependent

RATERS = ["a", "b", "c"]
#: Ratings of a, b, c, and the evaluator's value. In the first unit the evaluator is nearer to the others than a
#: (0.707 < 1.581) and c, and equal to b. In the second all agree equally well (a, b: 2.121; c: 3).
FIRST, SECOND = ([1, 2, 3], 2), ([4, 4, 1], 1)


def make(units):
    unit = np.repeat(np.arange(len(units)), 3)
    value = [number for ratings, _x in units for number in ratings]
    evaluator = [x for _ratings, x in units for _rater in RATERS]
    return unit, RATERS * len(units), value, evaluator


def test_shares_of_units_where_each_is_at_least_as_good():
    test = alternative_annotator_test(*make([FIRST, SECOND]), least_units=1)
    found = {row.rater: (row.evaluator_better, row.rater_better, row.n) for row in test.raters}
    assert found == {"a": (1.0, 0.5, 2), "b": (1.0, 1.0, 2), "c": (1.0, 0.5, 2)}
    assert test.advantage == 1.0


def test_p_is_that_of_the_t_test_from_thirty_units():
    test = alternative_annotator_test(*make([FIRST, SECOND] * 20), epsilon=0.1)
    # For a, d is -1 in 20 units and 0 in 20: mean -1/2, variance 10/39, t = -0.6 / sqrt(10/39/40).
    t = -0.6 / math.sqrt(10 / 39 / 40)
    assert test.raters[0].p == pytest.approx(stats.t.cdf(t, 39))
    # For b all 40 units are tied, so d is always 0, below epsilon.
    assert test.raters[1].p == 0.0
    assert test.winning_rate == 1.0
    assert test.passes


def test_a_bad_evaluator_does_not_pass():
    rng = np.random.default_rng(3)
    truth = rng.integers(1, 6, 60)
    value = np.repeat(truth, 3) + rng.integers(0, 2, 180)
    evaluator = np.repeat(6 - truth, 3)
    test = alternative_annotator_test(np.repeat(np.arange(60), 3), RATERS * 60, value, evaluator, epsilon=0.2)
    assert test.winning_rate == 0.0
    assert not test.passes
    assert test.advantage < 0.5


def test_one_more_rater_of_the_same_kind_passes():
    rng = np.random.default_rng(4)
    truth = rng.normal(size=200)
    value = np.repeat(truth, 3) + rng.normal(size=600)
    evaluator = np.repeat(truth + 0.7 * rng.normal(size=200), 3)
    test = alternative_annotator_test(np.repeat(np.arange(200), 3), RATERS * 200, value, evaluator, epsilon=0.2)
    assert test.passes


def test_equal_values_are_another_measure():
    test = alternative_annotator_test([0] * 3, RATERS, [1, 1, 2], [1, 1, 1], measure="equal", least_units=1)
    # For a the others are 1 and 2: both have half; c: the others are 1 and 1, the evaluator has all.
    assert [(row.evaluator_better, row.rater_better) for row in test.raters] == [(1, 1), (1, 1), (1, 0)]


def test_two_raters_are_too_few():
    test = alternative_annotator_test([0, 0, 1, 1], ["a", "b"] * 2, [1, 2, 3, 4], [1, 1, 3, 3], least_units=1)
    assert math.isnan(test.winning_rate)
    assert test.note
    assert test.as_dict()["winning_rate"] is None


def test_rows_without_a_value_are_left_out():
    unit, rater, value, evaluator = make([FIRST, SECOND, FIRST])
    evaluator[-3:] = [math.nan] * 3
    test = alternative_annotator_test(unit, rater, value, evaluator, least_units=1)
    assert [row.n for row in test.raters] == [2, 2, 2]


def test_rejections_for_dependent_tests():
    # m = 3: factor 1 + 1/2 + 1/3 = 11/6, thresholds k * 0.05 / 5.5 = 0.0091, 0.0182, 0.0273.
    assert reject_dependent([0.9, 0.018, 0.001]) == [False, True, True]
    assert reject_dependent([0.9, 0.0183, 0.001]) == [False, False, True]
    assert reject_dependent([0.0272, 0.0272, 0.0272]) == [True, True, True]
    assert reject_dependent([math.nan, 0.02]) == [False, True]
    assert reject_dependent([]) == []
