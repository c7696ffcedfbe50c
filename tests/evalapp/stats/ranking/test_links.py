"""Systems that were never compared get no order, by any method: random graphs with several components."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from evalapp.stats.ranking.comparisons import ComparisonModel, rank_by_comparisons
from evalapp.stats.ranking.connectivity import NEVER_COMPARED
from evalapp.stats.ranking.judgements import PairwiseComparisons
from evalapp.stats.ranking.skill import VerdictTable, rank_by_games
from evalapp.stats.ranking.systems import rank_by_m1, rank_by_win_rate
from evalapp.stats.resampling.bootstrap import Bootstrap
from scoring.boards.data.columns import Comparisons, Units
from scoring.boards.metrics.people import Scored, ScoredSets
from scoring.boards.metrics.ranked import RANKINGS, Compared, evaluators_by_ranking
from scoring.boards.systems.games import Met, systems_by_games
from scoring.boards.systems.rankings import systems_by_comparisons

METHODS = ("win-rate", "bradley-terry", "davidson", "rao-kupper", "glicko2")
SETTINGS = {"by": "", "ratings": "raw", "systems": "all", "method": "win-rate", "resamples": 100}


def rank(method, a, b, verdict, item):
    if method == "win-rate":
        return rank_by_win_rate(item, a, b, verdict, bootstrap=Bootstrap(resamples=50))
    return rank_by_comparisons(
        PairwiseComparisons(a, b, verdict, item=item), model=ComparisonModel(method=method, seeds=2)
    )


@st.composite
def parts(draw):
    """Judgements within two or three components of 2 to 4 systems, numbered at random; the component of each system."""
    sizes = draw(st.lists(st.integers(2, 4), min_size=2, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    names = rng.permutation(sum(sizes))
    part = np.repeat(np.arange(len(sizes)), sizes)
    rows = []
    for number, size in enumerate(sizes):
        own = names[part == number]
        pairs = [(own[k], own[k + 1]) for k in range(size - 1)]
        pairs += [tuple(rng.choice(own, 2, replace=False)) for _ in range(rng.integers(0, 20))]
        rows += [(*pair, rng.choice(["a", "b", "tie"])) for pair in pairs for _ in range(rng.integers(1, 6))]
    a, b, verdict = (np.array(column) for column in zip(*rows, strict=True))
    return a, b, verdict, np.arange(len(a)) % 11, dict(zip(names.tolist(), part.tolist(), strict=True))


@settings(max_examples=40)
@given(drawn=parts())
@pytest.mark.parametrize("method", METHODS)
def test_only_one_component_is_ranked_as_if_alone(method, drawn):
    a, b, verdict, item, part = drawn
    found = rank(method, a, b, verdict, item)
    ranked = [row for row in found.systems if row.is_ranked]
    if not ranked:  # without a fit of Davidson's or Rao and Kupper's model there is no order
        assert any("fit perfectly" in row.estimate.note for row in found.systems)
        return
    (number,) = {part[row.system] for row in ranked}
    sizes = np.bincount(list(part.values()))
    assert sizes[number] == sizes.max() == len(ranked)
    for row in found.systems:
        if not row.is_ranked:
            assert not row.estimate.is_defined
            assert row.estimate.note.startswith(NEVER_COMPARED)
            assert (row.rank_low, row.rank_high) == (1, len(part))
    note = found.extras["connectivity"]["note"]
    assert note.startswith(f"the comparisons fall into {len(sizes)} parts that were never compared with each other")
    # The ranked component is named first, also among equally large ones.
    assert set(found.extras["connectivity"]["components"][0]) == {row.system for row in ranked}
    assert ("only the largest part is ranked" in note) == (sorted(sizes)[-1] > sorted(sizes)[-2])
    assert "|part:largest|" in found.signature
    alone = np.array([part[system] == number for system in a.tolist()])
    own = rank(method, a[alone], b[alone], verdict[alone], item[alone])
    for row, other in zip(ranked, own.systems, strict=True):
        assert (row.system, row.rank, row.rank_low, row.rank_high) == (
            other.system, other.rank, other.rank_low, other.rank_high,
        )  # fmt: skip
        assert row.estimate.value == pytest.approx(other.estimate.value, nan_ok=True)
    assert "part:largest" not in own.signature


@settings(max_examples=20)
@given(drawn=parts())
def test_games_of_an_evaluator_rate_one_component(drawn):
    a, b, verdict, item, part = drawn
    sign = np.select([verdict == "a", verdict == "b"], [1, -1], 0)
    names = [f"s{number}" for number in range(len(part))]
    skill = rank_by_games(VerdictTable.of(names, a, b, sign), seeds=2)
    rated = {row.system for row in skill.systems if row.estimate.is_defined}
    assert len({part[int(name[1:])] for name in rated}) == 1
    units = Units({number: (name, "machine") for number, name in enumerate(names)})
    codes = np.array([units.code(number, None) for number in range(len(names))])
    text = [str(number) for number in item]
    met = Met(units, codes[a], codes[b], sign, text, text, [False] * len(a))
    table = systems_by_games(
        met, {**SETTINGS, "by": "judge", "items": 11}, evaluator={"slug": "judge", "signature": "s"}, tie="half",
        seeds=2, seed=1,
    )  # fmt: skip
    assert {row["label"] for row in table["rows"] if row["rank"] is not None} == rated
    assert table["extras"]["connectivity"]["note"]


def compared():
    """Bots meet bots, people meet people: b0 to b4 in a ring, h0 and h1 with each other."""
    systems = {k: (name, "machine") for k, name in enumerate(["b0", "b1", "b2", "b3", "b4", "h0", "h1"])}
    units = Units(systems)
    codes = np.array([units.code(k, None) for k in systems])
    a = np.tile([0, 1, 2, 3, 4, 5, 0], 12)
    b = np.tile([1, 2, 3, 4, 0, 6, 2], 12)
    verdict = np.where(np.random.default_rng(2).random(len(a)) < 0.6, "a", "b")
    item = np.repeat(np.arange(12), 7)
    found = Comparisons(
        item, item, codes[a], codes[b], verdict, np.zeros(len(a), dtype=bool), units, rater=np.zeros(len(a), dtype=int),
        raters=("r",), output_a=item * 7 + a, output_b=item * 7 + b,
    )  # fmt: skip
    return found


@pytest.mark.parametrize("method", METHODS)
def test_tables_give_no_rank_across_components(method):
    found = compared()
    table = systems_by_comparisons(found, {**SETTINGS, "method": method}, aspect="q")
    assert {row["label"] for row in table["rows"] if row["rank"] is None} == {"h0", "h1"}
    assert all(row["value"] is None for row in table["rows"] if row["rank"] is None)
    rows = Compared(found, subset="all", turing=False)
    rng = np.random.default_rng(3)
    evaluators = [
        Scored(metric=rng.normal(size=len(rows)), evaluator=name, name=name, score_set=name, signature=name,
               kind="metric", aspect="", references="", short_signature="", scored_at=None, n_in_training=0)
        for name in ("one", "two")
    ]  # fmt: skip
    options = {"people": method, "systems": "all", "references": "", "level": "system", "grouping": "none",
               "ratings": "raw", "test": "none", "resamples": 50}  # fmt: skip
    board = evaluators_by_ranking(rows, ScoredSets(evaluators, np.ones(len(rows), dtype=bool)), options, aspect="q")
    assert board["n_systems"] == 5
    assert board["note"].startswith("The comparisons fall into 2 parts that were never compared with each other")
    assert "figures are over the 5 with a value" in board["note"]
    assert {row["n"] for row in board["rows"]} == {5}


def test_the_reference_links_all_systems_of_m1():
    found = rank_by_m1(
        np.arange(20), np.repeat(["x", "y"], 10), np.tile(["a", "b"], 10), bootstrap=Bootstrap(resamples=50)
    )
    assert all(row.is_ranked for row in found.systems)
    assert set(RANKINGS) == {"m1", *METHODS}


@pytest.mark.parametrize("method", [method for method in RANKINGS if method != "m1"])
def test_note_about_components_names_systems(method):
    """Never their numbers, which mean nothing outside the process."""
    table = systems_by_comparisons(compared(), {**SETTINGS, "method": method}, aspect="q")
    parts = [["b0", "b1", "b2", "b3", "b4"], ["h0", "h1"]]
    assert [sorted(part) for part in table["extras"]["connectivity"]["components"]] == parts
    assert table["extras"]["connectivity"]["note"].endswith(
        "only the largest part is ranked: b0, b1, b2, b3, b4. Not ranked: h0, h1"
    )


def test_a_different_model_of_the_test_is_named():
    """Glicko-2 and win rate have no test of ranks 1 and 2, so the table names Davidson's."""
    found = compared()
    better = np.where(found.system_a < found.system_b, "a", "b")
    flipped = np.random.default_rng(4).random(len(better)) < 0.2
    worse = np.where(better == "a", "b", "a")
    mixed = dataclasses.replace(found, verdict=np.where(flipped, worse, better))
    for method, own in (("glicko2", False), ("win-rate", False), ("davidson", True)):
        table = systems_by_comparisons(mixed, {**SETTINGS, "method": method}, aspect="q")
        said = [line for line in table["findings"] if "anks 1 and 2" in line or "swaps" in line]
        assert said
        assert all(line.endswith(" (by Davidson’s model).") != own for line in said)
        assert any("deviation says how far" in line for line in table["findings"]) == (method == "glicko2")


