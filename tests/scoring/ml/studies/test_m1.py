"""Scores of systems against Turing M1, by hand: the verdicts, the coefficient over systems, and its intervals."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from scoring.ml import load
from scoring.ml.studies.kinds import Variant, get_kind
from scoring.ml.studies.m1 import collect_verdicts, make_order
from scoring.ml.studies.measures import StudyData, measure_systems
from scoring.ml.studies.rival import tabulate_order
from scoring.ml.studies.steps import Step
from scoring.ml.studies.table import tabulate
from scoring.ml.types import Comparison, Dataset, Item, Output, Rating, System

#: How many of ten items each system is better on than the reference; its texts have as many words.
BETTER = {"poor": 1, "fair": 4, "fine": 8}


def make_compared(n: int = 10) -> Dataset:
    items = tuple(Item(f"i{k}", ("hello",), references=("the reference",), group=f"g{k}") for k in range(n))
    outputs = tuple(Output(item.id, name, "word " * BETTER[name]) for item in items for name in BETTER)
    rows = tuple(
        Comparison(item.id, name, None, "r1", "good", "tie" if k < BETTER[name] else "b", reference_b=0)
        for k, item in enumerate(items)
        for name in BETTER
    )
    systems = tuple(map(System, BETTER))
    return Dataset("d", systems=systems, items=items, outputs=outputs, comparisons=rows)


def list_systems(data: Dataset) -> dict:
    records = data.outputs_with_context()
    return {name: [record for record in records if record.system == name] for name in BETTER}


def test_coefficient_of_length_with_m1_by_hand():
    data = make_compared()
    order = make_order(data, "good")
    assert {row.system: row.estimate.value for row in order.ranking.systems} == {"fine": 0.8, "fair": 0.4, "poor": 0.1}
    # The systems are in the order of their names: fair, fine, poor.
    assert order.m1[0].tolist() == [0.4, 0.8, 0.1]
    found = order.correlate(load("length"), list_systems(data), "good")
    assert found[0] == 1
    assert len(found) == 1001
    # Length is constant in a system, so a resample differs only in M1: where two systems have the same, rho is less.
    tied = [value for value, m1 in zip(found[1:], order.m1[1:], strict=True) if len(set(m1.tolist())) < 3]
    assert tied
    assert all(value is None or value < 1 for value in tied)


def test_ratings_of_the_reference_as_an_output_give_verdicts():
    data = make_compared(2)
    outputs = (*data.outputs, *(Output(item.id, "truth", "the reference") for item in data.items))
    said = {("i0", "poor"): 1, ("i0", "truth"): 3, ("i0", "fine"): 3, ("i1", "fine"): 2, ("i1", "truth"): 1}
    ratings = tuple(Rating("r1", "good", float(value), *key) for key, value in said.items())
    rated = replace(data, comparisons=(), outputs=outputs, ratings=(*ratings, Rating("r2", "good", 1.0, "i0", "fair")))
    found = collect_verdicts(rated, "good")
    assert sorted(zip(found.items, found.systems, found.verdicts, strict=True)) == [
        ("i0", "fine", "tie"), ("i0", "poor", "b"), ("i1", "fine", "a"),
    ]  # fmt: skip
    assert collect_verdicts(replace(rated, outputs=data.outputs), "good") is None
    assert collect_verdicts(rated, "other") is None
    # Verdicts on two systems are no order.
    assert make_order(rated, "good") is None


def test_table_has_the_mean_over_seeds_and_the_difference_from_ridge():
    order = make_order(make_compared(), "good")
    one, two = np.full(1001, 1.0), np.full(1001, 0.5)
    one[1::2] = 0.0
    two[0], ridge = 0.0, np.full(1001, 0.25)
    table = tabulate_order("good", order, {"perception": [one.tolist(), two.tolist()], "ridge": [ridge.tolist()]})
    cells = {row["label"]: row["cells"] for row in table["rows"]}
    # The point is the mean of 1 and 0, minus .25; resamples are .25 and .75.
    assert cells["perception"]["m1_spearman"]["value"] == pytest.approx(0.5)
    assert (cells["perception"]["m1_spearman"]["low"], cells["perception"]["m1_spearman"]["high"]) == (0.25, 0.75)
    over = cells["perception"]["over_rival:m1_spearman"]
    assert (over["value"], over["low"], over["high"], over["n"]) == (0.25, 0.0, 0.5, 3)
    # Half of the differences are 0 and none is negative.
    assert over["p"] == over["p_holm"] == pytest.approx(1, abs=0.01)
    assert cells["ridge"]["m1_spearman"]["low"] is None


def test_study_of_systems_has_m1_and_a_table_of_orders():
    data = make_compared(30)
    study = StudyData(data, data, data, ("good",))
    measured = measure_systems({"length": load("length")}, study, 13, lambda _done, _total: None)
    assert measured.floors[""]["fine"]["m1:good"]["value"] == pytest.approx(8 / 30)
    assert measured.floors[""]["fine"]["m1:good"]["low"] > 0
    result = asdict(measured)
    first, second = tabulate(get_kind("p-sys"), [(Step((Variant("length", "length"),), None), result)], study)
    assert first["columns"] == ["length", "m1:good"]
    assert (second["name"], second["columns"]) == ("good", ["m1_spearman"])
    assert second["rows"][0]["cells"]["m1_spearman"]["value"] == 1
