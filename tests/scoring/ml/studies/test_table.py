"""The table of a study from results made by hand: mean, SD, analysis of variance, differences, comparison on items."""

from __future__ import annotations

import math

import pytest

from evalapp.stats.core.estimate import Estimate
from scoring.ml.studies.kinds import Variant, get_kind
from scoring.ml.studies.steps import Step
from scoring.ml.studies.table import tabulate
from scoring.ml.training.gold import collect_rated_outputs


def make_result(label: str, value: float, scores: list[float] | None = None, low: float = math.nan) -> dict:
    cell = Estimate(value, low, -low, 27).as_dict()
    return {
        "parts": {"good": {label: {"spearman": cell}}},
        "floors": {"good": {"constant": {"spearman": Estimate.point(0.0, 27).as_dict()}}},
        "scores": {label: {"good": scores}} if scores else {},
        "right": {},
        "orders": {},
        "picks": {},
    }


def make_steps(values: dict[str, list[float]]) -> list[tuple[Step, dict]]:
    return [
        (Step((Variant(label, "ridge"),), 13 + n), make_result(label, value))
        for label, row in values.items()
        for n, value in enumerate(row)
    ]


def test_mean_sd_anova_and_paired_difference_by_hand(data):
    results = make_steps(
        {"full model": [0.1, 0.2, 0.3], "w/o tie option": [0.2, 0.3, 0.4], "w/o context": [0.6, 0.7, 0.9]}
    )
    (table,) = tabulate(get_kind("ablation"), results, data)
    rows = {row["label"]: row["cells"]["spearman"] for row in table["rows"]}
    assert list(rows) == ["full model", "w/o tie option", "w/o context", "constant"]
    first = rows["full model"]
    assert (first["value"], first["sd"], first["over"]) == (pytest.approx(0.2), pytest.approx(0.1), "seeds")
    # t(.975, 2) = 4.3027, divided by sqrt(3).
    assert first["high"] == pytest.approx(0.2 + 4.3027 * 0.1 / math.sqrt(3), abs=1e-4)
    assert (rows["constant"]["sd"], rows["constant"]["values"]) == (None, [0.0])
    tests = table["tests"]["spearman"]
    # Means .2 .3 .7333; SS between 3 (.2111^2 + .1111^2 + .3222^2) = .482222; within .02 + .02 + .046667 = .086667.
    assert tests["one_way"]["f"] == pytest.approx((0.482222 / 2) / (0.086667 / 6), rel=1e-4)
    assert (tests["one_way"]["df_between"], tests["one_way"]["df_within"]) == (2, 6)
    assert tests["blocked"]["df_within"] == 4
    assert tests["rows"] == ["full model", "w/o tie option", "w/o context"]
    difference = rows["w/o context"]["difference"]
    # Differences .5 .5 .6: mean .5333, SD .057735, t = 16.
    assert difference["value"] == pytest.approx(1.6 / 3)
    assert difference["p"] == pytest.approx(0.003884, abs=1e-5)
    assert difference["p_holm"] == difference["p"]
    assert rows["w/o tie option"]["difference"]["p"] == 0
    assert "difference" not in first


def test_one_seed_has_the_interval_over_groups_and_no_anova(data):
    results = [(Step((Variant("ridge", "ridge"),), 13), make_result("ridge", 0.3, low=-0.5))]
    (table,) = tabulate(get_kind("seeds"), results, data)
    cell = table["rows"][0]["cells"]["spearman"]
    assert (cell["low"], cell["high"], cell["over"], cell["sd"]) == (-0.5, 0.5, "groups", None)
    assert (table["tests"], table["items"]) == ({}, None)


def test_rows_are_in_the_given_order_and_a_row_without_spread_counts_once(data):
    results = make_steps({"length": [0.3], "maude": [0.1, 0.2], "ridge": [0.4, 0.4]})
    (table,) = tabulate(get_kind("side-by-side"), results, data, ["ridge", "maude"])
    assert [row["label"] for row in table["rows"]] == ["ridge", "maude", "length", "constant"]
    ridge = table["rows"][0]["cells"]["spearman"]
    assert (ridge["sd"], ridge["values"]) == (None, [0.4])
    assert table["tests"] == {}


def test_seeds_without_a_value_are_counted(data):
    (table,) = tabulate(get_kind("seeds"), make_steps({"ridge": [0.1, math.nan, 0.3]}), data)
    cell = table["rows"][0]["cells"]["spearman"]
    assert (cell["value"], cell["values"]) == (pytest.approx(0.2), [0.1, None, 0.3])
    assert cell["note"] == "undefined with 1 of 3 seeds"


def test_rows_are_compared_on_the_items_by_their_scores(data):
    rated = collect_rated_outputs(data.test, "good")
    human = rated.means().tolist()
    good = (Step((Variant("good one", "ridge"),), 13), make_result("good one", 0.9, human))
    bad = (Step((Variant("bad one", "ridge"),), 13), make_result("bad one", -0.9, [-value for value in human]))
    (table,) = tabulate(get_kind("side-by-side"), [good, bad], data)
    assert table["items"]["letters"] == {"good one": "a", "bad one": "b"}
    (pair,) = table["items"]["pairs"]
    assert (pair["better"], pair["worse"]) == ("good one", "bad one")
    # Nine groups have 2^9 exchanges.
    assert pair["p_holm"] >= 2 / 2**9
    assert tabulate(get_kind("delta"), [good, bad], data)[0]["items"] is None
