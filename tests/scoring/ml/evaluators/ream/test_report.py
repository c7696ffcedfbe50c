"""The figures on held-out items, worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from scoring.ml.evaluators.ream.gold import ItemGold, Sample
from scoring.ml.evaluators.ream.report import report
from scoring.ml.evaluators.ream.training import PreparedItems, draw_samples
from tests.scoring.ml.evaluators.ream.by_hand import PEOPLE, Total, prepared

#: Predicted .8, .7, .5 and -.4.
SAMPLES = [Sample(0, (0,), 1.0), Sample(1, (1,), 1.0), Sample(0, (0, 1), 0.5), Sample(1, (0, 1), -0.5)]


def test_the_four_figures_by_hand() -> None:
    given = prepared()
    for sample in SAMPLES:
        assert given.gold[sample.item].reliabilities([sample.nodes])[0] == pytest.approx(sample.gold)
    for seed in range(5):
        found = report(Total(), given, SAMPLES, np.random.default_rng(seed))  # type: ignore[arg-type]
        assert found.n == 4
        # (.2^2 + .3^2 + 0 + .1^2) / 4
        assert found.mse == pytest.approx(0.035, abs=1e-6)
        # For one reference the mean is 1, for two it is 0: (0 + 0 + .5^2 + .5^2) / 4.
        assert found.constant == pytest.approx(0.125)
        assert found.r2 == pytest.approx(1 - 0.035 / 0.125, abs=1e-5)
        # Ranks 4, 3, 2, 1 and 3.5, 3.5, 2, 1: 4.5 / sqrt(5 x 4.5).
        assert found.spearman == pytest.approx(math.sqrt(0.9))
        # Remove: for A (.5) as for B (-.5), either reference is rightly distinguished from the pair, whichever is
        # removed. Add: the stranger lowers A, which is right (0 for 1 and 0 for .5), and B: right for (1), where .982
        # is compared with 1, wrong for the pair, where 0 is compared with -.5. Replace: the same.
        assert found.accuracy == {"remove": 1.0, "add": 0.75, "replace": 0.75}
        assert found.n_pairs == {"remove": 2, "add": 4, "replace": 4}


def test_sets_without_a_gold_are_counted_and_are_0_in_separate_figures() -> None:
    """Both aggregates, because excluding them rewards a metric that cannot distinguish answers."""
    found = report(Total(), prepared(), SAMPLES, np.random.default_rng(1), [(0, (1,))])  # type: ignore[arg-type]
    assert (found.n, found.n_undefined) == (4, 1)
    assert found.mse == pytest.approx(0.035, abs=1e-6)
    # It is predicted as -.3: (.2^2 + .3^2 + 0 + .1^2 + .3^2) / 5.
    assert found.zero["mse"] == pytest.approx(0.046, abs=1e-6)
    # For one reference the mean is 2/3, for two it is 0: (6/9 + .5^2 + .5^2) / 5.
    assert found.zero["constant"] == pytest.approx((6 / 9 + 0.5) / 5)
    assert found.zero["r2"] == pytest.approx(1 - 0.046 / ((6 / 9 + 0.5) / 5), abs=1e-5)
    # Ranks 5, 4, 3, 1, 2 and 4.5, 4.5, 3, 1, 2: 9.5 / sqrt(10 x 9.5).
    assert found.zero["spearman"] == pytest.approx(math.sqrt(0.95))
    whole = report(Total(), prepared(), SAMPLES, np.random.default_rng(1))  # type: ignore[arg-type]
    assert (whole.n_undefined, whole.zero["mse"], whole.accuracy) == (0, whole.mse, found.accuracy)


def test_sets_with_equal_scores_for_all_have_no_gold() -> None:
    constant, other = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), prepared().gold[0]
    drawn = draw_samples([other, ItemGold(constant, PEOPLE, 2)], (1, 2), 5, np.random.default_rng(1))
    assert (1, (0,)) in drawn[1]
    assert all(item == 1 for item, _ in drawn[1])
    assert {(sample.item, sample.nodes) for sample in drawn[0]} >= {(0, (0,)), (0, (1,)), (0, (0, 1)), (1, (1,))}


def test_changes_without_effect_on_reliability_make_no_pair() -> None:
    """A worthless stranger next to the reference: there is nothing to distinguish."""
    scores = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    given = PreparedItems([ItemGold(scores, PEOPLE, 1)], [0], np.array([[0.5], [0.1]], dtype=np.float32))
    found = report(Total(), given, [Sample(0, (0,), 1.0)], np.random.default_rng(1))  # type: ignore[arg-type]
    # Alone it is constant: no reliability either. And the only reference cannot be removed.
    assert found.n_pairs == {"remove": 0, "add": 0, "replace": 0}
    assert all(math.isnan(value) for value in found.accuracy.values())
    assert math.isnan(found.r2)
