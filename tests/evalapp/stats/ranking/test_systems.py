"""Systems by human judgements: means, win rates, M1 by hand; rank intervals; degenerate input; order of rows."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from evalapp.stats.core.coding import ColumnError
from evalapp.stats.ranking.systems import rank_by_m1, rank_by_mean, rank_by_win_rate
from evalapp.stats.resampling.bootstrap import Bootstrap, ClusterDraws, percentile_interval


def by_name(ranking):
    return {row.system: row for row in ranking.systems}


def test_mean_is_over_raters_first_then_over_outputs():
    # System a: output of item 0 rated 1 and 3 (mean 2), of item 1 rated 5: (2 + 5) / 2, not (1 + 3 + 5) / 3.
    found = rank_by_mean(
        [1, 3, 5, 4, math.nan], [0, 0, 1, 0, 1], ["a", "a", "a", "b", "b"], bootstrap=Bootstrap(resamples=0)
    )
    rows = by_name(found)
    assert [row.system for row in found.systems] == ["b", "a"]
    assert rows["a"].estimate.value == 3.5
    assert (rows["a"].n_outputs, rows["a"].n_ratings) == (2, 3)
    assert (rows["b"].estimate.value, rows["b"].n_outputs, rows["b"].n_ratings) == (4, 1, 1)
    assert (rows["b"].rank, rows["a"].rank) == (1, 2)
    assert found.totals == {"ratings": 4, "missing": 1}
    assert not rows["a"].estimate.has_interval


def test_mean_interval_equals_a_plain_loop_over_copied_items():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(15, 3)) + [0, 0.2, 2]
    item, system = (grid.ravel() for grid in np.meshgrid(np.arange(15), np.arange(3), indexing="ij"))
    found = rank_by_mean(table.ravel(), item, system, bootstrap=Bootstrap(resamples=200, seed=4))
    counts = ClusterDraws(15, 4).take(200).astype(int)
    means = np.stack([np.repeat(table, column, axis=0).mean(axis=0) for column in counts.T])
    for row in found.systems:
        low, high = percentile_interval(means[:, row.system])
        assert (row.estimate.low, row.estimate.high) == pytest.approx((low, high), abs=1e-9)
    ranks = 1 + (means[:, :, None] < means[:, None, :]).sum(axis=2)
    for row in found.systems:
        assert row.rank_low == np.percentile(ranks[:, row.system], 2.5, method="lower")
        assert row.rank_high == np.percentile(ranks[:, row.system], 97.5, method="higher")
    # The third system is two standard deviations better: a separate rank set.
    rows = by_name(found)
    assert (rows[2].rank_low, rows[2].rank_high, rows[2].tier) == (1, 1, 1)
    assert {rows[0].tier, rows[1].tier} == {2}


def test_win_rate_worked_by_hand():
    verdict = ["a", "b", "tie", "both_bad", "cannot_decide"]
    found = rank_by_win_rate([0, 1, 2, 3, 4], ["x"] * 5, ["y"] * 5, verdict, bootstrap=Bootstrap(resamples=0))
    rows = by_name(found)
    # Without the undecided comparison: 1 win, 1 loss, 2 halves of 4.
    assert rows["x"].estimate.value == rows["y"].estimate.value == 0.5
    assert (rows["x"].n_ratings, rows["x"].n_outputs) == (4, 4)
    assert rows["x"].shares == {"win": 0.25, "tie": 0.25, "both_bad": 0.25, "cannot_decide": 0.0, "loss": 0.25}
    assert found.totals == {"judgements": 5, "self": 0, "tie": 1, "both_bad": 1, "cannot_decide": 1}
    assert (rows["x"].rank, rows["y"].rank) == (1, 1)
    columns = [0, 0, 0], ["x", "y", "x"], ["y", "x", "y"], ["a", "b", "cannot_decide"]
    counted = by_name(rank_by_win_rate(*columns, cannot_decide="tie", bootstrap=Bootstrap(resamples=0)))
    assert counted["x"].estimate.value == pytest.approx(2.5 / 3)
    assert counted["y"].estimate.value == pytest.approx(0.5 / 3)
    assert counted["x"].n_outputs == 1


def test_win_rates_mirror_when_sides_are_swapped():
    rng = np.random.default_rng(1)
    item, a = rng.integers(0, 20, 200), rng.integers(0, 4, 200)
    b = (a + rng.integers(1, 4, 200)) % 4
    verdict = rng.choice(["a", "b", "tie"], 200)
    swapped = np.select([verdict == "a", verdict == "b"], ["b", "a"], "tie")
    order = rng.permutation(200)
    plain = rank_by_win_rate(item, a, b, verdict, bootstrap=Bootstrap(resamples=100))
    mirrored = rank_by_win_rate(item[order], b[order], a[order], swapped[order], bootstrap=Bootstrap(resamples=100))
    for one, other in zip(plain.systems, mirrored.systems, strict=True):
        assert one.system == other.system
        assert one.estimate.value == pytest.approx(other.estimate.value, abs=1e-12)
        assert one.estimate.low == pytest.approx(other.estimate.low, abs=1e-12)
        assert (one.rank_low, one.rank_high, one.shares) == (other.rank_low, other.rank_high, other.shares)
    points = sum(row.estimate.value * row.n_ratings for row in plain.systems)
    assert points == pytest.approx(200)


def test_comparisons_of_a_system_with_itself_are_excluded_and_counted():
    found = rank_by_win_rate([0, 1], ["x", "x"], ["x", "y"], ["a", "a"], bootstrap=Bootstrap(resamples=0))
    assert found.totals["self"] == 1
    assert by_name(found)["x"].n_ratings == 1


def test_m1_worked_by_hand():
    # Output (0, g): better, undecided, worse; output (1, g): worse, worse, tie; h: even split.
    item = [0, 0, 0, 1, 1, 1, 0, 0]
    system = ["g"] * 6 + ["h"] * 2
    verdict = ["a", "cannot_decide", "b", "b", "b", "tie", "a", "b"]
    judgements = by_name(rank_by_m1(item, system, verdict, bootstrap=Bootstrap(resamples=0)))
    assert judgements["g"].estimate.value == 0.5
    assert judgements["g"].shares == pytest.approx({"better": 1 / 6, "worse": 3 / 6, "undecided": 2 / 6})
    assert (judgements["g"].n_outputs, judgements["g"].n_ratings) == (2, 6)
    outputs = by_name(rank_by_m1(item, system, verdict, per="output", bootstrap=Bootstrap(resamples=0)))
    assert (outputs["g"].estimate.value, outputs["h"].estimate.value) == (0.5, 1.0)
    assert outputs["g"].n_ratings == 6


def test_clusters_of_items_are_resampled_whole():
    rng = np.random.default_rng(0)
    values = np.repeat(rng.normal(size=10), 8)
    cluster = np.repeat(np.arange(10), 8)
    whole = rank_by_mean(values, np.arange(80), ["s"] * 80, bootstrap=Bootstrap(cluster=cluster, resamples=300))
    rows = rank_by_mean(values, np.arange(80), ["s"] * 80, bootstrap=Bootstrap(resamples=300))
    assert (whole.n_items, whole.n_clusters) == (80, 10)
    width = [found.systems[0].estimate.high - found.systems[0].estimate.low for found in (whole, rows)]
    assert width[1] < 0.6 * width[0]


def test_equal_systems_share_rank_and_tier():
    found = rank_by_mean([1, 2, 3, 1, 2, 3], [0, 1, 2] * 2, ["x"] * 3 + ["y"] * 3, bootstrap=Bootstrap(resamples=50))
    assert [(row.rank, row.rank_low, row.rank_high, row.tier) for row in found.systems] == [(1, 1, 2, 1)] * 2


def test_unjudged_system_has_a_reason_and_no_better_rank():
    found = rank_by_mean([1, 2, math.nan], [0, 1, 0], ["x", "x", "y"], bootstrap=Bootstrap(resamples=20))
    last = found.systems[-1]
    assert last.system == "y"
    assert not last.estimate.is_defined
    assert last.estimate.note == "no judgement of this system"
    assert (last.rank, last.rank_low, last.rank_high, last.shares) == (2, 2, 2, {})
    assert rank_by_mean([], [], []).systems == ()
    assert rank_by_win_rate([], [], [], []).systems == ()
    assert rank_by_m1([], [], []).systems == ()


def test_one_item_gives_no_interval_but_a_reason():
    row = rank_by_mean([1, 2], [0, 0], ["x", "y"], bootstrap=Bootstrap(resamples=20)).systems[0]
    assert row.estimate.note == "no interval: 1 items only, at least 5 are needed"


def test_unknown_verdicts_and_options_are_refused():
    with pytest.raises(ColumnError, match="'c'"):
        rank_by_win_rate([0], ["x"], ["y"], ["c"])
    with pytest.raises(ValueError, match="cannot_decide"):
        rank_by_win_rate([0], ["x"], ["y"], ["a"], cannot_decide="win")
    with pytest.raises(ValueError, match="per is"):
        rank_by_m1([0], ["x"], ["a"], per="item")


def test_ranking_is_valid_json_with_its_settings():
    found = rank_by_mean([1, 2, math.nan], [0, 1, 0], ["x", "x", "y"], bootstrap=Bootstrap(resamples=20, seed=7))
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert plain["signature"] == "method:mean|boot:inputs|resamples:20|seed:7|conf:0.95"
    assert [row["system"] for row in plain["systems"]] == ["x", "y"]
    assert plain["systems"][1]["estimate"]["value"] is None
    assert plain["systems"][0]["estimate"]["value"] == 1.5


def test_system_with_one_item_has_no_interval_and_any_rank():
    value = [5.0, 1, 2, 3, 4, 3, 1, 2, 1, 2, 1]
    system = ["one", *["x"] * 5, *["y"] * 5]
    rows = {
        row.system: row
        for row in rank_by_mean(value, [0, *range(5), *range(5)], system, bootstrap=Bootstrap(resamples=200)).systems
    }
    assert rows["one"].estimate.note == "no interval: 1 items only, at least 5 are needed"
    assert not rows["one"].estimate.has_interval
    assert (rows["one"].rank, rows["one"].rank_low, rows["one"].rank_high) == (1, 1, 3)
    # Whether the others rank before or after it is unknown.
    assert rows["x"].rank_low == 1
    assert rows["y"].rank_high == 3
    assert rows["x"].estimate.has_interval
    verdicts = rank_by_win_rate([0, 0, 1, 1], ["x", "x", "y", "x"], ["one", "y", "x", "y"], ["b", "a", "a", "b"])
    notes = {row.system: row.estimate.note for row in verdicts.systems}
    assert notes["one"]
    assert notes["x"] == "no interval: 2 items only, at least 5 are needed"
