"""Differences from the rival, from results made by hand."""

from __future__ import annotations

import pytest

from scoring.ml.studies.kinds import Variant, get_kind
from scoring.ml.studies.steps import Step
from scoring.ml.studies.table import tabulate
from scoring.ml.training.gold import collect_rated_outputs


def make_step(label: str, seed: int | None, scores: list[float], right: list[float] | None = None) -> tuple:
    cell = {"value": 0.5, "low": None, "high": None, "n": 27, "note": ""}
    result = {
        "parts": {"good": {label: {"spearman": cell}}}, "floors": {}, "scores": {label: {"good": scores}},
        "right": {label: {"good": right}} if right else {}, "orders": {}, "picks": {},
    }  # fmt: skip
    return Step((Variant(label, "ridge"),), seed), result


def test_difference_is_the_mean_over_seeds_on_the_same_outputs(data):
    human = collect_rated_outputs(data.test, "good").means().tolist()
    worst = [-value for value in human]
    steps = [
        make_step("new", 13, human), make_step("new", 14, worst), make_step("old", 13, worst),
        make_step("length", None, human), make_step("ridge", 13, human),
    ]  # fmt: skip
    (table,) = tabulate(get_kind("seeds"), steps, data)
    cells = {row["label"]: row["cells"].get("over_rival:spearman") for row in table["rows"]}
    # Coefficients 1 and -1 in the mean 0, that of ridge 1.
    assert cells["new"]["value"] == pytest.approx(-1)
    assert cells["old"]["value"] == pytest.approx(-2)
    assert cells["length"] is cells["ridge"] is None
    assert table["columns"] == ["spearman", "over_rival:spearman"]
    # Every resample has the same difference, so there is no interval and no test.
    assert (cells["old"]["low"], cells["old"]["p_holm"]) == (None, None)


def test_holm_is_over_the_rows(data):
    human = collect_rated_outputs(data.test, "good").means()
    one = [float(value) + (place % 7) for place, value in enumerate(human)]
    two = [float(value) - 3 * (place % 5) for place, value in enumerate(human)]
    steps = [make_step("one", 13, one), make_step("two", 13, two), make_step("ridge", 13, human.tolist())]
    (table,) = tabulate(get_kind("ablation"), steps, data)
    cells = [row["cells"]["over_rival:spearman"] for row in table["rows"][:2]]
    small, large = sorted(cells, key=lambda cell: cell["p"])
    assert small["p_holm"] == pytest.approx(min(1, 2 * small["p"]))
    assert large["p_holm"] == pytest.approx(max(large["p"], small["p_holm"]))
    assert all(cell["low"] < cell["value"] < cell["high"] < 0 for cell in cells)


def test_nothing_is_added_without_the_rival(data):
    human = collect_rated_outputs(data.test, "good").means().tolist()
    (table,) = tabulate(get_kind("seeds"), [make_step("new", 13, human)], data)
    assert table["columns"] == ["spearman"]


def test_difference_of_selections_is_over_runs(data):
    def make(label: str, seed: int, hits: list[int]) -> tuple:
        step, result = make_step(label, seed, [])
        wins = {"steps_wins": [("model", run, bool(hit)) for run, hit in enumerate(hits)]}
        return step, {**result, "scores": {}, "picks": {label: {"good": wins}}}

    steps = [
        make("new", 13, [1, 1, 1, 1, 0, 1]), make("new", 14, [1, 1, 0, 0, 0, 1]), make("ridge", 13, [0, 1, 0, 0, 0, 0]),
    ]  # fmt: skip
    (table,) = tabulate(get_kind("selection"), steps, data)
    over = table["rows"][0]["cells"]["over_rival:steps_wins"]
    # Shares 5/6 and 3/6, in the mean 4/6, minus 1/6; six runs.
    assert (over["value"], over["n"]) == (pytest.approx(0.5), 6)
    assert 0 < over["low"] < 0.5 < over["high"] <= 1
    assert table["columns"][-1] == "over_rival:steps_wins"
