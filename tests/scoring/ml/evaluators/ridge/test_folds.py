"""Cross-fitted scores from a table of features: without labels of the own group, and without traces of earlier fits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge

from scoring.ml.evaluators.ridge.folds import Judged, deal_folds, score_by_folds


def make(seed: int, n_groups: int = 12, k: int = 7):
    """Three outputs of each group, a sixth of the features missing."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(3 * n_groups, k))
    ratings = features[:, 0] + rng.normal(size=len(features))
    features[rng.random(features.shape) < 1 / 6] = np.nan
    return features, ratings, [f"g{row // 3}" for row in range(len(features))]


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), share=st.floats(0.3, 1.0))
def test_a_refit_equals_a_fit_from_scratch_by_scikit_learn(seed, share):
    features, ratings, groups = make(seed)
    rated = np.flatnonzero(np.random.default_rng(seed + 1).random(len(groups)) < share)
    folds = deal_folds([groups[row] for row in rated])
    if len(folds) < 5:
        return
    # Fits with fewer ratings before, in another order after: neither may leave a trace.
    score_by_folds(features, Judged(rated[:-3], ratings[rated[:-3]]), groups)
    order = np.random.default_rng(seed + 2).permutation(len(rated))
    found = score_by_folds(features, Judged(rated[order], ratings[rated[order]]), groups)
    by_model = []
    for fold, penalty in enumerate(found.penalties):
        rows = np.array([row for row in rated if folds[groups[row]] != fold])
        mean, spread = np.nanmean(features[rows], axis=0), np.nanstd(features[rows], axis=0)
        standard = np.nan_to_num((features - mean) / spread, nan=0.0)
        own = standard[rows]
        # The penalty is a share of the mean square of the centred rows.
        unit = ((own - own.mean(axis=0)) ** 2).sum(axis=1).mean()
        by_model.append(Ridge(alpha=penalty * unit, solver="cholesky").fit(own, ratings[rows]).predict(standard))
    expected = [
        by_model[folds[name]][row] if name in folds else np.mean([one[row] for one in by_model])
        for row, name in enumerate(groups)
    ]
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-9)


def make_pairs(seed: int, n_groups: int = 30):
    """The first output of each group compared with the others, in one group fewer."""
    features, quality, groups = make(seed, n_groups)
    first = np.repeat(np.arange(0, 3 * (n_groups - 1), 3), 2)
    second = first + np.tile([1, 2], n_groups - 1)
    return features, Judged(first, (quality[first] > quality[second]).astype(float), second), groups


def test_folds_of_comparisons_equal_fits_by_scikit_learn():
    features, judged, groups = make_pairs(5)
    found = score_by_folds(features, judged, groups)
    folds = deal_folds([groups[row] for row in judged.first])
    by_model = []
    for fold, penalty in enumerate(found.penalties):
        own = judged.only(np.array([folds[groups[row]] != fold for row in judged.first]))
        rows = np.unique(own.rows)
        standard = np.nan_to_num((features - np.nanmean(features[rows], axis=0)) / np.nanstd(features[rows], axis=0))
        apart = standard[own.first] - standard[own.second]
        share = penalty * (apart**2).sum(axis=1).mean()
        model = LogisticRegression(C=4 / share, fit_intercept=False, tol=1e-10, max_iter=1000).fit(apart, own.labels)
        values = model.decision_function(standard)
        by_model.append(values - values[own.rows].mean())
    expected = [
        by_model[folds[name]][row] if name in folds else np.mean([one[row] for one in by_model])
        for row, name in enumerate(groups)
    ]
    np.testing.assert_allclose(found.values, expected, atol=1e-4)


def test_comparisons_of_a_group_are_not_in_its_scores():
    features, judged, groups = make_pairs(6)
    before = score_by_folds(features, judged, groups).values
    turned = np.array([groups[row] == "g4" for row in judged.first])
    changed = Judged(judged.first, np.where(turned, 1 - judged.labels, judged.labels), judged.second)
    after = score_by_folds(features, changed, groups).values
    own = np.array([name == "g4" for name in groups])
    np.testing.assert_array_equal(after[own], before[own])
    assert (after[~own] != before[~own]).any()


def test_labels_of_a_group_are_not_in_its_scores():
    features, ratings, groups = make(3)
    rated = np.arange(30)
    before = score_by_folds(features, Judged(rated, ratings[rated]), groups).values
    own = np.array([name == "g4" for name in groups])
    changed = np.where(own, ratings + 100.0, ratings)
    after = score_by_folds(features, Judged(rated, changed[rated]), groups).values
    np.testing.assert_array_equal(after[own], before[own])
    assert (after[~own] != before[~own]).any()


def test_folds_differ_by_one_group_at_most():
    folds = deal_folds([f"g{k}" for k in range(13)] * 2)
    assert sorted(np.bincount(list(folds.values()))) == [2, 2, 3, 3, 3]


def test_one_group_is_not_enough():
    with pytest.raises(ValueError, match="two judged groups"):
        score_by_folds(np.eye(3), Judged(np.array([0, 1]), np.array([1.0, 2.0])), ["a", "a", "b"])
