"""The table of systems by games from an evaluator's verdicts, and its agreement with the human order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evalapp.stats.ranking.skill import VerdictTable, rank_by_games
from scoring.boards.data.columns import Comparisons, Ratings, Units
from scoring.boards.systems.games import Met, agreement_with_people, systems_by_games

NAMES = ("best", "good", "fair", "poor", "worst")
SETTINGS = {"by": "judge", "systems": "all", "ratings": "", "items": 30}


def units(names=NAMES) -> Units:
    found = Units({name: (name, "machine") for name in names})
    for name in names:
        found.code(name, None)
    return found


def met(n_items: int = 30, learned: int = 0, **rest: Any) -> Met:
    """Each system wins against later ones, except on every fifth item, which is a tie."""
    pairs = [(i, j, k) for i in range(5) for j in range(i + 1, 5) for k in range(n_items)]
    first, second, item = (np.array(column) for column in zip(*pairs, strict=True))
    return Met(
        units(), first, second, np.where(item % 5 == 0, 0, 1), [f"i{k}" for k in item], [f"g{k // 2}" for k in item],
        [k < learned for k in item], **rest,
    )  # fmt: skip


def table(found: Met, **rest: Any) -> dict[str, Any]:
    asked = {"tie": "half", "seeds": 7, "seed": 4} | rest
    return systems_by_games(found, SETTINGS, evaluator={"slug": "judge", "signature": "s|v:1"}, **asked)


def test_rows_equal_the_games_of_the_library():
    found = table(met())
    labels = sorted(NAMES)
    places = np.array([labels.index(name) for name in NAMES])
    one = met()
    played = rank_by_games(
        VerdictTable.of(labels, places[one.first], places[one.second], one.sign), seeds=7, seed=4, tie="half"
    )
    assert [row["label"] for row in found["rows"]] == list(NAMES) == list(played.order)
    for row, system in zip(found["rows"], played.systems, strict=True):
        assert row["value"] == pytest.approx(system.estimate.value)
        assert (row["low"], row["high"]) == pytest.approx((system.estimate.low, system.estimate.high))
        assert row["sd"] == pytest.approx(system.sd)
        # Four opponents on 30 items each.
        assert (row["n"], row["n_ratings"], row["kind"]) == (30, 120, "machine")
    assert found["rows"][0]["shares"] == {"win": 0.8, "tie": 0.2, "both_bad": 0.0, "cannot_decide": 0.0, "loss": 0.0}
    assert found["rows"][2]["shares"]["win"] == found["rows"][2]["shares"]["loss"] == pytest.approx(0.4)
    assert (found["rows"][0]["rank_low"], found["rows"][0]["rank"]) == (1, 1)
    assert (found["method"], found["by"], found["n_items"], found["n_clusters"]) == ("glicko2", "judge", 30, 15)
    assert found["signature"] == (
        "method:glicko2|tie:half|tau:0.5|window:50|seeds:7|seed:4|items:30|ranks:firth|conf:0.95|by:judge|systems:all"
    )
    assert found["extras"]["converged"] == played.converged
    assert found["extras"]["verdicts"] == 300
    assert table(met(), tie="paper")["rows"][0]["value"] != found["rows"][0]["value"]
    assert table(met(), seeds=1)["rows"][0]["sd"] is None


def test_necessary_notes_are_given():
    said = " ".join(table(met(swap_consistency=0.975, n_truncated=12, learned=3))["findings"])
    assert "300 verdicts on texts for 30 items" in said
    assert "97.5% of the verdicts reverse" in said
    assert "In 12 pairs a text was too long" in said
    assert "30 verdicts are on items in its training data" in said
    assert "of 7 simulations" in said
    assert table(met(learned=3))["evaluator"]["n_in_training"] == 30
    plain = " ".join(table(met())["findings"])
    assert "reverse" not in plain
    assert "training data" not in plain


def test_games_may_use_expected_scores():
    """All verdicts are ties; the displayed shares stay tied, but the ratings use the expected scores."""
    one = met()
    tied = replace(one, sign=np.zeros_like(one.sign), score=0.5 + 0.02 * (one.second - one.first))
    found = table(tied)
    assert [row["label"] for row in found["rows"]] == list(NAMES)
    assert all(row["shares"]["tie"] == 1 for row in found["rows"])
    assert found["signature"].startswith("method:glicko2|outcome:expected|tau:0.5|")
    assert "expectation" in " ".join(found["findings"])
    # The table's labels are sorted, so some pairs are reversed there.
    labels = sorted(NAMES)
    places = np.array([labels.index(name) for name in NAMES])
    games = VerdictTable.of(labels, places[one.first], places[one.second], tied.sign, tied.score)
    played = rank_by_games(games, seeds=7, seed=4)
    assert [row["value"] for row in found["rows"]] == [system.estimate.value for system in played.systems]


def ratings(value: dict[str, float], simulated: dict[str, float] | None = None) -> Ratings:
    """Two ratings of every system."""
    of = units(tuple(value))
    rows = [(code, v, False) for code, v in enumerate(value.values())] * 2
    rows += [(code, v, True) for code, v in enumerate((simulated or {}).values())] * 2
    system, number, marks = (np.array(column) for column in zip(*rows, strict=True))
    n = np.arange(len(rows))
    return Ratings(n, n, n, system, n % 2, number.astype(float), marks.astype(bool), of)


def test_people_and_simulated_raters_have_separate_rows():
    found = table(met())
    people = {"best": 4.0, "good": 4.5, "fair": 3.0, "poor": 2.0, "worst": 1.0}
    reverse = dict(zip(people, (1.0, 2.0, 3.0, 4.0, 5.0), strict=True))
    one, other = agreement_with_people(found, ratings(people, reverse), aspect="quality")
    assert (one["simulated"], one["judged_by"], one["n_judgements"], one["n_systems"]) == (False, "ratings", 10, 5)
    value = {row["label"]: row["value"] for row in found["rows"]}
    x, y = [value[name] for name in people], list(people.values())
    assert one["spearman"]["value"] == pytest.approx(stats.spearmanr(x, y).statistic)
    assert one["kendall"]["value"] == pytest.approx(stats.kendalltau(x, y).statistic)
    assert (other["simulated"], other["spearman"]["value"]) == (True, pytest.approx(-1))
    # Systems without judgements or without a rank by the evaluator do not count.
    (few,) = agreement_with_people(found, ratings({"best": 1.0, "good": 2.0, "nobody": 3.0}), aspect="quality")
    assert (few["n_systems"], few["spearman"]["value"]) == (2, None)
    assert "fewer than 4 systems" in few["spearman"]["note"]
    assert agreement_with_people(found, ratings(people).only(np.zeros(10, dtype=bool)), aspect="quality") == []


def test_comparisons_by_people():
    found, of = table(met()), units()
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    a, b = (np.array(column) for column in zip(*pairs, strict=True))
    n = np.arange(len(pairs))
    nobody = np.zeros(len(pairs), dtype=bool)
    said = Comparisons(n, n, a, b, np.full(len(pairs), "a"), nobody, of, n % 2)
    (row,) = agreement_with_people(found, said, aspect="quality")
    assert row["judged_by"] == "comparisons"
    assert (row["spearman"]["value"], row["kendall"]["value"]) == pytest.approx((1, 1))
