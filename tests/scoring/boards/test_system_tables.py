"""The table of systems by models of comparisons: labels, groups that are not significantly different, gaps of the
graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalapp.stats.ranking.comparisons import ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.judgements import PairwiseComparisons
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.data.columns import Comparisons, Scores, Units
from scoring.boards.systems.rankings import systems_by_comparisons, systems_by_evaluator

SETTINGS = {"ratings": "raw", "systems": "all", "by": ""}


def made(a, b, verdict, names=("a", "b", "c"), kinds=("machine", "machine", "human")):
    units = Units({k: (name, kind) for k, (name, kind) in enumerate(zip(names, kinds, strict=True))})
    for k in range(len(names)):
        units.code(k, None)
    n = len(a)
    item = np.arange(n) % 7
    return Comparisons(
        item, item, np.array(a), np.array(b), np.array(verdict), np.zeros(n, dtype=bool), units, np.arange(n) % 2
    )


def golden():
    """docs/explanation/statistics/comparisons.md#worked-numbers:
    counts (win_i, tie, win_j) a-b 12/5/3, a-c 9/4/7, b-c 6/6/8."""
    rows = []
    for pair, counts in (((0, 1), (12, 5, 3)), ((0, 2), (9, 4, 7)), ((1, 2), (6, 6, 8))):
        for verdict, n in zip(("a", "tie", "b"), counts, strict=True):
            rows += [(*pair, verdict)] * n
    return made(*zip(*rows, strict=True))


@pytest.mark.parametrize(
    ("method", "theta"),
    [
        ("bradley-terry", {"a": 0.37966, "b": -0.37966, "c": 0.0}),
        ("davidson", {"a": 0.51667, "b": -0.51667, "c": 0.0}),
        ("rao-kupper", {"a": 0.40924, "b": -0.39833, "c": -0.01091}),
    ],
)
def test_ratings_of_the_worked_counts(method, theta):
    table = systems_by_comparisons(golden(), {**SETTINGS, "method": method}, aspect="quality")
    found = {row["label"]: (row["value"] - 1000) * np.log(10) / 400 for row in table["rows"]}
    assert found == pytest.approx(theta, abs=2e-5)
    assert [row["label"] for row in table["rows"]] == ["a", "c", "b"]
    assert table["scale"] == [None, None]
    assert table["n_raters"] == 2
    assert table["signature"].startswith(f"method:{method}|")
    assert table["signature"].endswith("|aspect:quality|ratings:raw|systems:all")
    assert table["rows"][0]["shares"]["win"] == pytest.approx(21 / 40)


def test_table_agrees_with_the_ranking():
    found = golden()
    table = systems_by_comparisons(found, {**SETTINGS, "method": "davidson"}, aspect="q")
    names = np.array(["a", "b", "c"])
    ranking = rank_by_comparisons(
        PairwiseComparisons(names[found.system_a], names[found.system_b], found.verdict, item=found.item),
        bootstrap=Bootstrap(cluster=found.cluster),
        model=ComparisonModel(method="davidson"),
    )
    assert table["groups"] == ranking.extras["groups"]
    assert table["extras"]["tie"]["parameter"] == "nu"
    assert [row["rank_high"] for row in table["rows"]] == [row.rank_high for row in ranking.systems]


def test_disconnected_graph_names_the_systems():
    verdicts = ["a", "b", "tie", "a", "a", "b"]
    found = made([0, 0, 0, 2, 3, 2], [1, 1, 1, 3, 2, 3], verdicts, ("w", "x", "y", "z"), ["machine"] * 4)
    table = systems_by_comparisons(found, {**SETTINGS, "method": "bradley-terry"}, aspect="q")
    note = table["extras"]["connectivity"]["note"]
    assert note
    assert any(name in note for name in "wxyz")
    unrated = [row for row in table["rows"] if row["value"] is None]
    assert len(unrated) == 2
    assert all(row["note"] for row in unrated)


def test_groups_of_shares_come_from_intervals_of_ranks():
    rng = np.random.default_rng(3)
    n = 600
    a, b = rng.integers(0, 3, n), rng.integers(1, 3, n)
    b = (a + b) % 3
    better = rng.random(n) < np.where((a == 2) | (b == 2), np.where(a == 2, 0.9, 0.1), 0.5)
    table = systems_by_comparisons(
        made(a, b, np.where(better, "a", "b")), {**SETTINGS, "method": "win-rate"}, aspect="q"
    )
    assert table["groups"] == [[row["label"] for row in table["rows"][1:]]]
    machines = systems_by_comparisons(
        made(a, b, np.where(better, "a", "b")), {**SETTINGS, "method": "glicko2", "systems": "machine"}, aspect="q"
    )
    assert {row["label"] for row in machines["rows"]} == {"a", "b"}


def test_findings_describe_the_first_two_rows():
    found = replace(golden(), longer=np.random.default_rng(1).normal(size=60))
    for method in ("win-rate", "davidson", "bradley-terry"):
        table = systems_by_comparisons(found, {**SETTINGS, "method": method}, aspect="q")
        findings = " ".join(table["findings"])
        assert "Ranks 1 and 2 differ" in findings
        assert "swaps a and c" in findings
        assert "the first side wins" in findings
        assert "the longer text wins" in findings
        assert table["extras"]["fragility"]["flips"] >= table["extras"]["fragility"]["at_least"]
        assert table["extras"]["side_bias"]["low"] < table["extras"]["side_bias"]["value"]
    nothing = systems_by_comparisons(
        found.only(np.zeros(60, dtype=bool)), {**SETTINGS, "method": "davidson"}, aspect="q"
    )
    assert nothing["rows"] == []
    assert nothing["note"] == "No output has been compared with another for q."


def test_repeats_come_from_the_same_person():
    found = replace(golden(), raters=("ann", "ann#2"))
    for settings in ({"method": "win-rate"}, {"method": "davidson", "covariates": "rater"}):
        table = systems_by_comparisons(found, {**SETTINGS, **settings}, aspect="q")
        assert table["n_raters"] == 1
    assert table["extras"]["rater_effects"]["n"] == 1


def test_system_without_its_own_value_has_no_rank():
    units = Units({k: (name, "machine") for k, name in enumerate("abc")})
    codes = [units.code(k, None) for k in range(3)]
    items = np.repeat(np.arange(4), 3)
    scores = Scores(items, items, np.tile(codes, 4), np.arange(12.0), units)
    own = [{"system": "a", "step": None, "value": 0.5}, {"system": "c", "step": None, "value": 0.7}]
    settings = {**SETTINGS, "by": "whole"}
    table = systems_by_evaluator(scores, settings, evaluator={"slug": "whole", "aspect": ""}, own=own)
    rows = table["rows"]
    # Without an interval, no system differs significantly: any rank is possible.
    assert [(row["label"], row["rank"], row["rank_low"], row["rank_high"], row["tier"]) for row in rows] == [
        ("c", 1, 1, 3, 1), ("a", 2, 1, 3, 1), ("b", None, 1, 3, 1),
    ]  # fmt: skip
    assert table["groups"] == [["c", "a"]]
    assert rows[2]["note"] == "the evaluator has no value for this system"
    assert table["n_clusters"] == 0
    assert table["signature"] == "method:evaluator|boot:none|by:whole|systems:all"
    # Scores are not judgements.
    assert {row["n_ratings"] for row in rows} == {0}
    assert table["totals"] == {"scores": 12}


def test_own_values_differ_if_their_intervals_are_disjoint():
    units = Units({k: (name, "machine") for k, name in enumerate("abc")})
    codes = [units.code(k, None) for k in range(3)]
    items = np.repeat(np.arange(4), 3)
    scores = Scores(items, items, np.tile(codes, 4), np.arange(12.0), units)
    ends = {"a": (0.5, 0.4, 0.6), "b": (0.1, 0.0, 0.2), "c": (0.7, 0.55, 0.8)}
    own = [
        {"system": name, "step": None, "value": value, "low": low, "high": high, "n": 4, "note": "few"}
        for name, (value, low, high) in ends.items()
    ]
    table = systems_by_evaluator(scores, {**SETTINGS, "by": "w"}, evaluator={"slug": "w", "aspect": ""}, own=own)
    found = [(row["label"], row["rank"], row["rank_low"], row["rank_high"], row["tier"]) for row in table["rows"]]
    assert found == [("c", 1, 1, 2, 1), ("a", 2, 1, 2, 1), ("b", 3, 3, 3, 2)]
    assert [(row["value"], row["low"], row["high"]) for row in table["rows"]] == [ends[name] for name in "cab"]
    assert table["groups"] == [["c", "a"]]
    assert table["n_clusters"] == 4
    assert "|boot:inputs|resamples:1000|seed:0|conf:0.95|ranks:ends|by:w|" in table["signature"]


@pytest.mark.parametrize("method", ["win-rate", "davidson"])
def test_simulated_comparison_counts_once(method):
    found = replace(golden(), simulated=np.arange(60) < 4)
    table = systems_by_comparisons(found, {**SETTINGS, "method": method}, aspect="q")
    assert table["n_simulated"] == 4


def test_meteor_table_states_the_value_of_identical_texts():
    """Banerjee and Lavie's penalty is gamma (chunks / matches)^beta: identical texts have 1 chunk, so it is not 0."""
    from scoring.boards.data.columns import Scores, Units
    from scoring.boards.systems.rankings import METEOR_MAXIMUM, systems_by_evaluator
    from scoring.ml import Record, load

    units = Units({"s": ("s", "machine")})
    column = np.array([units.code("s", None)] * 2)
    scores = Scores(np.arange(2), np.arange(2), column, np.array([0.5, 0.7]), units)
    for name, said in (("meteor", [METEOR_MAXIMUM]), ("bleu", None)):
        settings = {"by": name, "systems": "all", "ratings": "raw", "method": "mean", "resamples": 10}
        evaluator = {"slug": name, "signature": f"{name}|v:1", "aspect": ""}
        assert systems_by_evaluator(scores, settings, evaluator=evaluator).get("counted") == said
    meteor = load("meteor", synonyms="none")
    assert meteor.score([Record("one two three four", ("one two three four",))])[0] == pytest.approx(1 - 0.5 / 4**3)
