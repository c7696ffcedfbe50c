"""Bayesian calibration: the printed toy example, the posterior from dense matrices, REML, properties, degenerate
input."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalapp.stats.agreement.calibration import calibrate_raters

# docs/explanation/statistics/human-scores.md#worked-numbers: models 0, 1, 2 x raters 0, 1, 2.
TOY = [4, 3, 5, 2, 3, 4, 1, 2, 3]
SYSTEM, RATER = [0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2] * 3


def test_printed_toy_example():
    found = calibrate_raters(TOY, SYSTEM, RATER)
    assert [row.label for row in found.systems] == [0, 1, 2]
    assert [row.estimate.value for row in found.systems] == pytest.approx([4, 3, 2])
    assert [row.sd for row in found.systems] == pytest.approx([0.8165] * 3, abs=5e-5)
    assert [row.estimate.value for row in found.raters] == pytest.approx([-0.5, -0.25, 0.75])
    assert found.sigma2 == {"residual": 1, "rater": 1}
    assert found.n == 9


def dense_posterior(y, system, rater, item):
    """Mean and sd computed from the full precision matrix."""
    columns = [np.eye(max(codes) + 1)[codes] for codes in (system, rater, item)]
    x = np.hstack(columns)
    prior = np.diag(np.concatenate([np.zeros(columns[0].shape[1]), np.ones(x.shape[1] - columns[0].shape[1])]))
    covariance = np.linalg.inv(x.T @ x + prior)
    return covariance @ x.T @ y, np.sqrt(np.diag(covariance))


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000))
def test_posterior_equals_dense_matrices_in_any_order(seed):
    rng = np.random.default_rng(seed)
    n = 60
    system, rater, item = rng.integers(0, 4, n), rng.integers(0, 9, n), rng.integers(0, 12, n)
    system[:4], rater[:9], item[:12] = range(4), range(9), range(12)
    y = rng.normal(3, 1, n)
    mean, sd = dense_posterior(y, system, rater, item)
    order = rng.permutation(n)
    found = calibrate_raters(y[order], system[order], rater[order], item=item[order])
    systems = sorted(found.systems, key=lambda row: row.label)
    rows = [*systems, *found.raters, *found.items]
    assert [row.estimate.value for row in rows] == pytest.approx(mean)
    assert [row.sd for row in rows] == pytest.approx(sd)
    assert [row.estimate.value for row in found.systems] == sorted(
        (row.estimate.value for row in systems), reverse=True
    )
    moved = calibrate_raters(y + 10, system, rater, item=item)
    assert [row.estimate.value for row in moved.systems] == pytest.approx(
        [row.estimate.value + 10 for row in found.systems]
    )


def test_system_rated_by_harsh_raters_is_not_penalised():
    """Two equal systems, six raters from harsh to mild; the harsh ones mostly rated system 0."""
    rng = np.random.default_rng(3)
    bias = np.array([-2, -1.2, -0.5, 0.5, 1.2, 2])
    weight = np.array([5, 4, 3, 2, 1, 1]) / 16
    rater = np.concatenate([rng.choice(6, 300, p=weight), rng.choice(6, 300, p=weight[::-1])])
    system = np.repeat([0, 1], 300)
    y = 3 + bias[rater] + rng.normal(0, 0.7, 600)
    for variances in ("unit", "reml"):
        found = {row.label: row for row in calibrate_raters(y, system, rater, variances=variances).systems}
        assert found[1].raw - found[0].raw > 1
        assert abs(found[1].estimate.value - found[0].estimate.value) < 0.2
    reml = calibrate_raters(y, system, rater, variances="reml")
    assert reml.sigma2["residual"] == pytest.approx(0.49, abs=0.06)
    assert 0.7 < reml.sigma2["rater"] < 8


def test_reml_by_hand_on_the_toy_example():
    """Balanced: residual = mean square of the interaction 1/3, rater (MSR - MSE) / 3 = (7/3 - 1/3) / 3 = 2/3."""
    found = calibrate_raters(TOY, SYSTEM, RATER, variances="reml")
    assert found.sigma2 == pytest.approx({"residual": 1 / 3, "rater": 2 / 3}, rel=1e-5)
    # Shrinkage of a rater's deviation by 3 s_b / (3 s_b + s) = 6/7: -2/3 becomes -4/7.
    assert [row.estimate.value for row in found.raters] == pytest.approx([-4 / 7, -2 / 7, 6 / 7], rel=1e-5)


def test_degenerate():
    assert calibrate_raters([], [], []).note == "there are no ratings"
    (row,) = calibrate_raters([3.0, math.nan], ["s", "t"], ["r", "r"]).systems
    assert (row.label, row.estimate.value, row.sd) == ("s", 3, pytest.approx(math.sqrt(2)))
    equal = calibrate_raters([2.0] * 6, [0, 0, 0, 1, 1, 1], [0, 1, 2] * 2, variances="reml")
    assert "no residual" in equal.note
    assert [row.estimate.value for row in equal.systems] == pytest.approx([2, 2])
    json.dumps(equal.as_dict(), allow_nan=False)
    with pytest.raises(ValueError, match="variances"):
        calibrate_raters([1], [1], [1], variances="bayes")
