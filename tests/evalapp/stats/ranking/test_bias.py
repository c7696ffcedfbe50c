"""Side and length bias: binomial test, statsmodels, ties from 0 to 90 %, effects of systems, unidentifiable cases."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from evalapp.stats.ranking.bias import length_bias, side_bias
from scoring.boards.base import AspectInfo
from scoring.boards.data.files import ExportFolder
from scoring.boards.data.folder import FolderData
from scoring.boards.systems.query import SystemsQuery
from tests.evalapp.stats.ranking.comparison_data import draw


def test_two_equal_systems_by_hand():
    # Each is shown first 10 times and wins 7 times then: odds of the side 7 to 3.
    a, b = ["x"] * 10 + ["y"] * 10, ["y"] * 10 + ["x"] * 10
    found = side_bias(a, b, (["a"] * 7 + ["b"] * 3) * 2)
    assert found.estimate.value == pytest.approx(0.7)
    assert found.log_odds.value == pytest.approx(np.log(7 / 3))
    assert found.raw.value == pytest.approx(0.7)
    assert found.raw_p == pytest.approx(binomtest(14, 20).pvalue)
    assert found.sentence.startswith("Between equal systems the first side wins 70.0 % of the decided comparisons (")


def test_effect_and_p_equal_a_logit_with_robust_errors():
    a, b, _, _, length = draw([0.5, 0, -0.5], 500, seed=2)
    rng = np.random.default_rng(3)
    theta = np.array([0.5, 0, -0.5])
    won = rng.random(500) < 1 / (1 + np.exp(-(theta[a] - theta[b] + 0.4 * length)))
    found = length_bias(a, b, np.where(won, "a", "b"), length)
    signs = np.zeros((500, 3))
    signs[np.arange(500), a], signs[np.arange(500), b] = 1, -1
    scale = np.sqrt(np.mean(length**2))
    theirs = sm.Logit(won, np.column_stack([signs[:, 1:], length / scale])).fit(disp=0, cov_type="HC0", tol=1e-12)
    assert found.log_odds.value == pytest.approx(theirs.params[2], abs=1e-6)
    assert found.p == pytest.approx(theirs.pvalues[2], rel=1e-4)


def test_better_system_shown_first_is_no_side_bias():
    rng = np.random.default_rng(5)
    first = rng.random(800) < 0.8
    a, b = np.where(first, "good", "bad"), np.where(first, "bad", "good")
    won = rng.random(800) < np.where(first, 0.75, 0.25)
    found = side_bias(a, b, np.where(won, "a", "b"), item=np.arange(800) % 200)
    assert found.raw.value > 0.6
    assert found.raw_p < 0.001
    assert found.p > 0.05
    assert found.estimate.low < 0.5 < found.estimate.high


@settings(max_examples=10)
@given(seed=st.integers(0, 9999))
def test_swapping_sides_mirrors_the_side_and_keeps_the_length(seed):
    a, b, verdict, item, length = draw([0.5, 0, -0.5], 150, seed=seed, side=0.3, slope=0.2)
    swapped = np.array([{"a": "b", "b": "a", "tie": "tie"}[v] for v in verdict])
    order = np.random.default_rng(seed).permutation(150)
    one, two = side_bias(a, b, verdict, item=item), side_bias(b[order], a[order], swapped[order], item=item[order])
    assert one.estimate.value == pytest.approx(1 - two.estimate.value, abs=1e-7)
    assert one.p == pytest.approx(two.p, abs=1e-7)
    assert one.raw.value == pytest.approx(1 - two.raw.value)
    one, two = length_bias(a, b, verdict, length), length_bias(b[order], a[order], swapped[order], -length[order] * 7)
    assert one.estimate.value == pytest.approx(two.estimate.value, abs=1e-7)
    assert one.raw.value == pytest.approx(two.raw.value)


def test_unidentifiable_effects():
    fixed = side_bias(["x"] * 9, ["y"] * 9, ["a"] * 6 + ["b"] * 3)
    assert "cannot be determined" in fixed.sentence
    assert fixed.raw.value == pytest.approx(2 / 3)
    assert not side_bias([], [], []).raw.is_defined
    equal = length_bias(["x", "y"], ["y", "x"], ["a", "a"], [0, 0])
    assert "equally long" in equal.estimate.note
    assert json.loads(json.dumps(equal.as_dict()))["raw"]["value"] is None
    one = side_bias(["x", "y"], ["y", "x"], ["a", "a"], item=[0, 0])
    assert "no interval: 1 groups only" in one.raw.note


# Values of ln nu in Davidson's model that give about 0, 10, 30, 50, 70, 90 % ties between systems of strengths `THETA`.
TIES = {0.0: -30.0, 0.1: -1.4, 0.3: -0.1, 0.5: 0.75, 0.7: 1.6, 0.9: 3.0}
THETA = (0.6, 0.2, -0.2, -0.6)


@pytest.mark.parametrize("share", TIES)
def test_truth_is_recovered_at_any_share_of_ties(share):
    # Among decided comparisons of equal systems, the first side wins with odds e^0.45, a text one unit longer with
    # e^-0.4: under Davidson's model for any nu.
    sides, lengths, widths = [], [], []
    for seed in range(25):
        a, b, verdict, item, length = draw(THETA, 1500, seed=seed, log_nu=TIES[share], side=0.45)
        assert (verdict == "tie").mean() == pytest.approx(share, abs=0.05)
        found = side_bias(a, b, verdict, item=item)
        sides.append(found.log_odds)
        widths.append(found.log_odds.high - found.log_odds.low)
        a, b, verdict, item, length = draw(THETA, 1500, seed=seed, log_nu=TIES[share], slope=-0.4)
        usual = np.sqrt(np.mean(length**2))
        one = length_bias(a, b, verdict, length, item=item).log_odds
        lengths.append([one.value / usual, one.low / usual, one.high / usual])
    decided = 1500 * (1 - share)
    # Standard error of the mean of 25: about 2 / sqrt(decided) / sqrt(25); three standard errors are allowed.
    close = 3 * 2.3 / np.sqrt(25 * decided)
    assert np.mean([one.value for one in sides]) == pytest.approx(0.45, abs=close)
    assert np.mean([value for value, _, _ in lengths]) == pytest.approx(-0.4, abs=close)
    # At least 20 of 25 intervals of 95 % cover the truth except in one case in 800; they widen as decided comparisons
    # get fewer.
    assert sum(one.low <= 0.45 <= one.high for one in sides) >= 20
    assert sum(low <= -0.4 <= high for _, low, high in lengths) >= 20
    assert np.mean(widths) > 0.9 * 2 * 1.96 * 2 / np.sqrt(decided)


@settings(max_examples=30)
@given(seed=st.integers(0, 9999), extra=st.integers(0, 200), kind=st.sampled_from(["tie", "both_bad", "cannot_decide"]))
def test_further_ties_change_nothing(seed, extra, kind):
    a, b, verdict, _, length = draw(THETA, 120, seed=seed, side=0.3)
    more = np.random.default_rng(seed).integers(120, size=extra)
    columns = [np.concatenate([column, column[more]]) for column in (a, b, length)]
    verdicts = np.concatenate([verdict, np.full(extra, kind)])
    for one, two in (
        (side_bias(a, b, verdict), side_bias(*columns[:2], verdicts)),
        (length_bias(a, b, verdict, np.sign(length)), length_bias(*columns[:2], verdicts, np.sign(columns[2]))),
    ):
        assert two.sentence == one.sentence
        assert two.estimate.as_dict() == pytest.approx(one.estimate.as_dict(), nan_ok=True)
        assert two.raw.as_dict() == one.raw.as_dict()
        assert two.estimate.n <= (verdict != "tie").sum()


def test_one_of_two_decided_is_half_whatever_the_ties():
    """By hand: the first side wins 6 of 8 decided comparisons, each system being first in four; 92 are tied."""
    a, b = ["x", "y"] * 4 + ["x", "y"] * 46, ["y", "x"] * 4 + ["y", "x"] * 46
    found = side_bias(a, b, ["a"] * 6 + ["b"] * 2 + ["tie"] * 92)
    assert found.estimate.value == pytest.approx(0.75)
    assert found.estimate.n == 8
    # A logit of 8 independent verdicts: variance 1 / (8 x .75 x .25).
    reach = 1.959964 / np.sqrt(8 * 0.75 * 0.25)
    assert found.log_odds.high - found.log_odds.value == pytest.approx(reach, rel=1e-5)


@pytest.mark.parametrize("n", [1, 40])
def test_side_that_always_wins_has_no_finite_odds(n):
    for test in (side_bias, partial(length_bias, length_difference=[1, 2] * n)):
        found = test(["x", "y"] * n, ["y", "x"] * n, ["a", "a"] * n)
        assert not found.estimate.is_defined
        assert "without exception" in found.sentence
        assert found.raw.value == 1.0


def test_rated_texts_of_equal_length_while_others_differ():
    found = length_bias(["x", "y", "z"], ["y", "x", "x"], ["a", "a", "a"], [0, 0, 3])
    assert found.estimate.note == "the texts of the systems that can be rated are equally long"


@pytest.mark.parametrize(("aspect", "right"), [("quality", 0.613), ("naturalness", 0.414)])
def test_e2e_matches_its_decided_comparisons(aspect, right, shared_data):
    """Expected values: a logit over the decided comparisons with statsmodels, length in tokens at its root mean
    square."""
    data = FolderData(ExportFolder(shared_data / "e2e"), {"table": {}}, {})
    found = data.load_comparisons(AspectInfo(aspect), SystemsQuery(), turing=False)
    labels = np.array([unit.label for unit in found.units.units])
    sides = (labels[found.system_a], labels[found.system_b], found.verdict)
    bias = length_bias(*sides, length_difference=found.longer, item=found.item, cluster=found.cluster)
    # The product counts characters, the expected figure tokens: .6135 and .4091.
    assert bias.estimate.value == pytest.approx(right, abs=0.006)
    decided = (found.verdict == "a") | (found.verdict == "b")
    assert bias.estimate.n == decided.sum()
    columns = np.zeros((len(labels), decided.sum()))
    columns[found.system_a[decided], np.arange(decided.sum())] = 1
    columns[found.system_b[decided], np.arange(decided.sum())] -= 1
    usual = np.sqrt(np.mean(found.longer**2))
    design = np.column_stack([columns[1:].T, found.longer[decided] / usual])
    theirs = sm.Logit(found.verdict[decided] == "a", design).fit(disp=0, tol=1e-12)
    assert bias.log_odds.value == pytest.approx(theirs.params[-1], abs=1e-6)
