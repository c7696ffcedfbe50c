"""Combining evaluators: worked by hand, and compared with scikit-learn's ridge where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

from evalapp.stats.core.coding import ColumnError
from evalapp.stats.correlation.combining import PENALTIES, mean_of_z, stack, standardise


def made(seed=5, n=200):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n // 4), 4)
    truth = rng.normal(size=n)
    scores = np.stack([truth + rng.normal(size=n), 10 * truth + 30 * rng.normal(size=n), rng.normal(size=n)], axis=1)
    return scores, truth + 0.3 * rng.normal(size=n), group


def test_mean_of_z_by_hand():
    # 1, 2, 3: mean 2, SD sqrt(2/3); 10, 10, 40: mean 20, SD sqrt(200).
    found = mean_of_z([[1, 10], [2, 10], [3, 40]])
    a, b = np.sqrt(2 / 3), np.sqrt(200)
    np.testing.assert_allclose(found, [(-1 / a - 10 / b) / 2, (0 - 10 / b) / 2, (1 / a + 20 / b) / 2])


def test_each_part_counts_alike_on_any_scale():
    scores, _, _ = made()
    np.testing.assert_allclose(mean_of_z(scores), mean_of_z(scores * [1, 1000, 0.01] + [5, -3, 2]), atol=1e-9)


def test_undefined_if_a_part_is_undefined():
    found = mean_of_z([[1.0, np.nan], [2.0, 1.0], [3.0, 2.0]])
    assert np.isnan(found[0])
    assert np.isfinite(found[1:]).all()
    assert np.isnan(mean_of_z([[1.0, 7.0], [2.0, 7.0]])).all()  # a constant gives no order
    assert np.isnan(standardise([[np.nan], [np.nan]])[2]).all()


def test_stacking_solves_the_normal_equations_and_recovers_good_parts():
    scores, human, group = made()
    found = stack(scores, human, group)
    z = (scores - scores.mean(0)) / scores.std(0)
    design = np.hstack([np.ones((len(z), 1)), z])
    penalty = found.penalty * len(z) * np.diag([0.0, 1, 1, 1])
    beta = np.linalg.solve(design.T @ design + penalty, design.T @ human)
    np.testing.assert_allclose([found.intercept, *found.weights], beta, atol=1e-10)
    np.testing.assert_allclose(found.predict(scores), design @ beta, atol=1e-10)
    assert found.weights[0] > found.weights[1] > abs(found.weights[2])
    assert found.penalty in PENALTIES
    assert (found.n, found.n_groups) == (200, 50)


def test_ridge_equals_scikit_learn():
    linear = pytest.importorskip("sklearn.linear_model")
    scores, human, group = made(7)
    found = stack(scores, human, group)
    z = (scores - scores.mean(0)) / scores.std(0)
    theirs = linear.Ridge(alpha=found.penalty * len(z)).fit(z, human)
    np.testing.assert_allclose(found.weights, theirs.coef_, atol=1e-9)


def test_order_of_rows_does_not_matter():
    scores, human, group = made()
    order = np.random.default_rng(1).permutation(len(human))
    one, two = stack(scores, human, group), stack(scores[order], human[order], group[order])
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-12)
    assert one.penalty == two.penalty


def test_incomplete_rows_are_left_out_and_a_constant_part_has_no_weight():
    scores, human, group = made()
    scores = np.hstack([scores, np.ones((len(scores), 1))])
    whole = stack(scores[4:], human[4:], group[4:])
    scores[:4, 0] = np.nan
    np.testing.assert_allclose(stack(scores, human, group).weights, whole.weights)
    assert whole.weights[3] == 0
    assert np.isnan(whole.predict(scores)[:4]).all()


@pytest.mark.parametrize(
    ("scores", "human", "group", "why"),
    [
        ([[1.0], [2.0]], [1, 2], [0, 1], "3 complete rows"),
        ([[1.0], [2.0], [3.0]], [1, 2, 3], [0, 0, 0], "in 1"),
        ([[1.0], [2.0], [3.0]], [1, 1, 1], [0, 1, 2], "all equal"),
        ([[1.0], [1.0], [1.0]], [1, 2, 3], [0, 1, 2], "no column"),
    ],
)
def test_unlearnable_input_gives_the_reason(scores, human, group, why):
    with pytest.raises(ValueError, match=why):
        stack(scores, human, group)


def test_columns_must_fit():
    with pytest.raises(ColumnError):
        mean_of_z([1.0, 2.0])
    scores, human, group = made()
    with pytest.raises(ColumnError):
        stack(scores, human, group).predict(scores[:, :2])
