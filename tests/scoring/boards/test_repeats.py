"""A person's repeated judgement counts nowhere: means, wins, agreement, training and aggregated exports all use the
first one."""

from __future__ import annotations

import numpy as np
import pytest

from annotation.exporters.aggregated import Aggregator
from scoring.boards.data.columns import Comparisons, Units
from scoring.boards.metrics.people import People
from scoring.boards.systems.rankings import systems_by_comparisons, systems_by_ratings
from scoring.ml.training.gold import collect_compared_pairs, collect_rated_outputs
from scoring.ml.types import Comparison, Dataset, Item, Output, Rating, System
from tests.evalapp.stats.rated import make_ratings

SETTINGS = {"aspect": "q", "method": "mean", "ratings": "raw", "systems": "all", "by": ""}
#: r7 rates i1 three times (again, and in campaign 12), and i2 only in the other campaign; s#1 is another name.
ROWS = [
    ("i1", "a", "r7", 1), ("i1", "a", "r7#2", 5), ("i1", "a", "r7@12", 4), ("i2", "a", "r7@12", 3),
    ("i1", "a", "s#1", 2),
]  # fmt: skip
SAID = ["2 judgements repeat earlier ones by the same person and are not counted."]


def test_means_of_systems_and_of_outputs():
    found = systems_by_ratings(make_ratings(ROWS), SETTINGS, aspect="q", low=1, high=5)
    # Output i1: (1 + 2) / 2, output i2: 3.
    assert found["rows"][0]["value"] == pytest.approx((1.5 + 3) / 2)
    assert (found["counted"], found["n_raters"], found["rows"][0]["n_ratings"]) == (SAID, 2, 3)
    people = People(make_ratings(ROWS), method="raw", subset="all")
    assert people.mean.tolist() == [1.5, 3]
    assert (people.counted, people.n_ratings) == (SAID, 3)


@pytest.mark.parametrize("method", ["win-rate", "davidson"])
def test_comparisons_with_either_side_first(method):
    units = Units({name: (name, "machine") for name in "ab"})
    a, b = units.code("a", None), units.code("b", None)
    # r7 says a twice (the sides swapped the second time), s and t say b.
    found = Comparisons(
        np.array([0, 0, 0, 1]), np.array([0, 0, 0, 1]), np.array([a, b, a, a]), np.array([b, a, b, b]),
        np.array(["a", "b", "b", "b"]), np.zeros(4, dtype=bool), units, np.array([0, 1, 2, 3]),
        ("r7", "r7#2", "s", "t"),
    )  # fmt: skip
    table = systems_by_comparisons(found, {**SETTINGS, "method": method}, aspect="q")
    assert table["counted"][0].startswith("1 judgement repeats an earlier one")
    assert [row["n_ratings"] for row in table["rows"]] == [3, 3]
    if method == "win-rate":
        assert {row["label"]: row["value"] for row in table["rows"]} == pytest.approx({"a": 1 / 3, "b": 2 / 3})


def test_training_and_aggregated_exports():
    ratings = tuple(Rating(rater, "q", value, item=item, system=system) for item, system, rater, value in ROWS)
    comparisons = tuple(Comparison("i1", "a", "b", rater, "q", "a") for rater in ("r7", "r7#2", "s#1"))
    data = Dataset(
        "few", systems=(System("a"), System("b")), items=(Item("i1"), Item("i2")), ratings=ratings,
        outputs=(Output("i1", "a", "x"), Output("i1", "b", "y"), Output("i2", "a", "z")), comparisons=comparisons,
    )  # fmt: skip
    assert collect_rated_outputs(data, "q").means().tolist() == [1.5, 3]
    assert [row.rater for row in collect_compared_pairs(data, "q")] == ["r7", "s#1"]
    aggregator, made = Aggregator(), []
    for item, system, rater, value in sorted(ROWS):
        row = {"item": item, "system": system, "rater": rater, "aspect": "q", "value": value, "simulated": False}
        made += list(aggregator.take("ratings", row))
    made += list(aggregator.rest())
    assert [(row["item"], row["n"], row["mean"]) for _, row in made] == [("i1", 2, 1.5), ("i2", 1, 3)]
