"""An evaluator as one more rater, with values computed by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from evalapp.stats.agreement.judge_report import RatedOutputs, report_as_rater
from evalapp.stats.agreement.krippendorff import krippendorff_alpha
from evalapp.stats.correlation.meta_evaluation import CorrelationSettings, correlate
from evalapp.stats.resampling.bootstrap import Bootstrap

#: Four outputs, two raters: means 1.5, 3, 4, 4.5.
OUTPUT = [0, 0, 1, 1, 2, 2, 3, 3]
RATING = [1, 2, 3, 3, 4, 4, 4, 5]
SCORE = [2, 2, 3, 3, 4, 4, 5, 5]


def report(score=SCORE, same_scale=True, **rest):
    columns = {
        "system": ["x", "x", "y", "y"] * 2, "group": ["g", "g", "g", "g", "h", "h", "h", "h"],
        "length": [10, 10, 20, 20, 30, 30, 40, 40], **rest,
    }  # fmt: skip
    rated = RatedOutputs(OUTPUT, ["a", "b"] * 4, RATING, **columns)
    return report_as_rater(
        rated, score, points=(1, 2, 3, 4, 5), same_scale=same_scale, bootstrap=Bootstrap(resamples=0)
    )


def test_alpha_is_that_of_the_raters_with_the_evaluator_added():
    found = report()
    assert found.alpha_without.value == krippendorff_alpha(OUTPUT, RATING, bootstrap=Bootstrap(resamples=0)).value
    unit, value = [*OUTPUT, 0, 1, 2, 3], [*RATING, 2, 3, 4, 5]
    assert found.alpha_with.value == krippendorff_alpha(unit, value, bootstrap=Bootstrap(resamples=0)).value


def test_a_judge_in_the_opposite_order_of_people_correlates_negatively():
    found = report(score=[6 - s for s in SCORE])
    # Scores 4, 3, 2, 1 against means 1.5, 3, 4, 4.5.
    assert found.correlation.value == pytest.approx(-1.0)
    assert report().correlation.value == pytest.approx(1.0)
    assert report(score=[3] * 8).correlation.note == "the metric is constant"


def test_the_interval_of_the_correlation_is_over_groups():
    rng = np.random.default_rng(5)
    n = 60
    mean = rng.normal(size=n)
    score = mean + rng.normal(size=n)
    groups = [f"g{k // 3}" for k in range(n)]
    rated = RatedOutputs(list(range(n)), ["a"] * n, mean, ["x"] * n, groups, [1] * n)
    bootstrap = Bootstrap(resamples=200, seed=3)
    found = report_as_rater(rated, score, points=(), same_scale=True, bootstrap=bootstrap).correlation
    settings = CorrelationSettings(coefficients=("spearman",))
    same = correlate(score, mean, range(n), ["x"] * n, settings=settings, bootstrap=bootstrap.with_cluster(groups))[
        "spearman"
    ]
    alone = correlate(score, mean, range(n), ["x"] * n, settings=settings, bootstrap=bootstrap)["spearman"]
    assert found.value == pytest.approx(stats.spearmanr(score, mean).statistic)
    assert (found.low, found.high) == (same.low, same.high) != (alone.low, alone.high)


def test_differences_from_people():
    found = report()
    # Score - mean rating: 0.5, 0, 0, 0.5.
    assert found.mean_difference.value == 0.25
    assert found.mean_absolute.value == 0.25
    bias = {name: estimate.value for name, estimate in found.bias}
    assert bias == {"x": 0.25, "y": 0.25}


def test_the_confusion_matrix_has_people_in_rows():
    found = report()
    # Means 1.5 (halfway: the lower point), 3, 4, 4.5 (lower); scores 2, 3, 4, 5.
    cells = {(i + 1, j + 1) for i, row in enumerate(found.confusion) for j, n in enumerate(row) if n}
    assert cells == {(1, 2), (3, 3), (4, 4), (4, 5)}


def test_length_bias_is_a_rank_correlation():
    found = report(score=[1.5, 1.5, 3.1, 3.1, 4.2, 4.2, 4.8, 4.8])
    # Differences 0, 0.1, 0.2, 0.3 grow with the length.
    assert found.length.value == pytest.approx(1.0)
    assert not report(score=[1.5, 1.5, 3, 3, 4, 4, 4.5, 4.5]).length.is_defined


def test_calibration_is_a_line_and_bins():
    found = report()
    # Scores 2, 3, 4, 5 and means 1.5, 3, 4, 4.5: slope 5/5 = 1 by hand, intercept 3.25 - 3.5.
    assert found.slope == pytest.approx(1.0)
    assert found.intercept == pytest.approx(-0.25)
    assert found.bins == ((2, 1.5, 1), (3, 3, 1), (4, 4, 1), (5, 4.5, 1))


def test_another_scale_is_brought_to_people():
    found = report(score=[s * 100 for s in SCORE], same_scale=False)
    assert found.scaling is not None
    assert found.mean_difference.value == pytest.approx(0.0)


def test_outputs_without_a_score_are_left_out():
    nan = float("nan")
    found = report(score=[nan, nan, *SCORE[2:]])
    assert found.n_outputs == 3
    empty = report(score=[nan] * 8)
    assert empty.n_outputs == 0
    assert empty.note
    json.dumps(empty.as_dict(), allow_nan=False)
    json.dumps(found.as_dict(), allow_nan=False)
