"""How many more comparisons separate the first two systems: by hand, by simulation, degenerate input."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from evalapp.stats.planning.power import needed_judgements
from evalapp.stats.ranking.judgements import PairwiseComparisons
from evalapp.stats.ranking.separation import estimate_separation
from tests.evalapp.stats.ranking.comparison_data import GOLDEN, draw, make_columns


def test_two_systems_by_hand():
    # 55 of 100: theta difference ln(55/45) = .2007, variance 4 p q / n ... = 1 / (100 * .55 * .45).
    found = estimate_separation(PairwiseComparisons(["x"] * 100, ["y"] * 100, ["a"] * 55 + ["b"] * 45))
    gap, one = math.log(55 / 45), 0.55 * 0.45
    needed = (gap / (1.959964 + 0.841621)) ** 2
    assert found.direct == found.spread == math.ceil(1 / needed / one - 100)
    assert found.p == pytest.approx(2 * (1 - 0.5 * (1 + math.erf(gap * math.sqrt(100 * one) / math.sqrt(2)))))
    # The closed form for a preference of 55 %, 783 (docs/explanation/statistics/planning.md#worked-numbers), minus the
    # 100 existing comparisons.
    assert found.direct == pytest.approx(needed_judgements("preference", 0.55) - 100, rel=0.03)
    assert found.sentence == "About 690 more comparisons would separate ranks 1 and 2 (if all are between these two)."


def test_comparing_only_the_two_needs_fewer():
    found = estimate_separation(PairwiseComparisons(*make_columns(GOLDEN)))
    assert (found.first, found.second) == (0, 2)
    assert 0 < found.direct < found.spread
    assert "spread over all pairs as so far" in found.sentence
    assert found.difference.value == pytest.approx(400 / math.log(10) * 0.37966, abs=0.01)
    assert json.loads(json.dumps(found.as_dict()))["direct"] == found.direct


@pytest.mark.parametrize("model", ["bradley-terry", "davidson", "rao-kupper"])
def test_recommended_number_separates_as_often_as_promised(model):
    theta = np.array([0.25, 0.0, -0.6, -1.0])
    a, b, verdict, *_ = draw(theta, 400, seed=16)
    found = estimate_separation(PairwiseComparisons(a, b, verdict), model=model)
    assert found.first == 0
    # The promised power is .8 if the true difference equals the observed one.
    direct = found.direct
    assert 50 < direct < 5000
    gap, separated = found.difference.value / (400 / math.log(10)), []
    for seed in range(20):
        # Bradley-Terry computes the power from its own probabilities, which have no ties.
        one, two, won, *_ = draw([gap, 0.0], direct, seed=seed, log_nu=-30 if model == "bradley-terry" else -0.5)
        after = estimate_separation(
            PairwiseComparisons(np.concatenate([a, one]), np.concatenate([b, two]), np.concatenate([verdict, won])),
            model=model,
        )
        separated.append(after.direct == 0)
    assert 0.5 < np.mean(separated) <= 1


def test_nothing_more_needed_or_unknown():
    far = estimate_separation(PairwiseComparisons(["x"] * 50, ["y"] * 50, ["a"] * 45 + ["b"] * 5))
    assert (far.direct, far.spread) == (0, 0)
    assert far.sentence == "Ranks 1 and 2 differ (p < .001)."
    even = estimate_separation(PairwiseComparisons(["x"] * 4, ["y"] * 4, ["a", "b"] * 2))
    assert even.direct is None
    assert "equal so far" in even.sentence
    none = estimate_separation(PairwiseComparisons([], [], []))
    assert not none.difference.is_defined
    assert none.sentence == ""
    close = estimate_separation(PairwiseComparisons(["x"] * 10_001, ["y"] * 10_001, ["a"] * 5_001 + ["b"] * 5_000))
    assert "million" in close.sentence or "equal so far" in close.sentence
