"""Rankings from comparisons: worked examples, intervals, covariates, weights, links, properties."""

from __future__ import annotations

import json
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalapp.stats.core.coding import ColumnError
from evalapp.stats.ranking.comparison_fit import fit_judgements
from evalapp.stats.ranking.comparisons import ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.judgements import PairwiseComparisons, read_judgements
from evalapp.stats.resampling.bootstrap import Bootstrap, ClusterDraws
from tests.evalapp.stats.ranking.comparison_data import GOLDEN, draw, make_columns

MODELS = ("bradley-terry", "davidson", "rao-kupper")
SWAP = {"a": "b", "b": "a", "tie": "tie", "both_bad": "both_bad", "cannot_decide": "cannot_decide"}


def values(ranking):
    return {row.system: row.estimate.value for row in ranking.systems}


def test_worked_ratings_and_ranks():
    found = rank_by_comparisons(PairwiseComparisons(*make_columns(GOLDEN)))
    rows = {row.system: row for row in found.systems}
    # docs/explanation/statistics/comparisons.md#worked-numbers: Elo 1065.95 934.05 1000, sandwich SE 32.8 31.6 32.8.
    assert [round(rows[k].estimate.value, 2) for k in range(3)] == [1065.95, 934.05, 1000]
    reach = [(rows[k].estimate.high - rows[k].estimate.low) / 2 / 1.959964 for k in range(3)]
    assert reach == pytest.approx([32.8, 31.6, 32.8], abs=0.05)
    # Only 0 and 1 differ: .759 +- 1.96 * .317 by the inverse of the matrix of all three.
    assert [(rows[k].rank, rows[k].rank_low, rows[k].rank_high) for k in range(3)] == [(1, 1, 2), (3, 2, 3), (2, 1, 3)]
    assert found.extras["groups"] == [[0, 2], [2, 1]]
    assert {row.tier for row in found.systems} == {1}
    assert rows[0].shares == {"win": 21 / 40, "tie": 9 / 40, "both_bad": 0, "cannot_decide": 0, "loss": 10 / 40}
    assert found.extras["tie_share"] == 0.25


def test_tie_parameters():
    for method, name, value in (("davidson", "nu", 0.71083), ("rao-kupper", "kappa", 1.73623)):
        tie = rank_by_comparisons(
            PairwiseComparisons(*make_columns(GOLDEN)), model=ComparisonModel(method=method)
        ).extras["tie"]
        assert tie["parameter"] == name
        assert tie["value"] == pytest.approx(value, abs=5e-6)
        assert tie["low"] < tie["value"] < tie["high"]


@pytest.mark.parametrize("method", [*MODELS, "glicko2"])
def test_strengths_are_recovered_in_order(method):
    a, b, verdict, item, _ = draw([1.5, 0.5, -0.5, -1.5], 600)
    found = rank_by_comparisons(
        PairwiseComparisons(a, b, verdict, item=item), model=ComparisonModel(method=method, seeds=5)
    )
    assert [row.system for row in found.systems] == [0, 1, 2, 3]
    assert found.method == method
    if method == "glicko2":
        # Glicko's deviation assumes that a player may change, so its intervals are wider.
        assert found.systems[0].rank_high < found.systems[3].rank_low
    else:
        assert [(row.rank_low, row.rank_high) for row in found.systems] == [(1, 1), (2, 2), (3, 3), (4, 4)]
        assert [row.tier for row in found.systems] == [1, 2, 3, 4]
        assert found.extras["groups"] == []
    assert json.loads(json.dumps(found.as_dict()))["signature"] == found.signature


