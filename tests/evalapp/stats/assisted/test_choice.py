"""Choosing outputs by predicted error: chances, weights by hand, and a small simulation against uniform sampling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from evalapp.stats.assisted.choice import deal_parts, draw_outputs, favour_first_systems, predict_errors
from evalapp.stats.assisted.means import AssistedOptions, estimate_means, rank_by_assisted_mean
from evalapp.stats.core.coding import ColumnError

NAN = float("nan")


def test_weighted_mean_by_hand():
    """Chances 1/2 and 1/8 weigh 2 and 8: ratings 1 and 3 have the mean (2 x 1 + 8 x 3) / 10 = 2.6, scores 1 and 2 the
    mean 1.8; all scores have the mean 2.5. With weight 1: 2.6 + 2.5 - 1.8 = 3.3."""
    human, score = [1.0, 3.0, NAN, NAN], [1.0, 2.0, 3.0, 4.0]
    chance = [0.5, 0.125, NAN, NAN]
    values = [
        estimate_means(human, score, range(4), ["m"] * 4, options=AssistedOptions(weight=weight), chance=chance)
        for weight in (0.0, 1.0)
    ]
    assert [one.value[0] for one in values] == pytest.approx([2.6, 3.3])
    assert (values[0].n_judged[0], values[0].n_scored[0]) == (2, 4)
    # Influences of the groups on the weighted mean: 2 (1 - 2.6) / 10 and 8 (3 - 2.6) / 10, times 2 / (2 - 1).
    assert values[0].variance[0] == pytest.approx(2 * (0.32**2 + 0.32**2))


def test_equal_chances_are_a_plain_sample():
    rng = np.random.default_rng(1)
    human, score = np.where(np.arange(80) % 4 == 0, rng.normal(size=80), NAN), rng.normal(size=80)
    columns = human, score, np.arange(80), np.zeros(80)
    plain, weighted = estimate_means(*columns), estimate_means(*columns, chance=np.full(80, 0.25))
    assert weighted.human[0] == pytest.approx(plain.human[0])
    assert weighted.human_variance[0] == pytest.approx(plain.human_variance[0])
    assert weighted.value[0] == pytest.approx(plain.value[0], abs=1e-9)
    ranked = rank_by_assisted_mean(weighted).systems
    assert ranked[0].estimate.value == pytest.approx(plain.value[0], abs=1e-9)


def test_wrong_chances_are_refused():
    for chance, options, message in (
        ([0.0, 0.5], AssistedOptions(), "above 0"),
        ([1.5, 0.5], AssistedOptions(), "at most 1"),
        ([0.5, 0.5], AssistedOptions(target="these-items"), "items like these only"),
    ):
        with pytest.raises(ColumnError, match=message):
            estimate_means([1.0, 2.0], [1.0, 2.0], [0, 1], [0, 0], chance=chance, options=options)


def test_parts_share_the_outputs_of_each_system():
    part = deal_parts(np.repeat(["a", "b"], 40), 4, seed=3)
    assert [np.bincount(part[:40]).tolist(), np.bincount(part[40:]).tolist()] == [[10] * 4] * 2
    assert (part != deal_parts(np.repeat(["a", "b"], 40), 4, seed=4)).any()


def test_draws_have_the_stored_chances():
    """2,000 draws of 4 of 10 outputs: the share of draws with an output is its chance; systems get equally many."""
    error, system = np.tile([1.0, 1.0, 2.0, 4.0, 40.0], 2), np.repeat([0, 1], 5)
    counts, chances = np.zeros(10), np.full(10, NAN)
    for seed in range(2000):
        drawn = draw_outputs(error, system, n=4, seed=seed)
        assert np.bincount(system[drawn.rows]).tolist() == [2, 2]
        counts[drawn.rows] += 1
        chances[drawn.rows] = drawn.chance
    assert counts / 2000 == pytest.approx(chances, abs=0.04)
    assert chances[:5].sum() == pytest.approx(2.0)
    assert chances[4] == 1.0 > chances[3] > chances[2] > chances[0] >= 0.3 * 1 / 5


def test_all_outputs_and_candidates():
    assert draw_outputs(np.ones(5), np.zeros(5), n=9).rows.tolist() == [0, 1, 2, 3, 4]
    may = np.array([True, False, True, False, False])
    drawn = draw_outputs(np.ones(5), np.zeros(5), n=2, candidate=may)
    assert (drawn.rows.tolist(), drawn.chance.tolist()) == ([0, 2], [1.0, 1.0])


def test_all_outputs_of_a_system_have_chance_1_if_its_budget_is_all():
    drawn = draw_outputs([1.0, 1.0, 100.0, 1.0, 1.0], [0, 0, 0, 1, 1], n=5)
    assert drawn.chance.tolist() == [1.0] * 5


def test_shares_by_hand():
    """Means 10, 9 and 6 of 4 judgements each; variance 2 (sum of squares) x 4 / 3 / 16 = 1/6. Distances 1 and 4 are
    beyond the standard errors, so others get 1 and 1/16, and the first sqrt(1 + 1/256)."""
    human = np.array([[9.0, 9.0, 11.0, 11.0], [10.0, 8.0, 10.0, 8.0], [5.0, 7.0, 7.0, 5.0]])
    columns = human.ravel(), np.zeros(12), np.tile(np.arange(4), 3), np.repeat(["a", "b", "c"], 4)
    means = estimate_means(*columns, options=AssistedOptions(weight=0.0))
    wanted = np.array([np.sqrt(1 + 1 / 256), 1.0, 1 / 16])
    expected = 0.3 / 3 + 0.7 * wanted / wanted.sum()
    assert list(favour_first_systems(means).values()) == pytest.approx(expected.tolist())
    # A system with a single group has no variance: all shares are equal.
    human[1, 1:] = NAN
    assert set(favour_first_systems(estimate_means(human.ravel(), *columns[1:])).values()) == {1 / 3}


def test_draws_follow_the_shares():
    system = np.repeat(["a", "b", "c"], [50, 50, 4])
    drawn = draw_outputs(np.ones(104), system, n=20, share={"a": 0.6, "b": 0.1, "c": 0.3})
    # c has only 4; what is left is from random systems.
    sizes = {name: int((system[drawn.rows] == name).sum()) for name in "abc"}
    assert (sum(sizes.values()), sizes["c"]) == (20, 4)
    assert sizes["a"] >= 12
    assert sizes["b"] >= 2
    assert drawn.chance[system[drawn.rows] == "a"] == pytest.approx(sizes["a"] / 50)


def test_first_systems_separate_sooner_and_intervals_cover():
    """100 campaigns of 6 systems, the first two .25 apart and the others far below: interval of that difference."""
    total, true = 300, np.array([1.0, 0.75, 0.0, -0.2, -0.4, -0.6])
    system, group = np.repeat(np.arange(6), total), np.tile(np.arange(total), 6)
    contrast = np.array([1.0, -1.0, 0, 0, 0, 0])
    hits: dict[str, list] = {"all": [], "first": []}
    widths: dict[str, list] = {"all": [], "first": []}
    for seed in range(100):
        rng = np.random.default_rng([6, seed])
        score, noise = rng.normal(size=(2, len(system)))
        rating = true[system] + 0.4 * score + 0.9 * noise
        for goal in hits:
            human, chance = np.full((2, len(system)), NAN)
            part = deal_parts(system, 4, seed)
            for batch in range(4):
                share = None
                if goal == "first" and batch:
                    share = favour_first_systems(estimate_means(human, score, group, system))
                drawn = draw_outputs(
                    np.ones(len(group)), system, n=60, candidate=part == batch, seed=4 * seed + batch, share=share
                )
                human[drawn.rows], chance[drawn.rows] = rating[drawn.rows], drawn.chance
            means = estimate_means(human, score, group, system, chance=chance)
            half = student.ppf(0.975, means.n_groups.min() - 1) * np.sqrt(contrast @ means.covariance @ contrast)
            hits[goal].append(abs(contrast @ means.value - 0.25) <= half)
            widths[goal].append(half)
    assert np.mean(hits["first"]) >= 0.9
    assert np.mean(widths["first"]) < 0.85 * np.mean(widths["all"])


def test_errors_are_learned_from_features_and_without_the_own_group():
    rng = np.random.default_rng(2)
    feature, score = rng.normal(size=400), rng.normal(size=400)
    human = score + np.exp(feature) * rng.normal(size=400)
    human[200:] = NAN
    columns = score, feature, np.arange(400), np.zeros(400)
    found = predict_errors(human, *columns)
    assert np.corrcoef(found[200:], feature[200:])[0, 1] > 0.8
    human[7] += 50
    assert predict_errors(human, *columns)[7] == pytest.approx(found[7])
    assert predict_errors(np.where(np.arange(400) < 19, human, NAN), *columns).tolist() == [1.0] * 400


def test_chosen_outputs_cover_the_truth_and_save_judgements():
    """150 campaigns of 4 systems (600 intervals): coverage with predictable errors, and width against uniform draws."""
    n, total, systems = 40, 400, 4
    system, group = np.repeat(np.arange(systems), total), np.tile(np.arange(total), systems)
    hits: dict[str, list] = {"chosen": [], "uniform": []}
    widths: dict[str, list] = {"chosen": [], "uniform": []}
    for seed in range(150):
        rng = np.random.default_rng([5, seed])
        score, feature, noise = rng.normal(size=(3, systems * total))
        rating = 0.6 * score + 0.8 * np.exp(feature - 1) * noise
        for way in hits:
            human, chance = np.full((2, systems * total), NAN)
            part = deal_parts(system, 4, seed)
            for batch in range(4):
                error = predict_errors(human, score, feature, group, system) if way == "chosen" else np.ones(len(group))
                drawn = draw_outputs(error, system, n=n, candidate=part == batch, seed=4 * seed + batch)
                human[drawn.rows], chance[drawn.rows] = rating[drawn.rows], drawn.chance
            means = estimate_means(human, score, group, system, chance=chance if way == "chosen" else None)
            half = student.ppf(0.975, means.n_groups - 1) * np.sqrt(means.variance)
            hits[way] += (np.abs(means.value) <= half).tolist()
            widths[way] += half.tolist()
    assert 0.93 <= np.mean(hits["chosen"]) <= 0.98
    assert np.mean(widths["chosen"]) < 0.93 * np.mean(widths["uniform"])
