"""The number of changed judgements that would change the order: by hand, against all possible changes, bounds."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalapp.stats.ranking.comparisons import ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.fragility import fragility
from evalapp.stats.ranking.judgements import PairwiseComparisons
from tests.evalapp.stats.ranking.comparison_data import GOLDEN, draw, make_columns


def test_two_systems_by_hand():
    # 7 to 4: 2 changes give 5 to 6.
    found = fragility(["x"] * 11, ["y"] * 11, ["a"] * 7 + ["b"] * 4)
    assert (found.first, found.second) == ("x", "y")
    assert (found.n_flips, found.at_least, found.direct, found.exact) == (2, 2, 2, True)
    assert found.share == pytest.approx(2 / 11)
    assert found.sentence == "Changing 2 judgements of 11 (18 %) swaps x and y (no fewer can)."
    assert json.loads(json.dumps(found.as_dict()))["exact"]


def test_worked_example_is_balanced_so_it_is_exact():
    # Points: 25.5 for 0, 20 for 2. Reversing one of the 9 wins of 0 over 2 reduces the difference of 5.5 by 2.
    found = fragility(*make_columns(GOLDEN))
    assert (found.first, found.second, found.n_flips, found.exact) == (0, 2, 3, True)


def brute_force(a, b, verdict, first, second, model):
    """The smallest number of changes, over all sets of judgements and new verdicts."""
    for n in range(1, len(verdict) + 1):
        for rows in itertools.combinations(range(len(verdict)), n):
            for new in itertools.product("ab", repeat=n):
                changed = np.array(verdict, dtype=object)
                changed[list(rows)] = new
                ranking = rank_by_comparisons(
                    PairwiseComparisons(a, b, changed), model=ComparisonModel(method=model, prior_sd=1e3)
                )
                value = {row.system: row.estimate.value for row in ranking.systems}
                if value[second] > value[first] + 1e-6:
                    return n
    return None


@pytest.mark.parametrize("seed", [3, 6])
def test_bounds_hold_against_all_possible_changes(seed):
    a, b, verdict, *_ = draw([0.9, 0, -0.4], 9, seed=seed, log_nu=-1.5)
    found = fragility(a, b, verdict)
    assert found.n_flips is not None
    best = brute_force(a, b, verdict, found.first, found.second, "bradley-terry")
    assert found.at_least <= best <= found.n_flips
    if found.exact:
        assert best == found.n_flips


@settings(max_examples=8)
@given(seed=st.integers(0, 9999), model=st.sampled_from(["bradley-terry", "davidson", "rao-kupper"]))
def test_bounds_order_rows_and_balance(seed, model):
    rng = np.random.default_rng(seed)
    n = 4
    first, second = (np.repeat(k, 15) for k in np.triu_indices(n, 1))
    verdict = rng.choice(["a", "b", "tie"], len(first), p=[0.5, 0.3, 0.2])
    found = fragility(first, second, verdict, model=model)
    order = rng.permutation(len(first))
    assert found == fragility(first[order], second[order], verdict[order], model=model)
    if found.n_flips:
        assert found.at_least <= found.n_flips
        # With equally many comparisons of each pair, the bounds meet.
        assert found.exact or model == "rao-kupper"
        assert found.direct is None or found.direct >= found.n_flips


def test_unbalanced_comparisons_give_bounds():
    a, b, verdict, *_ = draw([1.2, 0.4, 0, -0.5, -1], 400, seed=7)
    found = fragility(a, b, verdict)
    assert 1 <= found.at_least <= found.n_flips <= 60
    assert ("no fewer can" in found.sentence) == found.exact


def test_degenerate():
    even = fragility(["x", "y"], ["y", "x"], ["a", "a"])
    assert (even.n_flips, even.sentence) == (0, "x and y are equal.")
    none = fragility([], [], [])
    assert none.n_flips is None
    assert "No number" in none.sentence
    assert none.as_dict()["share"] is None
    alone = fragility(["x"] * 3, ["y"] * 3, ["a"] * 3)
    assert alone.n_flips is None
    with pytest.raises(ValueError, match="model"):
        fragility(["x"], ["y"], ["a"], model="glicko2")
