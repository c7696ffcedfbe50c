"""Cross-fitted scores from a table of features: without labels of the own group, and without traces of earlier fits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from scoring.ml.evaluators.ridge.folds import deal_folds, score_by_folds


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
    score_by_folds(features, rated[:-3], ratings[rated[:-3]], groups)
    order = np.random.default_rng(seed + 2).permutation(len(rated))
    found = score_by_folds(features, rated[order], ratings[rated[order]], groups)
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


def test_labels_of_a_group_are_not_in_its_scores():
    features, ratings, groups = make(3)
    rated = np.arange(30)
    before = score_by_folds(features, rated, ratings[rated], groups).values
    own = np.array([name == "g4" for name in groups])
    changed = np.where(own, ratings + 100.0, ratings)
    after = score_by_folds(features, rated, changed[rated], groups).values
    np.testing.assert_array_equal(after[own], before[own])
    assert (after[~own] != before[~own]).any()


def test_folds_differ_by_one_group_at_most():
    folds = deal_folds([f"g{k}" for k in range(13)] * 2)
    assert sorted(np.bincount(list(folds.values()))) == [2, 2, 3, 3, 3]


def test_one_group_is_not_enough():
    with pytest.raises(ValueError, match="two rated groups"):
        score_by_folds(np.eye(3), np.array([0, 1]), np.array([1.0, 2.0]), ["a", "a", "b"])