@pytest.mark.parametrize("n", [1, 2, 5, 6, 40])
def test_a_few_wins_give_no_certain_rank_by_win_rate(n):
    """Five items all agree in a sixteenth of pairs of equal systems (two-sided), six in a thirty-second. The interval
    is exact (Clopper-Pearson, as in SciPy); resampling would give [1, 1]."""
    found = rank_by_win_rate(np.arange(n), ["x"] * n, ["y"] * n, ["a"] * n)
    certain = [(1, 1), (2, 2)] if n >= 6 else [(1, 2), (1, 2)]
    assert [(row.rank_low, row.rank_high) for row in found.systems] == certain
    assert all(row.estimate.has_interval == (n >= 5) for row in found.systems)
    exact = binomtest(n, n).proportion_ci(0.95, "exact")
    if n >= 5:
        best, worst = (row.estimate for row in found.systems)
        assert (best.low, best.high) == pytest.approx((exact.low, exact.high))
        assert (worst.low, worst.high) == pytest.approx((1 - exact.high, 1 - exact.low))
        assert ("rests on" in best.note) == (n < 10)
        assert "exact interval" in best.note


def test_ranks_of_an_undefeated_system_depend_on_its_number_of_games():
    """x always beat y, and z in half of 60 games. Resampling ranks x first each time; by the exact interval, six wins,
    [.54, 1], are compatible with a share below z's, twenty, [.83, 1], are not."""
    for n, low in ((5, 0.478), (6, 0.541), (20, 0.832)):
        item = np.arange(n + 60)
        verdict = ["a"] * n + ["a", "b"] * 30
        found = rank_by_win_rate(item, ["x"] * n + ["z"] * 60, ["y"] * (n + 60), verdict)
        first = found.systems[0]
        assert (first.system, first.estimate.high) == ("x", 1.0)
        assert first.estimate.low == pytest.approx(low, abs=0.001)
        assert first.rank_high == (1 if n == 20 else 2)


