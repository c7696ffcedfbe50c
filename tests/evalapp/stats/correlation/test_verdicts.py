"""Human-compared pairs: verdicts, accuracy, tie thresholds, people against people, tests."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from evalapp.stats.correlation.pair_tests import PairTests
from evalapp.stats.correlation.significance import compare_verdicts
from evalapp.stats.correlation.verdicts import (
    ALONE,
    NO_DECIDED,
    NO_PAIR,
    agree_on_pairs,
    chance_level,
    margins,
    one_against_others,
    outcomes,
    verdict_pairs,
)
from evalapp.stats.resampling.bootstrap import Bootstrap


def test_two_outputs_are_one_pair_in_either_order():
    pairs = verdict_pairs([5, 2, 5, 7, 7], [2, 5, 2, 8, 8], [1, -1, 0, 1, -1])
    assert pairs.first.tolist() == [2, 7]
    assert pairs.second.tolist() == [5, 8]
    # 5 beats 2 twice and ties once; 7 and 8 have no majority verdict.
    assert pairs.counts.tolist() == [[2, 1, 0], [1, 0, 1]]
    assert pairs.sign.tolist() == [-1, 0]
    assert pairs.agreed.tolist() == [True, False]
    assert pairs.of.tolist() == [0, 0, 0, 1, 1]
    assert pairs.said.tolist() == [-1, -1, 0, 1, -1]
    assert pairs.row.tolist() == [0, 3]


@pytest.mark.parametrize(("first", "second", "said"), [([1], [1], [1]), ([1], [2], [2])])
def test_invalid_pair_is_refused(first, second, said):
    with pytest.raises(ValueError, match="two different outputs"):
        verdict_pairs(first, second, said)


def test_no_judgement_gives_no_pairs():
    pairs = verdict_pairs([], [], [])
    assert len(pairs) == 0
    assert pairs.sign.tolist() == []
    found = agree_on_pairs([], [], bootstrap=Bootstrap(cluster=[], seed=13))
    assert found.decided.note == NO_DECIDED
    assert found.calibration.accuracy.note == NO_PAIR
    assert one_against_others(pairs, bootstrap=Bootstrap(cluster=np.zeros(0, dtype=np.int64), seed=13))[0].note == ALONE


def test_rounding_creates_no_score_difference():
    assert margins([0.1 + 0.2, 1.0, np.nan], [0.3, 0.0, 1.0])[:2].tolist() == [0.0, 1.0]
    assert np.isnan(margins([0.1 + 0.2, 1.0, np.nan], [0.3, 0.0, 1.0])[2])


def test_tied_scores_are_half_right():
    found = outcomes([2.0, -1.0, 0.0, 5.0, np.nan], [1, 1, -1, 0, 1])
    assert found[:3].tolist() == [1.0, 0.0, 0.5]
    assert np.isnan(found[3:]).all()


def test_accuracy_and_threshold_match_manual_counts():
    margin = [3.0, -2.0, 0.1, -0.2, 0.0, 1.0, np.nan]
    sign = [1, -1, 0, 0, 1, -1, 1]
    found = agree_on_pairs(margin, sign, folds=None, bootstrap=Bootstrap(cluster=range(7), resamples=0, seed=13))
    # Decided with both scores: right, right, tied, wrong.
    assert (found.decided.value, found.decided.n) == (2.5 / 4, 4)
    assert found.equal == 1 / 4
    assert found.n_missing == 1
    # Without a threshold 2 of 6 are right (the tie on a decided pair is wrong); .2 makes both human ties right.
    assert found.calibration.epsilon == pytest.approx(0.2)
    assert found.calibration.accuracy.value == pytest.approx(4 / 6)
    assert found.calibration.n_pairs == 6


def test_threshold_is_optimal_and_validated_on_whole_clusters():
    rng = np.random.default_rng(0)
    sign = rng.integers(-1, 2, size=200)
    margin = sign * 1.0 + rng.normal(size=200)
    cluster = np.arange(200) // 4
    found = agree_on_pairs(margin, sign, bootstrap=Bootstrap(cluster=cluster, resamples=200, seed=13)).calibration
    candidates = [0.0, *np.abs(margin)]
    shares = [float((np.where(np.abs(margin) <= e, 0, np.sign(margin)) == sign).mean()) for e in candidates]
    assert found.accuracy.value == pytest.approx(max(shares))
    assert found.cross_validated is not None
    assert found.cross_validated.value <= found.accuracy.value
    assert found.cross_validated.low < found.cross_validated.value < found.cross_validated.high


def test_interval_resamples_whole_clusters():
    """Copies of a pair within its cluster add no information: the interval stays as wide as for one pair each."""
    rng = np.random.default_rng(1)
    sign = np.where(rng.random(60) < 0.5, 1, -1)
    margin = sign * np.where(rng.random(60) < 0.7, 1.0, -1.0)
    once = agree_on_pairs(margin, sign, bootstrap=Bootstrap(cluster=np.arange(60), seed=13)).decided
    copied = agree_on_pairs(
        np.repeat(margin, 5), np.repeat(sign, 5), bootstrap=Bootstrap(cluster=np.repeat(np.arange(60), 5), seed=13)
    ).decided
    assert (once.value, once.low, once.high) == pytest.approx((copied.value, copied.low, copied.high))
    assert (once.n, copied.n) == (60, 300)
    exact = np.sqrt(once.value * (1 - once.value) / 60)
    assert once.high - once.low == pytest.approx(2 * 1.96 * exact, rel=0.15)


def test_chance_level_is_the_better_of_always_tied_and_a_coin():
    assert chance_level(np.array([0, 0, 0, 1])) == 0.75
    assert chance_level(np.array([0, 1, -1, 1, 1])) == 0.4


def test_one_person_against_the_others():
    # Pair (0, 1): three say the first is better, one that it is worse. Pair (2, 3): a single judge.
    pairs = verdict_pairs([0, 0, 0, 0, 2], [1, 1, 1, 1, 3], [1, 1, 1, -1, 1])
    decided, verdicts = one_against_others(pairs, bootstrap=Bootstrap(cluster=np.array([0, 0, 0, 0, 1]), seed=13))
    # For each of the three, 2 of 3 others say "better"; the fourth has 3 of 3 against; the single judge has no others.
    assert (decided.value, decided.n) == (3 / 4, 4)
    assert (verdicts.value, verdicts.n) == (3 / 4, 4)
    alone = one_against_others(
        verdict_pairs([0, 2], [1, 3], [1, 1]), bootstrap=Bootstrap(cluster=np.array([0, 1]), seed=13)
    )
    assert [one.note for one in alone] == [ALONE, ALONE]


def _outcomes(n: int, shares: dict[str, float], seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: (rng.random(n) < share).astype(float) for name, share in shares.items()}


@pytest.mark.parametrize("test", ["permutation", "bootstrap"])
def test_more_accurate_evaluator_differs_significantly(test):
    found = compare_verdicts(
        _outcomes(300, {"poor": 0.5, "good": 0.8, "same": 0.78}), np.arange(300), tests=PairTests(test=test)
    )
    assert found.names == ("good", "same", "poor")
    assert found.letters == ("a", "a", "b")
    assert found.coefficient == "verdicts"
    assert "coef:verdicts" in found.signature
    assert found.n_rows == 300
    assert found.values[0] > found.values[2]


def test_permutation_is_exact_where_exchanges_can_be_listed():
    """Eight clusters have 256 exchanges: p is the share that reaches the difference, up to the draws."""
    right = {"a": np.array([1, 1, 1, 1, 1, 0.5, 1, 0]), "b": np.array([0, 1, 0, 0.5, 1, 0, 0, 1])}
    delta = right["a"] - right["b"]
    every = [np.dot(signs, delta) for signs in itertools.product([1, -1], repeat=8)]
    exact = np.mean(np.array(every) >= delta.sum() - 1e-9)
    found = compare_verdicts(right, np.arange(8), tests=PairTests(k=20000))
    assert found.p[0, 1] == pytest.approx(exact, abs=0.01)


def test_whole_clusters_are_exchanged():
    right = {"a": np.repeat([1.0, 0.0, 1.0], 50), "b": np.repeat([0.0, 1.0, 0.0], 50)}
    one_by_one = compare_verdicts(right, np.arange(150))
    by_cluster = compare_verdicts(right, np.repeat([0, 1, 2], 50))
    assert one_by_one.p[0, 1] < 0.01
    assert by_cluster.p[0, 1] > 0.2


def test_equal_metrics_rarely_differ_significantly():
    """Under the null, the two-sided test at .05 must reject about .05 of 400 sets of 60 pairs."""
    rejected = sum(
        compare_verdicts(_outcomes(60, {"a": 0.6, "b": 0.6}, seed), np.arange(60), tests=PairTests(k=400)).letters
        == ("a", "b")
        for seed in range(400)
    )
    assert rejected / 400 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_only_pairs_scored_by_all_are_compared():
    right = _outcomes(40, {"a": 0.9, "b": 0.4})
    right["a"][:10] = np.nan
    found = compare_verdicts({**right, "none": np.full(40, np.nan)}, np.arange(40))
    assert found.n_rows == 30
    assert "10 of 40 pairs lack a score" in found.note
    assert "none has no verdict" in found.note
    assert found.letters[-1] == ""


@pytest.mark.parametrize("test", ["permutation", "bootstrap"])
def test_always_right_and_always_wrong_evaluators_are_compared(test):
    """40 pairs in 40 clusters: 1, .5 (exactly) and 0 differ; p of all right against all wrong is the smallest."""
    right = {"half": np.tile([1.0, 0.0], 20), "all": np.ones(40), "none": np.zeros(40)}
    found = compare_verdicts(right, np.arange(40), tests=PairTests(test=test))
    assert found.names == ("all", "half", "none")
    assert tuple(found.values) == (1.0, 0.5, 0.0)
    assert found.letters == ("a", "b", "c")
    assert found.p[0, 2] == pytest.approx(1 / 1001)
    assert "no defined" not in found.note


@pytest.mark.parametrize("wrong", [{"test": "williams"}, {"adjust": "bonferroni"}, {"k": 0}, {"alpha": 1.0}])
def test_invalid_settings_are_refused(wrong):
    with pytest.raises(ValueError, match=r"permutation or bootstrap|k >= 1"):
        compare_verdicts(_outcomes(10, {"a": 0.5, "b": 0.5}), np.arange(10), tests=PairTests(**wrong))