def test_three_kinds_of_intervals_agree_and_cover():
    theta = np.array([0.6, 0.0, -0.6])
    inside = 0
    for seed in range(40):
        a, b, verdict, item, _ = draw(theta, 300, seed=seed, log_nu=-1)
        found = rank_by_comparisons(PairwiseComparisons(a, b, verdict), model=ComparisonModel(method="davidson"))
        row = next(row for row in found.systems if row.system == 0)
        inside += row.estimate.low <= 1000 + 400 / math.log(10) * theta[0] <= row.estimate.high
    assert inside >= 34
    widths = []
    for unit, interval in product((None, item), ("sandwich", "bootstrap")):
        found = rank_by_comparisons(
            PairwiseComparisons(a, b, verdict, item=unit),
            model=ComparisonModel(method="davidson"),
            interval=interval,
            bootstrap=Bootstrap(resamples=300),
        )
        estimate = next(row.estimate for row in found.systems if row.system == 0)
        widths.append(estimate.high - estimate.low)
    assert max(widths) < 1.2 * min(widths)


def test_cluster_bootstrap_equals_a_plain_loop():
    a, b, verdict, item, _ = draw([0.5, 0, -0.5], 120, seed=3)
    judged = read_judgements(PairwiseComparisons(a, b, verdict, item=item))
    drawn = fit_judgements(judged, "bradley-terry").resampled(5, seed=2)
    counts = ClusterDraws(len(np.unique(item)), 2).take(5).astype(int)
    codes = np.unique(item, return_inverse=True)[1]
    for number in range(5):
        rows = np.repeat(np.arange(120), counts[codes, number])
        again = fit_judgements(read_judgements(PairwiseComparisons(a[rows], b[rows], verdict[rows])), "bradley-terry")
        assert drawn[number] == pytest.approx(again.theta, abs=1e-8)


def test_side_length_and_raters_are_adjusted_for():
    a, b, verdict, item, length = draw([0.6, 0, -0.6], 3000, side=0.5, slope=0.4)
    found = rank_by_comparisons(
        PairwiseComparisons(a, b, verdict, item=item, length_difference=length, rater=item % 5),
        model=ComparisonModel(method="davidson", side=True),
    )
    side, effect = found.extras["side"], found.extras["length"]
    assert side["low"] < 0.5 < side["high"]
    assert effect["low"] < 0.4 * np.sqrt(np.mean(length**2)) < effect["high"]
    assert side["p"] < 1e-6
    assert len(found.extras["raters"]) == 5
    # All raters are alike here, so their own advantages shrink to zero.
    assert max(abs(row["value"]) for row in found.extras["raters"]) < 0.4
    assert "covariates:side,rater,length" in found.signature


def test_weight_counts_as_repeated_judgements():
    a, b, verdict = make_columns(GOLDEN)
    once = dict.fromkeys(GOLDEN, (1, 1, 1))
    one, two, outcome = make_columns(once)
    weight = [n for numbers in GOLDEN.values() for n in numbers]
    found = rank_by_comparisons(
        PairwiseComparisons(one, two, outcome, weight=weight), model=ComparisonModel(method="davidson")
    )
    assert values(found) == pytest.approx(
        values(rank_by_comparisons(PairwiseComparisons(a, b, verdict), model=ComparisonModel(method="davidson")))
    )
    # The scale of weights does not matter; intervals reflect that there are 9 judgements, not 60.
    tenfold = rank_by_comparisons(
        PairwiseComparisons(one, two, outcome, weight=np.array(weight) * 10), model=ComparisonModel(method="davidson")
    )
    assert values(tenfold) == pytest.approx(values(found))
    assert tenfold.systems[0].estimate.low == pytest.approx(found.systems[0].estimate.low)
    plain = rank_by_comparisons(PairwiseComparisons(a, b, verdict), model=ComparisonModel(method="davidson"))
    assert found.systems[0].estimate.low < plain.systems[0].estimate.low
    drawn = rank_by_comparisons(
        PairwiseComparisons(one, two, outcome, weight=weight),
        interval="bootstrap",
        model=ComparisonModel(method="bradley-terry", prior_sd=2),
        bootstrap=Bootstrap(resamples=50),
    )
    assert drawn.systems[0].estimate.has_interval