@pytest.mark.parametrize(("wins", "certain"), [(1, False), (6, False), (9, False), (10, True), (40, True)])
def test_glicko_gives_no_certain_rank_for_few_wins(wins, certain):
    """Firth's estimate for n wins to none is log(2 n + 1), its variance 4 (n + 1)^2 / (n (2 n + 1)): 9 wins give
    z = 2.944 / 1.529 = 1.93, 10 give 3.045 / 1.518 = 2.01, so ten are needed for p < .05."""
    found = rank("glicko2", ["x"] * wins, ["y"] * wins, ["a"] * wins, np.arange(wins))
    assert [(row.system, row.rank_low, row.rank_high) for row in found.systems] == [
        ("x", 1, 1 if certain else 2), ("y", 2 if certain else 1, 2),
    ]  # fmt: skip
    assert "|ranks:firth|" in found.signature


@pytest.mark.parametrize("method", METHODS)
def test_notes_about_components_name_systems(method):
    table = systems_by_comparisons(compared(), {**SETTINGS, "method": method}, aspect="q")
    assert table["extras"]["connectivity"]["components"] == [["b0", "b1", "b2", "b3", "b4"], ["h0", "h1"]]
    assert "b0, b1, b2, b3, b4. Not ranked: h0, h1" in table["extras"]["connectivity"]["note"]


@pytest.mark.parametrize("method", METHODS)
def test_only_cannot_decide_ranks_nobody(method):
    found = rank(method, ["x"] * 3, ["y"] * 3, ["cannot_decide"] * 3, np.arange(3))
    assert not any(row.is_ranked for row in found.systems)
    assert "largest part" not in found.extras.get("connectivity", {}).get("note", "")


def test_glicko_gives_equal_records_one_value_and_one_rank():
    """x and y both beat z and drew with each other: simulated games alone would put one above the other."""
    a, b = ["x"] * 8 + ["y"] * 8 + ["x"] * 2, ["z"] * 16 + ["y"] * 2
    found = rank("glicko2", a, b, (["a"] * 6 + ["b"] * 2) * 2 + ["tie"] * 2, np.arange(18))
    values = {row.system: (row.estimate.value, row.rank, row.rank_low, row.rank_high) for row in found.systems}
    assert values["x"] == values["y"]
    assert values["x"][1:] == (1, 1, 3)
    assert values["z"][1] == 3
