"""Figures of a running campaign: by hand on small columns, and a ranking that becomes stable."""

from __future__ import annotations

import numpy as np
import pytest

from evalapp.stats.planning.watching import LEAST, CampaignJudgements, advice, drift, growth, one_sided, sides, watch


def comparisons(n: int = 120, *, wins: float = 1.0, swapped: bool = False) -> CampaignJudgements:
    """Systems 0 > 1 > 2; the better one wins with probability `wins`, two people on each of 60 units."""
    rng = np.random.default_rng(5)
    pairs = np.array([(0, 1), (0, 2), (1, 2)])[np.arange(n // 2) % 3].repeat(2, axis=0)
    better = rng.random(n) < wins
    unit = np.arange(n) // 2
    return CampaignJudgements(
        kind="pairwise",
        value=np.where(better, "a", "b"),
        unit=unit,
        item=unit // 3,
        first=pairs[:, 0],
        second=pairs[:, 1],
        swapped=np.full(n, swapped),
        seconds=np.linspace(20, 1, n),
        systems=("x", "y", "z"),
    )


def ratings(value: list[float]) -> CampaignJudgements:
    n = len(value)
    unit = np.arange(n) // 2
    none = np.full(n, -1)
    return CampaignJudgements(
        "likert", np.array(value), unit, unit, unit % 2, none, np.zeros(n, bool), np.full(n, np.nan), ("x", "y")
    )


def test_agreement_is_reported_in_eighths():
    judged = ratings([1.0, 1, 5, 5] * 12)
    rows = growth(judged)
    assert [row["at"] for row in rows] == [6, 12, 18, 24, 30, 36, 42, 48]
    assert [row["value"] for row in rows] == pytest.approx([1.0] * 8)
    assert [row["at"] for row in growth(ratings([1.0, 1, 5, 5]))] == [4]


def test_drift_reports_change_and_haste():
    steady = drift(ratings([2.0, 4.0] * 24))
    assert steady["words"] == ""
    assert [row["value"] for row in steady["rows"]] == pytest.approx([3.0] * 8)
    moved = drift(ratings([2.0, 3.0] * 12 + [4.0, 5.0] * 12))
    assert moved["words"] == "The mean rating changed by +2.00 from the first to the second half of the judgements."
    assert "annotators hurry or have become faster" in drift(comparisons())["words"]
    assert drift(ratings([1.0, 2.0]))["note"] == f"fewer than {LEAST} judgements"


def test_stable_ranking_suggests_stopping():
    found = watch(comparisons(240, wins=0.9), planned=480)
    assert [row["system"] for row in found["ranking"]] == ["x", "y", "z"]
    assert found["advice"] == {
        "settled": True,
        "words": "All 3 systems differ significantly at 99 %; the campaign could stop. 240 judgements would be saved.",
    }
    # 80 decisive verdicts of each pair now, 160 at the end.
    assert (found["power"]["each_now"], found["power"]["each_end"]) == (80, 160)
    assert found["power"]["now"] < found["power"]["end"]
    assert found["precision"]["end"] == pytest.approx(found["precision"]["now"] / 2**0.5)


def test_unstable_ranking_says_how_many_more():
    found = watch(comparisons(120, wins=0.68), planned=240)
    assert not found["advice"]["settled"]
    assert "do not differ significantly yet. About" in found["advice"]["words"]
    even = watch(ratings([3.0, 3, 2, 4, 4, 2] * 8), planned=96)
    assert even["advice"]["words"].endswith("do not differ significantly yet.")


def test_few_items_are_no_reason_to_stop():
    """Two items both favour x: with equal systems, this happens in every second campaign."""
    unit = np.tile(np.arange(4), 12)
    value = np.where(unit % 2 == 0, 5.0, 1.0)
    none, n = np.full(48, -1), 48
    judged = CampaignJudgements(
        "likert", value, unit, unit // 2, unit % 2, none, np.zeros(n, bool), np.full(n, np.nan), ("x", "y")
    )  # fmt: skip
    told = advice(judged, planned=96)
    assert not told["settled"]
    assert told["words"] == "Advice on stopping needs judgements of 20 items; 2 have been judged."
    spread = CampaignJudgements(
        "likert", value, np.arange(n), np.arange(n) // 2, np.arange(n) % 2, none, np.zeros(n, bool), np.full(n, np.nan),
        ("x", "y"),
    )  # fmt: skip
    assert advice(spread, planned=96)["settled"]


def test_sides_are_those_shown():
    plain, turned = sides(comparisons(60)), sides(comparisons(60, swapped=True))
    assert plain is not None
    assert turned is not None
    assert (plain["left"], plain["right"]) == (60, 0)
    assert (turned["left"], turned["right"]) == (0, 60)
    assert sides(ratings([1.0, 2.0])) is None


def test_nothing_judged():
    found = watch(comparisons(0), planned=10)
    assert found["ranking"] == []
    assert found["growth"][0]["note"] == "no unit was rated twice"
    assert found["power"] is None
    assert found["precision"] is None


def test_rater_who_always_takes_one_side():
    assert one_sided(20, 0, raters=4) == ["Chose the first side in 100% of 20 decided comparisons."]
    assert one_sided(3, 12, raters=1) == ["Chose the second side in 80% of 15 decided comparisons."]  # p = .035
    assert one_sided(3, 12, raters=4) == []
    assert one_sided(30, 20, raters=1) == []
    assert one_sided(0, 0, raters=1) == []


def test_ranked_component_and_others_are_named():
    # Two components of two systems; the second has more judgements, so it is ranked.
    first = np.array([0] * 20 + [2] * 30)
    n = len(first)
    value, item = np.where(np.arange(n) % 3 > 0, "a", "b"), np.arange(n)
    judged = CampaignJudgements(
        "pairwise", value, item, item, first, first + 1, np.zeros(n, bool), np.full(n, np.nan), ("a1", "a2", "b1", "b2")
    )
    found = watch(judged, planned=n)
    assert found["parts"] == (
        "The systems fall into 2 parts that were never compared with each other, so only one part (among equally "
        "large parts the one with most judgements, else the first) is ranked: b1, b2. Not ranked: a1, a2."
    )
    assert {row["system"] for row in found["ranking"] if row["rank"]} == {"b1", "b2"}
