"""Systems that never lost or never won, and groups between which all verdicts agree: their ranks, in every model.

Expected orders are worked by hand (or by a plain search of chains), penalised fits by maximising the penalised
likelihood with SciPy.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit, ndtr

from evalapp.stats.ranking.bradley_terry import MODELS
from evalapp.stats.ranking.comparisons import ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.judgements import PairwiseComparisons, read_judgements
from evalapp.stats.ranking.unbounded import fit_penalised, penalised_differences
from evalapp.stats.resampling.bootstrap import Bootstrap


def played(*results):
    """Columns of results (winner, loser, wins of the first, wins of the second)."""
    rows = [
        (one, two, verdict)
        for one, two, wins, losses in results
        for verdict, n in (("a", wins), ("b", losses))
        for _ in range(n)
    ]
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def places(ranking):
    return {row.system: (row.rank, row.rank_low, row.rank_high) for row in ranking.systems}


@pytest.mark.parametrize("method", MODELS)
def test_undefeated_is_first_and_winless_last(method):
    columns = played(("best", "x", 60, 0), ("best", "y", 60, 0), ("x", "y", 30, 30), ("x", "last", 60, 0))
    found = rank_by_comparisons(PairwiseComparisons(*columns), model=ComparisonModel(method=method))
    assert places(found) == {"best": (1, 1, 1), "x": (2, 2, 3), "y": (2, 2, 3), "last": (4, 4, 4)}
    rows = {row.system: row for row in found.systems}
    assert [row.system for row in found.systems] == ["best", "x", "y", "last"]
    assert not rows["best"].estimate.is_defined
    assert rows["best"].estimate.note == "won every comparison, so its rating has no upper end"
    assert rows["last"].estimate.note == "lost every comparison, so its rating has no lower end"
    assert rows["x"].estimate.value == pytest.approx(1000)
    assert found.extras["groups"] == [["x", "y"]]
    assert found.signature.endswith("|unbounded:firth|conf:0.95")


@pytest.mark.parametrize("method", MODELS)
@pytest.mark.parametrize(
    "options", [{}, {"interval": "bootstrap", "bootstrap": Bootstrap(resamples=200)}, {"adjust": "holm"}]
)
def test_single_win_gives_an_order_but_no_certain_rank(method, options):
    found = rank_by_comparisons(
        PairwiseComparisons(*played(("best", "x", 1, 0), ("x", "y", 40, 20))),
        model=ComparisonModel(method=method),
        **options,
    )
    assert places(found)["best"][:2] == (1, 1)
    assert places(found)["best"][2] == 3
    assert places(found)["x"][:2] == (2, 1)


def test_number_of_wins_for_a_certain_rank():
    """Firth's penalty for two systems adds half a win to each: theta = ln(2 n + 1), variance 1 / (n p q). By hand z =
    1.925 after 9 wins, 2.006 after 10."""
    for n, (rank_low, rank_high) in ((1, (1, 2)), (9, (1, 2)), (10, (2, 2)), (500, (2, 2))):
        found = rank_by_comparisons(PairwiseComparisons(*played(("x", "y", n, 0))))
        assert places(found)["y"] == (2, rank_low, rank_high)
        theta, p = penalised_differences(
            read_judgements(PairwiseComparisons(*played(("x", "y", n, 0)))), np.ones(2, dtype=bool)
        )
        assert theta[0] - theta[1] == pytest.approx(math.log(2 * n + 1))
        chance = (n + 0.5) / (n + 1)
        z = math.log(2 * n + 1) * math.sqrt(n * chance * (1 - chance))
        assert p[0, 1] == pytest.approx(2 * ndtr(-z))


def test_wins_on_one_item_count_once():
    a, b, verdict = played(("x", "y", 60, 0))
    assert places(rank_by_comparisons(PairwiseComparisons(a, b, verdict, item=np.arange(60))))["y"] == (2, 2, 2)
    assert places(rank_by_comparisons(PairwiseComparisons(a, b, verdict, item=np.zeros(60, dtype=int))))["y"] == (
        2,
        1,
        2,
    )
    assert places(rank_by_comparisons(PairwiseComparisons(a, b, verdict, item=np.arange(60) % 9)))["y"] == (2, 1, 2)


def test_chains_give_order_and_unchained_systems_share_ranks():
    columns = played(("a", "b", 60, 0), ("b", "c", 60, 0), ("d", "c", 60, 0))
    found = places(rank_by_comparisons(PairwiseComparisons(*columns)))
    # a > b > c and d > c; d is unordered relative to a and b.
    assert {name: place[0] for name, place in found.items()} == {"a": 1, "b": 2, "c": 4, "d": 1}
    assert found["d"] == (1, 1, 3)
    assert found["a"] == (1, 1, 2)  # certainly better than b and c
    assert found["c"] == (4, 4, 4)


def test_class_below_the_rated_one_is_ordered_by_its_own_ratings():
    columns = played(
        ("a", "b", 30, 20), ("b", "c", 30, 20), ("c", "d", 50, 0), ("d", "e", 45, 15), ("a", "e", 50, 0)
    )  # fmt: skip
    found = rank_by_comparisons(PairwiseComparisons(*columns))
    assert [row.system for row in found.systems][3:] == ["d", "e"]
    assert [places(found)[name] for name in "de"] == [(4, 4, 4), (5, 5, 5)]
    reason = "lost every link to the systems that have a rating, so its own has no lower end"
    assert {row.system: row.estimate.note for row in found.systems}["d"] == reason


def test_penalised_fit_maximises_the_penalised_likelihood():
    first, second = np.array([0, 0, 1, 2]), np.array([1, 2, 2, 3])
    counts = np.array([[6.0, 0, 0], [3, 2, 1], [0, 0, 2], [5, 0, 0]])
    theta, covariance = fit_penalised(4, first, second, counts)
    signs = np.zeros((4, 4))
    signs[np.arange(4), first], signs[np.arange(4), second] = 1, -1
    free = signs[:, 1:]

    def loss(beta):
        eta = free @ beta
        wins, losses = counts[:, 0] + counts[:, 1] / 2, counts[:, 2] + counts[:, 1] / 2
        curve = counts.sum(axis=1) * expit(eta) * expit(-eta)
        _, logdet = np.linalg.slogdet(free.T @ (curve[:, None] * free))
        return -(wins @ log_expit(eta) + losses @ log_expit(-eta) + logdet / 2)

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9}).x
    assert theta[1:] - theta[0] == pytest.approx(best, abs=1e-5)
    curve = counts.sum(axis=1) * expit(free @ best) * expit(-(free @ best))
    theirs = np.linalg.inv(free.T @ (curve[:, None] * free))
    contrast = np.array([-1.0, 0, 0, 1])
    assert contrast @ covariance @ contrast == pytest.approx(theirs[2, 2], rel=1e-4)


def chains(a, b, verdict):
    """Plain search for the systems that each system reaches by links from winner to loser, both ways for a tie."""
    links = {}
    for one, two, said in zip(a, b, verdict, strict=True):
        if one != two and said != "cannot_decide":
            links.setdefault(one, set()).update([two] if said != "b" else [])
            links.setdefault(two, set()).update([one] if said != "a" else [])
    found = {}
    for name in links:
        seen, left = set(), [name]
        while left:
            for other in links[left.pop()] - seen:
                seen.add(other)
                left.append(other)
        found[name] = seen
    return found


@settings(max_examples=60)
@given(st.data())
@pytest.mark.parametrize("method", MODELS)
def test_small_tournaments_at_random(method, data):
    n = data.draw(st.integers(2, 6))
    verdicts = st.sampled_from(["a", "a", "b", "tie", "both_bad", "cannot_decide"])
    rows = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), verdicts, st.integers(1, 12))
    drawn = data.draw(st.lists(rows, min_size=1, max_size=10))
    a, b, verdict = (np.repeat(column, [row[3] for row in drawn]) for column in list(zip(*drawn, strict=True))[:3])
    items = {} if data.draw(st.booleans()) else {"item": np.arange(len(a)) % 7}
    found = rank_by_comparisons(PairwiseComparisons(a, b, verdict, **items), model=ComparisonModel(method=method))
    rows, reached = {row.system: row for row in found.systems}, chains(a, b, verdict)
    ranked = [name for name, row in rows.items() if row.is_ranked]
    for one in ranked:
        row = rows[one]
        assert 1 <= row.rank_low <= row.rank <= row.rank_high <= len(ranked)
        assert row.estimate.is_defined or row.estimate.note
        for two in ranked:
            above, below = two in reached[one], one in reached[two]
            if above and not below:
                assert row.rank < rows[two].rank
                assert row.rank_low <= rows[two].rank_high
            elif not above and not below and one != two:
                assert row.rank_low <= rows[two].rank_high
                assert rows[two].rank_low <= row.rank_high
    for name, row in rows.items():
        if name not in ranked:
            assert (row.rank_low, row.rank_high) == (1, len(rows))
            assert not row.estimate.is_defined
    # No rank depends on the order of the judgements.
    order = np.random.default_rng(n).permutation(len(a))
    items = {name: column[order] for name, column in items.items()}
    assert places(
        rank_by_comparisons(
            PairwiseComparisons(a[order], b[order], verdict[order], **items), model=ComparisonModel(method=method)
        )
    ) == places(found)


@pytest.mark.parametrize("n_each", [1, 3, 6])
def test_equal_systems_rarely_differ_significantly(n_each):
    """Four equal systems with few verdicts per pair, so that many tournaments have an undefeated or a winless system:
    at the 5 % level, few pairs from different classes may differ."""
    rng = np.random.default_rng(n_each)
    different = pairs = 0
    for _ in range(150):
        one, two = np.triu_indices(4, 1)
        a, b = np.repeat(one, n_each), np.repeat(two, n_each)
        judged = read_judgements(PairwiseComparisons(a, b, rng.choice(["a", "b"], size=len(a))))
        linked = judged.linked
        _, p = penalised_differences(judged, linked)
        found = p[np.triu_indices(4, 1)]
        pairs, different = pairs + np.isfinite(found).sum(), different + (found < 0.05).sum()
    assert pairs > 800
    assert different / pairs < 0.06


def test_prior_orders_by_its_values():
    found = rank_by_comparisons(
        PairwiseComparisons(*played(("best", "x", 1, 0), ("x", "y", 40, 20))), model=ComparisonModel(prior_sd=2)
    )
    assert all(row.estimate.is_defined for row in found.systems)
    values = [row.estimate.value for row in found.systems]
    assert values == sorted(values, reverse=True)
    # A single win gives no certain rank here either.
    assert places(found)["best"][1:] == (1, 3)
