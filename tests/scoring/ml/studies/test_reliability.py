"""The highest R2 that a prediction of reliability can have, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from scoring.ml.studies.measures import StudyData, measure_reliability
from scoring.ml.types import Aspect, Dataset, Item, Output, Rating


class Metric:
    """Scores equal to the ratings of the first item, and uncorrelated with those of the second."""

    def all_pairs(self, queries):
        (query,) = queries
        scores = [1.0, 2.0, 3.0, 4.0] if query.references == ("r0",) else [1.0, -1.0, -1.0, 1.0]
        return [np.array([[score] for score in scores])]


@pytest.fixture
def data() -> StudyData:
    """Two items with a reference and four outputs each, which are rated 1 to 4."""
    systems = ("a", "b", "c", "d")
    items = tuple(Item(f"i{k}", ("hello",), references=(f"r{k}",), group=f"g{k}") for k in range(2))
    outputs = tuple(Output(item.id, system, f"{system} {item.id}") for item in items for system in systems)
    ratings = tuple(Rating("r", "good", 1.0 + systems.index(o.system), o.item, o.system) for o in outputs)
    test = Dataset("hand", aspects=(Aspect("good", 1, 4),), items=items, outputs=outputs, ratings=ratings)
    return StudyData(test, test, test, ("good",))


def test_ceiling_of_two_sets_by_hand(data):
    """Gold is 1 and 0 over four answers each: variance 1/4 around 1/2. By chance a correlation of 1/2 has the variance
    (1 - 1/4)^2 / (4 - 1) = 3/16, so that 1/16 of 1/4 is left for a prediction: R2 = 1/4. The constant 1/2 has R2 = 0.
    """
    scorer = SimpleNamespace(
        settings={"ratings": "raw"}, aspects=("good",), metric=Metric(),
        reliabilities=lambda query, sets: np.full(len(sets), 0.5),
    )  # fmt: skip
    measured = measure_reliability({"ream": scorer}, data, 1, lambda done, total: None)
    row = measured.parts["ream"]["1"]
    values = {name: cell["value"] for name, cell in row.items()}
    expected = {"gold": 0.5, "predicted": 0.5, "mse": 0.25, "constant": 0.25, "r2": 0.0, "ceiling": 0.25}
    assert values == pytest.approx(expected)
    assert row["ceiling"]["n"] == 2
