"""Systems ranked by simulated games: order, draws, convergence, limits, seeds."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evalapp.stats.ranking.skill import WINDOW, VerdictTable, rank_by_games


def table(strengths: list[float], items: int = 40, seed: int = 1, tie: float = 0.3) -> VerdictTable:
    rng = np.random.default_rng(seed)
    a, b, verdicts = [], [], []
    for i in range(len(strengths)):
        for j in range(i + 1, len(strengths)):
            found = rng.normal(strengths[i] - strengths[j], 1, items)
            a += [i] * items
            b += [j] * items
            verdicts += np.where(found > tie, 1, np.where(found < -tie, -1, 0)).tolist()
    return VerdictTable.of([f"s{n}" for n in range(len(strengths))], a, b, verdicts)


def test_order_of_clearly_different_systems_converges():
    found = rank_by_games(table([0, 4, 2, -3]), seeds=5)
    assert found.order == ("s1", "s2", "s0", "s3")
    assert [row.rank for row in found.systems] == [1, 2, 3, 4]
    assert found.converged == 1.0
    assert all(row.games >= 2 * WINDOW for row in found.systems)
    best = found.systems[0]
    assert best.estimate.value == pytest.approx(found.ratings[:, 1].mean())
    assert best.sd == pytest.approx(found.ratings[:, 1].std(ddof=1))
    assert best.estimate.high - best.estimate.value == pytest.approx(1.959964 * best.deviation, rel=1e-6)


def test_row_may_be_reversed():
    one = VerdictTable.of(["x", "y"], [0, 0, 0], [1, 1, 1], [1, 0, -1])
    two = VerdictTable.of(["x", "y"], [1, 0, 1], [0, 1, 0], [-1, 0, 1])
    np.testing.assert_array_equal(one.verdicts, two.verdicts)
    assert (one.n_pairs, len(one)) == (1, 3)


def test_equal_systems_reach_the_limit_and_say_so():
    """A limit that leaves no room for the second window."""
    found = rank_by_games(table([0.0] * 6), seeds=4, max_games=200)
    assert found.converged == 0.0
    assert found.games == 200


def test_same_seed_gives_the_same_result_alone_or_among_many():
    systems = table([0, 1, 2, 0.5, -1])
    one, two = rank_by_games(systems, seeds=30, seed=4), rank_by_games(systems, seeds=30, seed=4)
    np.testing.assert_array_equal(one.ratings, two.ratings)
    alone = rank_by_games(systems, seeds=1, seed=4)
    np.testing.assert_allclose(alone.ratings[0], one.ratings[0], rtol=1e-9)
    assert not np.array_equal(one.ratings, rank_by_games(systems, seeds=30, seed=5).ratings)
    assert np.isnan(alone.systems[0].sd)


def test_tie_rules_differ_only_on_draws():
    drawn = rank_by_games(table([0, 1, 2]), seeds=3, fixed_games=300)
    paper = rank_by_games(table([0, 1, 2]), seeds=3, fixed_games=300, tie="paper")
    assert not np.allclose(drawn.ratings, paper.ratings)
    decided = table([0, 1, 2], tie=0.0)
    np.testing.assert_array_equal(
        rank_by_games(decided, seeds=3, fixed_games=300).ratings,
        rank_by_games(decided, seeds=3, fixed_games=300, tie="paper").ratings,
    )
    assert (drawn.games, paper.signature.split("|")[1]) == (300, "tie:paper")


def test_draws_alone_leave_ratings_at_the_start_under_the_rule_of_the_paper():
    even = VerdictTable.of(["x", "y"], [0] * 5, [1] * 5, [0] * 5)
    found = rank_by_games(even, seeds=2, fixed_games=100, tie="paper")
    assert (found.ratings == 1500).all()
    assert found.systems[0].deviation < 350


def test_system_never_compared_has_no_rating():
    found = rank_by_games(VerdictTable.of(["x", "y", "z"], [0] * 9, [1] * 9, [1] * 9), seeds=2)
    assert found.order == ("x", "y", "z")
    assert (found.systems[2].estimate.is_defined, found.systems[2].estimate.note) == (False, "never compared")
    assert json.loads(json.dumps(found.as_dict()))["systems"][2]["estimate"]["value"] is None


def test_games_may_use_scores_instead_of_verdicts():
    """Verdicts that are all ties give no order; the expected scores of the same pairs do."""
    rows = [(i, j) for i in range(4) for j in range(i + 1, 4) for _ in range(10)]
    a, b = np.array(rows).T
    expected = 0.5 + 0.03 * (b - a)
    found = rank_by_games(VerdictTable.of("wxyz", a, b, np.zeros(60), expected), seeds=5)
    assert (found.order, found.converged, found.tie) == (tuple("wxyz"), 1.0, None)
    assert found.signature.startswith("method:glicko2|outcome:expected|tau:0.5|")
    # In either orientation, with score and pair reversed together.
    other = rank_by_games(VerdictTable.of("wxyz", b, a, np.zeros(60), 1 - expected), seeds=5)
    np.testing.assert_allclose(other.ratings, found.ratings, rtol=1e-9)
    # Scores equivalent to the verdicts give bit-identical results.
    plain = table([0, 1, 2, 0.5])
    scored = VerdictTable(*(getattr(plain, name) for name in ("systems", "first", "second", "starts", "verdicts")),
                          (plain.verdicts.astype(float) + 1) / 2)  # fmt: skip
    np.testing.assert_array_equal(rank_by_games(scored, seeds=5).ratings, rank_by_games(plain, seeds=5).ratings)


def test_invalid_input_is_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        VerdictTable.of(["x", "y"], [0], [1], [1], [1.2])
    with pytest.raises(ValueError, match="between 0 and 1"):
        VerdictTable.of(["x", "y"], [0], [1], [1], [np.nan])
    with pytest.raises(ValueError, match="have no draws"):
        rank_by_games(VerdictTable.of(["x", "y"], [0], [1], [1], [0.7]), tie="paper")
    with pytest.raises(ValueError, match="with itself"):
        VerdictTable.of(["x"], [0], [0], [1])
    with pytest.raises(ValueError, match="no verdict"):
        rank_by_games(VerdictTable.of(["x", "y"], [], [], []))


@pytest.mark.parametrize(
    ("rows", "groups"),
    [
        # x and y beat z three times each and drew with each other.
        ([(0, 1, 0)] + [(0, 2, 1)] * 3 + [(1, 2, 1)] * 3, [{0, 1}, {2}]),
        # Each beat one and lost to one.
        ([(0, 1, 1)] * 4 + [(1, 2, 1)] * 4 + [(2, 0, 1)] * 4, [{0, 1, 2}]),
        # As many wins and losses, but against others: x beat the better of two.
        ([(2, 3, 1)] * 5 + [(3, 2, -1)] + [(0, 2, 1), (0, 3, -1), (1, 2, -1), (1, 3, 1)], [{0}, {1}, {2}, {3}]),
        # The second pair was never compared with the first.
        ([(0, 1, 1)] * 3 + [(0, 1, -1)] + [(2, 3, 1)] * 3, [{0}, {1}, {2}, {3}]),
    ],
)
def test_equal_records_give_equal_results(rows, groups):
    a, b, verdict = zip(*rows, strict=True)
    found = rank_by_games(VerdictTable.of(["x", "y", "z", "w"][: max(*a, *b) + 1], a, b, verdict), seeds=7)
    shown = {}
    for row in found.systems:
        if row.estimate.is_defined:
            key = (row.rank, row.estimate.value, row.estimate.low, row.deviation, row.sd)
            shown.setdefault(key, set()).add("xyzw".index(row.system))
    rated = set().union(*shown.values())
    assert sorted(shown.values(), key=min) == [group for group in groups if group & rated]


def test_expected_scores_count_as_records():
    """x and y have equal scores against z, while w has different scores with the same verdicts."""
    a, b, verdict = [0, 1, 3], [2, 2, 2], [1, 1, 1]
    classes = VerdictTable.of(["x", "y", "z", "w"], a, b, verdict, [0.7, 0.7, 0.8]).equal_records()
    assert classes[0] == classes[1]
    assert len(set(classes.tolist())) == 3