def test_systems_without_a_finite_rating_have_a_reason():
    a = ["x", "y", "x", "u", "w", "p", "x"]
    b = ["y", "x", "w", "x", "y", "q", "x"]
    verdict = ["a", "a", "a", "a", "b", "tie", "a"]
    found = rank_by_comparisons(PairwiseComparisons([*a, "n"], [*b, "x"], [*verdict, "cannot_decide"]))
    rows = {row.system: row for row in found.systems}
    assert rows["x"].estimate.is_defined
    # u beat x, so it ranks above the equal x and y, which both beat w. p and q are linked to no other system.
    assert [rows[name].rank for name in "uxyw"] == [1, 2, 2, 4]
    assert [(rows[name].rank_low, rows[name].rank_high) for name in "uxywp"] == [(1, 4)] * 4 + [(1, 7)]
    assert [rows[name].is_ranked for name in "uxywpqn"] == [True] * 4 + [False] * 3
    assert rows["u"].estimate.note.startswith("won every comparison")
    assert rows["w"].estimate.note.startswith("lost every comparison")
    assert rows["p"].estimate.note.startswith("never compared with")
    assert rows["n"].estimate.note == "no judgement of this system"
    assert found.totals["self"] == 1
    assert "never compared" in found.extras["connectivity"]["note"]
    # A weak prior gives every system a value, with a note about its basis.
    weak = {
        row.system: row.estimate
        for row in rank_by_comparisons(PairwiseComparisons(a, b, verdict), model=ComparisonModel(prior_sd=2)).systems
    }
    assert all(estimate.is_defined for estimate in weak.values())
    assert weak["u"].value > weak["x"].value > weak["w"].value
    assert "only the prior" in weak["p"].note


def test_degenerate_columns():
    assert rank_by_comparisons(PairwiseComparisons([], [], [])).systems == ()
    assert rank_by_comparisons(PairwiseComparisons([], [], []), model=ComparisonModel(method="glicko2")).systems == ()
    for method in (*MODELS, "glicko2"):
        itself = rank_by_comparisons(
            PairwiseComparisons(["x", "x"], ["x", "y"], ["a", "cannot_decide"]), model=ComparisonModel(method=method)
        )
        assert [row.system for row in itself.systems] == ["x", "y"]
        assert not any(row.estimate.is_defined for row in itself.systems)
        assert itself.systems[0].estimate.note
        assert json.loads(json.dumps(itself.as_dict(), allow_nan=False))["totals"]["self"] == 1
    ties = rank_by_comparisons(
        PairwiseComparisons(["x"] * 4, ["y"] * 4, ["tie"] * 4), model=ComparisonModel(method="davidson")
    )
    assert ties.systems[0].estimate.note == "all verdicts are ties"
    even = rank_by_comparisons(PairwiseComparisons(["x"] * 4, ["y"] * 4, ["tie"] * 4))
    assert [row.estimate.value for row in even.systems] == [1000, 1000]
    assert [row.rank for row in even.systems] == [1, 1]
    few = rank_by_comparisons(PairwiseComparisons(["x", "x"], ["y", "y"], ["a", "b"], item=[0, 0]))
    assert "1 independent units are too few" in few.systems[0].estimate.note
    assert not few.systems[0].estimate.has_interval
    same = rank_by_comparisons(
        PairwiseComparisons(["x"] * 9, ["y"] * 9, ["a"] * 6 + ["b"] * 3), model=ComparisonModel(side=True)
    )
    assert "cannot be separated" in same.systems[0].estimate.note
    perfect = rank_by_comparisons(
        PairwiseComparisons(["x"] * 10 + ["y"] * 5, ["y"] * 5 + ["z"] * 10, ["a"] * 5 + ["tie"] * 10),
        model=ComparisonModel(method="davidson"),
    )
    assert "fit perfectly" in perfect.systems[0].estimate.note
    none = rank_by_comparisons(
        PairwiseComparisons(["x", "x"], ["y", "y"], ["a", "b"]), interval="bootstrap", bootstrap=Bootstrap(resamples=0)
    )
    assert not none.systems[0].estimate.has_interval


