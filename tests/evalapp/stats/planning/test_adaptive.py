"""Adaptive pairs: gains against refits, propensities, the weighted estimator, and judgements saved in a simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

from evalapp.stats.planning.adaptive import NextPair, PairState, choose_pair, gains, pair_chances
from evalapp.stats.planning.adaptive_simulation import PairChoice, saved_share, simulate_saving
from evalapp.stats.ranking.comparisons import rank_by_comparisons
from evalapp.stats.ranking.judgements import PairwiseComparisons


def make_state(counts, n=3):
    first, second, wins, ties, losses = zip(*[(*pair, *numbers) for pair, numbers in counts.items()], strict=True)
    return PairState.from_counts(n, first, second, wins, ties, losses)


GOLDEN = {(0, 1): (12, 5, 3), (0, 2): (9, 4, 7), (1, 2): (6, 6, 8)}


def test_ratings_are_the_posterior_mode_and_update_incrementally():
    state = make_state(GOLDEN)
    assert state.n_judgements == 60

    def negative(theta):
        value = theta @ theta / 8
        for (i, j), (wins, ties, losses) in GOLDEN.items():
            p = 1 / (1 + np.exp(theta[j] - theta[i]))
            value -= (wins + ties / 2) * np.log(p) + (losses + ties / 2) * np.log(1 - p)
        return value

    assert state.theta == pytest.approx(minimize(negative, np.zeros(3), tol=1e-10).x, abs=1e-5)
    grown = PairState(3)
    for (i, j), numbers in GOLDEN.items():
        for points, n in zip((1, 0.5, 0), numbers, strict=True):
            for _ in range(n):
                grown.add(i, j, points)
                assert np.isfinite(grown.theta).all()
    assert grown.theta == pytest.approx(state.theta, abs=1e-6)
    assert grown.covariance == pytest.approx(state.covariance, abs=1e-6)


def test_gain_equals_the_effect_of_one_more_judgement():
    state = make_state({(0, 1): (5, 1, 4), (1, 2): (7, 0, 2), (2, 3): (3, 3, 3), (0, 3): (4, 0, 5)}, 4)
    theta, before = state.theta, state.covariance
    w = state.information
    for goal in ("ranking", "best"):
        told = gains(state, goal)
        for i, j in ((0, 1), (0, 2), (1, 3)):
            x = np.zeros(4)
            x[[i, j]] = 1, -1
            after = np.linalg.inv(np.linalg.inv(before) + w[i, j] * np.outer(x, x))
            expected = 0.0
            for k in range(4):
                for m in range(k + 1, 4):
                    if goal == "best" and theta.argmax() not in (k, m):
                        continue
                    y = np.zeros(4)
                    y[[k, m]] = 1, -1
                    old, new = y @ before @ y, y @ after @ y
                    z = (theta[k] - theta[m]) / np.sqrt(old)
                    chance = norm.cdf(z)
                    expected += (old - new) / old * norm.pdf(z) ** 2 / (2 * chance * (1 - chance))
            assert told[i, j] == pytest.approx(expected, rel=1e-9)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), floor=st.floats(0, 1), goal=st.sampled_from(["ranking", "best"]))
def test_propensities_are_probabilities_with_a_floor(seed, floor, goal):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    state = PairState(n)
    for _ in range(int(rng.integers(0, 40))):
        a, b = rng.choice(n, 2, replace=False)
        state.add(int(a), int(b), float(rng.choice([0, 0.5, 1])))
    mask = rng.random((n, n)) < 0.7
    mask[0, 1] = True
    chances, first, second = pair_chances(state, floor=floor, goal=goal, available=mask)
    assert chances.sum() == pytest.approx(1)
    assert (chances >= floor / len(chances) - 1e-12).all()
    assert (mask | mask.T)[first, second].all()
    chosen = choose_pair(state, rng, floor=floor, goal=goal, available=mask)
    place = np.flatnonzero((first == min(chosen[:2])) & (second == max(chosen[:2])))
    assert chosen.propensity == pytest.approx(chances[place[0]])
    # Names of systems do not matter.
    order = rng.permutation(n)
    again = PairState(n)
    again.points = state.points[np.ix_(order, order)]
    if np.ptp(state.theta[state.theta.argsort()[-2:]]) > 1e-6 or goal == "ranking":
        assert gains(again, goal) == pytest.approx(gains(state, goal)[np.ix_(order, order)], abs=1e-7)


def test_choice_follows_the_probabilities_and_sides_are_random():
    state = make_state(GOLDEN)
    chances, first, second = pair_chances(state)
    rng = np.random.default_rng(4)
    drawn = [choose_pair(state, rng) for _ in range(1000)]
    assert isinstance(drawn[0], NextPair)
    for chance, i, j in zip(chances, first, second, strict=True):
        share = np.mean([{pair.a, pair.b} == {i, j} for pair in drawn])
        assert share == pytest.approx(chance, abs=0.06)
    assert np.mean([pair.a < pair.b for pair in drawn]) == pytest.approx(0.5, abs=0.06)


def test_floor_of_one_is_random_choice():
    chances, *_ = pair_chances(make_state(GOLDEN), floor=1)
    assert chances.tolist() == [1 / 3] * 3


def test_weights_correct_for_the_choice_under_a_wrong_model():
    # No ratings fit these data: 0 beats 1, 1 beats 2, 2 beats 0.
    chance = {(0, 1): 0.9, (1, 2): 0.9, (0, 2): 0.1, (0, 3): 0.6, (1, 3): 0.75, (2, 3): 0.9}
    state = make_state({(0, 1): (9, 0, 1), (1, 2): (5, 0, 5), (2, 3): (9, 0, 1), (0, 3): (6, 0, 4)}, 4)
    chances, first, second = pair_chances(state, floor=0.3, goal="best")
    rng = np.random.default_rng(5)
    drawn = rng.choice(len(chances), size=20_000, p=chances)
    won = rng.random(20_000) < np.array([chance[pair] for pair in zip(first, second, strict=True)])[drawn]
    columns = first[drawn], second[drawn], np.where(won, "a", "b")

    def ratings(*columns, weight=None):
        rows = rank_by_comparisons(PairwiseComparisons(*columns, weight=weight)).systems
        return np.array([row.estimate.value for row in sorted(rows, key=lambda row: row.system)])

    # The limit of a uniform choice of pairs.
    rows = [(*pair, verdict) for pair in chance for verdict in "ab"]
    even = ratings(*zip(*rows, strict=True), weight=[abs((v == "b") - chance[i, j]) for i, j, v in rows])
    assert np.abs(ratings(*columns, weight=1 / chances[drawn]) - even).max() < 15
    assert np.abs(ratings(*columns) - even).max() > 30


def test_adaptive_choice_saves_judgements():
    # 10 systems spaced half a theta apart; the documented figures are in docs/results/rankings.md.
    theta = np.linspace(1.2, -1.2, 10)
    found = simulate_saving(theta, 300, runs=4, seed=13, choice=PairChoice(every=10))
    assert found.adaptive[-1] < found.random[-1]
    assert found.saved.value > 0.1
    assert "fewer judgements" in found.sentence
    assert found == simulate_saving(theta, 300, runs=4, seed=13, choice=PairChoice(every=10))
    best = simulate_saving(theta, 200, runs=4, seed=13, choice=PairChoice(goal="best", every=10))
    assert sum(best.adaptive) < sum(best.random)
    assert best.as_dict()["saved"]["n"] == 4


def test_saved_share_by_hand():
    # Random ends at .1 after 300; adaptive passes .1 midway between 100 and 200.
    assert saved_share((100, 200, 300), np.array([0.3, 0.2, 0.1]), np.array([0.15, 0.05, 0.0])) == pytest.approx(0.5)
    assert np.isnan(saved_share((1, 2), np.array([0.3, 0.1]), np.array([0.3, 0.2])))
    assert saved_share((1, 2), np.array([0.3, 0.1]), np.array([0.1, 0.1])) == 0.5


def test_invalid_input_is_refused():
    state = PairState(3)
    with pytest.raises(ValueError, match="two systems"):
        PairState(1)
    with pytest.raises(ValueError, match="with itself"):
        state.add(1, 1, 1)
    with pytest.raises(ValueError, match="with itself"):
        PairState.from_counts(2, [0], [0], [1], [0], [0])
    with pytest.raises(ValueError, match="no pair"):
        choose_pair(state, np.random.default_rng(0), available=np.zeros((3, 3), dtype=bool))
    with pytest.raises(ValueError, match="floor"):
        pair_chances(state, floor=1.2)
    with pytest.raises(ValueError, match="goal"):
        pair_chances(state, goal="worst")


def test_all_pairs_are_equal_before_any_judgement():
    chances, *_ = pair_chances(PairState(5))
    assert chances == pytest.approx(np.full(10, 0.1))