def test_invalid_input_is_refused():
    golden = make_columns(GOLDEN)
    for model in ({"method": "elo"}, {"cannot_decide": "win"}, {"method": "glicko2", "side": True}):
        with pytest.raises(ValueError, match=r"is |no covariates"):
            rank_by_comparisons(PairwiseComparisons(*golden), model=ComparisonModel(**model))
    with pytest.raises(ValueError, match="interval is"):
        rank_by_comparisons(PairwiseComparisons(*golden), interval="jackknife")
    with pytest.raises(ColumnError, match="positive"):
        rank_by_comparisons(PairwiseComparisons(*golden, weight=np.zeros(60)))
    with pytest.raises(ColumnError, match="finite"):
        rank_by_comparisons(PairwiseComparisons(*golden, length_difference=np.full(60, np.nan)))
    with pytest.raises(ColumnError, match="all differences are 0"):
        rank_by_comparisons(PairwiseComparisons(*golden, length_difference=np.zeros(60)))


def test_holm_finds_fewer_differences():
    a, b, verdict, *_ = draw(np.linspace(1, -1, 8), 500)
    plain = rank_by_comparisons(PairwiseComparisons(a, b, verdict))
    strict = rank_by_comparisons(PairwiseComparisons(a, b, verdict), adjust="holm")
    width = [sum(row.rank_high - row.rank_low for row in found.systems) for found in (plain, strict)]
    assert width[0] < width[1]
    assert values(plain) == values(strict)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), method=st.sampled_from(MODELS), clustered=st.booleans())
def test_order_of_rows_sides_and_names_do_not_matter(seed, method, clustered):
    a, b, verdict, item, length = draw([0.8, 0.2, 0, -0.7], 80, seed=seed)
    options = {"item": item} if clustered else {}
    found = rank_by_comparisons(
        PairwiseComparisons(a, b, verdict, length_difference=length, **options),
        model=ComparisonModel(method=method, side=True),
    )
    rng = np.random.default_rng(seed)
    order = rng.permutation(80)
    options = {"item": item[order]} if clustered else {}
    again = rank_by_comparisons(
        PairwiseComparisons(a[order], b[order], verdict[order], length_difference=length[order], **options),
        model=ComparisonModel(method=method, side=True),
    )
    turned = rank_by_comparisons(
        PairwiseComparisons(
            b[order], a[order], [SWAP[v] for v in verdict[order]], length_difference=-length[order], **options
        ),
        model=ComparisonModel(method=method, side=True),
    )
    name = np.array(["m", "z", "a", "k"])
    renamed = rank_by_comparisons(
        PairwiseComparisons(name[a][order], name[b][order], verdict[order], length_difference=length[order], **options),
        model=ComparisonModel(method=method, side=True),
    )
    for other, label in ((again, lambda k: k), (turned, lambda k: k), (renamed, lambda k: str(name[k]))):
        mine = {label(row.system): row for row in found.systems}
        for row in other.systems:
            assert row.estimate.value == pytest.approx(mine[row.system].estimate.value, abs=1e-6, nan_ok=True)
            assert row.estimate.low == pytest.approx(mine[row.system].estimate.low, abs=1e-5, nan_ok=True)
            assert (row.rank_low, row.rank_high) == (mine[row.system].rank_low, mine[row.system].rank_high)
    if "side" in found.extras:
        assert turned.extras["side"]["value"] == pytest.approx(-found.extras["side"]["value"], abs=1e-7)
        assert turned.extras["length"]["value"] == pytest.approx(found.extras["length"]["value"], abs=1e-7)


def test_glicko2_ranks_unjudged_systems_last():
    found = rank_by_comparisons(
        PairwiseComparisons(["x", "y", "x", "z"], ["y", "x", "y", "x"], ["a", "b", "a", "cannot_decide"]),
        model=ComparisonModel(method="glicko2", seeds=3),
    )
    last = found.systems[-1]
    assert (last.system, last.estimate.note) == ("z", "no judgement of this system")  # as for every method
    # It is last in the table and has no rank: it was never compared, so any rank is possible.
    assert (last.is_ranked, last.rank_low, last.rank_high) == (False, 1, 3)
